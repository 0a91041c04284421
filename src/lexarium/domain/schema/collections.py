"""Collections: the classes of the vocabularies' schemas, with their fields, id prefixes and relation types."""

from collections.abc import Container, ItemsView, Iterator, Mapping, ValuesView
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cached_property, lru_cache
from typing import Any, Generic, TypeVar

from lexarium.domain.identifiers import MAIN_VOCABULARY
from lexarium.domain.labels import DEFAULT_LANGUAGE
from lexarium.domain.schema.common_relations import COMMON_RELATIONS
from lexarium.domain.schema.linkml import load_builtin_schema
from lexarium.domain.schema.model import Schema, SchemaClass, Slot
from lexarium.domain.schema.predicates import GROUPING_PREDICATES, STANDARD_ROLES, SlotRole
from lexarium.domain.schema.relation_types import (
    RelationList,
    RelationType,
    build_relation_list,
    build_relation_types,
    iter_relation_slots,
    list_range,
    name_relation,
    qualify_name,
)
from lexarium.domain.text.limits import get_input_limits
from lexarium.domain.text.nouns import pluralize

Fields = dict[str, Any]

T = TypeVar("T")

SCHEMA = load_builtin_schema("cognitive-atlas")
SYSTEM_SCHEMA = load_builtin_schema("system")

# v-alpha's search collection shows the first four fields of terms.
_SEARCH_HIT_LENGTH = 4
SEARCH_HIT_NUMBER_KEY = "ID(c)"
# Types of undeclared predicates that are kept.
_MAX_UNDECLARED = 10_000


