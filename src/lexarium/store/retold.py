"""Where the history of records waits while an import is read: a table of its stage, in constant memory."""

import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

_TABLES = """
CREATE TABLE version (
    place INTEGER PRIMARY KEY, id TEXT, number INTEGER, collection TEXT, source INTEGER, line INTEGER,
    write INTEGER, at INTEGER, actor TEXT, action TEXT, document BLOB
);
CREATE TABLE lacking (id TEXT PRIMARY KEY, after INTEGER) WITHOUT ROWID;
"""
_BUFFERED = 1_000


class RetoldVersion(NamedTuple):
    """A version of a record as a file tells it, and where."""

    id: str
    number: int
    collection: str
    source: int
    line: int
    write: int
    at: int
    actor: str
    action: str
    document: bytes


class Awaited(NamedTuple):
    """A version that the catalogue lacks."""

    version: RetoldVersion
    last: bool
    """Whether it is what the record came to be."""
    new: bool
    """Whether the catalogue lacks the record altogether."""


class Merged(NamedTuple):
    """A record that came to be merged, and where that is told."""

    id: str
    into: str
    collection: str
    source: int
    line: int


class Misplaced(NamedTuple):
    """A version that does not go with those before it."""

    id: str
    number: int
    source: int
    line: int
    expected: int
    """Which version should have come there; its own where that came before, and was another."""


class RetoldVersions:
    """The versions of records, in the order of reading."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._waiting: list[RetoldVersion] = []
        self._any = False
        db.executescript(_TABLES)

    def add(self, version: RetoldVersion) -> None:
        """Add a version."""
        self._any = True
        self._waiting.append(version)
        if len(self._waiting) >= _BUFFERED:
            self._flush()

    def __bool__(self) -> bool:
        return self._any

    def arrange(self) -> Iterator[Misplaced]:
        """Make what was added ready to be asked for; what several files tell alike counts once.

        Yields what does not go together: then nothing of it may be asked for.
        """
        self._flush()
        self._db.execute("CREATE INDEX version_of_record ON version (id, number, place)")
        same = "v.id = version.id AND v.number = version.number AND v.place < version.place"
        alike = "v.document = version.document AND v.collection = version.collection AND v.actor = version.actor"
        self._db.execute(f"DELETE FROM version WHERE EXISTS (SELECT 1 FROM version v WHERE {same} AND {alike})")
        expected = "row_number() OVER (PARTITION BY id ORDER BY place) AS expected"
        before = "lag(collection, 1, collection) OVER (PARTITION BY id ORDER BY place) AS before"
        query = f"""
            SELECT id, number, source, line, expected FROM (SELECT *, {expected}, {before} FROM version)
            WHERE number != expected OR collection != before ORDER BY place
        """
        for row in self._db.execute(query):
            yield Misplaced._make(row)

    def identifiers(self, size: int) -> Iterator[list[str]]:
        """The records, some at a time."""
        cursor = self._db.execute("SELECT DISTINCT id FROM version ORDER BY id")
        while rows := cursor.fetchmany(size):
            yield [row[0] for row in rows]

    def lack(self, after: Mapping[str, int]) -> None:
        """Note that the catalogue lacks the versions of these after one; after 0, it lacks the record."""
        self._db.executemany("INSERT INTO lacking VALUES (?, ?)", after.items())

    def goes_on(self, identifier: str, number: int, document: bytes) -> bool:
        """Whether a version of a record is just this, and others come after it."""
        query = """
            SELECT 1 FROM version JOIN version later ON later.id = version.id AND later.number = version.number + 1
            WHERE version.id = ? AND version.number = ? AND version.document = ?
        """
        return self._db.execute(query, (identifier, number, document)).fetchone() is not None

    def count(self) -> int:
        """How many versions there are that the catalogue lacks."""
        number: int = self._db.execute(f"SELECT count(*) FROM {_LACKING}").fetchone()[0]
        return number

    def lacking(self, size: int) -> Iterator[list[Awaited]]:
        """All versions that the catalogue lacks, in order, some at a time."""
        cursor = self._db.execute(f"SELECT {_COLUMNS}, {_LAST}, after = 0 FROM {_LACKING} ORDER BY place")
        while rows := cursor.fetchmany(size):
            yield [Awaited(RetoldVersion._make(row[:-2]), bool(row[-2]), bool(row[-1])) for row in rows]

    def merged(self) -> Iterator[Merged]:
        """Those of the records whose versions the catalogue lacks that came to be merged."""
        told = "json_extract(CAST(document AS TEXT), '$.replaced_by')"
        state = "json_extract(CAST(document AS TEXT), '$.state') = 'merged'"
        query = f"SELECT version.id, {told}, collection, source, line FROM {_LACKING} AND {_LAST} AND {state}"
        return map(Merged._make, self._db.execute(f"{query} ORDER BY place"))

    def collections(self, identifiers: Iterable[str]) -> Iterator[tuple[str, str]]:
        """Those of these records that there are versions of, with their collections."""
        query = "SELECT id, collection FROM version WHERE id = ? LIMIT 1"
        for identifier in identifiers:
            yield from self._db.execute(query, (identifier,))

    def latest(self) -> Iterator[RetoldVersion]:
        """The last version of each of the records of which the catalogue lacks none, or has others."""
        others = "id NOT IN (SELECT id FROM lacking)"
        query = f"SELECT {_COLUMNS} FROM version WHERE {others} AND {_LAST} ORDER BY place"
        return (RetoldVersion._make(row) for row in self._db.execute(query))

    def _flush(self) -> None:
        marks = ", ".join("?" * len(RetoldVersion._fields))
        columns = ", ".join(RetoldVersion._fields)
        self._db.executemany(f"INSERT INTO version ({columns}) VALUES ({marks})", self._waiting)
        self._waiting.clear()


_COLUMNS = ", ".join(RetoldVersion._fields).replace("id", "version.id", 1)
_LACKING = "version JOIN lacking ON lacking.id = version.id WHERE number > after"
_LAST = "NOT EXISTS (SELECT 1 FROM version v WHERE v.id = version.id AND v.number = version.number + 1)"
