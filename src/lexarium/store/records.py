"""Queries for current records. Each function reads through a connection that is in a transaction."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

from sqlalchemy import ColumnElement, Connection, FromClause, Select, func, literal, select, tuple_

from lexarium.domain.cache_tags import record_tags
from lexarium.domain.record import RecordState
from lexarium.domain.schema.collections import VOCABULARY, Collection
from lexarium.domain.schema.relation_types import RelationType
from lexarium.domain.text.characters import name_key
from lexarium.store.dependencies import depend_on
from lexarium.store.schema import label_table, record_table, relation_table

T = TypeVar("T")

# Rows fetched, and ids sent, per statement.
BATCH_SIZE = 1_000
# Execution options of a query whose rows are not all held in memory.
STREAM_OPTIONS = {"yield_per": BATCH_SIZE}

_record, _label = record_table.c, label_table.c
_COLUMNS = (_record.id, _record.collection, _record.state, _record.version, _record.body)
_SEARCH_HIT = func.substr(_record.body, 1, _record.hit_length)
IS_PUBLISHED = _record.state == RecordState.PUBLISHED


@dataclass(frozen=True, slots=True)
class RecordRow:
    """A row of the record table."""

    id: str
    collection: str
    state: str
    version: int
    body: bytes


def batched(items: Sequence[T]) -> Iterator[Sequence[T]]:
    """Split a sequence into batches of BATCH_SIZE."""
    return (items[start : start + BATCH_SIZE] for start in range(0, len(items), BATCH_SIZE))


def find(connection: Connection, record_id: str) -> RecordRow | None:
    """Return the record with an id, in any collection and state, or None."""
    row = connection.execute(select(*_COLUMNS).where(_record.id == record_id)).one_or_none()
    return None if row is None else to_record_row(row)


def find_existing_ids(connection: Connection, record_ids: Sequence[str]) -> set[str]:
    """Return the ids that have a record."""
    return {record_id for (record_id,) in _iter_by_ids(connection, record_ids, [_record.id])}


def find_collections(connection: Connection, record_ids: Sequence[str]) -> dict[str, str]:
    """Return the collections of the records that exist, in any state, by id."""
    return dict(_iter_by_ids(connection, record_ids, [_record.id, _record.collection]))


def find_ids_in_state(connection: Connection, collection: str, state: RecordState) -> set[str]:
    """Return the ids of the records of a collection that are in a state."""
    query = select(_record.id).where(_record.collection == collection, _record.state == state)
    return set(connection.execute(query).scalars())


def list_published_ids(connection: Connection, collections: Sequence[str], after: str, limit: int) -> list[str]:
    """Return the ids of published records of collections that follow an id, in order."""
    query = select(_record.id).where(_record.id > after, _record.state == RecordState.PUBLISHED)
    query = query.where(_record.collection.in_(collections)).order_by(_record.id).limit(limit)
    return list(connection.execute(query).scalars())


def find_published_id(connection: Connection, collections: Sequence[str], after: str, position: int) -> str | None:
    """Return the id at a position among those that follow an id, counted from 0; None if there are fewer."""
    query = select(_record.id).where(_record.id > after, _record.state == RecordState.PUBLISHED)
    query = query.where(_record.collection.in_(collections)).order_by(_record.id).offset(position).limit(1)
    return connection.execute(query).scalar_one_or_none()


def find_names(
    connection: Connection, record_ids: Sequence[str], state: RecordState = RecordState.PUBLISHED
) -> dict[str, str]:
    """Return the names of the records that are in a state, by id."""
    return dict(_iter_by_ids(connection, record_ids, [_record.id, _record.name], _record.state == state))


def find_collections_and_names(connection: Connection, record_ids: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Return the collections and names of the published records, by id."""
    columns = [_record.id, _record.collection, _record.name]
    rows = _iter_by_ids(connection, record_ids, columns, IS_PUBLISHED)
    return {record_id: (collection, name) for record_id, collection, name in rows}


def find_by_name(connection: Connection, collection: Collection, name: str) -> RecordRow | None:
    """Return the published record with a name, or None.

    An exact match comes before one that ignores case; among several, the lowest id is returned.
    """
    query = (
        select(*_COLUMNS)
        .where(_record.collection == collection.name, _record.name_key == name_key(name), IS_PUBLISHED)
        .order_by((_record.name == name).desc(), _record.id)
        .limit(1)
    )
    row = connection.execute(query).one_or_none()
    return None if row is None else to_record_row(row)


class NamedRow(NamedTuple):
    """The name of a record, and the key that it is compared by."""

    id: str
    collection: str
    name: str
    name_key: str