class Collection:
    """Kind of record: a class of the schema of a vocabulary. Compared by identity, as classes are."""

    def __init__(
        self, vocabulary: str, schema: Schema, schema_class: SchemaClass, language: str = DEFAULT_LANGUAGE
    ) -> None:
        # Slug.
        self.vocabulary = vocabulary
        self.schema = schema
        self.schema_class = schema_class
        # That of texts without a tag.
        self.language = language

    def __repr__(self) -> str:
        return f"Collection({self.name!r})"

    @cached_property
    def name(self) -> str:
        """Name that is unique in the database."""
        return qualify_name(self.vocabulary, self.local_name)

    @property
    def local_name(self) -> str:
        """Name in its vocabulary."""
        return self.schema_class.collection

    @property
    def label(self) -> str:
        """Noun for one record."""
        return self.schema_class.label

    @cached_property
    def plural(self) -> str:
        """Noun for several records."""
        return pluralize(self.label)

    @property
    def description(self) -> str:
        return self.schema_class.description

    @property
    def is_auxiliary(self) -> bool:
        """Return whether its records are not counted, searched or annotated by default."""
        return self.schema_class.auxiliary

    @property
    def id_prefixes(self) -> tuple[str, ...]:
        """Starts of ids. New records get the first."""
        return self.schema_class.id_prefixes

    @property
    def in_valpha(self) -> bool:
        return self.schema_class.in_valpha

    @property
    def sort_by_name(self) -> bool:
        """Return whether records are sorted by name ignoring case, then id; otherwise by id alone."""
        return self.schema_class.sort_by_name

    @property
    def search_hit_prefix(self) -> str | None:
        """Prefix of the ids that are in v-alpha's search collection."""
        return self.schema_class.search_hit_prefix

    @cached_property
    def fields(self) -> dict[str, Slot]:
        """Slots with one value that is no relation: those of v-alpha in its order, then the others.

        Of names and definitions, which may be there in several languages, one is a field.
        """
        relations = {slot.name for slot in iter_relation_slots(self.schema_class)}
        fields = {slot.name: slot for slot in self.schema_class.valpha_fields}
        if not fields:
            by_role, identifier = self.schema_class.slots_by_role, self.schema_class.identifier
            assert identifier
            fields = {"id": identifier}
            fields |= zip(("name",), by_role.get(SlotRole.NAME, ()), strict=False)
            fields |= {slot.name: slot for slot in by_role.get(SlotRole.DEFINITION, ())[:1]}
        shown = {slot.name for slot in fields.values()}
        return fields | {
            name: slot
            for name, slot in self.schema_class.slots.items()
            if name not in relations and not slot.multivalued and name not in shown
        }

    @cached_property
    def valpha_field_names(self) -> tuple[str, ...]:
        """Fields of the v-alpha list shape, in its order. Empty if the collection has no such shape."""
        return tuple(slot.name for slot in self.schema_class.valpha_fields)

    @cached_property
    def core_fields(self) -> tuple[str, ...]:
        """Fields of the v-alpha list shape; without one, id, name, definition and aliases.

        v1 has the others under `fields`. Tables, OBO and RDF have none of them.
        """
        roles = (SlotRole.DEFINITION, SlotRole.ALIAS)
        core = (name for name, slot in self.fields.items() if name in ("id", "name") or slot.role in roles)
        return self.valpha_field_names or tuple(core)

    @cached_property
    def field_types(self) -> dict[str, type]:
        """Python type of each field: `str` or `int`."""
        return {name: int if slot.range == "integer" else str for name, slot in self.fields.items()}

    @cached_property
    def field_predicates(self) -> dict[str, str]:
        """Predicates of the fields other than the id, in order."""
        return {name: slot.predicate for name, slot in self.fields.items() if name != "id"}

    @cached_property
    def stated_predicates(self) -> frozenset[str]:
        """Predicates of the fields other than the id."""
        return frozenset(self.field_predicates.values())

    @cached_property
    def further_fields(self) -> frozenset[str]:
        """Fields that are no core fields."""
        return frozenset(self.fields.keys() - self.core_fields)

    @cached_property
    def name_predicates(self) -> tuple[str, ...]:
        """Predicates of names. The first that a record has is its name."""
        return tuple(slot.predicate for slot in self.schema_class.slots_by_role.get(SlotRole.NAME, ()))

    @cached_property
    def text_predicates(self) -> dict[str, tuple[SlotRole, str]]:
        """Predicates of names, definitions, notes and notations: the role, and the field, slot or else itself."""
        slots = {slot.predicate: slot for slot in self.schema_class.slots.values()}
        roles = self.schema.roles | {predicate: slot.role for predicate, slot in slots.items()}
        fields = {predicate: slot.name for predicate, slot in slots.items()}
        fields |= {predicate: name for name, predicate in self.field_predicates.items()}
        fields |= dict.fromkeys(self.name_predicates, "name")
        return {
            predicate: (role, fields.get(predicate, predicate))
            for predicate, role in roles.items()
            if role in (SlotRole.NAME, SlotRole.DEFINITION, SlotRole.NOTE, SlotRole.NOTATION)
        }

    @cached_property
    def reference_predicates(self) -> frozenset[str]:
        """Predicates of references, such as those of a definition."""
        predicates = self.schema.roles.keys() | self.schema_class.slots_by_predicate.keys()
        role_of, class_name = self.schema.role_of, self.local_name
        return frozenset(item for item in predicates if role_of(item, class_name) is SlotRole.REFERENCE)

    @cached_property
    def translated_fields(self) -> tuple[str, ...]:
        """Fields that a record may have in several languages."""
        roles = (SlotRole.NAME, SlotRole.DEFINITION)
        return tuple(name for name, slot in self.fields.items() if slot.role in roles and slot.range == "string")

    @cached_property
    def field_defaults(self) -> dict[str, str | int | None]:
        """Values of fields that a record does not have. An integer that v-alpha does not need has none."""
        return {name: self._get_default(name, slot) for name, slot in self.fields.items()}

    def _get_default(self, name: str, slot: Slot) -> str | int | None:
        default = slot.valpha_default if name in self.valpha_field_names else None
        if self.field_types[name] is str:
            return default or ""
        return int(default or 0) if name in self.valpha_field_names else None

    @cached_property
    def field_views(self) -> tuple[tuple[str, str, type, str | int | None], ...]:
        """Names of the fields other than the id, in order, with their predicates, types and defaults."""
        types, defaults = self.field_types, self.field_defaults
        return tuple((name, item, types[name], defaults[name]) for name, item in self.field_predicates.items())

    @cached_property
    def assigned_fields(self) -> tuple[str, ...]:
        """Fields that have a value in v-alpha even where nobody has stated one."""
        return tuple(name for name in self.valpha_field_names if name != "id" and not self.fields[name].editable)

    @cached_property
    def relation_slots(self) -> dict[str, str]:
        """Relation types by the name of the slot."""
        return {slot.name: name_relation(slot) for slot in iter_relation_slots(self.schema_class)}

    @cached_property
    def relation_predicates(self) -> dict[str, str]:
        """Predicates of relation types."""
        return {name_relation(slot): slot.predicate for slot in iter_relation_slots(self.schema_class)}

    @cached_property
    def relation_names(self) -> dict[str, str]:
        """Relation types by predicate."""
        return {predicate: name for name, predicate in self.relation_predicates.items()}

    @cached_property
    def stored_inverses(self) -> dict[str, str]:
        """Relation types that are stored at their target, with the type by which they are."""
        inverses = self.schema.inverses
        names = {
            slot.predicate: name_relation(slot)
            for schema_class in self.schema.collections.values()
            for slot in iter_relation_slots(schema_class)
            if slot.role is not SlotRole.MAPPING
        }
        return {
            name: names[inverses[predicate]]
            for name, predicate in self.relation_predicates.items()
            if inverses.get(predicate) in names
        }

    @cached_property
    def id_predicates(self) -> frozenset[str]:
        """Predicates of the fields that hold ids of records."""
        return frozenset(self.field_predicates[name] for name in self.class_fields)

    @cached_property
    def text_tag(self) -> str:
        """Tag of texts in the default language, which SKOS has and others leave out."""
        return self.language if self.schema.name == "skos" else ""

    @cached_property
    def search_hit_end(self) -> bytes:
        """Bytes after the search hit in a rendered record. Values cannot contain them, since quotes are escaped."""
        return f',"{self.valpha_field_names[_SEARCH_HIT_LENGTH]}":'.encode()

    @cached_property
    def editable_fields(self) -> dict[str, Slot]:
        """Fields that people edit. The server sets all others."""
        return {name: slot for name, slot in self.fields.items() if slot.editable and name != "id"}

    def get_max_length(self, field: str) -> int | None:
        """Return the maximum number of characters of a field, or None if it is not a text."""
        slot, limits = self.fields[field], get_input_limits()
        if self.field_types[field] is int:
            return None
        if slot.max_length is not None:
            return slot.max_length
        if slot.role is SlotRole.NAME:
            return limits.name
        return limits.alias if slot.role is SlotRole.ALIAS else limits.definition

    @cached_property
    def id_fields(self) -> dict[str, str]:
        """Prefixes of the ids in fields that hold one."""
        return {name: slot.id_prefix for name, slot in self.fields.items() if slot.id_prefix}

    @cached_property
    def class_fields(self) -> dict[str, str]:
        """Fields that hold ids of records, and the collection of those."""
        return {
            name: list_range(self.vocabulary, self.schema, slot)[0]
            for name, slot in self.fields.items()
            if slot.is_reference
        }

    @cached_property
    def class_field(self) -> str | None:
        """Field whose record is the class that lists and searches filter by, if any."""
        return next(iter(self.class_fields), None)

    @cached_property
    def timestamp_fields(self) -> tuple[str, ...]:
        """Text fields that hold a timestamp."""
        return tuple(name for name, slot in self.fields.items() if slot.range == "datetime")

    @cached_property
    def definition_field(self) -> str | None:
        """Field that holds the definition, if any."""
        return self._find_field(SlotRole.DEFINITION)

    @cached_property
    def alias_field(self) -> str | None:
        """Field that holds aliases in one text, if any."""
        return self._find_field(SlotRole.ALIAS)

    def _find_field(self, role: SlotRole) -> str | None:
        return next((name for name, slot in self.fields.items() if slot.role is role), None)

    @cached_property
    def relation_types(self) -> dict[str, RelationType]:
        """Relation types that have records of this collection as their source."""
        return {name: RELATION_TYPES[name] for name in self.relation_predicates}

    @cached_property
    def hierarchy_type(self) -> RelationType | None:
        """First hierarchical relation type within the collection, if any."""
        return next((RELATION_TYPES[name] for name in self.hierarchical_types), None)

    @cached_property
    def hierarchical_types(self) -> tuple[str, ...]:
        """Names of the hierarchical relation types within the collection."""
        types = self.relation_types.values()
        return tuple(item.name for item in types if item.is_hierarchical and self.name in item.targets[self.name])

    @cached_property
    def grouping_types(self) -> tuple[str, ...]:
        """Names of the relation types to groups that records belong to, such as subsets."""
        return tuple(name for name, predicate in self.relation_predicates.items() if predicate in GROUPING_PREDICATES)

    @cached_property
    def top_types(self) -> tuple[str, ...]:
        """Names of the relation types that state that a record is at the top of a hierarchy."""
        return tuple(name for name, predicate in self.relation_predicates.items() if predicate == "skos:topConceptOf")

    @cached_property
    def relation_lists(self) -> dict[str, RelationList]:
        """Lists of related records in the v-alpha `?id=` shape, by key."""
        lists = (
            build_relation_list(self.vocabulary, self.schema, self.schema_class, item)
            for item in self.schema_class.valpha_lists
        )
        return {relation_list.key: relation_list for relation_list in lists}

    @cached_property
    def is_class_collection(self) -> bool:
        """Return whether records of any collection have a record of this one as their class."""
        return any(self.name in collection.class_fields.values() for collection in COLLECTIONS.values())


