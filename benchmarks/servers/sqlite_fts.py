"""SQLite FTS5 with bm25, in process: the baseline for search."""

import sqlite3
import time
from collections.abc import Iterable
from pathlib import Path

from benchmarks.data.records import Record

_QUERY = "SELECT id FROM term WHERE term MATCH ? ORDER BY bm25(term, 0, 10, 5, 1) LIMIT 10"


class SqliteFts:
    """FTS5 table of terms."""

    def __init__(self, path: Path) -> None:
        self._connection = sqlite3.connect(path)
        self._connection.execute("CREATE VIRTUAL TABLE term USING fts5(id UNINDEXED, name, alias, definition)")
        self.path = path

    def build(self, records: Iterable[Record]) -> float:
        """Insert the records and return the seconds taken."""
        start = time.perf_counter()
        rows = ((record["id"], record["name"], record["alias"], record["definition_text"]) for record in records)
        self._connection.executemany("INSERT INTO term VALUES (?, ?, ?, ?)", rows)
        self._connection.commit()
        return time.perf_counter() - start

    def time_query(self, text: str, *, prefixes: bool) -> float:
        """Search for all words of a text, or for all as prefixes; return the seconds taken."""
        star = "*" if prefixes else ""
        quoted = " ".join(f'"{word}"{star}' for word in text.replace('"', " ").split())
        start = time.perf_counter()
        self._connection.execute(_QUERY, (quoted,)).fetchall()
        return time.perf_counter() - start

    def close(self) -> None:
        self._connection.close()
