"""What the two engines do differently: the narrow contract that `sqlite` and `postgres` fulfil."""

import logging
import secrets
from collections.abc import Iterator, Set
from contextlib import AbstractContextManager
from pathlib import Path
from typing import NamedTuple, Protocol

from sqlalchemy import ColumnElement, Connection, Engine, Executable, Update, literal_column, select
from sqlalchemy.exc import DBAPIError

from lexarium.domain.errors import Damaged, StoreError, Unavailable
from lexarium.domain.grounds import Ground
from lexarium.store.migrations import HEAD
from lexarium.store.schema import catalogue

log = logging.getLogger(__name__)

Snapshot = Connection
"""A connection within a transaction that reads: what is read through it is of one state of the catalogue."""


class Position(NamedTuple):
    """A state of a catalogue."""

    epoch: str
    """Which database; and where it has lost writes, in which life of it."""
    revision: int
    """The last change in it."""
    accounts: int
    """How often an account or a token has changed."""
    writes: int
    """How often anything was written, also what is in no record: one state that has more of them is the later one."""
    timeline: int = 0
    """PostgreSQL's count of promotions, as it was at the last write: what came after one may lack what was before."""
    parted: int = 0
    """How much had been written when this timeline began: so much, and no more, it has of what was before."""

    def follows(self, other: "Position") -> bool:
        """Whether it is later than another, and has all of it; or of a later epoch, or of another database."""
        if self.epoch == other.epoch:
            return self.writes > other.writes and self.holds_all_of(other)
        return not self.is_of_the_same_database_as(other) or _lives(self.epoch) > _lives(other.epoch)

    def is_of_the_same_database_as(self, other: "Position") -> bool:
        """Whether both are of one database, in whichever epoch."""
        return _origin(self.epoch) == _origin(other.epoch)

    def holds_all_of(self, other: "Position") -> bool:
        """Whether all that was written up to another is there."""
        if self.timeline == other.timeline:
            return self.epoch == other.epoch and self.writes >= other.writes
        return self.epoch == other.epoch and self.timeline > other.timeline and self.parted >= other.writes

    def lacks_some_of(self, other: "Position") -> bool:
        """Whether it is of the same database, and not all that was written up to another is there."""
        if self.epoch == other.epoch:
            return not self.holds_all_of(other)
        return self.is_of_the_same_database_as(other) and not self.follows(other)

    def is_of_before(self, other: "Position") -> bool:
        """Whether it is of a server in whose place another was promoted, and the other position of that one."""
        return self.is_of_the_same_database_as(other) and self.timeline < other.timeline


_PART = "."


def first_epoch() -> str:
    """The epoch of a database that is made."""
    return secrets.token_hex(4)


def epoch_after(epoch: str) -> str:
    """Another epoch of the same database, which tells that it comes later."""
    return _PART.join((_origin(epoch), str(_lives(epoch) + 1), secrets.token_hex(4)))


def _origin(epoch: str) -> str:
    return epoch.partition(_PART)[0]


def _lives(epoch: str) -> int:
    """How many epochs of this database were before."""
    _, _, after = epoch.partition(_PART)
    return int(after.partition(_PART)[0] or 0)


class Move(NamedTuple):
    """How the catalogue came from one position to a later one."""

    start: Position
    to: Position
    shaken: Set[Ground] | None
    """None: too much has changed to tell, or it is another catalogue."""


AT = "lexarium_position"
"""The option of a connection that tells the position of its transaction, where that is known already."""


def read_position(connection: Connection) -> Position:
    """The catalogue's position as this transaction sees it."""
    known: Position | None = connection.get_execution_options().get(AT)
    return Position._make(connection.execute(POSITION).one()) if known is None else known


def going_on(found: Position, seen: Position | None, place: str) -> Position:
    """Where a database goes on from, held against what was seen of it: in a new epoch, where it has lost some of that.

    `found` is of a primary, with the catalogue locked. Raises `Unavailable` where another has taken its place.
    """
    if seen is None or not found.lacks_some_of(seen):
        return found
    if found.is_of_before(seen):
        raise Unavailable(f"The database {place} is an old primary, in whose place another was promoted.")
    log.error("The database %s has lost writes that were there; a new epoch begins.", place)
    return found._replace(epoch=epoch_after(seen.epoch))


