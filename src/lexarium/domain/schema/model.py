"""Schemas of vocabularies: classes of records and their slots, as LinkML declares them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from lexarium.domain.errors import LineProblem
from lexarium.domain.schema.predicates import STANDARD_ROLES, SlotRole, contract_predicate

# Order of slots that have none: after those that have.
NO_ORDER = 1_000_000

# LinkML types whose values point to something.
REFERENCE_TYPES = frozenset({"uriorcurie", "uri", "curie"})


class PermissibleValue(NamedTuple):
    """Value of an enumeration."""

    text: str
    description: str = ""


class ValphaStep(NamedTuple):
    """Step from a record to related ones: by one of its slots, or by a slot of others that points to it."""

    slot: str
    inverse: bool = False


@dataclass(frozen=True)
class ValphaList:
    """List of related records in the v-alpha `?id=` shape."""

    key: str
    # Keys of its entries. The first holds the id; `name`, `relationship` and `direction` are the others.
    entry_keys: tuple[str, ...]
    # Ways to the related records, of one step or several.
    paths: tuple[tuple[ValphaStep, ...], ...]


@dataclass(frozen=True)
class Slot:
    """Slot of a class, with all that it inherits."""

    name: str
    # CURIE with a prefix of `predicates.NAMESPACES`, else an IRI.
    predicate: str
    # Name of a LinkML type, class or enumeration.
    range: str = "string"
    # Values point to records or resources: the range is a class with an identifier, or a URI or CURIE.
    is_reference: bool = False
    # Values are nested: the range is a class without an identifier.
    is_node: bool = False
    label: str = ""
    # Label of the opposite direction.
    inverse_label: str = ""
    description: str = ""
    multivalued: bool = False
    required: bool = False
    identifier: bool = False
    pattern: str | None = None
    enum_values: tuple[PermissibleValue, ...] = ()
    # Name of a slot.
    inverse: str | None = None
    symmetric: bool = False
    role: SlotRole | None = None
    # The target is the broader record.
    hierarchical: bool = False
    order: int = NO_ORDER
    # The server sets all others.
    editable: bool = True
    max_length: int | None = None
    # Start of the ids that values have, such as `usr`.
    id_prefix: str | None = None
    # Prefix of the bundled table by which values are links, such as `PMID`.
    prefix: str | None = None
    # Several texts in one, separated by semicolons or commas.
    separated: bool = False
    # Name of the relation type in v-alpha and v1, such as `KINDOF`.
    relation: str | None = None
    # Value in the v-alpha list shape where the record has none.
    valpha_default: str | None = None


# Compared by identity, so that schemas and their classes can be keys of caches.
@dataclass(frozen=True, eq=False)
class SchemaClass:
    """Class of records, or of nested nodes."""

    # As LinkML has it, such as `ConceptClass`.
    name: str
    # In snake_case, such as `concept_class`.
    collection: str
    # CURIE with a prefix of `predicates.NAMESPACES`, else an IRI.
    uri: str
    label: str = ""
    description: str = ""
    abstract: bool = False
    # Not counted, searched or annotated by default.
    auxiliary: bool = False
    tree_root: bool = False
    # Inherited slots first, in order of declaration; those with an `order` before all others, by it.
    slots: Mapping[str, Slot] = field(default_factory=dict)
    # Parents and mixins, nearest first.
    ancestors: tuple[str, ...] = ()
    # Starts of ids, such as `trm`; new records get the first.
    id_prefixes: tuple[str, ...] = ()
    # v-alpha serves this class as a collection.
    in_valpha: bool = False
    # v-alpha sorts by name ignoring case, then id; otherwise by id alone.
    sort_by_name: bool = True
    # Records with this id prefix are in v-alpha's search collection.
    search_hit_prefix: str | None = None
    # Slots of the v-alpha list shape, in its order.
    valpha_fields: tuple[Slot, ...] = ()
    # Lists of related records in the v-alpha `?id=` shape, in its order.
    valpha_lists: tuple[ValphaList, ...] = ()

    @cached_property
    def identifier(self) -> Slot | None:
        """Slot that holds the id, if any. Without one, instances are nested nodes."""
        return next((slot for slot in self.slots.values() if slot.identifier), None)

    @cached_property
    def slots_by_predicate(self) -> dict[str, Slot]:
        return {slot.predicate: slot for slot in self.slots.values()}

    @cached_property
    def slots_by_role(self) -> dict[SlotRole, tuple[Slot, ...]]:
        """Slots of each role that occurs, in order."""
        roles = dict.fromkeys(slot.role for slot in self.slots.values() if slot.role)
        return {role: tuple(slot for slot in self.slots.values() if slot.role is role) for role in roles}


@dataclass(frozen=True, eq=False)
class Schema:
    """Schema of a vocabulary."""

    name: str
    id: str
    title: str
    description: str
    prefixes: Mapping[str, str]
    default_prefix: str
    # By LinkML name.
    classes: Mapping[str, SchemaClass]
    # Attributes of each container (a class with `tree_root`) and the class that each holds.
    containers: Mapping[str, Mapping[str, str]]
    # Values by name of an enumeration.
    enums: Mapping[str, tuple[PermissibleValue, ...]]
    # YAML as given.
    source: str = field(repr=False)
    warnings: tuple[LineProblem, ...] = ()

    @cached_property
    def collections(self) -> dict[str, SchemaClass]:
        """Concrete classes with an identifier that are no containers, by their names in snake_case."""
        return {
            schema_class.collection: schema_class
            for schema_class in self.classes.values()
            if schema_class.identifier and not schema_class.abstract and not schema_class.tree_root
        }

    @cached_property
    def main_collections(self) -> dict[str, SchemaClass]:
        """Collections that are not auxiliary."""
        return {name: collection for name, collection in self.collections.items() if not collection.auxiliary}

    def name_predicate(self, name: str) -> str:
        """Return a CURIE or IRI as predicates are written; else that of a slot or class of this name by default."""
        prefix, colon, local = name.partition(":")
        if colon:
            is_curie = prefix in self.prefixes and not local.startswith("//")
            return contract_predicate(self.prefixes[prefix] + local if is_curie else name)
        default_prefix = self.default_prefix or f"{self.id.rstrip('/#')}/"
        return contract_predicate(self.prefixes.get(default_prefix, default_prefix) + name)

    def find_class(self, name: str) -> SchemaClass | None:
        """Return a class by its name, CURIE or IRI; None if there is none."""
        uri = self.name_predicate(name)
        return self.classes.get(name) or next((item for item in self.classes.values() if item.uri == uri), None)

    def slot_of(self, class_name: str, predicate: str) -> Slot | None:
        """Return the slot of a class, given by LinkML or collection name, that a predicate belongs to."""
        schema_class = self.classes.get(class_name) or self.collections.get(class_name)
        return schema_class.slots_by_predicate.get(predicate) if schema_class else None

    def role_of(self, predicate: str, class_name: str | None = None) -> SlotRole | None:
        """Return the role of a predicate in a class, or in the first class that declares it.

        A predicate that no slot declares has the role it has in every vocabulary, if any.
        """
        if class_name is not None:
            slot = self.slot_of(class_name, predicate)
            if slot is not None:
                return slot.role
        return self.roles.get(predicate)

    @cached_property
    def roles(self) -> dict[str, SlotRole | None]:
        """Roles of predicates, declared by any class or standard."""
        roles: dict[str, SlotRole | None] = {}
        for schema_class in self.collections.values():
            for slot in schema_class.slots.values():
                roles.setdefault(slot.predicate, slot.role)
        return {**STANDARD_ROLES, **roles}

    @cached_property
    def hierarchical_predicates(self) -> frozenset[str]:
        """Predicates that point to a broader record, declared or standard."""
        slots = [slot for schema_class in self.classes.values() for slot in schema_class.slots.values()]
        declared = {slot.predicate: slot.hierarchical for slot in slots}
        standard = {predicate: True for predicate, role in STANDARD_ROLES.items() if role is SlotRole.HIERARCHY}
        return frozenset(
            predicate for predicate, is_hierarchical in {**standard, **declared}.items() if is_hierarchical
        )

    @cached_property
    def inverses(self) -> dict[str, str]:
        """Predicates that are stored as the inverse predicate with both ends exchanged, by predicate.

        Of two inverse slots, the one that is declared first is stored.
        """
        inverses: dict[str, str] = {}
        for schema_class in self.classes.values():
            for slot in schema_class.slots.values():
                inverse = self._find_inverse(slot)
                if inverse and inverse.predicate != slot.predicate and slot.predicate not in inverses:
                    inverses.setdefault(inverse.predicate, slot.predicate)
        return inverses

    def _find_inverse(self, slot: Slot) -> Slot | None:
        if slot.inverse is None:
            return None
        targets = [
            schema_class
            for schema_class in self.classes.values()
            if slot.range == schema_class.name or slot.range in schema_class.ancestors
        ]
        candidates = targets or list(self.classes.values())
        return next((target.slots[slot.inverse] for target in candidates if slot.inverse in target.slots), None)
