"""What can be told of any record under one name, and asked about it, whatever its collection calls it."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

from lexarium.domain.changes import Whole
from lexarium.domain.collections import COLLECTIONS, CONCEPT_CLASS, DEFINITIONS
from lexarium.domain.relations import RELATIONS, Related, Relation, Side
from lexarium.search.documents import LITTLE_WORDS
from lexarium.search.folding import fold
from lexarium.store import edges, log, records, versions
from lexarium.store.backend import Snapshot, read_position
from lexarium.store.versions import Listing

_CLASS_FIELD = "id_concept_class"
_INVERSE = "-inverse"
_LONGEST_COMPARED = 10_000
_MOST_HOLDERS = 200
"""How many of the records that have a value are told."""


@dataclass(frozen=True)
class Entity:
    """A record, with the names of what it refers to."""

    whole: Whole
    class_name: str = ""
    related: Sequence[Related] = ()
    """The published records related to it, where they were asked for."""

    @property
    def name(self) -> str:
        """Its name."""
        name: str = self.whole.fields["name"]
        return name

    @cached_property
    def definition_words(self) -> frozenset[str]:
        """The words of its definition, folded, but for little ones; of a very long one, those of its beginning."""
        return frozenset(fold(self.whole.definition[:_LONGEST_COMPARED]).words) - LITTLE_WORDS


@dataclass(frozen=True)
class Value:
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
    values: Callable[[Entity], list[Value]]
    target: str | None = None
    """The collection of its values, where they are records."""
    holders: Callable[[Snapshot, Sequence[str]], list[str]] | None = None
    """Where its values are records: the records that have one of these, the first few hundred."""


def entities(snapshot: Snapshot, identifiers: Sequence[str], *, related: bool) -> dict[str, Entity]:
    """The records of these identifiers, in whatever state, by identifier; those that are not there are left out."""
    found: dict[str, Entity] = {}
    for batch in (identifiers[at : at + records.BATCH] for at in range(0, len(identifiers), records.BATCH)):
        wholes = [change.whole() for change in log.latest(snapshot, batch).values()]
        classes = {whole.fields[_CLASS_FIELD] for whole in wholes if _CLASS_FIELD in whole.fields}
        names = records.names(snapshot, sorted(classes))
        others = edges.related(snapshot, batch) if related else {}
        for whole in wholes:
            class_name = names.get(whole.fields.get(_CLASS_FIELD, ""), "")
            found[whole.id] = Entity(whole, class_name, others.get(whole.id, ()))
    return found


def _identifier(entity: Entity) -> list[Value]:
    return [Value(entity.whole.id)]


def _name(entity: Entity) -> list[Value]:
    return [Value(entity.name)]


def _aliases(entity: Entity) -> list[Value]:
    return [Value(alias.text) for alias in entity.whole.alias_list]


def _definition(entity: Entity) -> list[Value]:
    text = entity.whole.definition
    return [Value(text)] if text else []


def _class(entity: Entity) -> list[Value]:
    identifier = entity.whole.fields.get(_CLASS_FIELD)
    return [Value(entity.class_name or identifier, identifier)] if identifier else []


def _mapped(relation: Relation, entity: Entity) -> list[Value]:
    return [Value(edge.target) for edge in sorted(entity.whole.edges) if edge.relation == relation.name]


def _related(relation: Relation, side: Side, entity: Entity) -> list[Value]:
    others = (other for other in entity.related if other.relation == relation.name and other.side == side)
    return [Value(other.name or other.id, other.id) for other in others]


def _of_class(snapshot: Snapshot, classes: Sequence[str]) -> list[str]:
    revision = read_position(snapshot).revision
    listings = (Listing(name, revision, class_id=each) for name in _with_fields(_CLASS_FIELD) for each in classes)
    found = (change.record for listing in listings for change in versions.page(snapshot, listing, None, _MOST_HOLDERS))
    return list(found)[:_MOST_HOLDERS]


def _relating(relation: Relation, side: Side, snapshot: Snapshot, others: Sequence[str]) -> list[str]:
    found = (each for several in edges.related(snapshot, others).values() for each in several)
    return [each.id for each in found if each.relation == relation.name and each.side != side][:_MOST_HOLDERS]


def _with_fields(*fields: str) -> tuple[str, ...]:
    return tuple(
        name for name, collection in COLLECTIONS.items() if any(field in collection.fields for field in fields)
    )


def _relations() -> Iterator[Property]:
    for relation in RELATIONS.values():
        if relation.source is None or relation.target is None:
            what = "What it is mapped to in another vocabulary, as SKOS has it."
            yield Property(relation.name, relation.label, what, tuple(COLLECTIONS), partial(_mapped, relation))
            continue
        ends: list[tuple[Side, str, str, str, str]] = [
            ("source", relation.name, relation.label, relation.source, relation.target),
            ("target", relation.name + _INVERSE, relation.inverse, relation.target, relation.source),
        ]
        for side, identifier, label, own, other in ends:
            yield Property(
                identifier,
                label,
                f"Of a {own}; its values are {other} records.",
                (own,),
                partial(_related, relation, side),
                other,
                partial(_relating, relation, side),
            )


ID = Property("id", "identifier", "Its own identifier.", tuple(COLLECTIONS), _identifier)
NAME = Property("name", "name", "Its name.", tuple(COLLECTIONS), _name)
ALIAS = Property("alias", "alias", "Its other names.", tuple(COLLECTIONS), _aliases)
DEFINITION = Property("definition", "definition", "What it is, in words.", _with_fields(*DEFINITIONS), _definition)
CLASS = Property(
    "class",
    "class",
    "The class it is sorted into.",
    _with_fields(_CLASS_FIELD),
    _class,
    CONCEPT_CLASS.name,
    _of_class,
)

PROPERTIES: dict[str, Property] = {each.id: each for each in (ID, NAME, ALIAS, DEFINITION, CLASS, *_relations())}
