"""Questions about a whole collection, and the levels of a hierarchy."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Connection, Integer, Select, bindparam, exists, func, or_, select

from lexarium.domain.changes import State
from lexarium.store.records import BATCH
from lexarium.store.schema import change, record, relation

_up, _down = relation.alias("up"), relation.alias("down")
_other, _child = record.alias("other"), record.alias("child")
_GONE = tuple(state for state in State if state != State.PUBLISHED)


class Named(NamedTuple):
    """A record by its name."""

    id: str
    name: str


class Branch(NamedTuple):
    """A record within a hierarchy."""

    id: str
    name: str
    relation: str
    """How it stands to what is above it; nothing at the top."""
    below: int
    """How many records stand right below it."""


class Surveyed(NamedTuple):
    """Some of the records that something holds of, and how many there are."""

    ids: tuple[str, ...]
    total: int


def repeated(connection: Connection, collection: str, most: int) -> list[Named]:
    """The published records that share their name with another of their collection, by name; of so many names."""
    keys = select(record.c.name_key).where(record.c.collection == collection)
    keys = keys.group_by(record.c.name_key).having(func.count() > 1).order_by(record.c.name_key).limit(most)
    found: dict[str, list[Named]] = {}
    wanted = list(connection.execute(keys).scalars())
    for start in range(0, len(wanted), BATCH):
        query = select(record.c.id, record.c.name, record.c.name_key).where(
            record.c.collection == collection,
            record.c.state == State.PUBLISHED,
            record.c.name_key.in_(wanted[start : start + BATCH]),
        )
        for identifier, name, key in connection.execute(query.order_by(record.c.name_key, record.c.id)):
            found.setdefault(key, []).append(Named(identifier, name))
    return [each for several in found.values() if len(several) > 1 for each in several]


def apart(connection: Connection, collection: str, relations: Sequence[str], most: int) -> Surveyed:
    """The published records that stand nowhere in these hierarchies, in order: the first so many, and how many."""
    touched = _beside_gone(collection, relations)
    nowhere = ~_has(_up.c.source, _up, relations) & ~_has(_down.c.target, _down, relations)
    left = touched & ~_has_published(_up.c.source, _up, _up.c.target, relations)
    left &= ~_has_published(_down.c.target, _down, _down.c.source, relations)
    return _surveyed(connection, _published(collection).where(nowhere | left), most)


def tops(connection: Connection, collection: str, relations: Sequence[str], most: int) -> Surveyed:
    """The published records that have others below them in these hierarchies and none above; likewise."""
    touched = _beside_gone(collection, relations)
    top = ~touched & ~_has(_up.c.source, _up, relations) & _has(_down.c.target, _down, relations)
    left = touched & ~_has_published(_up.c.source, _up, _up.c.target, relations)
    left &= _has_published(_down.c.target, _down, _down.c.source, relations)
    return _surveyed(connection, _published(collection).where(top | left), most)


def _surveyed(connection: Connection, query: Select[Any], most: int) -> Surveyed:
    ids = connection.execute(query.order_by(record.c.order_key, record.c.id).limit(most + 1)).scalars().all()
    total = len(ids) if len(ids) <= most else connection.execute(query.with_only_columns(func.count())).scalar_one()
    return Surveyed(tuple(ids[:most]), total)


def branches(connection: Connection, identifiers: Sequence[str], relations: Sequence[str]) -> list[Branch]:
    """These records (at most BATCH) as the top of a hierarchy, by name."""
    query = select(record.c.id, record.c.name).where(record.c.id.in_(identifiers), record.c.state == State.PUBLISHED)
    rows = connection.execute(query.order_by(record.c.name_key, record.c.id)).all()
    below = _counts_below(connection, [row.id for row in rows], relations)
    return [Branch(row.id, row.name, "", below.get(row.id, 0)) for row in rows]


def below(connection: Connection, parent: str, relations: Sequence[str], most: int) -> list[Branch]:
    """The published records right below one, by name: of the first so many."""
    edges = select(relation.c.source, relation.c.relation).where(
        relation.c.target == parent, relation.c.relation.in_(relations)
    )
    edge = edges.limit(most).subquery()
    query = select(record.c.id, record.c.name, edge.c.relation).join(edge, edge.c.source == record.c.id)
    query = query.where(record.c.state == State.PUBLISHED).order_by(record.c.name_key, record.c.id)
    rows = {row.id: row for row in connection.execute(query)}
    counts = _counts_below(connection, list(rows), relations)
    return [Branch(row.id, row.name, row.relation, counts.get(row.id, 0)) for row in rows.values()]


def above(connection: Connection, identifier: str, relations: Sequence[str]) -> list[Named]:
    """The published records right above one, by name: a few."""
    query = select(record.c.id, record.c.name).join(relation, relation.c.target == record.c.id)
    query = query.where(relation.c.source == identifier, relation.c.relation.in_(relations))
    query = query.where(record.c.state == State.PUBLISHED).order_by(record.c.name_key, record.c.id).limit(BATCH)
    return [Named(row.id, row.name) for row in connection.execute(query)]


class Neighbour(NamedTuple):
    """A record at the other end of a relation."""

    id: str
    name: str


def neighbours(
    connection: Connection, identifier: str, named: str, *, outward: bool, most: int
) -> tuple[list[Neighbour], int]:
    """The published records at the other end of a relation, by name: of the first so many; and how many ends it has."""
    near, far = (relation.c.source, relation.c.target) if outward else (relation.c.target, relation.c.source)
    edges = select(far.label("far")).where(near == identifier, relation.c.relation == named)
    some = edges.limit(most).subquery()
    query = select(record.c.id, record.c.name).join(some, some.c.far == record.c.id)
    query = query.where(record.c.state == State.PUBLISHED).order_by(record.c.name_key, record.c.id)
    found = [Neighbour(row.id, row.name) for row in connection.execute(query)]
    total = len(found)
    if len(found) >= most:
        total = connection.execute(select(func.count()).select_from(edges.subquery())).scalar_one()
    return found, total


class Logged(NamedTuple):
    """A change, as far as it is counted."""

    seq: int
    record: str
    version: int
    collection: str
    document: bytes


_LOGGED = select(change.c.seq, change.c.record, change.c.version, change.c.collection, change.c.document)
_LOGGED = _LOGGED.where(change.c.seq > bindparam("seq"), change.c.seq <= bindparam("revision"))
_LOGGED = _LOGGED.order_by(change.c.seq).limit(bindparam("most", type_=Integer))


def logged(connection: Connection, seq: int, revision: int, most: int) -> list[Logged]:
    """The changes after a seq and up to a revision, in order, at most so many: less of each than `versions` reads."""
    rows = connection.execute(_LOGGED, {"seq": seq, "revision": revision, "most": most})
    return [Logged._make(row) for row in rows.all()]


def first_ids(connection: Connection, collection: str) -> list[str]:
    """The records of a small collection, whatever their state, in the order in which they came."""
    query = select(change.c.record).where(change.c.collection == collection, change.c.version == 1)
    return list(connection.execute(query.order_by(change.c.seq)).scalars())


def in_state(
    connection: Connection, collection: str, state: State, after: tuple[str, str] | None, limit: int
) -> list[str]:
    """The next records of a collection that are in a state, in the collection's order."""
    query = select(record.c.id).where(record.c.collection == collection, record.c.state == state)
    if after is not None:
        key, identifier = after
        query = query.where(record.c.order_key >= key, or_(record.c.order_key > key, record.c.id > identifier))
    return list(connection.execute(query.order_by(record.c.order_key, record.c.id).limit(limit)).scalars())


