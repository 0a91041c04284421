"""Relation types, and the relation lists of the v-alpha `?id=` shape."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

Side = Literal["source", "target"]


@dataclass(frozen=True)
class RelationType:
    """Type of relation from a source to a target."""

    name: str
    # None for any collection.
    source_collection: str | None
    # None for external targets: IRIs or CURIEs.
    target_collection: str | None
    label: str
    # Empty for external targets.
    inverse_label: str = ""
    # The target is the broader record, and there should be no cycles.
    is_hierarchical: bool = False


@dataclass(frozen=True)
class RelationList:
    """List of related records in the v-alpha `?id=` shape."""

    key: str
    relation_types: tuple[RelationType, ...]
    # Sides of the relation on which the record itself may be.
    sides: tuple[Side, ...]
    id_key: str = "id"
    # Whether entries have a `relationship`.
    shows_relationship: bool = True
    # Value of `direction` in entries, by the side of the record itself.
    directions: Mapping[Side, str] = field(default_factory=dict)

    @cached_property
    def type_names(self) -> frozenset[str]:
        return frozenset(relation_type.name for relation_type in self.relation_types)


KINDOF = RelationType("KINDOF", "concept", "concept", "kind of", "has kind", is_hierarchical=True)
PARTOF = RelationType("PARTOF", "concept", "concept", "part of", "has part", is_hierarchical=True)
RELATED = RelationType("RELATED", "concept", "concept", "related to", "related to")
ISA = RelationType("ISA", "disorder", "disorder", "is a", "includes", is_hierarchical=True)
ASSERTS = RelationType("ASSERTS", "task", "concept", "asserts", "asserted by")
HASCONTRAST = RelationType("HASCONTRAST", "task", "contrast", "has contrast", "contrast of")
MEASUREDBY = RelationType("MEASUREDBY", "concept", "contrast", "measured by", "measures")

# SKOS mappings to other vocabularies.
MAPPING_TYPES = tuple(
    RelationType(f"{kind}Match", None, None, f"{kind} match")
    for kind in ("exact", "close", "broad", "narrow", "related")
)
EXACT_MATCH = MAPPING_TYPES[0]

RELATION_TYPES: dict[str, RelationType] = {
    relation_type.name: relation_type
    for relation_type in (KINDOF, PARTOF, RELATED, ISA, ASSERTS, HASCONTRAST, MEASUREDBY, *MAPPING_TYPES)
}

HIERARCHICAL_TYPES = tuple(
    relation_type.name for relation_type in RELATION_TYPES.values() if relation_type.is_hierarchical
)

HIERARCHICAL_TYPES_BY_COLLECTION: dict[str, tuple[str, ...]] = {
    collection: tuple(name for name in HIERARCHICAL_TYPES if RELATION_TYPES[name].target_collection == collection)
    for collection in (RELATION_TYPES[name].target_collection for name in HIERARCHICAL_TYPES)
    if collection is not None
}
