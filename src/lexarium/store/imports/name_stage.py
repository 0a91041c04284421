"""Names of records, grouped by folded key in constant memory."""

from collections.abc import Iterable, Iterator
from itertools import groupby

from lexarium.store.imports.stage_database import StageDatabase

_TABLES = "CREATE TABLE name (key TEXT, id TEXT, name TEXT);"
# Rows are counted, not distinct ids, which takes twice as long: few records have two names with one key.
_SELECT_REPEATED = """
    SELECT key, id, min(name) FROM name WHERE key IN (
        SELECT key FROM name WHERE key <> '' GROUP BY key HAVING count(*) > 1
    ) GROUP BY key, id ORDER BY key, id
"""


class NameStage:
    """Names of the records of a class in a temporary file."""

    def __init__(self) -> None:
        self._db = StageDatabase(_TABLES)
        # Deletes the file.
        self.close = self._db.close

    def add_names(self, rows: Iterable[tuple[str, str, str]]) -> None:
        """Add names, each with its key and the id of its record."""
        self._db.executemany("INSERT INTO name VALUES (?, ?, ?)", rows)

    def iter_repeated(self) -> Iterator[list[tuple[str, str]]]:
        """Yield the ids and names of the records that share a key, by key."""
        for _, group in groupby(self._db.execute(_SELECT_REPEATED), lambda row: str(row[0])):
            names = [(record_id, name) for _, record_id, name in group]
            if len(names) > 1:
                yield names

    def clear_names(self) -> None:
        """Remove the names."""
        self._db.execute("DELETE FROM name")
