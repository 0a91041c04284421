"""What was fetched of another server, kept from run to run in a small file of its own; belongs to one catalogue."""

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from lexarium.domain.errors import DatabaseUnavailable, StoreError

_FILE_FORMAT = 1
_TABLES = """
CREATE TABLE catalogue (epoch TEXT NOT NULL);
CREATE TABLE feed (source TEXT PRIMARY KEY, last TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE change (source TEXT, id TEXT, body BLOB NOT NULL, PRIMARY KEY (source, id)) WITHOUT ROWID;
CREATE TABLE list (source TEXT, name TEXT, etag TEXT, PRIMARY KEY (source, name)) WITHOUT ROWID;
CREATE TABLE record (
    source TEXT, collection TEXT, id TEXT,
    digest BLOB NOT NULL,               -- of its list form
    listed INTEGER NOT NULL DEFAULT 1,  -- whether the list that was read last has it
    asked INTEGER NOT NULL DEFAULT 0,   -- whether it was asked for by its id since its list form changed
    etag TEXT,                          -- of the answer to that
    body BLOB,                          -- what waits to be imported
    taken INTEGER NOT NULL DEFAULT 0,   -- whether it ever was
    PRIMARY KEY (source, collection, id)
) WITHOUT ROWID;
"""
_UPSERT_RECORD = """
INSERT INTO record (source, collection, id, digest, body) VALUES (?, ?, ?, ?, ?)
ON CONFLICT DO UPDATE SET listed = 1,
    asked = asked AND digest = excluded.digest,
    body = CASE WHEN digest = excluded.digest THEN body ELSE excluded.body END,
    digest = excluded.digest
"""


class ListedRecord(NamedTuple):
    """A record as a list has it."""

    id: str
    digest: bytes
    body: bytes


