"""Minimal import script, the baseline for imports.

It validates nothing, keeps no history, indexes records by id and name only, and holds the whole file in memory.
"""

import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import orjson


def main(file: str, database: str) -> None:
    """Load a file into a new database."""
    records = orjson.loads(Path(file).read_bytes())
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("CREATE TABLE record (id TEXT PRIMARY KEY, name TEXT, body BLOB)")
        rows = ((record["id"], record["name"], orjson.dumps(record)) for record in records)
        connection.executemany("INSERT INTO record VALUES (?, ?, ?)", rows)
        connection.execute("CREATE INDEX record_by_name ON record (name)")


if __name__ == "__main__":
    main(*sys.argv[1:])
