"""Metadata of a vocabulary."""

from dataclasses import dataclass
from urllib.parse import quote, unquote

from lexarium.domain.identifiers import is_id_too_long
from lexarium.domain.text.characters import find_unstorable_char


@dataclass(frozen=True)
class Vocabulary:
    """Title, licence, publisher, language and base IRI of a vocabulary."""

    title: str = "Lexarium"
    # IRI or short text; may be empty.
    licence: str = ""
    publisher: str = ""
    # Language of names, definitions, and aliases without their own.
    language: str = "en"
    # Start of the IRIs of records.
    base: str = "http://localhost:8000/"

    def record_iri(self, record_id: str) -> str:
        """Return the IRI of a record."""
        return f"{self.base}id/{quote(record_id, safe='')}"

    def parse_record_iri(self, iri: str) -> str | None:
        """Return the record id in an IRI, or None if it is not an IRI of this vocabulary."""
        start = f"{self.base}id/"
        record_id = unquote(iri.removeprefix(start)) if iri.startswith(start) else ""
        return None if not record_id or is_id_too_long(record_id) or find_unstorable_char(record_id) else record_id
