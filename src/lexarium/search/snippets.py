"""Cut a snippet out of a definition, with the words of the query highlighted."""

from collections.abc import Iterator
from itertools import pairwise

from lexarium.domain.text.languages import get_primary_subtag
from lexarium.search.analysis.folding import FoldedWord, find_words
from lexarium.search.analysis.languages import stem_word
from lexarium.search.query_parser import ParsedQuery
from lexarium.search.ranking import TextSpan, merge_spans

_MAX_CHARS = 240
# Text shown before the first match.
_LEADING_CHARS = 60


def build_snippet(definition: str, parsed_query: ParsedQuery, tag: str) -> tuple[str, tuple[TextSpan, ...]]:
    """Return a part of a definition and the spans of matching words in it, of which there may be none."""
    matches = list(_iter_matches(find_words(definition), parsed_query, get_primary_subtag(tag)))
    start = _find_start(definition, matches[0].start if matches else 0)
    end = start + _MAX_CHARS
    if end < len(definition):
        # Do not end within a word if there is a space.
        space = definition.rfind(" ", start + _MAX_CHARS // 2, end)
        end = space if space > 0 else end
    spans = (
        TextSpan(span.start - start, span.end - start) for span in matches if start <= span.start < span.end <= end
    )
    return definition[start:end], merge_spans(spans)


def _iter_matches(words: list[FoldedWord], parsed_query: ParsedQuery, language: str) -> Iterator[TextSpan]:
    """Yield the words that match, also if two are written as one or one as two."""
    query_words = parsed_query.significant_words
    query_forms = {stem_word(form, language) for word in query_words for form in (*word.forms, *word.parts)}
    letters = {form[:1] for form in query_forms}
    for word, next_word in pairwise([*words, FoldedWord("", 0, 0)]):
        if word.text[0] not in letters:  # As most are: a word begins as its stem does.
            continue
        if stem_word(word.text, language) in query_forms:
            yield TextSpan(word.start, word.end)
        elif next_word.text and stem_word(word.text + next_word.text, language) in query_forms:
            yield TextSpan(word.start, next_word.end)


def _find_start(definition: str, first: int) -> int:
    if len(definition) <= _MAX_CHARS or first < _LEADING_CHARS:
        return 0
    space = definition.find(" ", first - _LEADING_CHARS, first)
    return space + 1 if space >= 0 else first
