"""Properties of records, uniform across collections."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

from lexarium.domain.record import ListQuery, Record, RelatedRecord
from lexarium.domain.schema.collections import COLLECTIONS, CONCEPT_CLASS, DEFINITION_FIELDS, RELATION_TYPES
from lexarium.domain.schema.relation_types import RelationType, Side
from lexarium.search.analysis.folding import fold
from lexarium.search.documents import STOP_WORDS
from lexarium.store import change_log, records, relations, revisions
from lexarium.store.engine.position_queries import read_position
from lexarium.store.position import Snapshot

_CLASS_FIELD = "id_concept_class"
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
        class_ids = {record.fields[_CLASS_FIELD] for record in loaded_records if _CLASS_FIELD in record.fields}
        names = records.find_names(snapshot, sorted(class_ids))
        related_by_id = relations.find_related(snapshot, batch) if with_related else {}
        for record in loaded_records:
            class_name = names.get(record.fields.get(_CLASS_FIELD, ""), "")
            entities_by_id[record.id] = Entity(record, class_name, related_by_id.get(record.id, ()))
    return entities_by_id


def _list_aliases(entity: Entity) -> list[PropertyValue]:
    return [PropertyValue(alias.text) for alias in entity.record.aliases]


def _list_definition(entity: Entity) -> list[PropertyValue]:
    text = entity.record.definition
    return [PropertyValue(text)] if text else []


def _list_class(entity: Entity) -> list[PropertyValue]:
    class_id = entity.record.fields.get(_CLASS_FIELD)
    return [PropertyValue(entity.class_name or class_id, class_id)] if class_id else []


def _find_class_members(snapshot: Snapshot, class_ids: Sequence[str]) -> list[str]:
    revision = read_position(snapshot).revision
    pages = (
        revisions.list_page(snapshot, ListQuery(name, revision, class_id=class_id), None, _MAX_HOLDERS)
        for name in _CLASSIFIED
        for class_id in class_ids
    )
    return [change.record_id for change in chain.from_iterable(pages)][:_MAX_HOLDERS]


def _collections_with(*fields: str) -> tuple[str, ...]:
    return tuple(name for name, collection in COLLECTIONS.items() if not collection.fields.keys().isdisjoint(fields))


def _build_mapping_property(relation_type: RelationType) -> Property:
    def list_mappings(entity: Entity) -> list[PropertyValue]:
        own_relations = sorted(entity.record.relations)
        return [PropertyValue(item.target) for item in own_relations if item.relation == relation_type.name]

    description = "What it is mapped to in another vocabulary, as SKOS has it."
    return Property(relation_type.name, relation_type.label, description, _ALL, list_mappings)


def _build_relation_property(
    type_name: str, side: Side, property_id: str, label: str, ends: Mapping[str, tuple[str, ...]]
) -> Property:
    """Build the property of records at one side of a relation; `ends` are collections of values by their own."""

    def list_related(entity: Entity) -> list[PropertyValue]:
        return [
            PropertyValue(related.name or related.id, related.id)
            for related in entity.related
            if (related.type_name, related.side) == (type_name, side)
        ]

    def find_holders(snapshot: Snapshot, value_ids: Sequence[str]) -> list[str]:
        all_related = chain.from_iterable(relations.find_related(snapshot, value_ids).values())
        holders = [item.id for item in all_related if item.type_name == type_name and item.side != side]
        return holders[:_MAX_HOLDERS]

    values = dict.fromkeys(chain.from_iterable(ends.values()))
    description = f"Of a {' or '.join(ends)}; its values are {' or '.join(values)} records."
    return Property(property_id, label, description, tuple(ends), list_related, tuple(values), find_holders)


def _iter_relation_properties() -> Iterator[Property]:
    for item in RELATION_TYPES.values():
        if item.is_mapping:
            yield _build_mapping_property(item)
        else:
            inverse_id = f"{item.name}-inverse"
            yield _build_relation_property(item.name, "source", item.name, item.label, item.targets)
            yield _build_relation_property(item.name, "target", inverse_id, item.inverse_label, item.sources)


_ALL = tuple(COLLECTIONS)
_CLASSIFIED = _collections_with(_CLASS_FIELD)
ID = Property("id", "identifier", "Its own identifier.", _ALL, lambda entity: [PropertyValue(entity.record.id)])
NAME = Property("name", "name", "Its name.", _ALL, lambda entity: [PropertyValue(entity.name)])
ALIAS = Property("alias", "alias", "Its other names.", _ALL, _list_aliases)
DEFINITION = Property(
    "definition", "definition", "What it is, in words.", _collections_with(*DEFINITION_FIELDS), _list_definition
)
CLASS = Property(
    "class",
    "class",
    "The class it is sorted into.",
    _CLASSIFIED,
    _list_class,
    (CONCEPT_CLASS.name,),
    _find_class_members,
)

PROPERTIES: dict[str, Property] = {
    item.id: item for item in (ID, NAME, ALIAS, DEFINITION, CLASS, *_iter_relation_properties())
}
