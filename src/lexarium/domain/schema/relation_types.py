"""The relations between records, and how the `?id=` shape of a record shows them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

Side = Literal["source", "target"]


@dataclass(frozen=True)
class RelationType:
    """A kind of edge, read as a sentence: source, name, target."""

    name: str
    source_collection: str | None
    """The collection of its sources; None: any."""
    target_collection: str | None
    """The collection of its targets; None: what it points to is outside the catalogue, an IRI or a CURIE."""
    label: str
    """What it is called, said of its source."""
    inverse_label: str = ""
    """What it is called, said of its target; nothing where that is outside the catalogue."""
    is_hierarchical: bool = False
    """The target is the broader one, and a chain of these should not come back to where it began."""


@dataclass(frozen=True)
class RelationList:
    """A list in the `?id=` shape of a record, holding the records at the other end of some of its relations."""

    key: str
    relation_types: tuple[RelationType, ...]
    sides: tuple[Side, ...]
    """Which end of the relation the record itself is."""
    id_key: str = "id"
    shows_relationship: bool = True
    """Whether an entry says its `relationship`."""
    directions: Mapping[Side, str] = field(default_factory=dict)
    """What an entry says as its `direction`, by the side on which the record stands; nothing where empty."""

    @cached_property
    def type_names(self) -> frozenset[str]:
        """The names of its relations."""
        return frozenset(relation_type.name for relation_type in self.relation_types)


KINDOF = RelationType("KINDOF", "concept", "concept", "kind of", "has kind", is_hierarchical=True)
PARTOF = RelationType("PARTOF", "concept", "concept", "part of", "has part", is_hierarchical=True)
RELATED = RelationType("RELATED", "concept", "concept", "related to", "related to")
ISA = RelationType("ISA", "disorder", "disorder", "is a", "includes", is_hierarchical=True)
ASSERTS = RelationType("ASSERTS", "task", "concept", "asserts", "asserted by")
HASCONTRAST = RelationType("HASCONTRAST", "task", "contrast", "has contrast", "contrast of")
MEASUREDBY = RelationType("MEASUREDBY", "concept", "contrast", "measured by", "measures")

# The mappings of SKOS: to the same, or something like it, in another vocabulary.
MAPPING_TYPES = tuple(
    RelationType(f"{kind}Match", None, None, f"{kind} match")
    for kind in ("exact", "close", "broad", "narrow", "related")
)
EXACT_MATCH = MAPPING_TYPES[0]
"""What a record is called elsewhere."""

RELATION_TYPES: dict[str, RelationType] = {
    relation_type.name: relation_type
    for relation_type in (KINDOF, PARTOF, RELATED, ISA, ASSERTS, HASCONTRAST, MEASUREDBY, *MAPPING_TYPES)
}

HIERARCHICAL_TYPES = tuple(
    relation_type.name for relation_type in RELATION_TYPES.values() if relation_type.is_hierarchical
)
"""Those that make up the hierarchy of a collection, together."""

HIERARCHICAL_TYPES_BY_COLLECTION: dict[str, tuple[str, ...]] = {
    collection: tuple(name for name in HIERARCHICAL_TYPES if RELATION_TYPES[name].target_collection == collection)
    for collection in (RELATION_TYPES[name].target_collection for name in HIERARCHICAL_TYPES)
    if collection is not None
}
"""The same by collection, where it has a hierarchy."""
