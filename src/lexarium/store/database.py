"""The database of one catalogue: where transactions begin and end."""

import logging
import secrets
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import AbstractContextManager, contextmanager, nullcontext
from importlib import import_module
from typing import NamedTuple, TypeVar

from sqlalchemy import Connection, bindparam, delete, insert, update
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, PendingRollbackError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.pool import QueuePool

from lexarium.domain.errors import Damaged, NoRoom, SettingError, StoreError, Unavailable
from lexarium.domain.grounds import Ground
from lexarium.store import versions
from lexarium.store.backend import Backend, Move, Position, Watch, going_on, read_position, refuse_damaged
from lexarium.store.mark import Mark
from lexarium.store.schema import catalogue, lease
from lexarium.store.sqlite import SqliteBackend
from lexarium.store.standbys import Standbys
from lexarium.store.tallies import Tallies
from lexarium.store.transaction import MOST_CHANGES, Transaction
from lexarium.store.writer import Result, Work, Writer

log = logging.getLogger(__name__)

Found = TypeVar("Found")

_MOVES = 100
_TRIES = 10
_TRY_SECONDS = 0.02
_TRIED_BYTES = 1 << 17
"""How much is written to find out whether a full disk has room again."""
_MOVE = update(catalogue).values({name: bindparam(f"to_{name}") for name in Position._fields})


class Load(NamedTuple):
    """How busy a process is with its database."""

    waiting: int
    """How many writes wait for their turn."""
    connections: int
    """How many are in use."""
    most: int
    """How many there may be."""


