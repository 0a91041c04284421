"""What other vocabularies speak of, as this catalogue has it: identifiers, names, numbers."""

import re
from urllib.parse import quote

from lexarium.domain.about import About
from lexarium.domain.collections import COLLECTIONS
from lexarium.domain.identifiers import has_prefix
from lexarium.domain.text import name_key

_PREFIXES = tuple(prefix for collection in COLLECTIONS.values() for prefix in collection.prefixes)
# What a mapping may hold beside letters and digits.
_SAFE = "!#$%&'()*+,-./:;=?@[]_~"
_WHOLE = re.compile(r"([+-]?[0-9]{1,19})(?:[.,]0*)?")
_LABEL = "\x1f"
_INTEGERS = range(-(2**63), 2**63)


def own_id(text: str, about: About) -> str | None:
    """The id of ours that a text is, bare or as an IRI of this catalogue; None where it is something else."""
    return text if has_prefix(text, _PREFIXES) else about.identifier(text)


def told_id(identifier: str, about: About) -> str:
    """An id of ours in a form that `own_id` knows again: bare, or where it has another form than ours as an IRI."""
    return identifier if has_prefix(identifier, _PREFIXES) else about.iri(identifier)


def pointing(text: str) -> str:
    """A text with what no IRI or CURIE may hold written as %20 and the like."""
    return quote(text, safe=_SAFE) if text.isascii() else "".join(map(_quoted, text))


def _quoted(char: str) -> str:
    return quote(char, safe=_SAFE) if char.isascii() or char.isspace() or not char.isprintable() else char


def whole_number(text: str) -> int | None:
    """The number that a text says, also with noughts after a point; None where it says none that can be kept."""
    match = _WHOLE.fullmatch(text)
    return int(match[1]) if match and int(match[1]) in _INTEGERS else None


def label_key(collection: str, name: str) -> str:
    """What stands for a record, within an import, that a file knows only by its name; like no other id or name."""
    return f"{_LABEL}{collection}{_LABEL}{name_key(name)}"


def label_of(key: str) -> tuple[str, str] | None:
    """The collection, and the key of the name, of which `label_key` made this; None where it did not."""
    collection, label, name = key.removeprefix(_LABEL).partition(_LABEL)
    return (collection, name) if label and key.startswith(_LABEL) else None