POSITION = select(*(catalogue.c[name] for name in Position._fields))
SCHEMA: ColumnElement[str] = literal_column("(SELECT version_num FROM alembic_version)")
"""The version of the tables, for whoever locks the catalogue to write: it costs no statement of its own."""


def refuse_upgraded(schema: str, place: str) -> None:
    """Raise where the tables are not those that this process knows: what it wrote could be wrong in them."""
    if schema != HEAD:
        raise Unavailable(
            f"The schema of {place} is {schema} now, and this process knows {HEAD}: nothing can be written. "
            "Restart it with the Lexarium that has upgraded the database."
        )


def refuse_damaged(reason: str | None, place: str) -> None:
    """Raise `Damaged` where a database is marked as damaged, for this reason."""
    if reason is not None:
        raise Damaged(
            f"The database {place} is marked as damaged: {reason.rstrip('.')}. Run `lexarium check`; it removes the"
            " mark where it finds nothing wrong. Where it does, restore a backup.",
            reason,
        )


class Watch(Protocol):
    """Tells the catalogue's position, cheaply enough to be asked at every request, from one thread."""

    def current(self) -> Position:
        """The position that a read begun now may expect to see, at least."""

    def advance(self, position: Position) -> None:
        """Hear of a position that this process has read or committed."""

    def close(self) -> None:
        """Stop watching. Closing twice does no harm."""


class Backend(Protocol):
    """One database engine."""

    engine: Engine
    place: str
    """Where the database is, as a person may read it: no password."""
    embedded: bool
    """Whether it is in this process, so that a short look takes no longer than a thread would."""
    file: Path | None
    """Its file, where it is one."""

    def exists(self) -> bool:
        """Whether there is anything at its place."""

    def reading(self) -> Connection:
        """A connection in a transaction that sees one unchanging state."""

    def glancing(self) -> Connection:
        """A connection for one statement that reads: without any other, where each is a trip to a server."""

    def writing(self) -> Connection:
        """A connection whose transaction may write."""

    def settle(self) -> None:
        """Set up what outlives a connection. Called once the database is known to be a catalogue."""

    def damage(self, connection: Connection) -> list[str]:
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

    def has_room(self) -> bool:
        """Return whether the disk has room for a write, as far as that can be seen without one."""

    def alone(self) -> AbstractContextManager[None]:
        """A block in which much is written to a new database that, as it seems, nobody else uses."""

    def loading(self, connection: Connection) -> AbstractContextManager[None]:
        """Within a writing transaction, a block that adds more records than there were before it."""

    def upgrading(self) -> AbstractContextManager[Connection]:
        """A writing transaction that may change the tables, once no other does. Others can tell: see `is_upgraded`."""

    def keep_writers_out(self, connection: Connection) -> None:
        """Have whoever is about to write wait until this transaction, which changes the tables, has ended."""

    def is_upgraded(self, connection: Connection) -> bool:
        """Whether a process is about to change the tables; once it has ended, however it did, none is."""

    def lock(self, connection: Connection) -> Position:
        """Wait until no other transaction writes, and keep others from it until this one ends: the position then.

        Its timeline is the present one, whatever the last write was made on. Raises `Unavailable` where the tables were
        upgraded since, `Damaged` where the database is marked as damaged.
        """

    def announced(self, move: Update) -> Executable:
        """The statement that moves the catalogue, such that other nodes hear of it when it is committed."""

    def go_on(self, connection: Connection) -> None:
        """Be ready for more, after rows were written with numbers of their own, and many."""

    def watch(self) -> Watch:
        """Start to watch the catalogue's position."""

    def hang_up(self) -> None:
        """Let nobody wait any longer for an answer to what was read or written: they get an error."""

    def explain(self, error: DBAPIError) -> StoreError | None:
        """The error as a sentence for people, or None where it is a fault of ours."""
