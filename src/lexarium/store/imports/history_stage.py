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
_BATCH_SIZE = 1_000


class StagedVersion(NamedTuple):
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


class MissingVersion(NamedTuple):
    """A version that the catalogue lacks."""

    version: StagedVersion
    is_current: bool
    """Whether it is what the record came to be."""
    is_new_record: bool
    """Whether the catalogue lacks the record altogether."""


class StagedMerge(NamedTuple):
    """A record that came to be merged, and where that is told."""

    id: str
    survivor_id: str
    collection: str
    source: int
    line: int


class VersionMismatch(NamedTuple):
    """A version that does not go with those before it."""

    id: str
    version: int
    source: int
    line: int
    expected_version: int
    """Which version should have come there; its own where that came before, and was another."""


class HistoryStage:
    """The versions of records, in the order of reading."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._buffer: list[StagedVersion] = []
        self._has_versions = False
        db.executescript(_TABLES)

    def add(self, version: StagedVersion) -> None:
        """Add a version."""
        self._has_versions = True
        self._buffer.append(version)
        if len(self._buffer) >= _BATCH_SIZE:
            self._flush()

    def __bool__(self) -> bool:
        return self._has_versions

    def finish(self) -> Iterator[VersionMismatch]:
        """Make what was added ready to be asked for; what several files tell alike counts once.

        Yields what does not go together: then nothing of it may be asked for.
        """
        self._flush()
        self._db.execute("CREATE INDEX version_of_record ON version (id, number, place)")
        is_same_version = "v.id = version.id AND v.number = version.number AND v.place < version.place"
        is_identical = "v.document = version.document AND v.collection = version.collection AND v.actor = version.actor"
        self._db.execute(
            f"DELETE FROM version WHERE EXISTS (SELECT 1 FROM version v WHERE {is_same_version} AND {is_identical})"
        )
        expected = "row_number() OVER (PARTITION BY id ORDER BY place) AS expected"
        previous_collection = "lag(collection, 1, collection) OVER (PARTITION BY id ORDER BY place) AS before"
        query = f"""
            SELECT id, number, source, line, expected FROM (SELECT *, {expected}, {previous_collection} FROM version)
            WHERE number != expected OR collection != before ORDER BY place
        """
        for row in self._db.execute(query):
            yield VersionMismatch._make(row)

    def iter_ids(self, size: int) -> Iterator[list[str]]:
        """The records, some at a time."""
        cursor = self._db.execute("SELECT DISTINCT id FROM version ORDER BY id")
        while rows := cursor.fetchmany(size):
            yield [row[0] for row in rows]

    def mark_missing(self, after: Mapping[str, int]) -> None:
        """Note that the catalogue lacks the versions of these after one; after 0, it lacks the record."""
        self._db.executemany("INSERT INTO lacking VALUES (?, ?)", after.items())

    def continues_from(self, record_id: str, version: int, document: bytes) -> bool:
        """Whether a version of a record is just this, and others come after it."""
        query = """
            SELECT 1 FROM version JOIN version later ON later.id = version.id AND later.number = version.number + 1
            WHERE version.id = ? AND version.number = ? AND version.document = ?
        """
        return self._db.execute(query, (record_id, version, document)).fetchone() is not None

    def count_missing(self) -> int:
        """How many versions there are that the catalogue lacks."""
        total: int = self._db.execute(f"SELECT count(*) FROM {_MISSING}").fetchone()[0]
        return total

    def iter_missing(self, size: int) -> Iterator[list[MissingVersion]]:
        """All versions that the catalogue lacks, in order, some at a time."""
        cursor = self._db.execute(f"SELECT {_COLUMNS}, {_IS_LAST}, after = 0 FROM {_MISSING} ORDER BY place")
        while rows := cursor.fetchmany(size):
            yield [MissingVersion(StagedVersion._make(row[:-2]), bool(row[-2]), bool(row[-1])) for row in rows]

    def iter_merges(self) -> Iterator[StagedMerge]:
        """Those of the records whose versions the catalogue lacks that came to be merged."""
        survivor_id = "json_extract(CAST(document AS TEXT), '$.replaced_by')"
        is_merged = "json_extract(CAST(document AS TEXT), '$.state') = 'merged'"
        query = (
            f"SELECT version.id, {survivor_id}, collection, source, line FROM {_MISSING} AND {_IS_LAST} AND {is_merged}"
        )
        return map(StagedMerge._make, self._db.execute(f"{query} ORDER BY place"))

    def find_collections(self, record_ids: Iterable[str]) -> Iterator[tuple[str, str]]:
        """Those of these records that there are versions of, with their collections."""
        query = "SELECT id, collection FROM version WHERE id = ? LIMIT 1"
        for record_id in record_ids:
            yield from self._db.execute(query, (record_id,))

    def iter_latest(self) -> Iterator[StagedVersion]:
        """The last version of each of the records of which the catalogue lacks none, or has others."""
        is_not_missing = "id NOT IN (SELECT id FROM lacking)"
        query = f"SELECT {_COLUMNS} FROM version WHERE {is_not_missing} AND {_IS_LAST} ORDER BY place"
        return (StagedVersion._make(row) for row in self._db.execute(query))

    def _flush(self) -> None:
        placeholders = ", ".join("?" * len(StagedVersion._fields))
        columns = ", ".join(StagedVersion._fields)
        self._db.executemany(f"INSERT INTO version ({columns}) VALUES ({placeholders})", self._buffer)
        self._buffer.clear()


_COLUMNS = ", ".join(StagedVersion._fields).replace("id", "version.id", 1)
_MISSING = "version JOIN lacking ON lacking.id = version.id WHERE number > after"
_IS_LAST = "NOT EXISTS (SELECT 1 FROM version v WHERE v.id = version.id AND v.number = version.number + 1)"
