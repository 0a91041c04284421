"""SQLite table served by Django REST framework and Datasette."""

import sqlite3
from pathlib import Path

from benchmarks.data.catalogue import BenchmarkCatalogue
from benchmarks.data.records import FIELDS, NUMBER_FIELDS, TEXT_FIELDS

TABLE = "concept"


def write_table(catalogue: BenchmarkCatalogue, path: Path) -> None:
    """Create the database with the catalogue's concepts in one table and an index on names."""
    path.unlink(missing_ok=True)
    columns = [f"{name} TEXT NOT NULL" for name in TEXT_FIELDS] + [f"{name} INTEGER NOT NULL" for name in NUMBER_FIELDS]
    marks = ", ".join(f":{name}" for name in FIELDS)
    database = sqlite3.connect(path)
    with database:
        database.execute(f"CREATE TABLE {TABLE} ({', '.join(columns)}, PRIMARY KEY (id))")
        database.execute(f"CREATE INDEX {TABLE}_name ON {TABLE} (name)")
        database.executemany(f"INSERT INTO {TABLE} VALUES ({marks})", catalogue.concepts)
    database.close()
