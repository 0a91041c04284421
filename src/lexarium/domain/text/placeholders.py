"""Texts that stand where a definition should be, and are none."""

import re

_PHRASES = frozenset(
    {
        "add a definition here",
        "add definition",
        "add definition here",
        "definition",
        "definition here",
        "definition needed",
        "enter definition here",
        "missing",
        "n a",
        "na",
        "nan",
        "needs a definition",
        "needs definition",
        "nil",
        "no definition",
        "no definition available",
        "no definition given",
        "no definition submitted yet",
        "no definition yet",
        "none",
        "not available",
        "not defined",
        "not defined yet",
        "null",
        "placeholder",
        "tba",
        "tbc",
        "tbd",
        "test",
        "to be added",
        "to be defined",
        "to be written",
        "todo",
        "undefined",
        "unknown",
        "write a definition here",
        "write definition here",
        "xxx",
    }
)
_MAX_CHARS = 40
_NON_WORD = re.compile(r"[\W_]+")


def is_placeholder(definition: str) -> bool:
    """Whether a text that is not empty only stands for a definition: a set phrase, or nothing but signs."""
    if len(definition) > _MAX_CHARS or not definition.strip():
        return False
    words = _NON_WORD.sub(" ", definition).strip().casefold()
    return not words or words in _PHRASES
