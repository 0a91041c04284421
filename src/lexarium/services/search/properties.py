"""What can be told of any record under one name, and asked about it, whatever its collection calls it."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

from lexarium.domain.record import Record, RelatedRecord
from lexarium.domain.schema.collections import COLLECTIONS, CONCEPT_CLASS, DEFINITION_FIELDS
from lexarium.domain.schema.relation_types import RELATION_TYPES, RelationType, Side
from lexarium.search.analysis.folding import fold
from lexarium.search.documents import STOP_WORDS
from lexarium.store import change_log, records, relations, revisions
from lexarium.store.position import Snapshot, read_position
from lexarium.store.revisions import ListQuery

_CLASS_FIELD = "id_concept_class"
_INVERSE = "-inverse"
_MAX_COMPARED_CHARS = 10_000
_MAX_HOLDERS = 200
"""How many of the records that have a value are told."""


@dataclass(frozen=True)
class Entity:
    """A record, with the names of what it refers to."""

    record: Record
    class_name: str = ""
    related: Sequence[RelatedRecord] = ()
    """The published records related to it, where they were asked for."""

    @property
    def name(self) -> str:
        """Its name."""
        name: str = self.record.fields["name"]
        return name

    @cached_property
    def definition_words(self) -> frozenset[str]:
        """The words of its definition, folded, but for little ones; of a very long one, those of its beginning."""
        return frozenset(fold(self.record.definition[:_MAX_COMPARED_CHARS]).words) - STOP_WORDS


@dataclass(frozen=True)
class PropertyValue:
    """A value of a property: a text, or a record by its name and identifier."""

    text: str
    id: str | None = None


@dataclass(frozen=True)
class Property:
    """Something that records have."""

    id: str
    name: str
    description: str
    collections: tuple[str, ...]
    """The collections whose records can have it."""
    values: Callable[[Entity], list[PropertyValue]]
    target: str | None = None
    """The collection of its values, where they are records."""
    find_holders: Callable[[Snapshot, Sequence[str]], list[str]] | None = None
    """Where its values are records: the records that have one of these, the first few hundred."""


def load_entities(snapshot: Snapshot, record_ids: Sequence[str], *, with_related: bool) -> dict[str, Entity]:
    """The records of these identifiers, in whatever state, by identifier; those that are not there are left out."""
    entities_by_id: dict[str, Entity] = {}
    for batch in (
        record_ids[start : start + records.BATCH_SIZE] for start in range(0, len(record_ids), records.BATCH_SIZE)
    ):
        loaded_records = [change.to_record() for change in change_log.find_latest(snapshot, batch).values()]
        class_ids = {record.fields[_CLASS_FIELD] for record in loaded_records if _CLASS_FIELD in record.fields}
        names = records.find_names(snapshot, sorted(class_ids))
        related_by_id = relations.find_related(snapshot, batch) if with_related else {}
        for record in loaded_records:
            class_name = names.get(record.fields.get(_CLASS_FIELD, ""), "")
            entities_by_id[record.id] = Entity(record, class_name, related_by_id.get(record.id, ()))
    return entities_by_id


def _get_id(entity: Entity) -> list[PropertyValue]:
    return [PropertyValue(entity.record.id)]


def _get_name(entity: Entity) -> list[PropertyValue]:
    return [PropertyValue(entity.name)]


def _list_aliases(entity: Entity) -> list[PropertyValue]:
    return [PropertyValue(alias.text) for alias in entity.record.aliases]


def _get_definition(entity: Entity) -> list[PropertyValue]:
    text = entity.record.definition
    return [PropertyValue(text)] if text else []


def _get_class(entity: Entity) -> list[PropertyValue]:
    class_id = entity.record.fields.get(_CLASS_FIELD)
    return [PropertyValue(entity.class_name or class_id, class_id)] if class_id else []


def _list_mappings(relation_type: RelationType, entity: Entity) -> list[PropertyValue]:
    return [
        PropertyValue(relation.target)
        for relation in sorted(entity.record.relations)
        if relation.relation == relation_type.name
    ]


def _list_related(relation_type: RelationType, side: Side, entity: Entity) -> list[PropertyValue]:
    related_records = (
        related for related in entity.related if related.type_name == relation_type.name and related.side == side
    )
    return [PropertyValue(related.name or related.id, related.id) for related in related_records]


def _find_class_members(snapshot: Snapshot, class_ids: Sequence[str]) -> list[str]:
    revision = read_position(snapshot).revision
    listings = (
        ListQuery(collection_name, revision, class_id=class_id)
        for collection_name in _collections_with(_CLASS_FIELD)
        for class_id in class_ids
    )
    record_ids = (
        change.record_id
        for listing in listings
        for change in revisions.list_page(snapshot, listing, None, _MAX_HOLDERS)
    )
    return list(record_ids)[:_MAX_HOLDERS]


def _find_related_holders(
    relation_type: RelationType, side: Side, snapshot: Snapshot, other_ids: Sequence[str]
) -> list[str]:
    all_related = (related for group in relations.find_related(snapshot, other_ids).values() for related in group)
    return [related.id for related in all_related if related.type_name == relation_type.name and related.side != side][
        :_MAX_HOLDERS
    ]


def _collections_with(*fields: str) -> tuple[str, ...]:
    return tuple(
        name for name, collection in COLLECTIONS.items() if any(field in collection.fields for field in fields)
    )


def _build_relation_properties() -> Iterator[Property]:
    for relation_type in RELATION_TYPES.values():
        if relation_type.source_collection is None or relation_type.target_collection is None:
            description = "What it is mapped to in another vocabulary, as SKOS has it."
            yield Property(
                relation_type.name,
                relation_type.label,
                description,
                tuple(COLLECTIONS),
                partial(_list_mappings, relation_type),
            )
            continue
        sides: list[tuple[Side, str, str, str, str]] = [
            (
                "source",
                relation_type.name,
                relation_type.label,
                relation_type.source_collection,
                relation_type.target_collection,
            ),
            (
                "target",
                relation_type.name + _INVERSE,
                relation_type.inverse_label,
                relation_type.target_collection,
                relation_type.source_collection,
            ),
        ]
        for side, property_id, label, own_collection, other_collection in sides:
            yield Property(
                property_id,
                label,
                f"Of a {own_collection}; its values are {other_collection} records.",
                (own_collection,),
                partial(_list_related, relation_type, side),
                other_collection,
                partial(_find_related_holders, relation_type, side),
            )


ID = Property("id", "identifier", "Its own identifier.", tuple(COLLECTIONS), _get_id)
NAME = Property("name", "name", "Its name.", tuple(COLLECTIONS), _get_name)
ALIAS = Property("alias", "alias", "Its other names.", tuple(COLLECTIONS), _list_aliases)
DEFINITION = Property(
    "definition", "definition", "What it is, in words.", _collections_with(*DEFINITION_FIELDS), _get_definition
)
CLASS = Property(
    "class",
    "class",
    "The class it is sorted into.",
    _collections_with(_CLASS_FIELD),
    _get_class,
    CONCEPT_CLASS.name,
    _find_class_members,
)

PROPERTIES: dict[str, Property] = {
    prop.id: prop for prop in (ID, NAME, ALIAS, DEFINITION, CLASS, *_build_relation_properties())
}
