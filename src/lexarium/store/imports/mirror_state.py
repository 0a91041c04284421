"""State of a mirror: what was fetched from another server, kept between runs in a file of its own."""

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, Self

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
    """Record in a list of the source."""

    id: str
    digest: bytes
    body: bytes


class MirrorState:
    """Records and changes fetched from one source, for one catalogue. Each method commits."""

    def __init__(self, path: Path, epoch: str, source: str) -> None:
        self._path = path
        self._epoch = epoch
        self._source = source

    def __enter__(self) -> Self:
        """Open the file. Raises DatabaseUnavailable while another process has it open."""
        try:
            self._db = _open(self._path, self._epoch)
        except sqlite3.OperationalError as error:
            raise DatabaseUnavailable(
                f"{self._path} cannot be used; another mirror may be running ({error})."
            ) from None
        except sqlite3.DatabaseError:
            raise StoreError(f"{self._path} is damaged. Delete it to fetch everything again.") from None
        return self

    def __exit__(self, *_: object) -> None:
        self._db.close()

    def _execute(self, query: str, *values: Any) -> sqlite3.Cursor:
        """Run a query whose first parameter is the source."""
        return self._db.execute(query, (self._source, *values))

    # Lists, and records by their id

    def get_list_etag(self, name: str) -> str | None:
        """Return the ETag of a list when it was last read."""
        row = self._execute("SELECT etag FROM list WHERE source = ? AND name = ?", name).fetchone()
        return row[0] if row else None

    def set_list_etag(self, name: str, etag: str | None) -> None:
        """Save the ETag of a list."""
        self._execute("REPLACE INTO list VALUES (?, ?, ?)", name, etag)

    def save_list(self, collection: str, etag: str | None, records: Iterable[ListedRecord]) -> None:
        """Save a whole list; records whose list form changed are to be fetched."""
        with self._db:
            self._db.execute("BEGIN")
            self._execute("UPDATE record SET listed = 0 WHERE source = ? AND collection = ?", collection)
            for record in records:
                self._execute(_UPSERT_RECORD, collection, *record)
            query = "DELETE FROM record WHERE source = ? AND collection = ? AND NOT listed AND NOT taken"
            self._execute(query, collection)
            self.set_list_etag(collection, etag)

    def mark_all_unfetched(self) -> None:
        """Mark all records as to be fetched."""
        self._execute("UPDATE record SET asked = 0 WHERE source = ?")

    def list_unfetched(self) -> list[tuple[str, str, str | None]]:
        """Return collection, id and last ETag of the records to fetch."""
        query = "SELECT collection, id, etag FROM record WHERE source = ? AND listed AND NOT asked"
        return self._execute(query).fetchall()

    def save_fetched(self, collection: str, record_id: str, etag: str | None, body: bytes | None) -> None:
        """Mark a record as fetched. Without a body, the previous one stays."""
        query = """
            UPDATE record SET asked = 1, etag = ?4, body = coalesce(?5, body)
            WHERE source = ?1 AND collection = ?2 AND id = ?3
        """
        self._execute(query, collection, record_id, etag, body)

    def mark_all_fetched(self) -> None:
        """Mark all records as fetched: the source has only list forms."""
        self._execute("UPDATE record SET asked = 1 WHERE source = ?")

    def is_listed(self, record_id: str) -> bool:
        """Return whether a list contains a record."""
        query = "SELECT 1 FROM record WHERE source = ? AND id = ? AND listed"
        return self._execute(query, record_id).fetchone() is not None

    def iter_pending_records(self) -> Iterator[tuple[str, bytes]]:
        """Yield collection and JSON of the records to import."""
        query = "SELECT collection, body FROM record WHERE source = ? AND listed AND body IS NOT NULL"
        return iter(self._execute(query))

    def list_removed(self) -> list[tuple[str, str]]:
        """Return collection and id of imported records that are no longer in any list."""
        query = "SELECT collection, id FROM record WHERE source = ? AND NOT listed"
        return self._execute(query).fetchall()

    def find_emptied_collections(self) -> set[str]:
        """Return the collections that had records and have none left."""
        query = "SELECT collection FROM record WHERE source = ? GROUP BY collection HAVING max(listed) = 0"
        return {row[0] for row in self._execute(query)}

    # Changes

    def get_last_change(self) -> str | None:
        """Return the last change that was fetched."""
        row = self._execute("SELECT last FROM feed WHERE source = ?").fetchone()
        return row[0] if row else None

    def save_changes(self, records: Iterable[tuple[str, bytes]], last: str) -> None:
        """Save changed records (id and JSON) and the last change."""
        self._db.execute("BEGIN")
        self._db.executemany("REPLACE INTO change VALUES (?, ?, ?)", [(self._source, *record) for record in records])
        self._execute("REPLACE INTO feed VALUES (?, ?)", last)
        self._db.execute("COMMIT")

    def reset_changes(self) -> None:
        """Start again from the first change."""
        self._execute("DELETE FROM feed WHERE source = ?")

    def iter_pending_changes(self) -> Iterator[bytes]:
        """Yield the JSON of the changed records to import."""
        return (row[0] for row in self._execute("SELECT body FROM change WHERE source = ?"))

    # Both

    def mark_imported(self, pruned: Iterable[tuple[str, str]]) -> None:
        """Mark everything as imported, and forget records that were retired."""
        self._db.execute("BEGIN")
        self._execute("UPDATE record SET body = NULL, taken = 1 WHERE source = ? AND listed")
        self._execute("DELETE FROM change WHERE source = ?")
        self._db.executemany(
            "DELETE FROM record WHERE source = ? AND collection = ? AND id = ?",
            [(self._source, *key) for key in pruned],
        )
        self._db.execute("COMMIT")


def _open(path: Path, epoch: str) -> sqlite3.Connection:
    """Open the file exclusively; recreate it if it is of another catalogue or format."""
    db = sqlite3.connect(path, isolation_level=None, timeout=1)
    try:
        # A power failure may lose the last records, never the file; they are fetched again.
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
