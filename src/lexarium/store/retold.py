"""Where the history of records waits while an import is read: a table of its stage, in constant memory."""

import sqlite3
from collections.abc import Iterable, Iterator
from typing import NamedTuple

_TABLES = """
CREATE TABLE version (
    place INTEGER PRIMARY KEY, id TEXT, number INTEGER, collection TEXT, source INTEGER, line INTEGER,
    write INTEGER, at INTEGER, actor TEXT, action TEXT, document BLOB
);
CREATE TABLE lacking (id TEXT PRIMARY KEY) WITHOUT ROWID;
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

    def lack(self, identifiers: Iterable[str]) -> None:
        """Note that the catalogue lacks these."""
        self._db.executemany("INSERT INTO lacking VALUES (?)", [(identifier,) for identifier in identifiers])

    def count(self) -> int:
        """How many versions there are of records that the catalogue lacks."""
        number: int = self._db.execute(f"SELECT count(*) FROM version WHERE {_LACKING}").fetchone()[0]
        return number

    def lacking(self, size: int) -> Iterator[list[tuple[RetoldVersion, bool]]]:
        """All versions of records that the catalogue lacks, in order, some at a time, and whether it is the last."""
        query = f"SELECT {_COLUMNS}, {_LAST} FROM version WHERE {_LACKING} ORDER BY place"
        cursor = self._db.execute(query)
        while rows := cursor.fetchmany(size):
            yield [(RetoldVersion._make(row[:-1]), bool(row[-1])) for row in rows]

    def latest(self) -> Iterator[RetoldVersion]:
        """The last version of each of the other records."""
        query = f"SELECT {_COLUMNS} FROM version WHERE NOT {_LACKING} AND {_LAST} ORDER BY place"
        return (RetoldVersion._make(row) for row in self._db.execute(query))

    def _flush(self) -> None:
        marks = ", ".join("?" * len(RetoldVersion._fields))
        self._db.executemany(f"INSERT INTO version ({_COLUMNS}) VALUES ({marks})", self._waiting)
        self._waiting.clear()


_COLUMNS = ", ".join(RetoldVersion._fields)
_LACKING = "id IN (SELECT id FROM lacking)"
_LAST = "NOT EXISTS (SELECT 1 FROM version v WHERE v.id = version.id AND v.number = version.number + 1)"
