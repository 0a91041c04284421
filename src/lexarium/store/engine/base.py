"""Interface of the database engines, with defaults for what an engine does not need."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Protocol

from sqlalchemy import ColumnElement, Connection, Engine, Executable, Update, literal_column
from sqlalchemy.exc import DBAPIError

from lexarium.domain.errors import DatabaseDamaged, DatabaseUnavailable, StoreError
from lexarium.store.migrations import SCHEMA_VERSION
from lexarium.store.position import Position

# Schema version of the tables, selected together with the lock of the catalogue.
SCHEMA_VERSION_COLUMN: ColumnElement[str] = literal_column("(SELECT version_num FROM alembic_version)")


def require_schema_version(schema_version: str, location: str) -> None:
    """Raise DatabaseUnavailable unless the tables have the schema that this process knows."""
    if schema_version != SCHEMA_VERSION:
        raise DatabaseUnavailable(
            f"The schema of {location} is now {schema_version}, but this process supports {SCHEMA_VERSION}; writes"
            " are refused. Restart it with the Lexarium version that upgraded the database."
        )


def require_undamaged(reason: str | None, location: str) -> None:
    """Raise DatabaseDamaged if there is a reason why a database is marked as damaged."""
    if reason is not None:
        raise DatabaseDamaged(
            f"The database {location} is marked as damaged: {reason.rstrip('.')}. Run `lexarium check`, which"
            " removes the mark if it finds no problems; otherwise restore a backup.",
            reason,
        )


class PositionWatcher(Protocol):
    """Source of the current position, cheap enough for every request. Used from one thread."""

    def get_position(self) -> Position:
        """Return the position that a read starting now sees at least."""

    def advance(self, position: Position) -> None:
        """Take note of a position that this process has read or committed."""

    def close(self) -> None:
        """Stop watching. May be called twice."""


class Backend(Protocol):
    """Database engine. Engines inherit the defaults."""

    engine: Engine
    # Address of the database for people, without a password.
    location: str
    # Whether the database is a file of this node: there is no server, and every process sees each commit at once.
    # A short query may run in the event loop.
    is_embedded: bool
    # Database file, if it is one.
    path: Path | None = None

    def exists(self) -> bool:
        """Return whether there may be a database; connecting to a missing one raises."""
        return True

    def connect_read(self) -> Connection:
        """Return a connection in a transaction that sees one unchanging state."""

    def connect_autocommit(self) -> Connection:
        """Return a connection for a single read statement, without round trips for a transaction."""

    def connect_write(self) -> Connection:
        """Return a connection whose transaction may write."""

    def configure(self) -> None:
        """Apply settings that outlive a connection. Called once the database is known to be a catalogue."""
        return

    def check_integrity(self, connection: Connection) -> list[str]:
        """Return the problems that the engine finds in its own storage."""
        return []

    def quick_check(self) -> Iterator[str | None]:
        """Run the engine's cheap checks in short steps, each in its own transaction.

        Yields a problem or None after each step. Raises if something cannot be read at all.
        """

    def find_damage(self) -> str | None:
        """Return the reason why the database is marked as damaged, by any process of any node, or None."""

    def record_damage(self, reason: str) -> None:
        """Mark the database as damaged, for all processes and across restarts."""

    def clear_damage(self) -> None:
        """Remove the damage mark, after a check has passed."""

    def has_disk_space(self) -> bool:
        """Return whether the disk has room for a write, as far as that is visible without one."""
        return True

    def initial_load(self) -> AbstractContextManager[None]:
        """Return a context for loading many records into a new database that nobody else seems to use."""
        return nullcontext()

    def bulk_load(self, connection: Connection) -> AbstractContextManager[None]:
        """Return a context, within a write transaction, that more than doubles the number of records."""

    def begin_upgrade(self) -> AbstractContextManager[Connection]:
        """Begin a write transaction that may change the tables, after waiting for other upgrades."""

    def lock_out_writers(self, connection: Connection) -> None:
        """Make writers wait until this transaction, which changes the tables, has ended."""
        return

    def is_upgrading(self, connection: Connection) -> bool:
        """Return whether a running process is changing the tables."""

    def lock_catalogue(self, connection: Connection) -> Position:
        """Lock the catalogue against other writers until the transaction ends; return its position.

        The timeline of the position is the current one, not that of the last write. Raises DatabaseUnavailable if the
        tables were upgraded meanwhile, DatabaseDamaged if the database is marked as damaged.
        """

    def with_notify(self, statement: Update) -> Executable:
        """Return the statement that sets the position, extended to notify other nodes on commit."""
        return statement

    def finish_copy(self, connection: Connection) -> None:
        """Update sequences and statistics after many rows were copied with their ids."""
        return

    def start_watcher(self) -> PositionWatcher:
        """Start to watch the position."""

    def abort_connections(self) -> None:
        """Make all threads that wait for the database fail with an error."""
        return

    def translate_error(self, error: DBAPIError) -> StoreError | None:
        """Return the error as one for people, or None if it is a bug."""
