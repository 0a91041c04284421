"""Write transactions."""

from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import Connection, CursorResult, Executable

from lexarium.domain.cache_tags import CacheTag
from lexarium.domain.identity.minting import MintingRule
from lexarium.domain.record import Record
from lexarium.store.position import Position, RevisionChange

# With more changes than this, all cache tags count as invalidated.
MAX_TRACKED_CHANGES = 500
# Rows per statement. The server's timeout applies to each statement.
_BATCH_SIZE = 200

# Highest number of the ids of a vocabulary by a rule, and the committed position at which it was found.
LastNumbers = dict[tuple[str, MintingRule], tuple[Position, int | None]]


class Transaction:
    """Write transaction, which holds the lock of the catalogue until it ends.

    It may contain several writes, each of which can be rolled back by itself.
    """

    def __init__(self, connection: Connection, position: Position, last_numbers: LastNumbers) -> None:
        self._connection = connection
        self.start_position = self._write_position = self._position = position
        self.last_numbers = last_numbers
        self._invalidated_tags: set[CacheTag] = set()
        self._deferred: list[tuple[Executable, dict[str, Any]]] = []
        # Index of the first deferred row of the current write.
        self._write_start = 0
        # Whether the current write has a savepoint; None if it needs none.
        self._has_savepoint: bool | None = None
        # Whether deferred rows of previous writes failed: then the whole transaction must be rolled back.
        self.is_broken = False
        self._is_write_dirty = self._is_dirty = False
        self._has_bulk_load = False
        # First seq of the current write, shared by its changes.
        self.write_id = position.revision + 1

    def flush(self) -> Connection:
        """Write deferred rows; return the connection to read and write through."""
        self._is_write_dirty = True
        if self._has_savepoint is False:
            self.is_broken = True
            self._write_deferred(self._write_start)
            self.is_broken = False
            # As plain SQL: SQLAlchemy compiles its own savepoints each time, which takes as long as a write.
            self._connection.exec_driver_sql("SAVEPOINT one")
            self._has_savepoint = True
        self._write_deferred(len(self._deferred))
        return self._connection

    def execute(
        self, statement: Executable, parameters: dict[str, Any] | Sequence[dict[str, Any]] | None = None
    ) -> CursorResult[Any]:
        """Write deferred rows, then execute a statement."""
        return self.flush().execute(statement, parameters)

    def defer(self, statement: Executable, rows: Iterable[dict[str, Any]]) -> None:
        """Write rows at the next flush, or at the end, together with similar ones.

        The order of such statements must not matter, and none may fail.
        """
        self._is_write_dirty = True
        self._deferred += ((statement, row) for row in rows)

    @property
    def revision(self) -> int:
        """Seq of the last change."""
        return self._position.revision

    @property
    def position(self) -> Position:
        """Position that the transaction would have if it ended now."""
        return self._position

    def add_logged(self, count: int, records: Iterable[Record]) -> None:
        """Take note of a number of records that were logged. They are not iterated over if there are many."""
        self._position = self._position._replace(revision=self.revision + count)
        if self.revision - self.start_position.revision <= MAX_TRACKED_CHANGES:
            self._invalidated_tags.update(*(record.cache_tags for record in records))

    def add_invalidated(self, cache_tags: Iterable[CacheTag]) -> None:
        """Take note of cache tags that changes invalidate, besides those of the records as they are after them."""
        if self.revision - self.start_position.revision <= MAX_TRACKED_CHANGES:
            self._invalidated_tags.update(cache_tags)

    def add_bulk_loaded(self, count: int) -> None:
        """Take note of a number of records that were bulk loaded. Their tags are not tracked."""
        self._position = self._position._replace(revision=self.revision + count)
        self._has_bulk_load = True

    def bump_accounts_revision(self) -> None:
        """Count a change to an account, a token, a release or a comment."""
        self._position = self._position._replace(accounts=self._position.accounts + 1)

    def bump_vocabularies_revision(self) -> None:
        """Count a change to a vocabulary."""
        self._position = self._position._replace(vocabularies=self._position.vocabularies + 1)

    def begin_write(self) -> None:
        """Begin one of several writes."""
        self._write_position = self._position
        self._write_start = len(self._deferred)
        self._has_savepoint = False
        self.write_id = self.revision + 1

    def rollback_write(self) -> None:
        """Roll back the current write."""
        if self._has_savepoint:
            self._connection.exec_driver_sql("ROLLBACK TO one")
        del self._deferred[self._write_start :]
        self._position = self._write_position
        self._is_write_dirty = False
        self.end_write()

    def end_write(self) -> None:
        """End the current write; it can no longer be rolled back by itself."""
        if self._has_savepoint:
            self._connection.exec_driver_sql("RELEASE one")
        self._has_savepoint = None
        self._is_dirty |= self._is_write_dirty
        self._is_write_dirty = False

    def finish(self) -> RevisionChange:
        """Write deferred rows; return the step from the first position to the last."""
        self._write_deferred(len(self._deferred))
        if self._is_dirty or self._is_write_dirty or self._position != self.start_position:
            self._position = self._position._replace(writes=self.start_position.writes + 1)
        has_other_vocabularies = self._position.vocabularies != self.start_position.vocabularies
        is_tracked = self.revision - self.start_position.revision <= MAX_TRACKED_CHANGES and not (
            self._has_bulk_load or has_other_vocabularies
        )
        return RevisionChange(self.start_position, self._position, self._invalidated_tags if is_tracked else None)

    def _write_deferred(self, count: int) -> None:
        by_statement: dict[Executable, list[dict[str, Any]]] = {}
        for statement, row in self._deferred[:count]:
            by_statement.setdefault(statement, []).append(row)
        for statement, rows in by_statement.items():
            for start in range(0, len(rows), _BATCH_SIZE):
                self._connection.execute(statement, rows[start : start + _BATCH_SIZE])
        del self._deferred[:count]
        self._write_start = max(0, self._write_start - count)