class Database:
    """Gives out transactions and tells where the catalogue stands. Nothing connects before the first use."""

    def __init__(self, url: str, *, standbys: str = "", seconds: int | None = None, mark: Mark | None = None) -> None:
        """For a process that serves: where it may read too, how long it waits for a server, what its node shares."""
        self.backend = _backend(url, seconds, mark)
        self._standbys = _standbys(standbys, self.backend, seconds) if standbys else None
        self._mark = mark
        self._announced_move = self.backend.announced(_MOVE)
        self.tallies = Tallies()
        self._watch: Watch | None = None
        self._writer = Writer(self.write, self.errors_explained)
        self._moves: deque[Move] = deque(maxlen=_MOVES)
        """The last that this process made, so that it need not look up what it did itself."""
        self._serves = seconds is not None
        self._damage: str | None = None
        """Why nothing is read or written. Only a process that serves keeps this: commands read what can be read."""
        self._damage_recorded = False
        self._full = False
        """Whether a write found the disk full, and none has been tried since. Workers that share a mark share it."""
        self._noting_damage = threading.Lock()

    @property
    def place(self) -> str:
        """Where it is, as a person may read it."""
        return self.backend.place

    @property
    def embedded(self) -> bool:
        """Whether a short look into it may be taken where others wait meanwhile."""
        return self.backend.embedded

    @property
    def load(self) -> Load:
        """How busy this process is with it, about."""
        pool = self.backend.engine.pool
        assert isinstance(pool, QueuePool)
        return Load(self._writer.waiting, pool.checkedout(), pool.size())

    @contextmanager
    def read(self, *, newest: bool = False) -> Iterator[Connection]:
        """A transaction that sees one unchanging state.

        Not older than any that this node has seen; the newest of all, also of what other nodes write, where asked for.
        """
        refuse_damaged(self._damage, self.place)
        with self.errors_explained(), self._opened(newest) as connection, self._standby_errors(connection):
            if self._watch is not None and not self.embedded:
                self.notice(read_position(connection))
            yield connection

    def at_once(self, ask: Callable[[Connection], tuple[Position, Found]]) -> tuple[Position, Found]:
        """What one statement tells, with the position at which it is so; the same as to `read` it, for less."""
        if self._standbys is not None:  # which may lack what was seen: their position must be known beforehand
            with self.read() as connection:
                return ask(connection)
        refuse_damaged(self._damage, self.place)
        with self.errors_explained(), self.backend.glancing() as connection:
            position, found = ask(connection)
        self.notice(position)
        return position, found

    def _opened(self, newest: bool) -> Connection:
        """A connection in a transaction that reads."""
        floor = None if self._standbys is None else self._floor()
        standby = None if newest or self._standbys is None else self._standbys.opened(floor)
        if standby is not None:
            return standby
        connection = self.backend.reading()
        for _ in range(_TRIES):
            if floor is None or read_position(connection).holds_all_of(floor):
                break
            # A standby has shown what the primary waits to hear back of: it will be there in a moment.
            connection.close()
            time.sleep(_TRY_SECONDS)
            connection = self.backend.reading()
        return connection

    @contextmanager
    def write(self) -> Iterator[Transaction]:
        """A transaction for much to be written: committed when the block ends, undone when it raises."""
        refuse_damaged(self._damage, self.place)
        with self.errors_explained(), self.backend.writing() as connection, connection.begin():
            found = self.backend.lock(connection)
            transaction = Transaction(connection, going_on(found, self._floor(), self.place))
            yield transaction
            move = transaction.finish()
            if move.to != found:
                quiet = move.to._replace(writes=found.writes) == found
                connection.execute(_MOVE if quiet else self._announced_move, _values(move.to))
        self._moves.append(move)
        self.notice(move.to)

    def has_room(self) -> bool:
        """Return whether the disk has room for writes. After a write that found none, another one is tried.

        A small write that succeeds meanwhile proves nothing: it may have fitted into what was there.
        """
        if not self.backend.has_room():
            return False
        if self._mark.full if self._mark is not None else self._full:
            try:
                self.run(_try_room)
            except NoRoom:
                return False
            self._note_full(False)
        return True

    def _note_full(self, full: bool) -> None:
        self._full = full
        if self._mark is not None:
            self._mark.full = full

    def alone(self) -> AbstractContextManager[None]:
        """A block in which much is to be written, if that goes faster in a catalogue that is new."""
        with self.read() as connection:
            new = read_position(connection).revision == 0
        return self.backend.alone() if new else nullcontext()

    def loading(self, transaction: Transaction) -> AbstractContextManager[None]:
        """A block within a transaction that adds more records than there were before it."""
        return self.backend.loading(transaction.connection)

    def run(self, work: Work[Result]) -> Result:
        """Do a short piece of work in a writing transaction, perhaps together with others that wait.

        Returns its result once it is committed. What the work raises is raised here, and nothing of it is kept.
        """
        return self.submit(work).result()

    def submit(self, work: Work[Result]) -> Future[Result]:
        """The same, for whoever has something else to do meanwhile."""
        return self._writer.submit(work)

    def position(self) -> Position:
        """Where the catalogue stands now. To be called from one thread."""
        refuse_damaged(self._damage, self.place)
        if self._watch is None:
            with self.errors_explained():
                self._watch = self.backend.watch()
        try:
            return self._watch.current()
        except Damaged as error:
            self.note_damage(error.reason)
            raise

    def notice(self, position: Position) -> None:
        """Hear of a position that was read or written: never again is an older one told."""
        if self._watch is not None:
            self._watch.advance(position)

    def moved_since(self, position: Position) -> Move:
        """What has happened since a position."""
        shaken: set[Ground] = set()
        to = position
        for move in list(self._moves):
            if move.start.revision == to.revision and move.start.epoch == to.epoch and move.shaken is not None:
                shaken |= move.shaken
                to = move.to
        if to.revision >= self.position().revision and to.epoch == self.position().epoch:
            return Move(position, to, shaken)
        with self.read() as snapshot:
            to = read_position(snapshot)
            known = to.epoch == position.epoch and to.revision >= position.revision
            found = versions.shaken(snapshot, position.revision, MOST_CHANGES) if known else None
            return Move(position, to, found)

    @contextmanager
    def _standby_errors(self, connection: Connection) -> Iterator[None]:
        """Stop reading from a standby that is damaged or has no room: that says nothing of the primary."""
        try:
            yield
        except DBAPIError as error:
            if self._standbys is None or connection.engine.pool is self.backend.engine.pool:
                raise
            if not isinstance(explained := self.backend.explain(error), Damaged | NoRoom):
                raise
            self._standbys.leave()
            log.error("The standby cannot be used; reading from the primary alone until a restart. %s", explained)
            raise Unavailable("A standby of the database cannot be read.") from error

    @contextmanager
    def errors_explained(self) -> Iterator[None]:
        """Errors of the driver become errors for people, where they are not faults of ours."""
        try:
            yield
        except PoolTimeout as error:
            raise Unavailable(f"Every connection to the database {self.place} is in use.") from error
        except PendingRollbackError as error:
            raise Unavailable(f"The connection to the database {self.place} was lost in the midst of it.") from error
        except DBAPIError as error:
            explained = self.backend.explain(error)
            if explained is None:
                raise
            if isinstance(explained, Damaged):
                self.note_damage(explained.reason)
            if isinstance(explained, NoRoom):
                self._note_full(True)
            raise explained from error
        except Damaged as error:
            self.note_damage(error.reason)
            raise

    def note_damage(self, reason: str) -> None:
        """Refuse every read and write from now on, in all processes that serve, until a check has passed."""
        with self._noting_damage:
            if not self._serves or self._damage is not None:
                return
            self._damage, self._damage_recorded = reason, False
        log.error(
            "The database is damaged; nothing is read or written until `lexarium check` finds nothing wrong."
            " Where it does, restore a backup. %s",
            reason,
        )
        self._record_damage()

    def refresh_damage(self) -> None:
        """Read the damage mark, which other processes may have set or cleared."""
        was_recorded = self._damage_recorded  # before the look, since it may be recorded meanwhile
        with self.errors_explained():
            recorded = self.backend.find_damage()
        if recorded is not None:
            self.note_damage(recorded)
        elif was_recorded:
            self.backend.engine.dispose()  # Connections may have damaged pages in their caches.
            self._damage, self._damage_recorded = None, False
            log.warning("The database has passed a check; reads and writes go on.")
        elif self._damage is not None and not self._damage_recorded:
            self._record_damage()

    def clear_damage(self) -> None:
        """Remove the damage mark: a check has passed."""
        try:
            with self.errors_explained():
                self.backend.clear_damage()
        except OSError as error:
            raise StoreError(
                f"The damage mark of {self.place} cannot be removed: {error.strerror}. Run this as the server's user."
            ) from error

    def _record_damage(self) -> None:
        assert self._damage is not None
        try:
            if self.backend.find_damage() is None:
                self.backend.record_damage(self._damage)
            self._damage_recorded = True
        except (OSError, SQLAlchemyError, Unavailable) as error:
            log.warning("The mark of the damage cannot be kept now, trying again: %s", error)

    def leave_standbys(self) -> None:
        """Read from the primary alone from now on: whoever reads from a standby at this moment gets an error."""
        if self._standbys is not None:
            self._standbys.leave()

    def close(self) -> None:
        """Finish what waits to be written, and let go of every connection."""
        self._writer.close()
        if self._watch is not None:
            self._watch.close()
            self._watch = None
        self.backend.engine.dispose()
        if self._standbys is not None:
            self._standbys.close()
        if self._mark is not None:
            self._mark.close()

    def _floor(self) -> Position | None:
        """Where this node stands, for any thread; None where it has seen nothing yet, or the database is its own."""
        try:
            return None if self._watch is None or self.embedded else self._watch.current()
        except Unavailable:
            return None


