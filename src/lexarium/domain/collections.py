"""The registry: every collection, declared once. Routes, validation, exchange and tests derive from it."""

from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from lexarium.domain.records import ConceptClass, Contrast, Disorder, Moment, Refers, SearchHit, Term, Written
from lexarium.domain.relations import (
    ASSERTS,
    HASCONTRAST,
    ISA,
    KINDOF,
    MEASUREDBY,
    PARTOF,
    RELATIONS,
    Relation,
    RelationView,
)

Mark = TypeVar("Mark")


@dataclass(frozen=True)
class Collection:
    """A kind of record."""

    name: str
    description: str
    record: type[BaseModel]
    prefixes: tuple[str, ...]
    """Prefixes of its identifiers; a new record gets the first."""
    ordered_by_name: bool = True
    """Order by name ignoring case, then id; otherwise by id alone. Always by code point."""
    on_valpha: bool = True
    views: tuple[RelationView, ...] = ()
    searched_prefix: str | None = None
    """Records with this prefix appear in v-alpha's search collection."""

    @cached_property
    def fields(self) -> dict[str, FieldInfo]:
        """Its fields, in the order in which they are rendered."""
        return self.record.model_fields

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of its fields, in that order."""
        return tuple(self.fields)

    @cached_property
    def types(self) -> dict[str, type]:
        """Each field's Python type, `str` or `int`."""
        return {name: int if info.annotation is int else str for name, info in self.fields.items()}

    @cached_property
    def hit_end(self) -> bytes:
        """In a rendered record, what follows its search hit. No text in it can look so: its quotes are escaped."""
        return f',"{list(self.fields)[len(HIT_FIELDS)]}":'.encode()

    @cached_property
    def written(self) -> dict[str, Written]:
        """The fields that people write, with their limits."""
        return self._marked(Written)

    @cached_property
    def references(self) -> dict[str, Refers]:
        """The fields that hold identifiers of something else."""
        return self._marked(Refers)

    @cached_property
    def class_fields(self) -> tuple[str, ...]:
        """The fields that name a record."""
        return tuple(name for name, refers in self.references.items() if refers.collection)

    @cached_property
    def moments(self) -> dict[str, Moment]:
        """The text fields that say a date and time."""
        return self._marked(Moment)

    @cached_property
    def definition(self) -> str | None:
        """The field that holds the definition of a record; None where it has none."""
        return next((name for name, mark in self.written.items() if mark.length == "definition"), None)

    @cached_property
    def hierarchy(self) -> Relation | None:
        """The relation by which its records are kinds of each other; None where they are not."""
        own = (each for each in RELATIONS.values() if each.source == each.target == self.name)
        return next((each for each in own if each.hierarchical), None)

    @cached_property
    def relations(self) -> dict[str, Relation]:
        """The relations that its records may be the source of, by name."""
        return {name: each for name, each in RELATIONS.items() if each.source in (None, self.name)}

    def _marked(self, kind: type[Mark]) -> dict[str, Mark]:
        marks = ((name, mark) for name, info in self.fields.items() for mark in info.metadata)
        return {name: mark for name, mark in marks if isinstance(mark, kind)}

    @cached_property
    def views_by_key(self) -> dict[str, RelationView]:
        """Its relation lists by the key they have in the `?id=` shape."""
        return {view.key: view for view in self.views}

    @property
    def is_class(self) -> bool:
        """Whether records of some collection name one of this as their class."""
        return any(
            refers.collection == self.name for other in COLLECTIONS.values() for refers in other.references.values()
        )


CONCEPT = Collection(
    "concept",
    "A mental process or structure that can be studied.",
    Term,
    ("trm",),
    searched_prefix="trm",
    views=(
        RelationView(
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
    searched_prefix="trm",
    views=(
        RelationView("concepts", (ASSERTS,), ("source",), id_key="concept_id"),
        RelationView("contrasts", (HASCONTRAST,), ("source",), named=False),
    ),
)
DISORDER = Collection(
    "disorder",
    "A disorder of mind or brain.",
    Disorder,
    ("dso",),
    ordered_by_name=False,
    views=(RelationView("disorders", (ISA,), ("source",)),),
)
CONTRAST = Collection(
    "contrast",
    "A comparison of conditions within a task, by which concepts are measured.",
    Contrast,
    ("cnt",),
    on_valpha=False,
    views=(RelationView("concepts", (MEASUREDBY,), ("target",)),),
)
CONCEPT_CLASS = Collection(
    "concept_class", "A class that concepts and tasks are sorted into.", ConceptClass, ("ctp",), on_valpha=False
)

COLLECTIONS: dict[str, Collection] = {
    collection.name: collection for collection in (CONCEPT, TASK, DISORDER, CONTRAST, CONCEPT_CLASS)
}

DEFINITIONS: frozenset[str] = frozenset(each.definition for each in COLLECTIONS.values() if each.definition)
"""What the field of a definition is called in one collection or another."""

SEARCHED: tuple[str, ...] = tuple(collection.name for collection in COLLECTIONS.values() if collection.on_valpha)
"""Where a search looks that names no collection."""

HIT_FIELDS: tuple[str, ...] = tuple(SearchHit.model_fields)
HIT_NUMBER = "ID(c)"
