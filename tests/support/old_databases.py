"""Create databases of earlier releases."""

import sqlite3
from contextlib import closing
from pathlib import Path

from sqlalchemy import Connection, Inspector, MetaData, insert, inspect, select, text

from lexarium.store.maintenance.upgrade import create_tables
from lexarium.store.schema import metadata
from tests.support.postgres import open_sqlalchemy

# SQLite stores them as numbers.
_BOOLEANS = {"flagged", "amended"}
UPGRADES_FOLDER = Path(__file__).parents[1] / "upgrades"


def create_old_database(version: str, path: Path) -> str:
    """Create a database file of an earlier schema version and return its URL."""
    with closing(sqlite3.connect(path)) as database:
        database.executescript((UPGRADES_FOLDER / f"{version}.sql").read_text())
    return f"sqlite:///{path}"


def copy_old_database(source_url: str, url: str) -> None:
    """Give an empty database the tables and rows of one of an earlier schema version."""
    with open_sqlalchemy(url) as connection, open_sqlalchemy(source_url) as source:
        _create_old_tables(connection, inspect(source))
        target_metadata, source_metadata = MetaData(), MetaData()
        target_metadata.reflect(connection)
        source_metadata.reflect(source)
        for table in target_metadata.sorted_tables:
            source_rows = source.execute(select(source_metadata.tables[table.name])).mappings().all()
            converted_rows = [
                {name: bool(value) if name in _BOOLEANS else value for name, value in row.items()}
                for row in source_rows
            ]
            if converted_rows:
                connection.execute(insert(table), converted_rows)


def _create_old_tables(connection: Connection, source: Inspector) -> None:
    """Create the present tables, and drop what the database of an earlier version does not have."""
    create_tables(connection)
    connection.execute(text("CREATE TABLE alembic_version (version_num VARCHAR(32) PRIMARY KEY)"))
    old_names = source.get_table_names()
    for table in reversed(metadata.sorted_tables):
        if table.name not in old_names:
            table.drop(connection)
            continue
        old_indexes = {index["name"] for index in source.get_indexes(table.name)}
        for index in table.indexes:
            if index.name not in old_indexes:
                index.drop(connection)
        old_columns = {column["name"] for column in source.get_columns(table.name)}
        for name in set(table.c.keys()) - old_columns:
            connection.execute(text(f"ALTER TABLE {table.name} DROP COLUMN {name}"))