def _try_room(transaction: Transaction) -> None:
    """Write so much that it takes new room, and take it away again."""
    row = {"name": "room", "holder": secrets.token_hex(_TRIED_BYTES), "until": 0}
    transaction.connection.execute(delete(lease).where(lease.c.name == row["name"]))
    transaction.connection.execute(insert(lease).values(row))
    transaction.connection.execute(delete(lease).where(lease.c.name == row["name"]))


def _values(position: Position) -> dict[str, str | int]:
    return {f"to_{name}": value for name, value in position._asdict().items()}


def _backend(url: str, seconds: int | None, mark: Mark | None) -> Backend:
    if _is_postgres(url):
        # Loaded here and not above: its driver takes long to load, and an embedded catalogue has no use for it.
        backend: Backend = import_module("lexarium.store.postgres").PostgresBackend(url, seconds=seconds, mark=mark)
        return backend
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        parsed = None
    if parsed is None or parsed.drivername != "sqlite":
        # Not the whole of it: it may hold a password.
        scheme = url.partition(":")[0]
        raise SettingError(f"The database address must begin with sqlite:/// or postgresql:// , not with {scheme!r}.")
    return SqliteBackend(parsed)


def _standbys(url: str, primary: Backend, seconds: int | None) -> Standbys:
    if primary.embedded or not _is_postgres(url):
        raise SettingError(
            "Only a catalogue on PostgreSQL has standbys, at an address that begins with postgresql:// ."
        )
    return Standbys(import_module("lexarium.store.postgres").PostgresBackend(url, seconds=seconds, standby=True))


def _is_postgres(url: str) -> bool:
    return url.startswith(("postgresql://", "postgres://"))
