"""Properties of records, uniform across collections."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import chain

from lexarium.domain.identifiers import get_local_id, split_id
from lexarium.domain.record import ListQuery, Record, RelatedRecord
from lexarium.domain.schema.collections import COLLECTIONS, RELATION_TYPES, Collection
from lexarium.domain.schema.relation_types import RelationType, Side
from lexarium.search.analysis.folding import fold
from lexarium.search.analysis.languages import STOP_WORDS
from lexarium.store import change_log, records, relations, revisions
from lexarium.store.engine.position_queries import read_position
from lexarium.store.position import Snapshot

_MAX_COMPARED_CHARS = 10_000
_MAX_HOLDERS = 200


@dataclass(frozen=True)
class Entity:
    """A record with the names of the records it refers to."""

    record: Record
    class_name: str = ""
    # Published related records, if they were loaded.
    related: Sequence[RelatedRecord] = ()

    @property
    def class_id(self) -> str:
        """Id of the class, unique in the database; empty if it has none."""
        return self.record.class_id

    @property
    def name(self) -> str:
        """Name of the record."""
        name: str = self.record.fields["name"]
        return name

    @cached_property
    def definition_words(self) -> frozenset[str]:
        """Folded words of the definition without stop words; those of its beginning if it is very long."""
        return frozenset(fold(self.record.definition[:_MAX_COMPARED_CHARS]).words) - STOP_WORDS


@dataclass(frozen=True)
class PropertyValue:
    """A value of a property: a text, or the name and id of a record."""

    text: str
    id: str | None = None


@dataclass(frozen=True)
class Property:
    """A property of the records of some collections.

    If its values are records, `targets` are their collections, and `find_holders` returns the ids of the first few
    hundred records that have one of some values.
    """

    id: str
    name: str
    description: str
    collections: tuple[str, ...]
    values: Callable[[Entity], list[PropertyValue]]
    targets: tuple[str, ...] = ()
    find_holders: Callable[[Snapshot, Sequence[str]], list[str]] | None = None


def load_entities(snapshot: Snapshot, record_ids: Sequence[str], *, with_related: bool) -> dict[str, Entity]:
    """Return the existing records with these ids, in any state, by id."""
    entities_by_id: dict[str, Entity] = {}
    for batch in records.batched(record_ids):
        loaded_records = [change.to_record() for change in change_log.find_latest(snapshot, batch).values()]
        names = records.find_names(snapshot, sorted({record.class_id for record in loaded_records}))
        related_by_id = relations.find_related(snapshot, batch) if with_related else {}
        for record in loaded_records:
            class_name = names.get(record.class_id, "")
            entities_by_id[record.id] = Entity(record, class_name, related_by_id.get(record.id, ()))
    return entities_by_id


def _list_aliases(entity: Entity) -> list[PropertyValue]:
    return [PropertyValue(alias.text) for alias in entity.record.aliases]


def _list_definition(entity: Entity) -> list[PropertyValue]:
    text = entity.record.definition
    return [PropertyValue(text)] if text else []


def _list_class(entity: Entity) -> list[PropertyValue]:
    class_id = entity.class_id
    return [PropertyValue(entity.class_name or get_local_id(class_id), class_id)] if class_id else []


def _find_class_members(snapshot: Snapshot, class_ids: Sequence[str]) -> list[str]:
    revision = read_position(snapshot).revision
    pages = (
        revisions.list_page(snapshot, ListQuery(name, revision, class_id=class_id), None, _MAX_HOLDERS)
        for class_id in class_ids
        for name in COLLECTIONS.list_names(split_id(class_id)[0])
        if COLLECTIONS[name].class_field
    )
    return [change.record_id for change in chain.from_iterable(pages)][:_MAX_HOLDERS]


def _build_mapping_property(relation_type: RelationType, collections: tuple[str, ...]) -> Property:
    def list_mappings(entity: Entity) -> list[PropertyValue]:
        own_relations = sorted(entity.record.relations)
        return [PropertyValue(item.target) for item in own_relations if item.relation == relation_type.name]

    description = "Mappings to other vocabularies (SKOS)."
    return Property(relation_type.name, relation_type.label, description, collections, list_mappings)


def _build_relation_property(
    type_name: str, side: Side, property_id: str, label: str, ends: Mapping[str, tuple[str, ...]]
) -> Property:
    """Build the property of records at one side of a relation; `ends` are collections of values by their own."""

    def list_related(entity: Entity) -> list[PropertyValue]:
        return [
            PropertyValue(related.name or split_id(related.id)[1], related.id)
            for related in entity.related
            if (related.type_name, related.side) == (type_name, side)
        ]

    def find_holders(snapshot: Snapshot, value_ids: Sequence[str]) -> list[str]:
        all_related = chain.from_iterable(relations.find_related(snapshot, value_ids).values())
        holders = [item.id for item in all_related if item.type_name == type_name and item.side != side]
        return holders[:_MAX_HOLDERS]

    values = dict.fromkeys(chain.from_iterable(ends.values()))
    holder_names, value_names = (
        " or ".join(dict.fromkeys(COLLECTIONS[name].local_name for name in names)) for names in (ends, values)
    )
    description = f"Of a {holder_names}; its values are {value_names} records."
    return Property(property_id, label, description, tuple(ends), list_related, tuple(values), find_holders)


def _iter_relation_properties(names: tuple[str, ...]) -> Iterator[Property]:
    for item in RELATION_TYPES.values():
        targets = {name: ends for name, ends in item.targets.items() if name in names}
        sources = {name: ends for name, ends in item.sources.items() if name in names}
        if not targets:
            continue
        if item.is_mapping:
            yield _build_mapping_property(item, names)
        elif sources:
            inverse_id = f"{item.name}-inverse"
            yield _build_relation_property(item.name, "source", item.name, item.label, targets)
            yield _build_relation_property(item.name, "target", inverse_id, item.inverse_label, sources)


def _list_id(entity: Entity) -> list[PropertyValue]:
    return [PropertyValue(entity.record.local_id)]


def _list_name(entity: Entity) -> list[PropertyValue]:
    return [PropertyValue(entity.name)]


# Names of properties that every vocabulary has.
ID, NAME, ALIAS, DEFINITION, CLASS = "id", "name", "alias", "definition", "class"


@lru_cache(100)
def list_properties(collections: tuple[Collection, ...]) -> dict[str, Property]:
    """Return the properties that records of collections can have, by id."""
    names = tuple(collection.name for collection in collections)
    defined = tuple(collection.name for collection in collections if collection.definition_field)
    classified = tuple(collection.name for collection in collections if collection.class_field)
    classes = tuple(dict.fromkeys(item.class_fields[item.class_field] for item in collections if item.class_field))
    properties = [
        Property(ID, "identifier", "ID.", names, _list_id),
        Property(NAME, "name", "Name.", names, _list_name),
        Property(ALIAS, "alias", "Aliases.", names, _list_aliases),
        Property(DEFINITION, "definition", "Definition.", defined, _list_definition),
    ]
    if classes:
        description = "Class."
        properties.append(Property(CLASS, "class", description, classified, _list_class, classes, _find_class_members))
    return {item.id: item for item in (*properties, *_iter_relation_properties(names))}
