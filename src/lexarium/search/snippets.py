"""The part of a definition that shows why it was found."""

from collections.abc import Iterator

from lexarium.search.folding import Word, singular_of, spans
from lexarium.search.queries import Typed
from lexarium.search.ranking import Span, joined

_LONGEST = 240
_BEFORE = 60
"""How much of the text is shown before the first word that was asked for."""


def snippet(definition: str, sought: Typed) -> tuple[str, tuple[Span, ...]]:
    """A part of a definition with the words that were asked for, and where they are in it; perhaps none is."""
    found = list(_found(spans(definition), sought))
    start = _start(definition, found[0].start if found else 0)
    end = start + _LONGEST
    if end < len(definition):
        # Not within a word, where there is a space to end at.
        space = definition.rfind(" ", start + _LONGEST // 2, end)
        end = space if space > 0 else end
    text = definition[start:end]
    marked = joined(
        Span(each.start - start, each.end - start) for each in found if start <= each.start < each.end <= end
    )
    return text, marked


def _found(words: list[Word], sought: Typed) -> Iterator[Span]:
    """The words that were asked for, also where two are written as one or one as two."""
    wanted = {singular_of(form) for word in sought.telling for form in (*word.forms, *word.parts)}
    letters = {form[:1] for form in wanted}
    for place, word in enumerate(words):
        if word.text[0] not in letters:  # As most are: a plural begins as its singular does.
            continue
        following = words[place + 1] if place + 1 < len(words) else word
        if singular_of(word.text) in wanted:
            yield Span(word.start, word.end)
        elif following is not word and singular_of(word.text + following.text) in wanted:
            yield Span(word.start, following.end)


def _start(definition: str, first: int) -> int:
    if len(definition) <= _LONGEST or first < _BEFORE:
        return 0
    space = definition.find(" ", first - _BEFORE, first)
    return space + 1 if space >= 0 else first