def _published(collection: str) -> Select[Any]:
    return select(record.c.id).where(record.c.collection == collection, record.c.state == State.PUBLISHED)


def _has(near: ColumnElement[str], edge: Any, relations: Sequence[str]) -> ColumnElement[bool]:
    """Whether a record has an edge of these, whatever stands at its other end: told by an index alone."""
    return exists().where(near == record.c.id, edge.c.relation.in_(relations))


def _has_published(
    near: ColumnElement[str], edge: Any, far: ColumnElement[str], relations: Sequence[str]
) -> ColumnElement[bool]:
    """Whether a record has an edge of these with a published record at its other end."""
    return exists().where(
        near == record.c.id, edge.c.relation.in_(relations), _other.c.id == far, _other.c.state == State.PUBLISHED
    )


def _beside_gone(collection: str, relations: Sequence[str]) -> ColumnElement[bool]:
    """Whether a record has an edge to one that is gone: few have, and only they need a closer look."""
    gone = select(_other.c.id).where(_other.c.collection == collection, _other.c.state.in_(_GONE))
    above = select(relation.c.source).where(relation.c.target.in_(gone), relation.c.relation.in_(relations))
    below = select(relation.c.target).where(relation.c.source.in_(gone), relation.c.relation.in_(relations))
    return record.c.id.in_(above.union_all(below))


def _counts_below(connection: Connection, identifiers: Sequence[str], relations: Sequence[str]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for start in range(0, len(identifiers), BATCH):
        query = select(relation.c.target, func.count()).join(_child, _child.c.id == relation.c.source)
        query = query.where(
            relation.c.target.in_(identifiers[start : start + BATCH]),
            relation.c.relation.in_(relations),
            _child.c.state == State.PUBLISHED,
        )
        counts |= dict(connection.execute(query.group_by(relation.c.target)).all())
    return counts
