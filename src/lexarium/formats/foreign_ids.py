"""Convert identifiers, names and numbers in tables to those of the main vocabulary."""

import re

from lexarium.domain.identifiers import has_prefix
from lexarium.domain.schema.collections import MAIN_COLLECTIONS
from lexarium.domain.text.characters import name_key
from lexarium.domain.vocabulary import Vocabulary

_ID_PREFIXES = tuple(prefix for collection in MAIN_COLLECTIONS.values() for prefix in collection.id_prefixes)
_INTEGER_PATTERN = re.compile(r"([+-]?[0-9]{1,19})(?:[.,]0*)?")
_REFERENCE_SEPARATOR = "\x1f"
_INT64_RANGE = range(-(2**63), 2**63)


def parse_own_id(text: str, vocabulary: Vocabulary) -> str | None:
    """Return our id from a bare id or an IRI of this catalogue; None if it is neither."""
    return text if has_prefix(text, _ID_PREFIXES) else vocabulary.parse_record_iri(text)


def format_id(record_id: str, vocabulary: Vocabulary) -> str:
    """Return our id in a form that `parse_own_id` recognizes: bare, or as an IRI if it has an unusual form."""
    return record_id if has_prefix(record_id, _ID_PREFIXES) else vocabulary.record_iri(record_id)


def parse_integer(text: str) -> int | None:
    """Return the integer that a text states, also with zeros after a point; None if there is not one of 64 bits."""
    match = _INTEGER_PATTERN.fullmatch(text)
    return int(match[1]) if match and int(match[1]) in _INT64_RANGE else None


def build_name_reference(collection: str, name: str) -> str:
    """Return a reference to a record by its name, for use within an import; it equals no id or name."""
    return f"{_REFERENCE_SEPARATOR}{collection}{_REFERENCE_SEPARATOR}{name_key(name)}"


def parse_name_reference(reference: str) -> tuple[str, str] | None:
    """Return the collection and the name key of a name reference; None if it is none."""
    collection, separator, name = reference.removeprefix(_REFERENCE_SEPARATOR).partition(_REFERENCE_SEPARATOR)
    return (collection, name) if separator and reference.startswith(_REFERENCE_SEPARATOR) else None
