"""Reading records. Each function takes a connection within a transaction and sees what that transaction sees."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Select, func, select

from lexarium.domain.record import RecordState
from lexarium.domain.schema.collections import Collection
from lexarium.domain.schema.relation_types import RelationType
from lexarium.domain.text.characters import name_key
from lexarium.store.schema import record_table, relation_table

BATCH_SIZE = 1_000
"""How many rows are fetched, and how many identifiers are asked for, at a time."""

STREAM_OPTIONS = {"yield_per": BATCH_SIZE}
"""Execution options of a query whose rows are not all held in memory."""


@dataclass(frozen=True, slots=True)
class RecordRow:
    """A record as the store holds it."""

    id: str
    collection: str
    state: str
    version: int
    body: bytes


_COLUMNS = (
    record_table.c.id,
    record_table.c.collection,
    record_table.c.state,
    record_table.c.version,
    record_table.c.body,
)
_IS_PUBLISHED = record_table.c.state == RecordState.PUBLISHED


def find(connection: Connection, record_id: str) -> RecordRow | None:
    """The record with this identifier, in whatever collection and state; None where there is none."""
    return find_many(connection, [record_id]).get(record_id)


def find_many(connection: Connection, record_ids: Sequence[str]) -> dict[str, RecordRow]:
    """The records of these identifiers (at most BATCH) by identifier; those that are not there are left out."""
    rows = connection.execute(select(*_COLUMNS).where(record_table.c.id.in_(record_ids)))
    return {row.id: to_record_row(row) for row in rows}


def find_existing_ids(connection: Connection, record_ids: Sequence[str]) -> set[str]:
    """Which of these identifiers (at most BATCH) have a record."""
    return set(connection.execute(select(record_table.c.id).where(record_table.c.id.in_(record_ids))).scalars())


def find_collections(connection: Connection, record_ids: Sequence[str]) -> dict[str, str]:
    """The collections of those of these records that are there, in whatever state."""
    collections: dict[str, str] = {}
    for start in range(0, len(record_ids), BATCH_SIZE):
        query = select(record_table.c.id, record_table.c.collection).where(
            record_table.c.id.in_(record_ids[start : start + BATCH_SIZE])
        )
        collections.update(dict(connection.execute(query).all()))
    return collections


def find_ids_in_state(connection: Connection, collection: str, state: RecordState) -> set[str]:
    """The records of a collection that are in a state."""
    query = select(record_table.c.id).where(record_table.c.collection == collection, record_table.c.state == state)
    return set(connection.execute(query).scalars())


def find_names(
    connection: Connection, record_ids: Sequence[str], state: RecordState = RecordState.PUBLISHED
) -> dict[str, str]:
    """The names of those of these records that are published, or in another state."""
    names: dict[str, str] = {}
    for start in range(0, len(record_ids), BATCH_SIZE):
        query = select(record_table.c.id, record_table.c.name).where(
            record_table.c.id.in_(record_ids[start : start + BATCH_SIZE])
        )
        names.update(dict(connection.execute(query.where(record_table.c.state == state)).all()))
    return names


def find_collections_and_names(connection: Connection, record_ids: Sequence[str]) -> dict[str, tuple[str, str]]:
    """The collection and name of those of these records that are published."""
    collections_and_names: dict[str, tuple[str, str]] = {}
    for start in range(0, len(record_ids), BATCH_SIZE):
        query = select(record_table.c.id, record_table.c.collection, record_table.c.name).where(_IS_PUBLISHED)
        rows = connection.execute(query.where(record_table.c.id.in_(record_ids[start : start + BATCH_SIZE])))
        collections_and_names.update({record_id: (collection, name) for record_id, collection, name in rows})
    return collections_and_names


def find_by_name(connection: Connection, collection: Collection, name: str) -> RecordRow | None:
    """The published record of this name: spelt so, else ignoring case; the lowest identifier where several are."""
    key = name_key(name)
    query = (
        select(*_COLUMNS)
        .where(record_table.c.collection == collection.name, record_table.c.name_key == key, _IS_PUBLISHED)
        .order_by((record_table.c.name == name).desc(), record_table.c.id)
        .limit(1)
    )
    row = connection.execute(query).one_or_none()
    return None if row is None else to_record_row(row)


def find_ids_by_name_key(connection: Connection, collection: str, name_keys: Sequence[str]) -> dict[str, str]:
    """The published record of each of these names (at most BATCH), by its key: the lowest id where several have it."""
    query = select(record_table.c.name_key, func.min(record_table.c.id)).group_by(record_table.c.name_key)
    query = query.where(record_table.c.collection == collection, record_table.c.name_key.in_(name_keys), _IS_PUBLISHED)
    return dict(connection.execute(query).all())


def iter_bodies(connection: Connection, collection: Collection) -> Iterator[Sequence[bytes]]:
    """The published records of a collection as rendered, in the collection's order, some at a time."""
    query = select(record_table.c.body).where(record_table.c.collection == collection.name, _IS_PUBLISHED)
    return _stream_batches(connection, query.order_by(record_table.c.order_key, record_table.c.id))


def iter_search_hits(connection: Connection) -> Iterator[Sequence[bytes]]:
    """Every search hit by name, each as rendered but for what closes it, some at a time."""
    search_hit = func.substr(record_table.c.body, 1, record_table.c.hit_length)
    query = select(search_hit).where(record_table.c.hit_length > 0, _IS_PUBLISHED)
    return _stream_batches(connection, query.order_by(record_table.c.order_key, record_table.c.id))


def find_search_hits(connection: Connection, record_ids: Sequence[str]) -> dict[str, bytes]:
    """Those of these records (at most BATCH) that are search hits, likewise."""
    search_hit = func.substr(record_table.c.body, 1, record_table.c.hit_length)
    query = select(record_table.c.id, search_hit).where(
        record_table.c.id.in_(record_ids), record_table.c.hit_length > 0, _IS_PUBLISHED
    )
    return dict(connection.execute(query).all())


def iter_bodies_by_target(
    connection: Connection, relation_type: RelationType, target_id: str
) -> Iterator[Sequence[bytes]]:
    """The published records that have the relation to the target, as rendered, in order."""
    query = (
        select(record_table.c.body)
        .join(relation_table, relation_table.c.source == record_table.c.id)
        .where(relation_table.c.relation == relation_type.name, relation_table.c.target == target_id)
        .where(record_table.c.collection == relation_type.source_collection, _IS_PUBLISHED)
    )
    return _stream_batches(connection, query.order_by(record_table.c.order_key, record_table.c.id))


def count(connection: Connection) -> int:
    """How many records there are, of whatever collection and state."""
    number: int = connection.execute(select(func.count()).select_from(record_table)).scalar_one()
    return number


def _stream_batches(connection: Connection, query: Select[Any]) -> Iterator[Sequence[bytes]]:
    # Closed also where it is not read to its end: SQLite would go on seeing the state it began with.
    with connection.execute(query, execution_options=STREAM_OPTIONS) as result:
        yield from result.scalars().partitions()


def to_record_row(row: Any) -> RecordRow:
    """A row that has the columns of a stored record, as one."""
    return RecordRow(row.id, row.collection, row.state, row.version, row.body)
