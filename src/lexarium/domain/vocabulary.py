"""What a catalogue says of itself, in every export, page and manifest."""

from dataclasses import dataclass
from urllib.parse import quote, unquote

from lexarium.domain.identifiers import is_id_too_long
from lexarium.domain.text.characters import find_unstorable_char


@dataclass(frozen=True)
class Vocabulary:
    """Its title, its terms, and where its records are named."""

    title: str = "Lexarium"
    licence: str = ""
    """An IRI or a short text; nothing where none is told."""
    publisher: str = ""
    language: str = "en"
    """The language of names and definitions, and of other names unless they tell theirs."""
    base: str = "http://localhost:8000/"
    """What the IRIs of its records begin with."""

    def record_iri(self, record_id: str) -> str:
        """The name of a record in the world."""
        return f"{self.base}id/{quote(record_id, safe='')}"

    def parse_record_iri(self, iri: str) -> str | None:
        """The record that an IRI names, or None where it is not, or cannot be, one of this catalogue."""
        start = f"{self.base}id/"
        record_id = unquote(iri.removeprefix(start)) if iri.startswith(start) else ""
        return None if not record_id or is_id_too_long(record_id) or find_unstorable_char(record_id) else record_id
