"""Copy a database of an earlier schema version to an SQLite file, within the transaction that upgrades it."""

import hashlib
import sqlite3
from collections.abc import Collection, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sqlalchemy import Column, Connection, MetaData, String, Table, create_engine, insert, select, text

from lexarium.domain.errors import StoreError
from lexarium.store.database import Database
from lexarium.store.engine.sqlite import build_url
from lexarium.store.maintenance.upgrade import create_tables
from lexarium.store.records import STREAM_OPTIONS
from lexarium.store.schema import metadata

_VERSION_TABLE = Table("alembic_version", MetaData(), Column("version_num", String(32), primary_key=True))
_TABLES = (*metadata.sorted_tables, _VERSION_TABLE)
_SELECT_COLUMNS = text(
    "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = current_schema()"
)
_SELECT_INDEXES = text("SELECT indexname FROM pg_indexes WHERE schemaname = current_schema()")
_SELECT_SIZE = text("SELECT pg_database_size(current_database())")


def measure_size(database: Database, connection: Connection) -> int:
    """Return about how many bytes a copy takes."""
    path = database.backend.path
    if path is None:
        size: int = connection.execute(_SELECT_SIZE).scalar_one()
        return size
    files = (path, Path(f"{path}-wal"))
    return sum(file.stat().st_size for file in files if file.exists())


def copy_old_database(database: Database, connection: Connection, file: Path) -> dict[str, int]:
    """Copy all tables to a new file, and compare them; return the number of rows by table.

    Nobody else may write meanwhile. Raises StoreError if the copy differs.
    """
    path = database.backend.path
    return _copy_postgres(connection, file) if path is None else _copy_sqlite(path, file)


def _copy_sqlite(path: Path, file: Path) -> dict[str, int]:
    try:
        with (
            closing(sqlite3.connect(f"file:{quote(str(path.absolute()))}?mode=ro", uri=True)) as source,
            closing(sqlite3.connect(file)) as copy,
        ):
            source.backup(copy)
            problems = [row[0] for row in copy.execute("PRAGMA integrity_check") if row[0] != "ok"]
            rows = _count_sqlite_rows(source)
            if problems or _count_sqlite_rows(copy) != rows:
                reason = problems[0] if problems else "the number of rows differs"
                raise StoreError(f"The backup {file} differs from {path}: {reason}. Nothing was changed.")
            return rows
    except sqlite3.Error as error:
        raise StoreError(f"Cannot copy {path} to {file}: {error}. Nothing was changed.") from None


def _count_sqlite_rows(connection: sqlite3.Connection) -> dict[str, int]:
    names = [
        name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")
    ]
    return {name: connection.execute(f'SELECT count(*) FROM "{name}"').fetchone()[0] for name in names}  # noqa: S608


def _copy_postgres(connection: Connection, file: Path) -> dict[str, int]:
    columns: dict[str, set[str]] = {}
    for table_name, column_name in connection.execute(_SELECT_COLUMNS):
        columns.setdefault(table_name, set()).add(column_name)
    indexes = set(connection.execute(_SELECT_INDEXES).scalars())
    engine = create_engine(build_url(file))
    try:
        with engine.begin() as copy:
            create_tables(copy)
            _VERSION_TABLE.create(copy)
            _drop_newer(copy, columns, indexes)
            tables = [table for table in _TABLES if table.name in columns]
            return {table.name: _copy_table(connection, copy, table, columns[table.name]) for table in tables}
    finally:
        engine.dispose()


def _drop_newer(copy: Connection, columns: dict[str, set[str]], indexes: Collection[str]) -> None:
    """Drop the tables, indexes and columns that the database of an earlier version does not have."""
    for table in reversed(metadata.sorted_tables):
        if table.name not in columns:
            table.drop(copy)
            continue
        for index in table.indexes:
            if index.name not in indexes:
                index.drop(copy)
        for name in sorted(set(table.c.keys()) - columns[table.name]):
            copy.execute(text(f"ALTER TABLE {table.name} DROP COLUMN {name}"))


def _copy_table(source: Connection, copy: Connection, table: Table, columns: set[str]) -> int:
    digest, copied_digest = hashlib.blake2b(), hashlib.blake2b()
    count = copied_count = 0
    for rows in _iter_rows(source, table, columns, digest):
        copy.execute(insert(table), rows)
        count += len(rows)
    for rows in _iter_rows(copy, table, columns, copied_digest):
        copied_count += len(rows)
    if (count, digest.digest()) != (copied_count, copied_digest.digest()):
        raise StoreError(f"The backup differs from the database in {table.name}. Nothing was changed.")
    return count


def _iter_rows(connection: Connection, table: Table, columns: set[str], digest: Any) -> Iterator[list[dict[str, Any]]]:
    query = select(*(column for column in table.c if column.name in columns)).order_by(*table.primary_key.columns)
    for batch in connection.execute(query, execution_options=STREAM_OPTIONS).partitions():
        for row in batch:
            digest.update(repr(tuple(row)).encode("utf-8", "surrogatepass"))
        yield [row._asdict() for row in batch]
