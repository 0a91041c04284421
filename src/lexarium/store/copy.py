"""Taking all that a database holds into another, of either engine: table by table, in one transaction."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Table, exists, func, insert, select, update

from lexarium.domain.errors import Conflict, StoreError
from lexarium.domain.progress import ProgressCallback
from lexarium.store.database import Database
from lexarium.store.position import Position, read_position
from lexarium.store.schema import catalogue_table, lease_table, metadata

_BATCH_SIZE = 1_000
_TABLES = [table for table in metadata.sorted_tables if table not in (catalogue_table, lease_table)]
"""All but where the catalogue stands, which goes last, and what belongs to processes that run."""


@dataclass(frozen=True)
class CopyResult:
    """What was taken: how many rows of each table, and the position it was taken at."""

    position: Position
    rows: dict[str, int]


def copy_tables(
    source: Database,
    target: Database,
    progress: ProgressCallback,
    *,
    new_epoch: bool = False,
    require_idle: bool = False,
) -> CopyResult:
    """Take everything across, the epoch too unless a new one is wanted, and look whether it arrived.

    Both have the present schema. Raises `Conflict` where the target holds anything, or where the source should be at
    rest and has moved on meanwhile, `StoreError` where what arrived is not what was sent; nothing is kept then.
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
            source_digest = _RowDigest()
            for rows in _iter_rows(source, snapshot, table):
                connection.execute(insert(table), [row._asdict() for row in rows])
                source_digest.add(rows)
                done += len(rows)
                progress("Copying", done, total)
            _verify_table(target, connection, table, source_digest)
        # What the target was made with stays: its server's own timeline, and its epoch where that is to be a new one.
        kept_columns = {"timeline", "parted", *(["epoch"] if new_epoch else [])}
        values = snapshot.execute(select(catalogue_table)).one()._asdict()
        connection.execute(
            update(catalogue_table).values({name: values[name] for name in values.keys() - kept_columns})
        )
        target.backend.finish_copy(connection)
        if require_idle:
            _require_unchanged(source, read_position(snapshot))
        return CopyResult(read_position(snapshot), totals)


class _RowDigest:
    """Of rows in order: equal digests, equal rows."""

    def __init__(self) -> None:
        self._hash = hashlib.blake2b()

    def add(self, rows: list[Any]) -> None:
        for row in rows:
            self._hash.update(repr(tuple(row)).encode("utf-8", "surrogatepass"))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _RowDigest) and self._hash.digest() == other._hash.digest()

    __hash__ = None  # type: ignore[assignment]


def _iter_rows(database: Database, connection: Connection, table: Table) -> Iterator[list[Any]]:
    """All rows in the order of their keys, some at a time. What goes wrong is said of the database that is read."""
    query = select(table).order_by(*table.primary_key.columns)
    with database.translate_errors():
        yield from map(list, connection.execute(query, execution_options={"yield_per": _BATCH_SIZE}).partitions())


def _verify_table(target: Database, connection: Connection, table: Table, source_digest: _RowDigest) -> None:
    target_digest = _RowDigest()
    for rows in _iter_rows(target, connection, table):
        target_digest.add(rows)
    if target_digest != source_digest:
        raise StoreError(
            f"What arrived in {target.location} is not what was sent: {table.name} differs. Nothing of it was kept."
        )


def _count_rows(database: Database, connection: Connection) -> dict[str, int]:
    with database.translate_errors():
        return {
            table.name: connection.execute(select(func.count()).select_from(table)).scalar_one() for table in _TABLES
        }


def _require_empty(connection: Connection, location: str) -> None:
    used_tables = [table.name for table in _TABLES if connection.execute(select(exists(select(table)))).scalar()]
    if used_tables:
        raise Conflict(f"{location} is not empty: it has rows in {', '.join(used_tables)}. Choose a new database.")


def _require_unchanged(source: Database, position: Position) -> None:
    with source.read(from_primary=True) as snapshot:
        if read_position(snapshot) != position:
            raise Conflict(
                f"{source.location} was written to meanwhile. Nothing was copied: stop its servers, and copy again."
            )
