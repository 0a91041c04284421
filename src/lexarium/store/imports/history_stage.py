"""Imported history of records, staged in the database of an import stage."""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from lexarium.store.imports.stage_database import StageDatabase

HISTORY_TABLES = """
CREATE TABLE version (
    position INTEGER PRIMARY KEY, id TEXT, number INTEGER, collection TEXT, source INTEGER, line INTEGER,
    write INTEGER, at INTEGER, actor TEXT, action TEXT, state TEXT, name TEXT, class_id TEXT, owner TEXT,
    flagged INTEGER, is_linked INTEGER, body BLOB, document BLOB
);
CREATE TABLE missing (id TEXT PRIMARY KEY, after INTEGER) WITHOUT ROWID;
"""


class StagedVersion(NamedTuple):
    """Version of a record in a file, and its location."""

    id: str
    number: int
    collection: str
    source: int
    line: int
    write: int
    at: int
    actor: str
    action: str
    state: str
    name: str
    class_id: str
    owner: str
    flagged: bool
    # Whether it has relations, alternative ids or names in other languages.
    is_linked: bool
    # Rendered record.
    body: bytes
    document: bytes
    # Of a version that the catalogue does not have: whether it is the last one of the record.
    is_current: bool = False
    # Of such a version: whether the catalogue does not have the record at all.
    is_new_record: bool = False


class StagedMerge(NamedTuple):
    """Record that was merged, with the location of that version."""

    id: str
    survivor_id: str
    collection: str
    source: int
    line: int


class VersionMismatch(NamedTuple):
    """Version that does not follow from those before it."""

    id: str
    version: int
    source: int
    line: int
    # Expected version; its own number if another version with this number came before.
    expected_version: int


class HistoryStage:
    """Versions of records, in the order of reading."""

    def __init__(self, db: StageDatabase) -> None:
        self._db = db
        self.added_count = 0

    def add(self, version: StagedVersion) -> None:
        """Add a version."""
        self.added_count += 1
        *columns, action, state, name, class_id, owner, flagged, is_linked, body, document, _, _ = version
        # The driver passes values of these very types as they are. For any other it looks for an adapter.
        texts = str(action), str(state), name, class_id, owner
        blobs = bytearray(body), bytearray(document)
        self._db.append("version", (self.added_count, *columns, *texts, int(flagged), int(is_linked), *blobs))

    def __bool__(self) -> bool:
        return self.added_count > 0

    def finish(self) -> Iterator[VersionMismatch]:
        """Index what was added; versions that are the same in several files count once.

        Yields the versions that do not fit together. The other methods need a history without any.
        """
        self._db.flush()
        self._db.execute("CREATE INDEX version_of_record ON version (id, number, position)")
        is_same_version = "v.id = version.id AND v.number = version.number AND v.position < version.position"
        is_identical = "v.document = version.document AND v.collection = version.collection AND v.actor = version.actor"
        # Most records have one version. Looking up the others in the index first takes a fraction of the time.
        is_repeated = "id IN (SELECT id FROM version GROUP BY id, number HAVING count(*) > 1)"
        is_copy = f"EXISTS (SELECT 1 FROM version v WHERE {is_same_version} AND {is_identical})"
        self._db.execute(f"DELETE FROM version WHERE {is_repeated} AND {is_copy}")
        may_mismatch = "id IN (SELECT id FROM version GROUP BY id HAVING count(*) > 1 OR max(number) != 1)"
        expected = "row_number() OVER (PARTITION BY id ORDER BY position) AS expected"
        previous_collection = "lag(collection, 1, collection) OVER (PARTITION BY id ORDER BY position) AS before"
        # Without the documents, which would be sorted too.
        columns = f"id, number, source, line, position, collection, {expected}, {previous_collection}"
        query = f"""
            SELECT id, number, source, line, expected FROM (SELECT {columns} FROM version WHERE {may_mismatch})
            WHERE number != expected OR collection != before ORDER BY position
        """
        for row in self._db.execute(query):
            yield VersionMismatch._make(row)

    def iter_ids(self) -> Iterator[list[str]]:
        """Yield batches of the record ids."""
        return self._db.iter_id_batches("SELECT DISTINCT id FROM version ORDER BY id")

    def mark_missing(self, after: Mapping[str, int]) -> None:
        """Mark the versions of records after a version as missing; after 0, the record is missing too."""
        self._db.executemany("INSERT INTO missing VALUES (?, ?)", after.items())

    def continues_from(self, record_id: str, version: int, document: bytes) -> bool:
        """Return whether a version of a record has this document, and is not the last."""
        query = """
            SELECT 1 FROM version JOIN version later ON later.id = version.id AND later.number = version.number + 1
            WHERE version.id = ? AND version.number = ? AND version.document = ?
        """
        return self._db.execute(query, (record_id, version, document)).fetchone() is not None

    def count_missing(self) -> int:
        """Return the number of missing versions."""
        total: int = self._db.execute(f"SELECT count(*) FROM {_MISSING}").fetchone()[0]
        return total

    def iter_missing(self) -> Iterator[list[StagedVersion]]:
        """Yield batches of the missing versions, in order."""
        query = f"SELECT {_COLUMNS}, {_IS_LAST}, after = 0 FROM {_MISSING} ORDER BY position"
        for rows in self._db.iter_batches(query):
            yield list(map(StagedVersion._make, rows))

    def iter_merges(self) -> Iterator[StagedMerge]:
        """Yield the records with missing versions that end up merged."""
        survivor_id = "json_extract(CAST(document AS TEXT), '$.replaced_by')"
        columns = f"version.id, {survivor_id}, collection, source, line"
        query = f"SELECT {columns} FROM {_MISSING} AND state = 'merged' AND {_IS_LAST} ORDER BY position"
        return map(StagedMerge._make, self._db.execute(query))

    def find_collections(self, record_ids: Iterable[str]) -> Iterator[tuple[str, str]]:
        """Yield the ids of the records that have versions here, with their collections."""
        query = "SELECT id, collection FROM version WHERE id = ? LIMIT 1"
        for record_id in record_ids:
            yield from self._db.execute(query, (record_id,))

    def iter_latest(self) -> Iterator[StagedVersion]:
        """Yield the last version of each record that has no missing versions."""
        is_not_missing = "id NOT IN (SELECT id FROM missing)"
        query = f"SELECT {_COLUMNS} FROM version WHERE {is_not_missing} AND {_IS_LAST} ORDER BY position"
        return (StagedVersion(*row) for row in self._db.execute(query))


# Without the last two, which are computed.
_COLUMNS = ", ".join(StagedVersion._fields[:-2]).replace("id", "version.id", 1)
_MISSING = "version JOIN missing ON missing.id = version.id WHERE number > after"
_IS_LAST = "NOT EXISTS (SELECT 1 FROM version v WHERE v.id = version.id AND v.number = version.number + 1)"
