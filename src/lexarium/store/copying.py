"""Taking all that a database holds into another, of either engine: table by table, in one transaction."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Table, exists, func, insert, select, update

from lexarium.domain.errors import Conflict, StoreError
from lexarium.domain.progress import Progress
from lexarium.store.backend import Position, read_position
from lexarium.store.database import Database
from lexarium.store.schema import catalogue, lease, metadata

_AT_ONCE = 1_000
_TABLES = [table for table in metadata.sorted_tables if table not in (catalogue, lease)]
"""All but where the catalogue stands, which goes last, and what belongs to processes that run."""


@dataclass(frozen=True)
class Copied:
    """What was taken: how many rows of each table, and the position it was taken at."""

    position: Position
    rows: dict[str, int]


def copy_all(
    source: Database, target: Database, told: Progress, *, new_epoch: bool = False, at_rest: bool = False
) -> Copied:
    """Take everything across, the epoch too unless a new one is wanted, and look whether it arrived.

    Both have the present schema. Raises `Conflict` where the target holds anything, or where the source should be at
    rest and has moved on meanwhile, `StoreError` where what arrived is not what was sent; nothing is kept then.
    """
    with (
        source.read() as snapshot,
        target.errors_explained(),
        target.backend.writing() as connection,
        connection.begin(),
    ):
        target.backend.lock(connection)
        _refuse_if_used(connection, target.place)
        totals = _counts(source, snapshot)
        total, done = sum(totals.values()), 0
        for table in _TABLES:
            sent = _Digest()
            for rows in _rows(source, snapshot, table):
                connection.execute(insert(table), [row._asdict() for row in rows])
                sent.add(rows)
                done += len(rows)
                told("Copying", done, total)
            _check(target, connection, table, sent)
        # What the target was made with stays: its server's own timeline, and its epoch where that is to be a new one.
        staying = {"timeline", "parted", *(["epoch"] if new_epoch else [])}
        values = snapshot.execute(select(catalogue)).one()._asdict()
        connection.execute(update(catalogue).values({name: values[name] for name in values.keys() - staying}))
        target.backend.go_on(connection)
        if at_rest:
            _refuse_if_moved(source, read_position(snapshot))
        return Copied(read_position(snapshot), totals)


class _Digest:
    """Of rows in order: equal digests, equal rows."""

    def __init__(self) -> None:
        self._hash = hashlib.blake2b()

    def add(self, rows: list[Any]) -> None:
        for row in rows:
            self._hash.update(repr(tuple(row)).encode("utf-8", "surrogatepass"))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Digest) and self._hash.digest() == other._hash.digest()

    __hash__ = None  # type: ignore[assignment]


def _rows(database: Database, connection: Connection, table: Table) -> Iterator[list[Any]]:
    """All rows in the order of their keys, some at a time. What goes wrong is said of the database that is read."""
    query = select(table).order_by(*table.primary_key.columns)
    with database.errors_explained():
        yield from map(list, connection.execute(query, execution_options={"yield_per": _AT_ONCE}).partitions())


def _check(target: Database, connection: Connection, table: Table, sent: _Digest) -> None:
    arrived = _Digest()
    for rows in _rows(target, connection, table):
        arrived.add(rows)
    if arrived != sent:
        raise StoreError(
            f"What arrived in {target.place} is not what was sent: {table.name} differs. Nothing of it was kept."
        )


def _counts(database: Database, connection: Connection) -> dict[str, int]:
    with database.errors_explained():
        return {
            table.name: connection.execute(select(func.count()).select_from(table)).scalar_one() for table in _TABLES
        }


def _refuse_if_used(connection: Connection, place: str) -> None:
    used = [table.name for table in _TABLES if connection.execute(select(exists(select(table)))).scalar()]
    if used:
        raise Conflict(f"{place} is not empty: it has rows in {', '.join(used)}. Choose a new database.")


def _refuse_if_moved(source: Database, then: Position) -> None:
    with source.read(newest=True) as snapshot:
        if read_position(snapshot) != then:
            raise Conflict(
                f"{source.place} was written to meanwhile. Nothing was copied: stop its servers, and copy again."
            )
