"""Copy a database to another one, of either engine, table by table in one transaction."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Table, exists, func, insert, select, update

from lexarium.domain.errors import Conflict, StoreError
from lexarium.domain.progress import ProgressCallback
from lexarium.domain.schema.collections import VOCABULARY
from lexarium.store.database import Database
from lexarium.store.engine.position_queries import read_position
from lexarium.store.position import Position
from lexarium.store.records import STREAM_OPTIONS, count_rows
from lexarium.store.schema import catalogue_table, lease_table, metadata, record_table

# The position is copied last, and leases belong to running processes.
_TABLES = [table for table in metadata.sorted_tables if table not in (catalogue_table, lease_table)]


@dataclass(frozen=True)
class CopyResult:
    """Position at which a database was copied, and the number of rows by table."""

    position: Position
    rows: dict[str, int]
    # Without the head records of vocabularies.
    records: int


def copy_tables(
    source: Database,
    target: Database,
    progress: ProgressCallback,
    *,
    new_epoch: bool = False,
    require_idle: bool = False,
) -> CopyResult:
    """Copy all tables, and the epoch unless `new_epoch`, and verify the copy.

    Both databases have the current schema. Raises Conflict if the target is not empty, or if `require_idle` and the
    source has changed meanwhile; StoreError if the copy differs. Nothing is kept then.
    """
    with (
        source.read() as snapshot,
        target.translate_errors(),
        target.backend.connect_write() as connection,
        connection.begin(),
    ):
        target.backend.lock_catalogue(connection)
        _require_empty(connection, target.location)
        totals = _count_rows(source, snapshot)
        total, done = sum(totals.values()), 0
        for table in _TABLES:
            digest = hashlib.blake2b()
            for rows in _iter_rows(source, snapshot, table, digest):
                connection.execute(insert(table), [row._asdict() for row in rows])
                done += len(rows)
                progress("Copying", done, total)
            _verify_table(target, connection, table, digest.digest())
        # The target keeps its server's timeline, and its epoch if a new one is requested.
        kept_columns = {"timeline", "parted", *(["epoch"] if new_epoch else [])}
        values = snapshot.execute(select(catalogue_table)).one()._asdict()
        copied_values = {name: values[name] for name in values.keys() - kept_columns}
        connection.execute(update(catalogue_table).values(copied_values))
        target.backend.finish_copy(connection)
        if require_idle:
            _require_unchanged(source, read_position(snapshot))
        is_counted = record_table.c.collection != VOCABULARY.name
        records = snapshot.execute(select(func.count()).select_from(record_table).where(is_counted)).scalar_one()
        return CopyResult(read_position(snapshot), totals, records)


def _iter_rows(database: Database, connection: Connection, table: Table, digest: Any) -> Iterator[list[Any]]:
    """Yield batches of all rows by key, and add them to a digest. Errors name the database that is read."""
    query = select(table).order_by(*table.primary_key.columns)
    with database.translate_errors():
        for batch in connection.execute(query, execution_options=STREAM_OPTIONS).partitions():
            for row in batch:
                digest.update(repr(tuple(row)).encode("utf-8", "surrogatepass"))
            yield list(batch)


def _verify_table(target: Database, connection: Connection, table: Table, source_digest: bytes) -> None:
    digest = hashlib.blake2b()
    for _ in _iter_rows(target, connection, table, digest):
        pass
    if digest.digest() != source_digest:
        raise StoreError(f"The copy in {target.location} differs from the source in {table.name}. Nothing was copied.")


def _count_rows(database: Database, connection: Connection) -> dict[str, int]:
    with database.translate_errors():
        return {table.name: count_rows(connection, table) for table in _TABLES}


def _require_empty(connection: Connection, location: str) -> None:
    used_tables = [table.name for table in _TABLES if connection.execute(select(exists(select(table)))).scalar()]
    if used_tables:
        raise Conflict(f"{location} is not empty: it has rows in {', '.join(used_tables)}. Choose a new database.")


def _require_unchanged(source: Database, position: Position) -> None:
    with source.read(from_primary=True) as snapshot:
        if read_position(snapshot) != position:
            raise Conflict(
                f"{source.location} changed during the copy. Nothing was copied; stop its servers and retry."
            )
