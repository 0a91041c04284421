"""What a catalogue says of itself, in every export, page and manifest."""

from dataclasses import dataclass
from urllib.parse import quote, unquote

from lexarium.domain.identifiers import is_too_long
from lexarium.domain.text import unstorable


@dataclass(frozen=True)
class About:
    """Its title, its terms, and where its records are named."""

    title: str = "Lexarium"
    licence: str = ""
    """An IRI or a short text; nothing where none is told."""
    publisher: str = ""
    language: str = "en"
    """The language of names and definitions, and of other names unless they tell theirs."""
    base: str = "http://localhost:8000/"
    """What the IRIs of its records begin with."""

    def iri(self, identifier: str) -> str:
        """The name of a record in the world."""
        return f"{self.base}id/{quote(identifier, safe='')}"

    def identifier(self, iri: str) -> str | None:
        """The record that an IRI names, or None where it is not, or cannot be, one of this catalogue."""
        start = f"{self.base}id/"
        identifier = unquote(iri.removeprefix(start)) if iri.startswith(start) else ""
        return None if not identifier or is_too_long(identifier) or unstorable(identifier) else identifier
