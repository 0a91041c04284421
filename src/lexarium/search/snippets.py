"""The part of a definition that shows why it was found."""

from lexarium.search.folding import spans
from lexarium.search.queries import typed
from lexarium.search.ranking import Span

_LONGEST = 240
_BEFORE = 60
"""How much of the text is shown before the first word that was asked for."""


def snippet(definition: str, query: str) -> tuple[str, tuple[Span, ...]]:
    """A part of a definition with the words that were asked for, and where they are in it."""
    sought = {form for word in typed(query).words for form in (*word.forms, *word.parts)}
    found = [word for word in spans(definition) if word.text in sought]
    start = _start(definition, found[0].start if found else 0)
    end = start + _LONGEST
    if end < len(definition):
        # Not within a word, where there is a space to end at.
        space = definition.rfind(" ", start + _LONGEST // 2, end)
        end = space if space > 0 else end
    text = definition[start:end]
    marked = tuple(
        Span(word.start - start, word.end - start) for word in found if start <= word.start < word.end <= end
    )
    return text, marked


def _start(definition: str, first: int) -> int:
    if len(definition) <= _LONGEST or first < _BEFORE:
        return 0
    space = definition.find(" ", first - _BEFORE, first)
    return space + 1 if space >= 0 else first
