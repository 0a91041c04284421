"""Detect placeholder texts instead of definitions."""

import re

_PHRASE_LIST = """
    add a definition here, add definition, add definition here, definition, definition here, definition needed,
    enter definition here, missing, n a, na, nan, needs a definition, needs definition, nil, no definition,
    no definition available, no definition given, no definition submitted yet, no definition yet, none,
    not available, not defined, not defined yet, null, placeholder, tba, tbc, tbd, test, to be added, to be defined,
    to be written, todo, undefined, unknown, write a definition here, write definition here, xxx
"""
_PHRASES = frozenset(phrase.strip() for phrase in _PHRASE_LIST.split(","))
_MAX_CHARS = 40
_NON_WORD = re.compile(r"[\W_]+")


def is_placeholder(definition: str) -> bool:
    """Return whether a text is a known phrase or only punctuation. Empty texts are not placeholders."""
    if len(definition) > _MAX_CHARS or not definition.strip():
        return False
    words = _NON_WORD.sub(" ", definition).strip().casefold()
    return not words or words in _PHRASES
