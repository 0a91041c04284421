"""Relation types of the collections, as slots declare them, and the relation lists of the v-alpha `?id=` shape."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from lexarium.domain.identifiers import MAIN_VOCABULARY
from lexarium.domain.schema.model import Schema, SchemaClass, Slot, ValphaList, ValphaStep
from lexarium.domain.schema.predicates import SlotRole

Side = Literal["source", "target"]

_DIRECTIONS: dict[Side, str] = {"source": "parent", "target": "child"}


@dataclass(frozen=True)
class RelationType:
    """Type of relation from a source to a target. One that no slot declares has its predicate as name and label."""

    name: str
    label: str
    # Label of the opposite direction.
    inverse_label: str = ""
    # The target is the broader record, and there should be no cycles.
    is_hierarchical: bool = False
    # Targets are IRIs or CURIEs of other vocabularies.
    is_mapping: bool = False
    # Predicate of the slot that declares it.
    predicate: str = ""
    # Collections of the targets, by the collection of the source.
    targets: Mapping[str, tuple[str, ...]] = field(default_factory=dict, compare=False)

    @property
    def sources(self) -> dict[str, tuple[str, ...]]:
        """Collections of the sources, by the collection of the target."""
        names = {name: None for targets in self.targets.values() for name in targets}
        return {name: tuple(source for source, targets in self.targets.items() if name in targets) for name in names}


def build_relation_types(schemas: Mapping[str, Schema]) -> dict[str, RelationType]:
    """Return the relation types of vocabularies: the slots of their schemas that refer to records or elsewhere.

    Where several schemas declare one, it has the labels of the first.
    """
    types: dict[str, RelationType] = {}
    for vocabulary, schema in schemas.items():
        for schema_class in schema.collections.values():
            for slot in iter_relation_slots(schema_class):
                name = name_relation(slot)
                if name not in types:
                    is_mapping = slot.role is SlotRole.MAPPING
                    types[name] = RelationType(
                        name, slot.label, slot.inverse_label, slot.hierarchical, is_mapping, slot.predicate, {}
                    )
                targets = types[name].targets
                assert isinstance(targets, dict)
                targets[qualify_name(vocabulary, schema_class.collection)] = list_range(vocabulary, schema, slot)
    return types


def iter_relation_slots(schema_class: SchemaClass) -> Iterable[Slot]:
    """Return the slots of a class that hold relations. A reference that is a field of v-alpha is none."""
    fields = {slot.name for slot in schema_class.valpha_fields}
    return (slot for slot in schema_class.slots.values() if slot.is_reference and slot.name not in fields)


def name_relation(slot: Slot) -> str:
    """Return the name of the relation type that a slot holds."""
    if slot.role is SlotRole.MAPPING and not slot.relation:
        return slot.predicate.rpartition(":")[2]
    return slot.relation or slot.name


def qualify_name(vocabulary: str, local_name: str) -> str:
    """Return the name of a collection that is unique in the database, given its name in its vocabulary."""
    return local_name if vocabulary == MAIN_VOCABULARY else f"{vocabulary}/{local_name}"


def list_range(vocabulary: str, schema: Schema, slot: Slot) -> tuple[str, ...]:
    """Return the collections that values of a slot may be in; none for other vocabularies."""
    return tuple(
        qualify_name(vocabulary, name)
        for name, schema_class in schema.collections.items()
        if slot.range == schema_class.name or slot.range in schema_class.ancestors
    )


class RelationPath(NamedTuple):
    """Way from a record to related ones: by relations of one type, or of several in turn."""

    # Names of relation types, joined by `/`.
    type_name: str
    # Side of the record itself.
    side: Side
    # Collections of the related records.
    collections: tuple[str, ...]


@dataclass(frozen=True)
class RelationList:
    """List of related records in the v-alpha `?id=` shape."""

    key: str
    id_key: str
    # Whether entries have a `relationship`.
    shows_relationship: bool
    # Value of `direction` in entries, by the side of the record itself; empty if entries have none.
    directions: Mapping[Side, str]
    paths: Mapping[tuple[str, Side], RelationPath]

    @property
    def is_derived(self) -> bool:
        """Return whether the list follows from relations of other records."""
        return any("/" in path.type_name for path in self.paths.values())


def build_relation_list(
    vocabulary: str, schema: Schema, schema_class: SchemaClass, valpha_list: ValphaList
) -> RelationList:
    """Return the list that an annotation of a class declares."""
    paths = [_build_path(vocabulary, schema, schema_class, steps) for steps in valpha_list.paths]
    return RelationList(
        valpha_list.key,
        valpha_list.entry_keys[0],
        "relationship" in valpha_list.entry_keys,
        _DIRECTIONS if "direction" in valpha_list.entry_keys else {},
        {(path.type_name, path.side): path for path in paths},
    )


def _build_path(
    vocabulary: str, schema: Schema, schema_class: SchemaClass, steps: tuple[ValphaStep, ...]
) -> RelationPath:
    [first, *further] = steps
    if first.inverse:
        own_name = qualify_name(vocabulary, schema_class.collection)
        holders = [
            holder
            for holder in schema.collections.values()
            if first.slot in holder.slots and own_name in list_range(vocabulary, schema, holder.slots[first.slot])
        ]
        names = tuple(qualify_name(vocabulary, holder.collection) for holder in holders)
        return RelationPath(name_relation(holders[0].slots[first.slot]), "target", names)
    slot = schema_class.slots[first.slot]
    names = list_range(vocabulary, schema, slot)
    if not further:
        return RelationPath(name_relation(slot), "source", names)
    rest = _build_path(vocabulary, schema, schema.collections[names[0].rpartition("/")[2]], tuple(further))
    return RelationPath(f"{name_relation(slot)}/{rest.type_name}", "source", rest.collections)
