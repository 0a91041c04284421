"""The relations between records, and how the `?id=` shape of a record shows them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

Side = Literal["source", "target"]


@dataclass(frozen=True)
class Relation:
    """A kind of edge, read as a sentence: source, name, target."""

    name: str
    source: str | None
    """The collection of its sources; None: any."""
    target: str | None
    """The collection of its targets; None: what it points to is outside the catalogue, an IRI or a CURIE."""
    hierarchical: bool = False
    """The target is the broader one, and a chain of these should not come back to where it began."""


@dataclass(frozen=True, order=True)
class Edge:
    """One relation between two records, either of which may not be there (yet)."""

    source: str
    relation: str
    target: str


@dataclass(frozen=True, slots=True)
class Related:
    """A record at the other end of a relation."""

    id: str
    name: str | None
    """None where it is not there, or not published."""
    relation: str
    side: Side
    """The end at which the record stands that was asked about."""


def in_order(others: Iterable[Related]) -> list[Related]:
    """By relation, then by name ignoring case, then by id."""
    return sorted(others, key=lambda other: (other.relation, other.side, (other.name or "").casefold(), other.id))


@dataclass(frozen=True)
class RelationView:
    """A list in the `?id=` shape of a record, holding the records at the other end of some of its relations."""

    key: str
    relations: tuple[Relation, ...]
    sides: tuple[Side, ...]
    """Which end of the relation the record itself is."""
    id_key: str = "id"
    named: bool = True
    """Whether an entry says its `relationship`."""
    directions: Mapping[Side, str] = field(default_factory=dict)
    """What an entry says as its `direction`, by the side on which the record stands; nothing where empty."""


KINDOF = Relation("KINDOF", "concept", "concept", hierarchical=True)
PARTOF = Relation("PARTOF", "concept", "concept", hierarchical=True)
ISA = Relation("ISA", "disorder", "disorder", hierarchical=True)
ASSERTS = Relation("ASSERTS", "task", "concept")
HASCONTRAST = Relation("HASCONTRAST", "task", "contrast")
MEASUREDBY = Relation("MEASUREDBY", "concept", "contrast")

# The mappings of SKOS: to the same, or something like it, in another vocabulary.
MAPPINGS = tuple(
    Relation(name, None, None) for name in ("exactMatch", "closeMatch", "broadMatch", "narrowMatch", "relatedMatch")
)

RELATIONS: dict[str, Relation] = {
    relation.name: relation for relation in (KINDOF, PARTOF, ISA, ASSERTS, HASCONTRAST, MEASUREDBY, *MAPPINGS)
}
