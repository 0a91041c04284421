"""What differs between two texts, word by word."""

import re
from difflib import SequenceMatcher
from typing import Literal, NamedTuple

_WORDS = re.compile(r"\s+|\w+|[^\w\s]")
_MOST_PAIRS = 4_000_000
"""Longer texts are compared as wholes: to compare word by word takes as long as both are long."""

Fate = Literal["same", "added", "removed"]


class Piece(NamedTuple):
    """A part of a text, and what became of it."""

    text: str
    fate: Fate


def compared(before: str, after: str) -> list[Piece]:
    """Both texts in one: what they have alike, what was taken away, what was added."""
    old, new = _WORDS.findall(before), _WORDS.findall(after)
    if len(old) * len(new) > _MOST_PAIRS:
        return [Piece(text, fate) for text, fate in _replaced(before, after) if text]
    pieces: list[Piece] = []
    for tag, start, end, new_start, new_end in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        was, now = "".join(old[start:end]), "".join(new[new_start:new_end])
        kept = [(was, "same")] if tag == "equal" else _replaced(was, now)
        pieces += [Piece(text, fate) for text, fate in kept if text]  # type: ignore[arg-type]
    return pieces


def _replaced(before: str, after: str) -> list[tuple[str, Fate]]:
    return [(before, "removed"), (after, "added")]
