"""Reading records. Each function takes a connection within a transaction and sees what that transaction sees."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Select, func, select

from lexarium.domain.changes import State
from lexarium.domain.collections import Collection
from lexarium.domain.relations import Relation
from lexarium.domain.text import name_key
from lexarium.store.schema import record, relation

BATCH = 1_000
"""How many rows are fetched, and how many identifiers are asked for, at a time."""

STREAMED = {"yield_per": BATCH}
"""Execution options of a query whose rows are not all held in memory."""


@dataclass(frozen=True, slots=True)
class Stored:
    """A record as the store holds it."""

    id: str
    collection: str
    state: str
    version: int
    body: bytes


_STORED = (record.c.id, record.c.collection, record.c.state, record.c.version, record.c.body)
_PUBLISHED = record.c.state == State.PUBLISHED


def find(connection: Connection, identifier: str) -> Stored | None:
    """The record with this identifier, in whatever collection and state; None where there is none."""
    return find_many(connection, [identifier]).get(identifier)


def find_many(connection: Connection, identifiers: Sequence[str]) -> dict[str, Stored]:
    """The records of these identifiers (at most BATCH) by identifier; those that are not there are left out."""
    rows = connection.execute(select(*_STORED).where(record.c.id.in_(identifiers)))
    return {row.id: stored_of(row) for row in rows}


def existing(connection: Connection, identifiers: Sequence[str]) -> set[str]:
    """Which of these identifiers (at most BATCH) have a record."""
    return set(connection.execute(select(record.c.id).where(record.c.id.in_(identifiers))).scalars())


def collections(connection: Connection, identifiers: Sequence[str]) -> dict[str, str]:
    """The collections of those of these records that are there, in whatever state."""
    found: dict[str, str] = {}
    for start in range(0, len(identifiers), BATCH):
        query = select(record.c.id, record.c.collection).where(record.c.id.in_(identifiers[start : start + BATCH]))
        found.update(dict(connection.execute(query).all()))
    return found


def in_state(connection: Connection, collection: str, state: State) -> set[str]:
    """The records of a collection that are in a state."""
    query = select(record.c.id).where(record.c.collection == collection, record.c.state == state)
    return set(connection.execute(query).scalars())


def names(connection: Connection, identifiers: Sequence[str], state: State = State.PUBLISHED) -> dict[str, str]:
    """The names of those of these records that are published, or in another state."""
    found: dict[str, str] = {}
    for start in range(0, len(identifiers), BATCH):
        query = select(record.c.id, record.c.name).where(record.c.id.in_(identifiers[start : start + BATCH]))
        found.update(dict(connection.execute(query.where(record.c.state == state)).all()))
    return found


def named(connection: Connection, identifiers: Sequence[str]) -> dict[str, tuple[str, str]]:
    """The collection and name of those of these records that are published."""
    found: dict[str, tuple[str, str]] = {}
    for start in range(0, len(identifiers), BATCH):
        query = select(record.c.id, record.c.collection, record.c.name).where(_PUBLISHED)
        rows = connection.execute(query.where(record.c.id.in_(identifiers[start : start + BATCH])))
        found.update({identifier: (collection, name) for identifier, collection, name in rows})
    return found


def find_named(connection: Connection, collection: Collection, name: str) -> Stored | None:
    """The published record of this name: spelt so, else ignoring case; the lowest identifier where several are."""
    key = name_key(name)
    query = (
        select(*_STORED)
        .where(record.c.collection == collection.name, record.c.name_key == key, _PUBLISHED)
        .order_by((record.c.name == name).desc(), record.c.id)
        .limit(1)
    )
    row = connection.execute(query).one_or_none()
    return None if row is None else stored_of(row)


def called(connection: Connection, collection: str, name_keys: Sequence[str]) -> dict[str, str]:
    """The published record of each of these names (at most BATCH), by its key: the lowest id where several have it."""
    query = select(record.c.name_key, func.min(record.c.id)).group_by(record.c.name_key)
    query = query.where(record.c.collection == collection, record.c.name_key.in_(name_keys), _PUBLISHED)
    return dict(connection.execute(query).all())


def bodies(connection: Connection, collection: Collection) -> Iterator[Sequence[bytes]]:
    """The published records of a collection as rendered, in the collection's order, some at a time."""
    query = select(record.c.body).where(record.c.collection == collection.name, _PUBLISHED)
    return _in_batches(connection, query.order_by(record.c.order_key, record.c.id))


def hits(connection: Connection) -> Iterator[Sequence[bytes]]:
    """Every search hit by name, each as rendered but for what closes it, some at a time."""
    hit = func.substr(record.c.body, 1, record.c.hit_length)
    query = select(hit).where(record.c.hit_length > 0, _PUBLISHED)
    return _in_batches(connection, query.order_by(record.c.order_key, record.c.id))


def hits_of(connection: Connection, identifiers: Sequence[str]) -> dict[str, bytes]:
    """Those of these records (at most BATCH) that are search hits, likewise."""
    hit = func.substr(record.c.body, 1, record.c.hit_length)
    query = select(record.c.id, hit).where(record.c.id.in_(identifiers), record.c.hit_length > 0, _PUBLISHED)
    return dict(connection.execute(query).all())


def targeted_by(connection: Connection, named: Relation, target: str) -> Iterator[Sequence[bytes]]:
    """The published records that have the relation to the target, as rendered, in order."""
    query = (
        select(record.c.body)
        .join(relation, relation.c.source == record.c.id)
        .where(relation.c.relation == named.name, relation.c.target == target)
        .where(record.c.collection == named.source, _PUBLISHED)
    )
    return _in_batches(connection, query.order_by(record.c.order_key, record.c.id))


def total(connection: Connection) -> int:
    """How many records there are, of whatever collection and state."""
    number: int = connection.execute(select(func.count()).select_from(record)).scalar_one()
    return number


def _in_batches(connection: Connection, query: Select[Any]) -> Iterator[Sequence[bytes]]:
    # Closed also where it is not read to its end: SQLite would go on seeing the state it began with.
    with connection.execute(query, execution_options=STREAMED) as result:
        yield from result.scalars().partitions()


def stored_of(row: Any) -> Stored:
    """A row that has the columns of a stored record, as one."""
    return Stored(row.id, row.collection, row.state, row.version, row.body)
