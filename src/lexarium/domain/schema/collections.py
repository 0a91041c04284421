"""Collections: the kinds of record, with their fields, id prefixes and relation types."""

from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from lexarium.domain.schema import fields, relation_types
from lexarium.domain.schema.fields import Editable, IdReference, SearchHit, TimestampText
from lexarium.domain.schema.linkml import load_builtin_schema
from lexarium.domain.schema.model import SchemaClass
from lexarium.domain.schema.relation_types import RELATION_TYPES, RelationList, RelationType

_Annotation = TypeVar("_Annotation")


@dataclass(frozen=True)
class Collection:
    """Kind of record."""

    name: str
    description: str
    model: type[BaseModel]
    # New records get the first.
    id_prefixes: tuple[str, ...]
    # Sort by name ignoring case, then id; otherwise by id alone. Always by code point.
    sort_by_name: bool = True
    in_valpha: bool = True
    relation_lists: tuple[RelationList, ...] = ()
    # Records with this id prefix are in v-alpha's search collection.
    search_hit_prefix: str | None = None

    @cached_property
    def fields(self) -> dict[str, FieldInfo]:
        """Fields in the order of rendering."""
        return self.model.model_fields

    @cached_property
    def field_names(self) -> tuple[str, ...]:
        return tuple(self.fields)

    @cached_property
    def field_types(self) -> dict[str, type]:
        """Python type of each field: `str` or `int`."""
        return {name: int if info.annotation is int else str for name, info in self.fields.items()}

    @cached_property
    def schema_class(self) -> SchemaClass:
        """Class of the schema that declares the slots behind the fields."""
        return load_builtin_schema("cognitive-atlas").collections[self.name]

    @cached_property
    def field_predicates(self) -> dict[str, str]:
        """Predicates of the fields other than the id, in order."""
        return {name: self.schema_class.slots[name].predicate for name in self.fields if name != "id"}

    @cached_property
    def field_defaults(self) -> dict[str, str | int]:
        """Values of fields that a record does not have."""
        return {
            name: self.field_types[name]() if info.is_required() else info.default for name, info in self.fields.items()
        }

    @cached_property
    def assigned_fields(self) -> tuple[str, ...]:
        """Fields that have a value in v-alpha even where nobody has stated one."""
        names = (name for name, info in self.fields.items() if info.is_required() or info.default)
        return tuple(name for name in names if name not in ("id", "name"))

    @cached_property
    def relation_predicates(self) -> dict[str, str]:
        """Predicates of relation types. A type that records of this collection should not have is its own predicate."""
        slots = {slot.relation: slot for slot in self.schema_class.slots.values()}
        return {name: slots[name].predicate if name in self.relation_types else name for name in RELATION_TYPES}

    @cached_property
    def relation_names(self) -> dict[str, str]:
        """Relation types by predicate."""
        return {predicate: name for name, predicate in self.relation_predicates.items()}

    @cached_property
    def id_predicates(self) -> frozenset[str]:
        """Predicates of the fields that hold ids of records."""
        return frozenset(self.field_predicates[name] for name in self.class_fields)

    @cached_property
    def search_hit_end(self) -> bytes:
        """Bytes after the search hit in a rendered record. Values cannot contain them, since quotes are escaped."""
        return f',"{list(self.fields)[len(SEARCH_HIT_FIELDS)]}":'.encode()

    @cached_property
    def editable_fields(self) -> dict[str, Editable]:
        """Fields that people edit."""
        return self._fields_with(Editable)

    @cached_property
    def id_fields(self) -> dict[str, IdReference]:
        """Fields that hold ids."""
        return self._fields_with(IdReference)

    @cached_property
    def class_fields(self) -> tuple[str, ...]:
        """Fields that hold ids of records."""
        return tuple(name for name, reference in self.id_fields.items() if reference.collection)

    @cached_property
    def timestamp_fields(self) -> dict[str, TimestampText]:
        """Text fields that hold a timestamp."""
        return self._fields_with(TimestampText)

    @cached_property
    def definition_field(self) -> str | None:
        """Field that holds the definition, if any."""
        return next((name for name, editable in self.editable_fields.items() if editable.limit == "definition"), None)

    @cached_property
    def hierarchy_type(self) -> RelationType | None:
        """First hierarchical relation type within the collection, if any."""
        for relation_type in RELATION_TYPES.values():
            ends = {relation_type.source_collection, relation_type.target_collection}
            if relation_type.is_hierarchical and ends == {self.name}:
                return relation_type
        return None

    @cached_property
    def relation_types(self) -> dict[str, RelationType]:
        """Relation types that have records of this collection as their source."""
        return {
            name: relation_type
            for name, relation_type in RELATION_TYPES.items()
            if relation_type.source_collection in (None, self.name)
        }

    def _fields_with(self, annotation_type: type[_Annotation]) -> dict[str, _Annotation]:
        annotations = ((name, annotation) for name, info in self.fields.items() for annotation in info.metadata)
        return {name: annotation for name, annotation in annotations if isinstance(annotation, annotation_type)}

    @cached_property
    def relation_lists_by_key(self) -> dict[str, RelationList]:
        return {relation_list.key: relation_list for relation_list in self.relation_lists}

    @property
    def is_class_collection(self) -> bool:
        """Return whether records of any collection have a record of this one as their class."""
        return any(
            reference.collection == self.name
            for collection in COLLECTIONS.values()
            for reference in collection.id_fields.values()
        )


CONCEPT = Collection(
    "concept",
    "A mental process or structure that can be studied.",
    fields.Term,
    ("trm",),
    search_hit_prefix="trm",
    relation_lists=(
        RelationList(
            "relationships",
            (relation_types.KINDOF, relation_types.PARTOF),
            ("source", "target"),
            directions={"source": "parent", "target": "child"},
        ),
    ),
)
TASK = Collection(
    "task",
    "What people are asked to do so that concepts can be measured.",
    fields.Term,
    ("trm", "tsk"),
    search_hit_prefix="trm",
    relation_lists=(
        RelationList("concepts", (relation_types.ASSERTS,), ("source",), id_key="concept_id"),
        RelationList("contrasts", (relation_types.HASCONTRAST,), ("source",), shows_relationship=False),
    ),
)
DISORDER = Collection(
    "disorder",
    "A disorder of mind or brain.",
    fields.Disorder,
    ("dso",),
    sort_by_name=False,
    relation_lists=(RelationList("disorders", (relation_types.ISA,), ("source",)),),
)
CONTRAST = Collection(
    "contrast",
    "A comparison of conditions within a task, by which concepts are measured.",
    fields.Contrast,
    ("cnt",),
    in_valpha=False,
    relation_lists=(RelationList("concepts", (relation_types.MEASUREDBY,), ("target",)),),
)
CONCEPT_CLASS = Collection(
    "concept_class", "A class that concepts and tasks are sorted into.", fields.ConceptClass, ("ctp",), in_valpha=False
)

COLLECTIONS: dict[str, Collection] = {
    collection.name: collection for collection in (CONCEPT, TASK, DISORDER, CONTRAST, CONCEPT_CLASS)
}

DEFINITION_FIELDS: frozenset[str] = frozenset(
    collection.definition_field for collection in COLLECTIONS.values() if collection.definition_field
)

# Collections that are searched by default.
DEFAULT_SEARCH_COLLECTIONS: tuple[str, ...] = tuple(
    collection.name for collection in COLLECTIONS.values() if collection.in_valpha
)

SEARCH_HIT_FIELDS: tuple[str, ...] = tuple(SearchHit.model_fields)
SEARCH_HIT_NUMBER_KEY = "ID(c)"