# Values of `SharedValue` within `isolate_values`, by their ids.
_ISOLATED: ContextVar[dict[int, Any] | None] = ContextVar("isolated_values", default=None)


@contextmanager
def isolate_values() -> Iterator[None]:
    """Let the current thread set shared values for itself alone, such as those of a write that is not committed."""
    token = _ISOLATED.set({})
    try:
        yield
    finally:
        _ISOLATED.reset(token)


class SharedValue(Generic[T]):
    """Value that all threads see, except one that has set it within `isolate_values`."""

    def __init__(self, value: T) -> None:
        self._value = value

    def get(self) -> T:
        isolated = _ISOLATED.get()
        return self._value if isolated is None else isolated.get(id(self), self._value)

    def set(self, value: T) -> None:
        isolated = _ISOLATED.get()
        if isolated is None:
            self._value = value
        else:
            isolated[id(self)] = value


class Registry(Mapping[str, T]):
    """Mapping whose items are replaced all at once when a vocabulary or a schema changes."""

    def __init__(self) -> None:
        self._shared: SharedValue[Any] = SharedValue(self._index({}))

    def _index(self, items: dict[str, T]) -> dict[str, T]:
        """Return the items with what is derived from them."""
        return items

    @property
    def _items(self) -> dict[str, T]:
        items: dict[str, T] = self._shared.get()
        return items

    def replace(self, items: dict[str, T]) -> None:
        """Replace all items. Iterations that have begun go on with the former ones."""
        self._shared.set(self._index(items))

    def __getitem__(self, name: str) -> T:
        # Not through the property, since this is called several times for each record of an import.
        item: T = self._shared.get()[name]
        return item

    def __contains__(self, name: object) -> bool:
        return name in self._items

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def values(self) -> ValuesView[T]:
        # Those of the base class look up each item by name.
        return self._items.values()

    def items(self) -> ItemsView[str, T]:
        return self._items.items()


