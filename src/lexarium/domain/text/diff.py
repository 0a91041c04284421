"""What differs between two texts, word by word."""

import re
from difflib import SequenceMatcher
from typing import Literal, NamedTuple

_WORDS = re.compile(r"\s+|\w+|[^\w\s]")
_MAX_WORD_PAIRS = 4_000_000
"""Longer texts are compared as wholes: to compare word by word takes as long as both are long."""

SegmentChange = Literal["same", "added", "removed"]


class DiffSegment(NamedTuple):
    """A part of a text, and what became of it."""

    text: str
    change: SegmentChange


def diff_words(before: str, after: str) -> list[DiffSegment]:
    """Both texts in one: what they have alike, what was taken away, what was added."""
    old_words, new_words = _WORDS.findall(before), _WORDS.findall(after)
    if len(old_words) * len(new_words) > _MAX_WORD_PAIRS:
        return [DiffSegment(text, change) for text, change in _replace_all(before, after) if text]
    segments: list[DiffSegment] = []
    for tag, start, end, new_start, new_end in SequenceMatcher(
        None, old_words, new_words, autojunk=False
    ).get_opcodes():
        old_text, new_text = "".join(old_words[start:end]), "".join(new_words[new_start:new_end])
        parts = [(old_text, "same")] if tag == "equal" else _replace_all(old_text, new_text)
        segments += [DiffSegment(text, change) for text, change in parts if text]  # type: ignore[arg-type]
    return segments


def _replace_all(before: str, after: str) -> list[tuple[str, SegmentChange]]:
    return [(before, "removed"), (after, "added")]
