"""What the two engines do differently: the narrow contract that `sqlite` and `postgres` fulfil."""

from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from sqlalchemy import ColumnElement, Connection, Engine, Executable, Update, literal_column
from sqlalchemy.exc import DBAPIError

from lexarium.domain.errors import DatabaseDamaged, DatabaseUnavailable, StoreError
from lexarium.store.migrations import SCHEMA_VERSION
from lexarium.store.position import Position

SCHEMA_VERSION_COLUMN: ColumnElement[str] = literal_column("(SELECT version_num FROM alembic_version)")
"""The version of the tables, for whoever locks the catalogue to write: it costs no statement of its own."""


def require_schema_version(schema_version: str, location: str) -> None:
    """Raise where the tables are not those that this process knows: what it wrote could be wrong in them."""
    if schema_version != SCHEMA_VERSION:
        raise DatabaseUnavailable(
            f"The schema of {location} is {schema_version} now, and this process knows"
            f" {SCHEMA_VERSION}: nothing can be written. "
            "Restart it with the Lexarium that has upgraded the database."
        )


def require_undamaged(reason: str | None, location: str) -> None:
    """Raise `Damaged` where a database is marked as damaged, for this reason."""
    if reason is not None:
        raise DatabaseDamaged(
            f"The database {location} is marked as damaged: {reason.rstrip('.')}. Run `lexarium check`; it removes the"
            " mark where it finds nothing wrong. Where it does, restore a backup.",
            reason,
        )


class PositionWatcher(Protocol):
    """Tells the catalogue's position, cheaply enough to be asked at every request, from one thread."""

    def get_position(self) -> Position:
        """The position that a read begun now may expect to see, at least."""

    def advance(self, position: Position) -> None:
        """Hear of a position that this process has read or committed."""

    def close(self) -> None:
        """Stop watching. Closing twice does no harm."""


class Backend(Protocol):
    """One database engine."""

    engine: Engine
    location: str
    """Where the database is, as a person may read it: no password."""
    is_embedded: bool
    """Whether it is in this process, so that a short look takes no longer than a thread would."""
    path: Path | None
    """Its file, where it is one."""

    def exists(self) -> bool:
        """Whether there is anything at its place."""

    def connect_read(self) -> Connection:
        """A connection in a transaction that sees one unchanging state."""

    def connect_autocommit(self) -> Connection:
        """A connection for one statement that reads: without any other, where each is a trip to a server."""

    def connect_write(self) -> Connection:
        """A connection whose transaction may write."""

    def configure(self) -> None:
        """Set up what outlives a connection. Called once the database is known to be a catalogue."""

    def check_integrity(self, connection: Connection) -> list[str]:
        """What the engine itself finds wrong with what it keeps."""

    def quick_check(self) -> Iterator[str | None]:
        """Check in short steps, each in a transaction of its own, what the engine can check at little cost.

        Yields after each step: what is damaged, or None. Raises where that cannot even be read.
        """

    def find_damage(self) -> str | None:
        """Return why the database is marked as damaged, or None. Any process of any node may have marked it."""

    def record_damage(self, reason: str) -> None:
        """Mark the database as damaged, for every process and across restarts."""

    def clear_damage(self) -> None:
        """Remove the mark, once a check has passed."""

    def has_disk_space(self) -> bool:
        """Return whether the disk has room for a write, as far as that can be seen without one."""

    def initial_load(self) -> AbstractContextManager[None]:
        """A block in which much is written to a new database that, as it seems, nobody else uses."""

    def bulk_load(self, connection: Connection) -> AbstractContextManager[None]:
        """Within a writing transaction, a block that adds more records than there were before it."""

    def begin_upgrade(self) -> AbstractContextManager[Connection]:
        """A writing transaction that may change the tables, once no other does. Others can tell: see `is_upgraded`."""

    def lock_out_writers(self, connection: Connection) -> None:
        """Have whoever is about to write wait until this transaction, which changes the tables, has ended."""

    def is_upgrading(self, connection: Connection) -> bool:
        """Whether a process is about to change the tables; once it has ended, however it did, none is."""

    def lock_catalogue(self, connection: Connection) -> Position:
        """Wait until no other transaction writes, and keep others from it until this one ends: the position then.

        Its timeline is the present one, whatever the last write was made on. Raises `Unavailable` where the tables were
        upgraded since, `Damaged` where the database is marked as damaged.
        """

    def with_notify(self, statement: Update) -> Executable:
        """The statement that moves the catalogue, such that other nodes hear of it when it is committed."""

    def finish_copy(self, connection: Connection) -> None:
        """Be ready for more, after rows were written with numbers of their own, and many."""

    def start_watcher(self) -> PositionWatcher:
        """Start to watch the catalogue's position."""

    def abort_connections(self) -> None:
        """Let nobody wait any longer for an answer to what was read or written: they get an error."""

    def translate_error(self, error: DBAPIError) -> StoreError | None:
        """The error as a sentence for people, or None where it is a fault of ours."""
