"""Where an import waits until all of it has been read: a private temporary file, in constant memory."""

import sqlite3
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import orjson

from lexarium.domain.records import Fields
from lexarium.domain.relations import Edge, Side

_TABLES = """
CREATE TABLE staged (
    id TEXT PRIMARY KEY, collection TEXT NOT NULL, fields BLOB NOT NULL, origin TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE edge (source TEXT, relation TEXT, target TEXT, PRIMARY KEY (source, relation, target)) WITHOUT ROWID;
CREATE TABLE dropped (source TEXT, relation TEXT, target TEXT, PRIMARY KEY (source, relation, target)) WITHOUT ROWID;
CREATE TABLE told (id TEXT, relation TEXT, side TEXT, PRIMARY KEY (id, relation, side)) WITHOUT ROWID;
"""


@dataclass(frozen=True, slots=True)
class Staged:
    """A record waiting to be imported: the fields its files gave, and where it was (last) read."""

    id: str
    collection: str
    fields: Fields
    origin: str


class Stage:
    """Holds the records and relations of one import, each once, whichever files they came from."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="lexarium-import-")
        self._db = sqlite3.connect(Path(self._folder.name) / "stage.db", isolation_level=None)
        # Nothing here outlives the process, so nothing needs to reach the disk.
        self._db.executescript("PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF;" + _TABLES + "BEGIN;")

    def close(self) -> None:
        """Forget all of it."""
        self._db.close()
        self._folder.cleanup()

    def add(self, item: Staged) -> Staged | None:
        """Add a record, unless it is there: then the one that is there is returned and nothing is changed."""
        row = (item.id, item.collection, orjson.dumps(item.fields), item.origin)
        if self._db.execute("INSERT OR IGNORE INTO staged VALUES (?, ?, ?, ?)", row).rowcount:
            return None
        return next(self._staged("id = ?", [item.id]))

    def replace(self, item: Staged) -> None:
        """Put this record in place of the one with its id."""
        row = (item.id, item.collection, orjson.dumps(item.fields), item.origin)
        self._db.execute("REPLACE INTO staged VALUES (?, ?, ?, ?)", row)

    def tell(self, identifier: str, edges: Iterable[Edge], told: Iterable[tuple[str, Side]]) -> None:
        """Add the edges a record tells of, and which relations, at which end, it tells of completely."""
        self._db.executemany(
            "INSERT OR IGNORE INTO edge VALUES (?, ?, ?)", [(edge.source, edge.relation, edge.target) for edge in edges]
        )
        self._db.executemany(
            "INSERT OR IGNORE INTO told VALUES (?, ?, ?)", [(identifier, relation, side) for relation, side in told]
        )

    def told(self) -> Iterator[list[tuple[str, str, Side]]]:
        """What records tell of completely, as (id, relation, side), some at a time, by id."""
        cursor = self._db.execute("SELECT id, relation, side FROM told ORDER BY id")
        while rows := cursor.fetchmany(1_000):
            yield rows

    def asserted(self, edges: Iterable[Edge]) -> set[Edge]:
        """Which of these edges some record of the import tells of."""
        known = "SELECT 1 FROM edge WHERE source = ? AND relation = ? AND target = ?"
        return {edge for edge in edges if self._db.execute(known, (edge.source, edge.relation, edge.target)).fetchone()}

    def holds(self, identifiers: Iterable[str]) -> Iterator[str]:
        """Which of these records the import holds."""
        for identifier in identifiers:
            if self._db.execute("SELECT 1 FROM staged WHERE id = ?", (identifier,)).fetchone():
                yield identifier

    def drop(self, edges: Iterable[Edge]) -> None:
        """Note that these edges shall go."""
        self._db.executemany(
            "INSERT OR IGNORE INTO dropped VALUES (?, ?, ?)",
            [(edge.source, edge.relation, edge.target) for edge in edges],
        )

    def count(self) -> int:
        """How many records the import touches: those it holds, and those it changes a relation of."""
        number: int = self._db.execute(f"SELECT count(*) FROM ({_TOUCHED})").fetchone()[0]
        return number

    def touched(self, size: int) -> Iterator[list[str]]:
        """The ids of the records the import touches, in order, some at a time."""
        cursor = self._db.execute(_TOUCHED + " ORDER BY 1")
        while rows := cursor.fetchmany(size):
            yield [row[0] for row in rows]

    def staged(self, first: str, last: str) -> dict[str, Staged]:
        """The records from one id to another, both included."""
        return {item.id: item for item in self._staged("id BETWEEN ? AND ?", [first, last])}

    def edges(self, first: str, last: str) -> Iterator[Edge]:
        """The edges told of whose source lies from one id to another, both included."""
        return self._edges("edge", first, last)

    def dropped(self, first: str, last: str) -> Iterator[Edge]:
        """The edges that shall go whose source lies from one id to another, both included."""
        return self._edges("dropped", first, last)

    def relations(self) -> set[str]:
        """The names of the relations that the import tells of."""
        return {row[0] for row in self._db.execute("SELECT DISTINCT relation FROM edge")}

    def _edges(self, table: str, first: str, last: str) -> Iterator[Edge]:
        query = f"SELECT source, relation, target FROM {table} WHERE source BETWEEN ? AND ?"
        return (Edge(*row) for row in self._db.execute(query, [first, last]))

    def _staged(self, condition: str, values: Sequence[str]) -> Iterator[Staged]:
        query = f"SELECT id, collection, fields, origin FROM staged WHERE {condition}"
        for identifier, collection, fields, origin in self._db.execute(query, values):
            yield Staged(identifier, collection, orjson.loads(fields), origin)


_TOUCHED = "SELECT id FROM staged UNION SELECT source FROM edge UNION SELECT source FROM dropped"
