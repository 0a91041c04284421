"""The relations between records, and how the `?id=` shape of a record shows them."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, NamedTuple

Side = Literal["source", "target"]


@dataclass(frozen=True)
class Relation:
    """A kind of edge, read as a sentence: source, name, target."""

    name: str
    source: str | None
    """The collection of its sources; None: any."""
    target: str | None
    """The collection of its targets; None: what it points to is outside the catalogue, an IRI or a CURIE."""
    label: str
    """What it is called, said of its source."""
    inverse: str = ""
    """What it is called, said of its target; nothing where that is outside the catalogue."""
    hierarchical: bool = False
    """The target is the broader one, and a chain of these should not come back to where it began."""


@dataclass(frozen=True, order=True)
class Edge:
    """One relation between two records, either of which may not be there (yet)."""

    source: str
    relation: str
    target: str


class Related(NamedTuple):
    """A record at the other end of a relation."""

    id: str
    name: str | None
    """None where it is not there, or not published."""
    relation: str
    side: Side
    """The end at which the record stands that was asked about."""


def in_order(others: Iterable[Related]) -> list[Related]:
    """By relation, then by name ignoring case, then by id."""
    several = list(others)
    if len(several) == 1:
        return several
    return sorted(several, key=lambda other: (other.relation, other.side, (other.name or "").casefold(), other.id))


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

    @cached_property
    def names(self) -> frozenset[str]:
        """The names of its relations."""
        return frozenset(relation.name for relation in self.relations)


KINDOF = Relation("KINDOF", "concept", "concept", "kind of", "has kind", hierarchical=True)
PARTOF = Relation("PARTOF", "concept", "concept", "part of", "has part", hierarchical=True)
RELATED = Relation("RELATED", "concept", "concept", "related to", "related to")
ISA = Relation("ISA", "disorder", "disorder", "is a", "includes", hierarchical=True)
ASSERTS = Relation("ASSERTS", "task", "concept", "asserts", "asserted by")
HASCONTRAST = Relation("HASCONTRAST", "task", "contrast", "has contrast", "contrast of")
MEASUREDBY = Relation("MEASUREDBY", "concept", "contrast", "measured by", "measures")

# The mappings of SKOS: to the same, or something like it, in another vocabulary.
MAPPINGS = tuple(
    Relation(f"{kind}Match", None, None, f"{kind} match") for kind in ("exact", "close", "broad", "narrow", "related")
)
EXACT = MAPPINGS[0]
"""What a record is called elsewhere."""

RELATIONS: dict[str, Relation] = {
    relation.name: relation for relation in (KINDOF, PARTOF, RELATED, ISA, ASSERTS, HASCONTRAST, MEASUREDBY, *MAPPINGS)
}

HIERARCHICAL = tuple(relation.name for relation in RELATIONS.values() if relation.hierarchical)
"""Those that make up the hierarchy of a collection, together."""

HIERARCHIES: dict[str, tuple[str, ...]] = {
    collection: tuple(name for name in HIERARCHICAL if RELATIONS[name].target == collection)
    for collection in (RELATIONS[name].target for name in HIERARCHICAL)
    if collection is not None
}
"""The same by collection, where it has a hierarchy."""

LONGEST_TARGET = 2_000
"""In bytes: what an index of every engine can hold beside the source."""

# A scheme or a prefix, then a host after `//`, or something else; never what no IRI may hold (RFC 3987), or a file that
# names it could not be read again.
_OUTSIDE = re.compile(
    r"""(https?://(?=[\w\[])|(?!https?:)[a-z_][\w.+-]*:(?://(?=[\w\[])|(?!//)))"""
    r"""[^\s\x00-\x1f\x7f-\x9f\ud800-\udfff<>"{}|\\^`]+""",
    re.IGNORECASE,
)
_NOT_POINTING = ("javascript:", "vbscript:", "data:", "blob:", "file:", "about:")
"""What runs, or is only here: no vocabulary is named so, and a page that links to it would do harm."""


def why_not_outside(target: str) -> str | None:
    """Why a text does not point to something in another vocabulary, or None where it does."""
    if len(target.encode(errors="replace")) > LONGEST_TARGET:
        return f"should have at most {LONGEST_TARGET:,} bytes."
    if _OUTSIDE.fullmatch(target) and not target.lower().startswith(_NOT_POINTING):
        return None
    return "is neither an IRI, like https://example.org/1, nor a CURIE, like DOID:3324."
