"""What other vocabularies speak of, as this catalogue has it: identifiers, names, numbers."""

import re
from urllib.parse import quote

from lexarium.domain.identifiers import has_prefix
from lexarium.domain.schema.collections import COLLECTIONS
from lexarium.domain.text.characters import name_key
from lexarium.domain.vocabulary import Vocabulary

_ID_PREFIXES = tuple(prefix for collection in COLLECTIONS.values() for prefix in collection.id_prefixes)
# What a mapping may hold beside letters and digits.
_IRI_SAFE_CHARS = "!#$%&'()*+,-./:;=?@[]_~"
_INTEGER_PATTERN = re.compile(r"([+-]?[0-9]{1,19})(?:[.,]0*)?")
_REFERENCE_SEPARATOR = "\x1f"
_INT64_RANGE = range(-(2**63), 2**63)


def parse_own_id(text: str, vocabulary: Vocabulary) -> str | None:
    """The id of ours that a text is, bare or as an IRI of this catalogue; None where it is something else."""
    return text if has_prefix(text, _ID_PREFIXES) else vocabulary.parse_record_iri(text)


def format_id(record_id: str, vocabulary: Vocabulary) -> str:
    """An id of ours in a form that `own_id` knows again: bare, or where it has another form than ours as an IRI."""
    return record_id if has_prefix(record_id, _ID_PREFIXES) else vocabulary.record_iri(record_id)


def escape_iri(text: str) -> str:
    """A text with what no IRI or CURIE may hold written as %20 and the like."""
    return quote(text, safe=_IRI_SAFE_CHARS) if text.isascii() else "".join(map(_escape_char, text))


def _escape_char(char: str) -> str:
    return quote(char, safe=_IRI_SAFE_CHARS) if char.isascii() or char.isspace() or not char.isprintable() else char


def parse_integer(text: str) -> int | None:
    """The number that a text says, also with noughts after a point; None where it says none that can be kept."""
    match = _INTEGER_PATTERN.fullmatch(text)
    return int(match[1]) if match and int(match[1]) in _INT64_RANGE else None


def build_name_reference(collection: str, name: str) -> str:
    """What stands for a record, within an import, that a file knows only by its name; like no other id or name."""
    return f"{_REFERENCE_SEPARATOR}{collection}{_REFERENCE_SEPARATOR}{name_key(name)}"


def parse_name_reference(reference: str) -> tuple[str, str] | None:
    """The collection, and the key of the name, of which `label_key` made this; None where it did not."""
    collection, separator, name = reference.removeprefix(_REFERENCE_SEPARATOR).partition(_REFERENCE_SEPARATOR)
    return (collection, name) if separator and reference.startswith(_REFERENCE_SEPARATOR) else None
