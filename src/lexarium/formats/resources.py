"""Resources of a vocabulary as a file states them: an identifier, a class, and statements."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from lexarium.domain.record import RecordState
from lexarium.domain.statement import Reference, Statement, Text
from lexarium.domain.vocabulary import TITLE, Vocabulary, contract_obo_iri
from lexarium.formats.parsed import WarningCounter

# Predicate of the head record for resources of a file that are neither records nor parts of one.
OTHER_RESOURCE = "lexarium:resource"
# Predicate of the head record for predicates that are written with their inverses, as the file has them.
WRITTEN_INVERSE = "lexarium:inverse"
# Predicate of the head record for predicates that OBO has as IRIs, as the file has them.
WRITTEN_IRI = "lexarium:predicateIri"
# Predicate of the start of the IRIs in an export: the slug of the vocabulary.
EXPORTED_VOCABULARY = "lexarium:vocabulary"
# Predicate of a record's state, if it is more than deprecated: merged.
STATE = "lexarium:state"

# Classes of subsets and synonym types, which RDF expresses as annotation properties of that kind.
DEFINITION_CLASSES = ("oboInOwl:SubsetProperty", "oboInOwl:SynonymTypeProperty")

# Start of the labels of blank nodes that an export makes up.
BLANK_LABEL = "lexarium"

_NAMESPACE = re.compile(r"(.*[/#:_=])[^/#:_=]+")
# IRI that was made of an id, and names the vocabulary.
_DERIVED_IRI = re.compile(r"[^?#]*/id/[^/?#]+\?vocabulary=[a-z][a-z0-9-]{0,49}")
_SLUG_CHARS = re.compile(r"[^a-z0-9]+")
# Parts of IRIs that say nothing about which vocabulary is meant.
_GENERIC_SLUG = re.compile("(?:concept-?)?scheme|concepts|id|ontology|skos|taxonomy|terms|thesaurus|vocab(?:ulary)?")


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
    # About a record that is there already: if it is not, none is created, and `class_uri` is not needed.
    is_update: bool = False
    # Reasons to reject it, each with its column; 0: none, and the reason follows the id.
    problems: list[tuple[int, str]] = field(default_factory=list)


@dataclass(frozen=True)
class ResourceOptions:
    """Options of a user for a file, in addition to its own metadata."""

    # Language of a table of translations that names none.
    language: str = ""
    # Collection of the rows of a table that name none, as the schema calls it.
    collection: str = ""
    # Meanings of columns, by title.
    column_mapping: Mapping[str, str] = field(default_factory=dict)


class SourceDescription(NamedTuple):
    """Description of a vocabulary in a file."""

    # Of the ontology, concept scheme or mapping set; empty if there is none.
    iri: str
    slug: str
    # Name of the built-in schema that fits; empty if the file is only about records that are there already.
    schema: str
    # Commonest namespace of its records; empty if prefixes are not needed.
    namespace: str
    # Title, description and other statements about the whole.
    statements: tuple[Statement, ...] = ()
    languages: tuple[str, ...] = ()
    # Kind of file. It distinguishes the file from other sources of its vocabulary if it has no IRI.
    kind: str = ""


class ResourceDocument(Protocol):
    """A file that was read, and yields resources once their vocabulary is known."""

    warnings: WarningCounter

    @property
    def covers(self) -> Callable[[Statement], bool] | None:
        """Function that returns whether the file would have a statement, if it were true of a record; None: any.

        An update removes what the same source stated before only if this file would have it. It is called after the
        resources were read.
        """

    def describe(self) -> SourceDescription:
        """Return what the file says about its vocabulary."""

    def iter_resources(self, vocabulary: Vocabulary) -> Iterator[ParsedResource]:
        """Yield the resources. IRIs are contracted by the prefixes of the vocabulary and the rule of OBO."""

    def close(self) -> None:
        """Free what was kept of the file."""


def list_metadata(vocabulary: Vocabulary) -> list[Statement]:
    """Return what an export says about its vocabulary as a whole."""
    values = {
        TITLE: vocabulary.title,
        "dcterms:description": vocabulary.description,
        "dcterms:license": vocabulary.licence,
        "dcterms:publisher": vocabulary.publisher,
        "dcterms:language": vocabulary.language,
    }
    return [
        Statement(predicate, Reference(text) if text.startswith(("http://", "https://")) else Text(text))
        for predicate, text in values.items()
        if text
    ]


def find_namespace(iris: Iterable[str]) -> str:
    """Return the commonest namespace of IRIs; nothing if the rule of OBO contracts most, or most were made of ids."""
    counts: Counter[str] = Counter()
    for iri in iris:
        match = _NAMESPACE.fullmatch(iri)
        has_namespace = match and contract_obo_iri(iri) is None and not _DERIVED_IRI.fullmatch(iri)
        counts[match[1] if match and has_namespace else ""] += 1
    return counts.most_common(1)[0][0] if counts else ""


def make_slug(text: str) -> str:
    """Return a slug that resembles a text; an empty one if nothing is left."""
    slug = _SLUG_CHARS.sub("-", text.lower()).strip("-")[:50].strip("-")
    return slug if slug[:1].isalpha() else ""


def make_iri_slug(iri: str) -> str:
    """Return a slug that resembles the end of an IRI, or what precedes it if the end is one such as `scheme`.

    Return an empty one if neither says which vocabulary is meant.
    """
    host, *path = re.split("[/#]", iri.rpartition("://")[2].rstrip("/#"))
    slugs = (make_slug(part.partition(".")[0]) for part in reversed((path or [host])[-2:]))
    return next((slug for slug in slugs if slug and not _GENERIC_SLUG.fullmatch(slug)), "")
