"""A transaction that writes."""

from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import Connection, Executable

from lexarium.domain.changes import Whole
from lexarium.domain.grounds import Ground
from lexarium.store.backend import Move, Position

MOST_CHANGES = 500
"""How many changes are looked at one by one, to see what they shake; past that everything is taken for shaken."""
_AT_ONCE = 200
"""How many rows are written by one call: each call is waited for as long as the server may be silent, and no longer."""


class Transaction:
    """A writing transaction: it holds the catalogue's one lock until it ends.

    It may hold several writes, one after the other, each of which can be undone by itself.
    """

    def __init__(self, connection: Connection, position: Position) -> None:
        self._connection = connection
        self._start = self._before = self._position = position
        self._shaken: set[Ground] = set()
        self._put_off: list[tuple[Executable, dict[str, Any]]] = []
        self._own = 0
        """From where on what is put off belongs to the present write."""
        self._undoable: bool | None = None
        """Whether there is a savepoint before the present write; None: none is wanted."""
        self.broken = False
        """Whether rows of the writes before could not be written: then nothing of all of them can be kept."""
        self._touched = self._written = False
        """Whether the present write may have written anything; whether any did."""
        self._loaded = False
        self.batch = position.revision + 1
        """The first seq of the present write: what its changes have in common."""

    @property
    def connection(self) -> Connection:
        """To read and write through. What was put off is written before, so that it is seen."""
        self._touched = True
        if self._undoable is False:
            self._flush_others()
            # As plain SQL: SQLAlchemy compiles a savepoint of its own anew each time, which takes as long as a write.
            self._connection.exec_driver_sql("SAVEPOINT one")
            self._undoable = True
        self._flush(len(self._put_off))
        return self._connection

    def put_off(self, statement: Executable, rows: Iterable[dict[str, Any]]) -> None:
        """Have rows written when the connection is next needed, or at the end, together with others like them.

        They must be such that no order among statements matters, and none can fail.
        """
        self._touched = True
        self._put_off += ((statement, row) for row in rows)

    @property
    def revision(self) -> int:
        """The last seq given out."""
        return self._position.revision

    def logged(self, wholes: Sequence[Whole]) -> None:
        """These records were added to the log."""
        self._position = self._position._replace(revision=self.revision + len(wholes))
        if self.revision - self._start.revision <= MOST_CHANGES:
            self._shaken.update(*(whole.grounds for whole in wholes))

    def loaded(self, count: int) -> None:
        """So many records were added to the log by a load: too many to look at one by one, or there will be."""
        self._position = self._position._replace(revision=self.revision + count)
        self._loaded = True

    def accounts_changed(self) -> None:
        """Someone's account or token is not what it was."""
        self._position = self._position._replace(accounts=self._position.accounts + 1)

    def begin(self) -> None:
        """Begin one of several writes."""
        self._before = self._position
        self._own = len(self._put_off)
        self._undoable = False
        self.batch = self.revision + 1

    def undo(self) -> None:
        """Undo the present write."""
        if self._undoable:
            self._connection.exec_driver_sql("ROLLBACK TO one")
        del self._put_off[self._own :]
        self._position = self._before
        self._touched = False
        self.end()

    def end(self) -> None:
        """End the present write: from now on it cannot be undone by itself."""
        if self._undoable:
            self._connection.exec_driver_sql("RELEASE one")
        self._undoable = None
        self._written |= self._touched
        self._touched = False

    def finish(self) -> Move:
        """Write what was put off: where the catalogue comes to by all of it."""
        self._flush(len(self._put_off))
        if self._written or self._touched or self._position != self._start:
            self._position = self._position._replace(writes=self._start.writes + 1)
        told = self.revision - self._start.revision <= MOST_CHANGES and not self._loaded
        return Move(self._start, self._position, self._shaken if told else None)

    def _flush_others(self) -> None:
        """Write what the writes before this one have put off."""
        self.broken = True
        self._flush(self._own)
        self.broken = False

    def _flush(self, until: int) -> None:
        by_statement: dict[Executable, list[dict[str, Any]]] = {}
        for statement, row in self._put_off[:until]:
            by_statement.setdefault(statement, []).append(row)
        for statement, rows in by_statement.items():
            for start in range(0, len(rows), _AT_ONCE):
                self._connection.execute(statement, rows[start : start + _AT_ONCE])
        del self._put_off[:until]
        self._own = max(0, self._own - until)