class MirrorState:
    """What was fetched of one source. What is told to it is kept at once, whatever happens next."""

    def __init__(self, path: Path, epoch: str, source: str) -> None:
        self._path = path
        self._epoch = epoch
        self._source = source

    def __enter__(self) -> Self:
        """Raises `Unavailable` while another process has the file."""
        try:
            self._db = _open(self._path, self._epoch)
        except sqlite3.OperationalError as error:
            raise DatabaseUnavailable(
                f"{self._path} cannot be used; another mirror may be under way ({error})."
            ) from None
        except sqlite3.DatabaseError:
            raise StoreError(f"{self._path} is damaged. Delete it, and all is fetched anew.") from None
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._db.close()

    # Lists, and records by their id

    def get_list_etag(self, name: str) -> str | None:
        """The ETag that a list had when it was read."""
        row = self._db.execute("SELECT etag FROM list WHERE source = ? AND name = ?", (self._source, name)).fetchone()
        return row[0] if row else None

    def set_list_etag(self, name: str, etag: str | None) -> None:
        """Remember the ETag of a list that is read."""
        self._db.execute("REPLACE INTO list VALUES (?, ?, ?)", (self._source, name, etag))

    def save_list(self, collection: str, etag: str | None, records: Iterable[ListedRecord]) -> None:
        """Take a whole list in; records whose list form has changed are to be asked for."""
        key = (self._source, collection)
        self._db.execute("BEGIN")
        try:
            self._db.execute("UPDATE record SET listed = 0 WHERE source = ? AND collection = ?", key)
            for record in records:
                self._db.execute(_UPSERT_RECORD, (*key, *record))
            self._db.execute("DELETE FROM record WHERE source = ? AND collection = ? AND NOT listed AND NOT taken", key)
            self.set_list_etag(collection, etag)
        except BaseException:
            self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")

    def mark_all_unfetched(self) -> None:
        """Have every record asked for."""
        self._db.execute("UPDATE record SET asked = 0 WHERE source = ?", (self._source,))

    def list_unfetched(self) -> list[tuple[str, str, str | None]]:
        """The records to ask for: collection, id and the ETag that it had."""
        query = "SELECT collection, id, etag FROM record WHERE source = ? AND listed AND NOT asked"
        return self._db.execute(query, (self._source,)).fetchall()

    def save_fetched(self, collection: str, record_id: str, etag: str | None, body: bytes | None) -> None:
        """Note that a record was asked for. Without a body what is known of it holds."""
        self._db.execute(
            "UPDATE record SET asked = 1, etag = ?, body = coalesce(?, body)"
            " WHERE source = ? AND collection = ? AND id = ?",
            (etag, body, self._source, collection, record_id),
        )

    def mark_all_fetched(self) -> None:
        """Note that records cannot be asked for: their list forms are all there is."""
        self._db.execute("UPDATE record SET asked = 1 WHERE source = ?", (self._source,))

    def is_listed(self, record_id: str) -> bool:
        """Whether some list has this record."""
        query = "SELECT 1 FROM record WHERE source = ? AND id = ? AND listed"
        return self._db.execute(query, (self._source, record_id)).fetchone() is not None

    def iter_pending_records(self) -> Iterator[tuple[str, bytes]]:
        """What waits to be imported: collection and JSON."""
        query = "SELECT collection, body FROM record WHERE source = ? AND listed AND body IS NOT NULL"
        return iter(self._db.execute(query, (self._source,)))

    def list_removed(self) -> list[tuple[str, str]]:
        """Records that were imported and that no list has any more: collection and id."""
        query = "SELECT collection, id FROM record WHERE source = ? AND NOT listed"
        return self._db.execute(query, (self._source,)).fetchall()

    def find_emptied_collections(self) -> set[str]:
        """Collections that have no records any more, where they had some."""
        query = "SELECT collection FROM record WHERE source = ? GROUP BY collection HAVING max(listed) = 0"
        return {row[0] for row in self._db.execute(query, (self._source,))}

    # Changes

    def get_last_change(self) -> str | None:
        """The last change that was fetched."""
        row = self._db.execute("SELECT last FROM feed WHERE source = ?", (self._source,)).fetchone()
        return row[0] if row else None

    def save_changes(self, records: Iterable[tuple[str, bytes]], last: str) -> None:
        """Take changes in: ids and what the records have become."""
        self._db.execute("BEGIN")
        self._db.executemany("REPLACE INTO change VALUES (?, ?, ?)", [(self._source, *record) for record in records])
        self._db.execute("REPLACE INTO feed VALUES (?, ?)", (self._source, last))
        self._db.execute("COMMIT")

    def reset_changes(self) -> None:
        """Begin anew with the first change of all."""
        self._db.execute("DELETE FROM feed WHERE source = ?", (self._source,))

    def iter_pending_changes(self) -> Iterator[bytes]:
        """The changed records that wait to be imported, as JSON."""
        return (row[0] for row in self._db.execute("SELECT body FROM change WHERE source = ?", (self._source,)))

    # Both

    def mark_imported(self, pruned: Iterable[tuple[str, str]]) -> None:
        """Note that all that waited is imported, and that these records are retired."""
        self._db.execute("BEGIN")
        self._db.execute("UPDATE record SET body = NULL, taken = 1 WHERE source = ? AND listed", (self._source,))
        self._db.execute("DELETE FROM change WHERE source = ?", (self._source,))
        self._db.executemany(
            "DELETE FROM record WHERE source = ? AND collection = ? AND id = ?",
            [(self._source, *key) for key in pruned],
        )
        self._db.execute("COMMIT")


def _open(path: Path, epoch: str) -> sqlite3.Connection:
    """The file, held by this process alone; made anew where it is another catalogue's, or of another format."""
    db = sqlite3.connect(path, isolation_level=None, timeout=1)
    try:
        # Power that fails may take the last few records along, never the file; they are fetched again.
        db.executescript(
            "PRAGMA locking_mode=EXCLUSIVE; PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; BEGIN EXCLUSIVE;"
        )
        if db.execute("PRAGMA user_version").fetchone()[0] != _FILE_FORMAT or _read_epoch(db) != epoch:
            tables = "SELECT name FROM sqlite_master WHERE type = 'table'"
            for (name,) in db.execute(tables).fetchall():
                db.execute(f'DROP TABLE "{name}"')
            for statement in _TABLES.split(";\n"):
                db.execute(statement)
            db.execute("INSERT INTO catalogue VALUES (?)", (epoch,))
            db.execute(f"PRAGMA user_version={_FILE_FORMAT}")
        db.execute("COMMIT")
    except BaseException:
        db.close()
        raise
    return db


def _read_epoch(db: sqlite3.Connection) -> str | None:
    with suppress(sqlite3.OperationalError):
        row = db.execute("SELECT epoch FROM catalogue").fetchone()
        return str(row[0]) if row else None
    return None