class _IndexedCollections(dict[str, Collection]):
    def __init__(self, items: dict[str, Collection]) -> None:
        super().__init__(items)
        self.searched = tuple(name for name, collection in items.items() if not collection.is_auxiliary)
        hierarchies = {name: collection.hierarchical_types for name, collection in items.items()}
        self.hierarchies = {name: types for name, types in hierarchies.items() if types}
        self.by_uri = {(item.vocabulary, item.schema_class.uri): item for item in items.values()}


class CollectionRegistry(Registry[Collection]):
    """Collections by the name that is unique in the database."""

    def _index(self, items: dict[str, Collection]) -> _IndexedCollections:
        return _IndexedCollections(items)

    @property
    def _items(self) -> _IndexedCollections:
        items: _IndexedCollections = self._shared.get()
        return items

    @property
    def searched(self) -> tuple[str, ...]:
        """Names of those that are searched by default."""
        return self._items.searched

    @property
    def hierarchies(self) -> dict[str, tuple[str, ...]]:
        """Names of the hierarchical relation types within each collection that has any."""
        return self._items.hierarchies

    @property
    def by_uri(self) -> dict[tuple[str, str], Collection]:
        """Collections by vocabulary and URI of the class."""
        return self._items.by_uri

    def list_names(self, vocabulary: str) -> list[str]:
        """Return the names of the collections of a vocabulary."""
        return [name for name, collection in self._items.items() if collection.vocabulary == vocabulary]


class _IndexedTypes(dict[str, RelationType]):
    def __init__(self, items: dict[str, RelationType]) -> None:
        super().__init__(items)
        self.by_predicate = {relation_type.predicate: relation_type for relation_type in items.values()}
        self.hierarchical = tuple(name for name, relation_type in items.items() if relation_type.is_hierarchical)
        # Statements of many records share predicates.
        self.describe_undeclared = lru_cache(_MAX_UNDECLARED)(self._describe_undeclared)

    def _describe_undeclared(self, predicate: str) -> RelationType:
        """Return the type of a predicate, with the labels that another vocabulary or the bundled table has for it."""
        declared = self.by_predicate.get(predicate)
        labels = (declared.label, declared.inverse_label) if declared else COMMON_RELATIONS.get(predicate)
        label, inverse_label = labels or (predicate, "")
        is_mapping = STANDARD_ROLES.get(predicate) is SlotRole.MAPPING
        return RelationType(predicate, label, inverse_label or f"{label} of", is_mapping=is_mapping)


