"""The part of a definition that shows why it was found."""

from collections.abc import Iterator

from lexarium.search.analysis.folding import FoldedWord, find_words, singularize_cached
from lexarium.search.query_parser import ParsedQuery
from lexarium.search.ranking import TextSpan, merge_spans

_MAX_CHARS = 240
_LEADING_CHARS = 60
"""How much of the text is shown before the first word that was asked for."""


def build_snippet(definition: str, parsed_query: ParsedQuery) -> tuple[str, tuple[TextSpan, ...]]:
    """A part of a definition with the words that were asked for, and where they are in it; perhaps none is."""
    matches = list(_iter_matches(find_words(definition), parsed_query))
    start = _find_start(definition, matches[0].start if matches else 0)
    end = start + _MAX_CHARS
    if end < len(definition):
        # Not within a word, where there is a space to end at.
        space = definition.rfind(" ", start + _MAX_CHARS // 2, end)
        end = space if space > 0 else end
    text = definition[start:end]
    spans = merge_spans(
        TextSpan(span.start - start, span.end - start) for span in matches if start <= span.start < span.end <= end
    )
    return text, spans


def _iter_matches(words: list[FoldedWord], parsed_query: ParsedQuery) -> Iterator[TextSpan]:
    """The words that were asked for, also where two are written as one or one as two."""
    query_forms = {
        singularize_cached(form) for word in parsed_query.significant_words for form in (*word.forms, *word.parts)
    }
    letters = {form[:1] for form in query_forms}
    for index, word in enumerate(words):
        if word.text[0] not in letters:  # As most are: a plural begins as its singular does.
            continue
        next_word = words[index + 1] if index + 1 < len(words) else word
        if singularize_cached(word.text) in query_forms:
            yield TextSpan(word.start, word.end)
        elif next_word is not word and singularize_cached(word.text + next_word.text) in query_forms:
            yield TextSpan(word.start, next_word.end)


def _find_start(definition: str, first: int) -> int:
    if len(definition) <= _MAX_CHARS or first < _LEADING_CHARS:
        return 0
    space = definition.find(" ", first - _LEADING_CHARS, first)
    return space + 1 if space >= 0 else first
