"""Resources of a vocabulary as a file states them: an identifier, a class, and statements."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from lexarium.domain.identity.prefixes import OBO_BASE
from lexarium.domain.record import RecordState
from lexarium.domain.statement import Statement
from lexarium.formats.parsed import WarningCounter

_OBO_NAME = re.compile(r"([A-Za-z](?:[A-Za-z0-9_]*[A-Za-z])?)_([A-Za-z0-9]+)")
_NAMESPACE = re.compile(r"(.*[/#:_=])[^/#:_=]+")
_SLUG_CHARS = re.compile(r"[^a-z0-9]+")


@dataclass(slots=True)
class ParsedResource:
    """A resource that becomes a record."""

    line: int
    # As its owner gave it: a CURIE, or an IRI that no prefix fits.
    id: str
    # Class, by its URI as schemas have it; empty for the head record.
    class_uri: str
    statements: list[Statement] = field(default_factory=list)
    iri: str | None = None
    state: RecordState | None = None
    # Id of the resource that replaces it.
    replaced_by: str | None = None


class SourceDescription(NamedTuple):
    """What a file says about the vocabulary that it holds."""

    # Of the ontology or concept scheme; empty if there is none.
    iri: str
    slug: str
    # Name of the built-in schema that fits.
    schema: str
    # Commonest namespace of its records; empty if prefixes are not needed.
    namespace: str
    # Title, description and other statements about the whole.
    statements: tuple[Statement, ...] = ()
    languages: tuple[str, ...] = ()


class ResourceDocument(Protocol):
    """A file that was read, of which resources can be asked once their vocabulary is known."""

    warnings: WarningCounter

    def describe(self) -> SourceDescription:
        """Return what the file says about its vocabulary."""

    def iter_resources(self, prefixes: Mapping[str, str]) -> Iterator[ParsedResource]:
        """Yield the resources. IRIs are contracted by these prefixes and the rule of OBO."""

    def close(self) -> None:
        """Free what was kept of the file."""


def contract_iri(iri: str, prefixes: Mapping[str, str]) -> str:
    """Return the CURIE of an IRI by these prefixes or the rule of OBO, else the IRI."""
    for prefix, namespace in prefixes.items():
        if iri.startswith(namespace) and len(iri) > len(namespace) and not iri.startswith("//", len(namespace)):
            return f"{prefix}:{iri[len(namespace) :]}"
    match = _OBO_NAME.fullmatch(iri, len(OBO_BASE)) if iri.startswith(OBO_BASE) else None
    return f"{match[1]}:{match[2]}" if match else iri


def find_namespace(iris: Iterable[str]) -> str:
    """Return the commonest namespace of IRIs; nothing if the rule of OBO contracts most of them."""
    counts: Counter[str] = Counter()
    for iri in iris:
        match = _NAMESPACE.fullmatch(iri)
        is_obo = contract_iri(iri, {}) != iri
        counts["" if is_obo or not match else match[1]] += 1
    return counts.most_common(1)[0][0] if counts else ""


def make_slug(text: str) -> str:
    """Return a slug that resembles a text; an empty one if nothing is left."""
    slug = _SLUG_CHARS.sub("-", text.lower()).strip("-")[:50].strip("-")
    return slug if slug[:1].isalpha() else ""