class RelationTypes(Registry[RelationType]):
    """Relation types by name. Names that are not declared, which are predicates, give a type too."""

    def _index(self, items: dict[str, RelationType]) -> _IndexedTypes:
        return _IndexedTypes(items)

    @property
    def _items(self) -> _IndexedTypes:
        items: _IndexedTypes = self._shared.get()
        return items

    @property
    def hierarchical(self) -> tuple[str, ...]:
        """Names of those whose target is the broader record."""
        return self._items.hierarchical

    def __getitem__(self, name: str) -> RelationType:
        items: _IndexedTypes = self._shared.get()
        return items.get(name) or items.describe_undeclared(name)


# Those of all vocabularies that are not removed.
COLLECTIONS = CollectionRegistry()
# Those of all vocabularies.
RELATION_TYPES = RelationTypes()
# Those of removed vocabularies too, and the collection of the vocabularies themselves.
_ALL_COLLECTIONS: Registry[Collection] = Registry()
VOCABULARY = Collection("", SYSTEM_SCHEMA, SYSTEM_SCHEMA.collections["vocabulary"])


def get_collection(name: str) -> Collection:
    """Return the collection of a stored record, which may be one of a removed vocabulary."""
    return _ALL_COLLECTIONS[name]


def list_stored_collections() -> list[str]:
    """Return the names of all collections that records may be in, those of removed vocabularies too."""
    return list(_ALL_COLLECTIONS)


def register_schemas(
    schemas: Mapping[str, Schema], languages: Mapping[str, str] | None = None, removed: Container[str] = ()
) -> None:
    """Replace the collections and relation types by those of these vocabularies, some of which are removed.

    `languages` are those of texts without a tag, by vocabulary.
    """
    before = {(item.vocabulary, item.schema_class, item.language): item for item in _ALL_COLLECTIONS.values()}
    default_languages = {slug: (languages or {}).get(slug, DEFAULT_LANGUAGE) for slug in schemas}
    collections = [
        before.get((slug, schema_class, language)) or Collection(slug, schema, schema_class, language)
        for slug, schema in schemas.items()
        for language in (default_languages[slug],)
        for schema_class in schema.collections.values()
    ]
    RELATION_TYPES.replace(build_relation_types(schemas))
    _ALL_COLLECTIONS.replace({item.name: item for item in (*collections, VOCABULARY)})
    COLLECTIONS.replace({item.name: item for item in collections if item.vocabulary not in removed})


register_schemas({MAIN_VOCABULARY: SCHEMA})

# What formats and v-alpha have names of their own for.
MAIN_COLLECTIONS = dict(COLLECTIONS)
MAIN_RELATION_TYPES = dict(RELATION_TYPES)
MAPPING_TYPES = tuple(relation_type for relation_type in RELATION_TYPES.values() if relation_type.is_mapping)
EXACT_MATCH = RELATION_TYPES["exactMatch"]
MEASUREDBY = RELATION_TYPES["MEASUREDBY"]
CONCEPT = COLLECTIONS["concept"]
TASK = COLLECTIONS["task"]
DISORDER = COLLECTIONS["disorder"]
CONTRAST = COLLECTIONS["contrast"]
CONCEPT_CLASS = COLLECTIONS["concept_class"]

# By the name of the class and by that of its container, as LinkML data have it.
COLLECTIONS_BY_TYPE: dict[str, Collection] = {
    collection.schema_class.name: collection for collection in MAIN_COLLECTIONS.values()
} | {
    container: MAIN_COLLECTIONS[SCHEMA.classes[class_name].collection]
    for container, attributes in SCHEMA.containers.items()
    for class_name in attributes.values()
}


def find_collection(name: str) -> Collection | None:
    """Return a collection by its name, that of its class, or that of its container."""
    return COLLECTIONS.get(name) or COLLECTIONS_BY_TYPE.get(name)


# Ways along two relations to the records of v-alpha lists, such as `HASCONTRAST/HASDIFFERENCE`.
DERIVED_PATHS: tuple[str, ...] = tuple(
    type_name
    for collection in MAIN_COLLECTIONS.values()
    for relation_list in collection.relation_lists.values()
    for type_name, _ in relation_list.paths
    if "/" in type_name
)

DEFINITION_FIELDS: frozenset[str] = frozenset(
    collection.definition_field for collection in MAIN_COLLECTIONS.values() if collection.definition_field
)

ALIAS_FIELDS: frozenset[str] = frozenset(
    collection.alias_field for collection in MAIN_COLLECTIONS.values() if collection.alias_field
)

SEARCH_HIT_FIELDS: tuple[str, ...] = CONCEPT.valpha_field_names[:_SEARCH_HIT_LENGTH]
