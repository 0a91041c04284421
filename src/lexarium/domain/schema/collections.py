"""The registry: every collection, declared once. Routes, validation, exchange and tests derive from it."""

from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from lexarium.domain.schema.fields import (
    ConceptClass,
    Contrast,
    Disorder,
    Editable,
    IdReference,
    SearchHit,
    Term,
    TimestampText,
)
from lexarium.domain.schema.relation_types import (
    ASSERTS,
    HASCONTRAST,
    ISA,
    KINDOF,
    MEASUREDBY,
    PARTOF,
    RELATION_TYPES,
    RelationList,
    RelationType,
)

_Annotation = TypeVar("_Annotation")


@dataclass(frozen=True)
class Collection:
    """A kind of record."""

    name: str
    description: str
    model: type[BaseModel]
    id_prefixes: tuple[str, ...]
    """Prefixes of its identifiers; a new record gets the first."""
    sort_by_name: bool = True
    """Order by name ignoring case, then id; otherwise by id alone. Always by code point."""
    in_valpha: bool = True
    relation_lists: tuple[RelationList, ...] = ()
    search_hit_prefix: str | None = None
    """Records with this prefix appear in v-alpha's search collection."""

    @cached_property
    def fields(self) -> dict[str, FieldInfo]:
        """Its fields, in the order in which they are rendered."""
        return self.model.model_fields

    @cached_property
    def field_names(self) -> tuple[str, ...]:
        """The names of its fields, in that order."""
        return tuple(self.fields)

    @cached_property
    def field_types(self) -> dict[str, type]:
        """Each field's Python type, `str` or `int`."""
        return {name: int if info.annotation is int else str for name, info in self.fields.items()}

    @cached_property
    def search_hit_end(self) -> bytes:
        """In a rendered record, what follows its search hit. No text in it can look so: its quotes are escaped."""
        return f',"{list(self.fields)[len(SEARCH_HIT_FIELDS)]}":'.encode()

    @cached_property
    def editable_fields(self) -> dict[str, Editable]:
        """The fields that people write, with their limits."""
        return self._fields_with(Editable)

    @cached_property
    def id_fields(self) -> dict[str, IdReference]:
        """The fields that hold identifiers of something else."""
        return self._fields_with(IdReference)

    @cached_property
    def class_fields(self) -> tuple[str, ...]:
        """The fields that name a record."""
        return tuple(name for name, reference in self.id_fields.items() if reference.collection)

    @cached_property
    def timestamp_fields(self) -> dict[str, TimestampText]:
        """The text fields that say a date and time."""
        return self._fields_with(TimestampText)

    @cached_property
    def definition_field(self) -> str | None:
        """The field that holds the definition of a record; None where it has none."""
        return next((name for name, editable in self.editable_fields.items() if editable.limit == "definition"), None)

    @cached_property
    def hierarchy_type(self) -> RelationType | None:
        """The relation by which its records are kinds of each other; None where they are not."""
        own_types = (
            relation_type
            for relation_type in RELATION_TYPES.values()
            if relation_type.source_collection == relation_type.target_collection == self.name
        )
        return next((relation_type for relation_type in own_types if relation_type.is_hierarchical), None)

    @cached_property
    def relation_types(self) -> dict[str, RelationType]:
        """The relations that its records may be the source of, by name."""
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
        """Its relation lists by the key they have in the `?id=` shape."""
        return {relation_list.key: relation_list for relation_list in self.relation_lists}

    @property
    def is_class_collection(self) -> bool:
        """Whether records of some collection name one of this as their class."""
        return any(
            reference.collection == self.name
            for collection in COLLECTIONS.values()
            for reference in collection.id_fields.values()
        )


CONCEPT = Collection(
    "concept",
    "A mental process or structure that can be studied.",
    Term,
    ("trm",),
    search_hit_prefix="trm",
    relation_lists=(
        RelationList(
            "relationships",
            (KINDOF, PARTOF),
            ("source", "target"),
            directions={"source": "parent", "target": "child"},
        ),
    ),
)
TASK = Collection(
    "task",
    "What people are asked to do so that concepts can be measured.",
    Term,
    ("trm", "tsk"),
    search_hit_prefix="trm",
    relation_lists=(
        RelationList("concepts", (ASSERTS,), ("source",), id_key="concept_id"),
        RelationList("contrasts", (HASCONTRAST,), ("source",), shows_relationship=False),
    ),
)
DISORDER = Collection(
    "disorder",
    "A disorder of mind or brain.",
    Disorder,
    ("dso",),
    sort_by_name=False,
    relation_lists=(RelationList("disorders", (ISA,), ("source",)),),
)
CONTRAST = Collection(
    "contrast",
    "A comparison of conditions within a task, by which concepts are measured.",
    Contrast,
    ("cnt",),
    in_valpha=False,
    relation_lists=(RelationList("concepts", (MEASUREDBY,), ("target",)),),
)
CONCEPT_CLASS = Collection(
    "concept_class", "A class that concepts and tasks are sorted into.", ConceptClass, ("ctp",), in_valpha=False
)

COLLECTIONS: dict[str, Collection] = {
    collection.name: collection for collection in (CONCEPT, TASK, DISORDER, CONTRAST, CONCEPT_CLASS)
}

DEFINITION_FIELDS: frozenset[str] = frozenset(
    collection.definition_field for collection in COLLECTIONS.values() if collection.definition_field
)
"""What the field of a definition is called in one collection or another."""

DEFAULT_SEARCH_COLLECTIONS: tuple[str, ...] = tuple(
    collection.name for collection in COLLECTIONS.values() if collection.in_valpha
)
"""Where a search looks that names no collection."""

SEARCH_HIT_FIELDS: tuple[str, ...] = tuple(SearchHit.model_fields)
SEARCH_HIT_NUMBER_KEY = "ID(c)"