def find_by_name_keys(
    connection: Connection, collections: Sequence[str], name_keys: Sequence[str], limit: int
) -> list[NamedRow]:
    """Return published records of collections with one of these name keys, by id."""
    columns = (_record.id, _record.collection, _record.name, _record.name_key)
    is_wanted = (_record.collection.in_(collections), _record.name_key.in_(name_keys), IS_PUBLISHED)
    query = select(*columns).where(*is_wanted).order_by(_record.id).limit(limit)
    return [NamedRow._make(row) for row in connection.execute(query)]


def iter_names(connection: Connection, collection: str) -> Iterator[Sequence[tuple[str, str]]]:
    """Yield batches of the ids and names, in all languages, of the published records of a collection."""
    is_listed = (_record.collection == collection) & IS_PUBLISHED
    shown = select(_record.id, _record.name).where(is_listed)
    translated = select(_label.record, _label.name).join(record_table, _record.id == _label.record).where(is_listed)
    with connection.execute(shown.union_all(translated), execution_options=STREAM_OPTIONS) as result:
        for rows in result.partitions():
            yield [(record_id, name) for record_id, name in rows]


def find_ids_by_name_key(connection: Connection, collection: str, name_keys: Sequence[str]) -> dict[str, str]:
    """Return the lowest id of the published records with each name key (at most BATCH_SIZE keys)."""
    query = select(_record.name_key, func.min(_record.id)).group_by(_record.name_key)
    query = query.where(_record.collection == collection, _record.name_key.in_(name_keys), IS_PUBLISHED)
    return dict(connection.execute(query).all())


def iter_bodies(connection: Connection, collection: Collection) -> Iterator[Sequence[bytes]]:
    """Yield batches of the rendered published records of a collection, in its order."""
    return _stream_batches(connection, select(_record.body).where(_record.collection == collection.name))


def iter_search_hits(connection: Connection, collections: Sequence[str]) -> Iterator[Sequence[bytes]]:
    """Yield batches of the search hits of collections by name, rendered but without the closing brace."""
    # An expression, so that the index of all search hits is read, which is sorted.
    is_listed = (_record.collection + literal("")).in_(collections)
    return _stream_batches(connection, select(_SEARCH_HIT).where(_record.hit_length > 0, is_listed))


def find_search_hits(connection: Connection, record_ids: Sequence[str]) -> dict[str, bytes]:
    """Return the records (at most BATCH_SIZE ids) that are search hits, in the same form, by id."""
    return dict(_iter_by_ids(connection, record_ids, [_record.id, _SEARCH_HIT], _record.hit_length > 0, IS_PUBLISHED))


def iter_bodies_by_target(
    connection: Connection, collection: Collection, relation_type: RelationType, target_id: str
) -> Iterator[Sequence[bytes]]:
    """Yield batches of the rendered published records of a collection that have a relation to a target, in order."""
    query = (
        select(_record.body)
        .join(relation_table, relation_table.c.source == _record.id)
        .where(relation_table.c.relation == relation_type.name, relation_table.c.target == target_id)
        .where(_record.collection == collection.name)
    )
    return _stream_batches(connection, query)


def count(connection: Connection) -> int:
    """Return the number of records in all collections and states."""
    return count_rows(connection, record_table)


def has_any(connection: Connection) -> bool:
    """Return whether there are records of any vocabulary, in any state."""
    query = select(_record.id).where(_record.collection != VOCABULARY.name).limit(1)
    return connection.execute(query).first() is not None


def count_in_collection(connection: Connection, collection: str) -> int:
    """Return the number of records of a collection in all states."""
    return count_rows(connection, select(_record.id).where(_record.collection == collection).subquery())


def count_rows(connection: Connection, rows: FromClause) -> int:
    """Return the number of rows of a table or subquery."""
    number: int = connection.execute(select(func.count()).select_from(rows)).scalar_one()
    return number


def page_after(query: Select[Any], key: Any, record_id: Any, after: tuple[str | int, str] | None) -> Select[Any]:
    """Sort a query by key and id, and start after the key and id of the last record."""
    if after is not None:
        query = query.where(tuple_(key, record_id) > tuple_(*map(literal, after)))
    return query.order_by(key, record_id)


def to_record_row(row: Any) -> RecordRow:
    """Convert a row that has the columns of a record."""
    return RecordRow(row.id, row.collection, row.state, row.version, row.body)


def _iter_by_ids(
    connection: Connection, record_ids: Sequence[str], columns: Sequence[Any], *conditions: ColumnElement[bool]
) -> Iterator[Any]:
    for batch in batched(record_ids):
        with depend_on(record_tags(batch)):
            rows = connection.execute(select(*columns).where(_record.id.in_(batch), *conditions)).all()
        yield from rows


def _stream_batches(connection: Connection, query: Select[Any]) -> Iterator[Sequence[bytes]]:
    query = query.where(IS_PUBLISHED).order_by(_record.order_key, _record.id)
    # The result is closed even when it is not read to its end: SQLite would go on seeing the old state.
    with connection.execute(query, execution_options=STREAM_OPTIONS) as result:
        yield from result.scalars().partitions()
