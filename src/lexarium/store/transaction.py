"""A transaction that writes."""

from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import Connection, Executable

from lexarium.domain.cache_tags import CacheTag
from lexarium.domain.record import Record
from lexarium.store.position import Position, RevisionChange

MAX_TRACKED_CHANGES = 500
"""How many changes are looked at one by one, to see what they shake; past that everything is taken for shaken."""
_BATCH_SIZE = 200
"""How many rows are written by one call: each call is waited for as long as the server may be silent, and no longer."""


class Transaction:
    """A writing transaction: it holds the catalogue's one lock until it ends.

    It may hold several writes, one after the other, each of which can be undone by itself.
    """

    def __init__(self, connection: Connection, position: Position) -> None:
        self._connection = connection
        self._start_position = self._write_position = self._position = position
        self._invalidated_tags: set[CacheTag] = set()
        self._deferred: list[tuple[Executable, dict[str, Any]]] = []
        self._write_start = 0
        """From where on what is put off belongs to the present write."""
        self._has_savepoint: bool | None = None
        """Whether there is a savepoint before the present write; None: none is wanted."""
        self.is_broken = False
        """Whether rows of the writes before could not be written: then nothing of all of them can be kept."""
        self._is_write_dirty = self._is_dirty = False
        """Whether the present write may have written anything; whether any did."""
        self._has_bulk_load = False
        self.write_id = position.revision + 1
        """The first seq of the present write: what its changes have in common."""

    @property
    def connection(self) -> Connection:
        """To read and write through. What was put off is written before, so that it is seen."""
        self._is_write_dirty = True
        if self._has_savepoint is False:
            self._flush_previous_writes()
            # As plain SQL: SQLAlchemy compiles a savepoint of its own anew each time, which takes as long as a write.
            self._connection.exec_driver_sql("SAVEPOINT one")
            self._has_savepoint = True
        self._flush(len(self._deferred))
        return self._connection

    def defer(self, statement: Executable, rows: Iterable[dict[str, Any]]) -> None:
        """Have rows written when the connection is next needed, or at the end, together with others like them.

        They must be such that no order among statements matters, and none can fail.
        """
        self._is_write_dirty = True
        self._deferred += ((statement, row) for row in rows)

    @property
    def revision(self) -> int:
        """The last seq given out."""
        return self._position.revision

    def add_logged(self, records: Sequence[Record]) -> None:
        """These records were added to the log."""
        self._position = self._position._replace(revision=self.revision + len(records))
        if self.revision - self._start_position.revision <= MAX_TRACKED_CHANGES:
            self._invalidated_tags.update(*(record.cache_tags for record in records))

    def add_bulk_loaded(self, count: int) -> None:
        """So many records were added to the log by a load: too many to look at one by one, or there will be."""
        self._position = self._position._replace(revision=self.revision + count)
        self._has_bulk_load = True

    def bump_accounts_revision(self) -> None:
        """Someone's account or token is not what it was."""
        self._position = self._position._replace(accounts=self._position.accounts + 1)

    def begin_write(self) -> None:
        """Begin one of several writes."""
        self._write_position = self._position
        self._write_start = len(self._deferred)
        self._has_savepoint = False
        self.write_id = self.revision + 1

    def rollback_write(self) -> None:
        """Undo the present write."""
        if self._has_savepoint:
            self._connection.exec_driver_sql("ROLLBACK TO one")
        del self._deferred[self._write_start :]
        self._position = self._write_position
        self._is_write_dirty = False
        self.end_write()

    def end_write(self) -> None:
        """End the present write: from now on it cannot be undone by itself."""
        if self._has_savepoint:
            self._connection.exec_driver_sql("RELEASE one")
        self._has_savepoint = None
        self._is_dirty |= self._is_write_dirty
        self._is_write_dirty = False

    def finish(self) -> RevisionChange:
        """Write what was put off: where the catalogue comes to by all of it."""
        self._flush(len(self._deferred))
        if self._is_dirty or self._is_write_dirty or self._position != self._start_position:
            self._position = self._position._replace(writes=self._start_position.writes + 1)
        is_tracked = self.revision - self._start_position.revision <= MAX_TRACKED_CHANGES and not self._has_bulk_load
        return RevisionChange(self._start_position, self._position, self._invalidated_tags if is_tracked else None)

    def _flush_previous_writes(self) -> None:
        """Write what the writes before this one have put off."""
        self.is_broken = True
        self._flush(self._write_start)
        self.is_broken = False

    def _flush(self, count: int) -> None:
        by_statement: dict[Executable, list[dict[str, Any]]] = {}
        for statement, row in self._deferred[:count]:
            by_statement.setdefault(statement, []).append(row)
        for statement, rows in by_statement.items():
            for start in range(0, len(rows), _BATCH_SIZE):
                self._connection.execute(statement, rows[start : start + _BATCH_SIZE])
        del self._deferred[:count]
        self._write_start = max(0, self._write_start - count)
