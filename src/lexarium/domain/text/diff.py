"""Word-by-word diff of two texts."""

import re
from difflib import SequenceMatcher
from typing import Literal, NamedTuple

_WORDS = re.compile(r"\s+|\w+|[^\w\s]")
# Longer texts are compared as a whole: the time grows with the product of their lengths.
_MAX_WORD_PAIRS = 4_000_000

SegmentChange = Literal["same", "added", "removed"]


class DiffSegment(NamedTuple):
    """Part of a diff."""

    text: str
    change: SegmentChange


def diff_words(before: str, after: str) -> list[DiffSegment]:
    """Return the segments of two texts that are the same, removed or added."""
    old_words, new_words = _WORDS.findall(before), _WORDS.findall(after)
    if len(old_words) * len(new_words) > _MAX_WORD_PAIRS:
        old_words, new_words = [before], [after]
    segments: list[DiffSegment] = []
    matcher = SequenceMatcher(None, old_words, new_words, autojunk=False)
    for tag, start, end, new_start, new_end in matcher.get_opcodes():
        old_text, new_text = "".join(old_words[start:end]), "".join(new_words[new_start:new_end])
        if tag == "equal":
            segments.append(DiffSegment(old_text, "same"))
        else:
            segments += [DiffSegment(old_text, "removed")] if old_text else []
            segments += [DiffSegment(new_text, "added")] if new_text else []
    return segments
