"""Temporary SQLite file of an import stage."""

import sqlite3
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lexarium.store.records import BATCH_SIZE


class StageDatabase:
    """Temporary SQLite file. Rows are appended in batches."""

    def __init__(self, tables: str) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="lexarium-import-")
        self._connection = sqlite3.connect(Path(self._folder.name) / "stage.db", isolation_level=None)
        # Nothing outlives the process, so nothing needs to reach the disk.
        pragmas = "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA cache_size=-16000;"
        self._connection.executescript(pragmas + tables)
        self._buffers: defaultdict[str, list[tuple[Any, ...]]] = defaultdict(list)
        self.execute = self._connection.execute
        self.executemany = self._connection.executemany
        # After the tables are created, since a script ends the transaction. Without one, each row would be written by
        # itself.
        self.execute("BEGIN")

    def close(self) -> None:
        """Delete the file."""
        self._connection.close()
        self._folder.cleanup()

    def append(self, table: str, row: tuple[Any, ...]) -> None:
        """Append a row that has a value for every column; it is there after the next `flush`."""
        rows = self._buffers[table]
        rows.append(row)
        if len(rows) >= BATCH_SIZE:
            self._write(table, rows)

    def flush(self) -> None:
        """Write the rows that were appended."""
        for table, rows in self._buffers.items():
            self._write(table, rows)

    def _write(self, table: str, rows: list[tuple[Any, ...]]) -> None:
        if rows:
            self.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * len(rows[0]))})", rows)
            rows.clear()

    def iter_batches(self, query: str) -> Iterator[list[tuple[Any, ...]]]:
        """Yield batches of the rows of a query."""
        cursor = self.execute(query)
        while rows := cursor.fetchmany(BATCH_SIZE):
            yield rows

    def iter_id_batches(self, query: str) -> Iterator[list[str]]:
        """Yield batches of the first column of a query."""
        return ([row[0] for row in rows] for rows in self.iter_batches(query))
