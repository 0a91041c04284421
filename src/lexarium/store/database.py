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

from lexarium.domain.cache_tags import CacheTag
from lexarium.domain.errors import DatabaseDamaged, DatabaseUnavailable, DiskFull, SettingError, StoreError
from lexarium.store import revisions
from lexarium.store.counts import RecordCounts
from lexarium.store.engine.base import Backend, PositionWatcher, require_undamaged
from lexarium.store.engine.shared_position import SharedPosition
from lexarium.store.engine.sqlite import SqliteBackend
from lexarium.store.engine.standbys import StandbyPool
from lexarium.store.position import Position, RevisionChange, read_position, reconcile_position
from lexarium.store.schema import catalogue_table, lease_table
from lexarium.store.transaction import MAX_TRACKED_CHANGES, Transaction
from lexarium.store.write_queue import Result, WriteQueue, WriteTask

logger = logging.getLogger(__name__)

T = TypeVar("T")

_MAX_RECENT_CHANGES = 100
_READ_RETRIES = 10
_RETRY_SECONDS = 0.02
_DISK_TEST_BYTES = 1 << 17
"""How much is written to find out whether a full disk has room again."""
_SET_POSITION = update(catalogue_table).values({name: bindparam(f"to_{name}") for name in Position._fields})


class DatabaseLoad(NamedTuple):
    """How busy a process is with its database."""

    queued_writes: int
    """How many writes wait for their turn."""
    connections: int
    """How many are in use."""
    max_connections: int
    """How many there may be."""


class Database:
    """Gives out transactions and tells where the catalogue stands. Nothing connects before the first use."""

    def __init__(
        self,
        url: str,
        *,
        standbys: str = "",
        statement_timeout: int | None = None,
        shared_position: SharedPosition | None = None,
    ) -> None:
        """For a process that serves: where it may read too, how long it waits for a server, what its node shares."""
        self.backend = _create_backend(url, statement_timeout, shared_position)
        self._standby_pool = _create_standby_pool(standbys, self.backend, statement_timeout) if standbys else None
        self._shared_position = shared_position
        self._set_position_notify = self.backend.with_notify(_SET_POSITION)
        self.counts = RecordCounts()
        self._watcher: PositionWatcher | None = None
        self._write_queue = WriteQueue(self.write, self.translate_errors)
        self._recent_changes: deque[RevisionChange] = deque(maxlen=_MAX_RECENT_CHANGES)
        """The last that this process made, so that it need not look up what it did itself."""
        self._is_server = statement_timeout is not None
        self._damage_reason: str | None = None
        """Why nothing is read or written. Only a process that serves keeps this: commands read what can be read."""
        self._is_damage_recorded = False
        self._is_disk_full = False
        """Whether a write found the disk full, and none has been tried since. Workers that share a mark share it."""
        self._damage_lock = threading.Lock()

    @property
    def location(self) -> str:
        """Where it is, as a person may read it."""
        return self.backend.location

    @property
    def is_embedded(self) -> bool:
        """Whether a short look into it may be taken where others wait meanwhile."""
        return self.backend.is_embedded

    @property
    def load(self) -> DatabaseLoad:
        """How busy this process is with it, about."""
        pool = self.backend.engine.pool
        assert isinstance(pool, QueuePool)
        return DatabaseLoad(self._write_queue.size, pool.checkedout(), pool.size())

    @contextmanager
    def read(self, *, from_primary: bool = False) -> Iterator[Connection]:
        """A transaction that sees one unchanging state.

        Not older than any that this node has seen; the newest of all, also of what other nodes write, where asked for.
        """
        require_undamaged(self._damage_reason, self.location)
        with (
            self.translate_errors(),
            self._connect_read(from_primary) as connection,
            self._translate_standby_errors(connection),
        ):
            if self._watcher is not None and not self.is_embedded:
                self.observe_position(read_position(connection))
            yield connection

    def read_with_position(self, query: Callable[[Connection], tuple[Position, T]]) -> tuple[Position, T]:
        """What one statement tells, with the position at which it is so; the same as to `read` it, for less."""
        if self._standby_pool is not None:  # which may lack what was seen: their position must be known beforehand
            with self.read() as connection:
                return query(connection)
        require_undamaged(self._damage_reason, self.location)
        with self.translate_errors(), self.backend.connect_autocommit() as connection:
            position, result = query(connection)
        self.observe_position(position)
        return position, result

    def _connect_read(self, from_primary: bool) -> Connection:
        """A connection in a transaction that reads."""
        min_position = None if self._standby_pool is None else self._min_position()
        standby = None if from_primary or self._standby_pool is None else self._standby_pool.connect_read(min_position)
        if standby is not None:
            return standby
        connection = self.backend.connect_read()
        for _ in range(_READ_RETRIES):
            if min_position is None or read_position(connection).includes(min_position):
                break
            # A standby has shown what the primary waits to hear back of: it will be there in a moment.
            connection.close()
            time.sleep(_RETRY_SECONDS)
            connection = self.backend.connect_read()
        return connection

    @contextmanager
    def write(self) -> Iterator[Transaction]:
        """A transaction for much to be written: committed when the block ends, undone when it raises."""
        require_undamaged(self._damage_reason, self.location)
        with self.translate_errors(), self.backend.connect_write() as connection, connection.begin():
            position = self.backend.lock_catalogue(connection)
            transaction = Transaction(connection, reconcile_position(position, self._min_position(), self.location))
            yield transaction
            revision_change = transaction.finish()
            if revision_change.after != position:
                is_counter_only = revision_change.after._replace(writes=position.writes) == position
                connection.execute(
                    _SET_POSITION if is_counter_only else self._set_position_notify,
                    _to_parameters(revision_change.after),
                )
        self._recent_changes.append(revision_change)
        self.observe_position(revision_change.after)

    def has_disk_space(self) -> bool:
        """Return whether the disk has room for writes. After a write that found none, another one is tried.

        A small write that succeeds meanwhile proves nothing: it may have fitted into what was there.
        """
        if not self.backend.has_disk_space():
            return False
        if self._shared_position.is_disk_full if self._shared_position is not None else self._is_disk_full:
            try:
                self.run_write(_test_disk_space)
            except DiskFull:
                return False
            self._set_disk_full(False)
        return True

    def _set_disk_full(self, is_full: bool) -> None:
        self._is_disk_full = is_full
        if self._shared_position is not None:
            self._shared_position.is_disk_full = is_full

    def initial_load(self) -> AbstractContextManager[None]:
        """A block in which much is to be written, if that goes faster in a catalogue that is new."""
        with self.read() as connection:
            is_new = read_position(connection).revision == 0
        return self.backend.initial_load() if is_new else nullcontext()

    def bulk_load(self, transaction: Transaction) -> AbstractContextManager[None]:
        """A block within a transaction that adds more records than there were before it."""
        return self.backend.bulk_load(transaction.connection)

    def run_write(self, task: WriteTask[Result]) -> Result:
        """Do a short piece of work in a writing transaction, perhaps together with others that wait.

        Returns its result once it is committed. What the work raises is raised here, and nothing of it is kept.
        """
        return self.submit_write(task).result()

    def submit_write(self, task: WriteTask[Result]) -> Future[Result]:
        """The same, for whoever has something else to do meanwhile."""
        return self._write_queue.submit(task)

    def get_position(self) -> Position:
        """Where the catalogue stands now. To be called from one thread."""
        require_undamaged(self._damage_reason, self.location)
        if self._watcher is None:
            with self.translate_errors():
                self._watcher = self.backend.start_watcher()
        try:
            return self._watcher.get_position()
        except DatabaseDamaged as error:
            self.mark_damaged(error.reason)
            raise

    def observe_position(self, position: Position) -> None:
        """Hear of a position that was read or written: never again is an older one told."""
        if self._watcher is not None:
            self._watcher.advance(position)

    def get_revision_change(self, since: Position) -> RevisionChange:
        """What has happened since a position."""
        invalidated_tags: set[CacheTag] = set()
        after = since
        for change in list(self._recent_changes):
            if (
                change.before.revision == after.revision
                and change.before.epoch == after.epoch
                and change.invalidated_tags is not None
            ):
                invalidated_tags |= change.invalidated_tags
                after = change.after
        if after.revision >= self.get_position().revision and after.epoch == self.get_position().epoch:
            return RevisionChange(since, after, invalidated_tags)
        with self.read() as snapshot:
            after = read_position(snapshot)
            is_continuous = after.epoch == since.epoch and after.revision >= since.revision
            later_tags = (
                revisions.find_invalidated_tags(snapshot, since.revision, MAX_TRACKED_CHANGES)
                if is_continuous
                else None
            )
            return RevisionChange(since, after, later_tags)

    @contextmanager
    def _translate_standby_errors(self, connection: Connection) -> Iterator[None]:
        """Stop reading from a standby that is damaged or has no room: that says nothing of the primary."""
        try:
            yield
        except DBAPIError as error:
            if self._standby_pool is None or connection.engine.pool is self.backend.engine.pool:
                raise
            if not isinstance(translated := self.backend.translate_error(error), DatabaseDamaged | DiskFull):
                raise
            self._standby_pool.stop()
            logger.error("The standby cannot be used; reading from the primary alone until a restart. %s", translated)
            raise DatabaseUnavailable("A standby of the database cannot be read.") from error

    @contextmanager
    def translate_errors(self) -> Iterator[None]:
        """Errors of the driver become errors for people, where they are not faults of ours."""
        try:
            yield
        except PoolTimeout as error:
            raise DatabaseUnavailable(f"Every connection to the database {self.location} is in use.") from error
        except PendingRollbackError as error:
            raise DatabaseUnavailable(
                f"The connection to the database {self.location} was lost in the midst of it."
            ) from error
        except DBAPIError as error:
            translated = self.backend.translate_error(error)
            if translated is None:
                raise
            if isinstance(translated, DatabaseDamaged):
                self.mark_damaged(translated.reason)
            if isinstance(translated, DiskFull):
                self._set_disk_full(True)
            raise translated from error
        except DatabaseDamaged as error:
            self.mark_damaged(error.reason)
            raise

    def mark_damaged(self, reason: str) -> None:
        """Refuse every read and write from now on, in all processes that serve, until a check has passed."""
        with self._damage_lock:
            if not self._is_server or self._damage_reason is not None:
                return
            self._damage_reason, self._is_damage_recorded = reason, False
        logger.error(
            "The database is damaged; nothing is read or written until `lexarium check` finds nothing wrong."
            " Where it does, restore a backup. %s",
            reason,
        )
        self._record_damage()

    def refresh_damage(self) -> None:
        """Read the damage mark, which other processes may have set or cleared."""
        was_recorded = self._is_damage_recorded  # before the look, since it may be recorded meanwhile
        with self.translate_errors():
            recorded = self.backend.find_damage()
        if recorded is not None:
            self.mark_damaged(recorded)
        elif was_recorded:
            self.backend.engine.dispose()  # Connections may have damaged pages in their caches.
            self._damage_reason, self._is_damage_recorded = None, False
            logger.warning("The database has passed a check; reads and writes go on.")
        elif self._damage_reason is not None and not self._is_damage_recorded:
            self._record_damage()

    def clear_damage(self) -> None:
        """Remove the damage mark: a check has passed."""
        try:
            with self.translate_errors():
                self.backend.clear_damage()
        except OSError as error:
            raise StoreError(
                f"The damage mark of {self.location} cannot be removed: {error.strerror}. Run this as"
                f" the server's user."
            ) from error

    def _record_damage(self) -> None:
        assert self._damage_reason is not None
        try:
            if self.backend.find_damage() is None:
                self.backend.record_damage(self._damage_reason)
            self._is_damage_recorded = True
        except (OSError, SQLAlchemyError, DatabaseUnavailable) as error:
            logger.warning("The mark of the damage cannot be kept now, trying again: %s", error)

    def stop_using_standbys(self) -> None:
        """Read from the primary alone from now on: whoever reads from a standby at this moment gets an error."""
        if self._standby_pool is not None:
            self._standby_pool.stop()

    def close(self) -> None:
        """Finish what waits to be written, and let go of every connection."""
        self._write_queue.close()
        if self._watcher is not None:
            self._watcher.close()
            self._watcher = None
        self.backend.engine.dispose()
        if self._standby_pool is not None:
            self._standby_pool.close()
        if self._shared_position is not None:
            self._shared_position.close()

    def _min_position(self) -> Position | None:
        """Where this node stands, for any thread; None where it has seen nothing yet, or the database is its own."""
        try:
            return None if self._watcher is None or self.is_embedded else self._watcher.get_position()
        except DatabaseUnavailable:
            return None


def _test_disk_space(transaction: Transaction) -> None:
    """Write so much that it takes new room, and take it away again."""
    row = {"name": "room", "holder": secrets.token_hex(_DISK_TEST_BYTES), "until": 0}
    transaction.connection.execute(delete(lease_table).where(lease_table.c.name == row["name"]))
    transaction.connection.execute(insert(lease_table).values(row))
    transaction.connection.execute(delete(lease_table).where(lease_table.c.name == row["name"]))


def _to_parameters(position: Position) -> dict[str, str | int]:
    return {f"to_{name}": value for name, value in position._asdict().items()}


def _create_backend(url: str, statement_timeout: int | None, shared_position: SharedPosition | None) -> Backend:
    if _is_postgres(url):
        # Loaded here and not above: its driver takes long to load, and an embedded catalogue has no use for it.
        backend: Backend = import_module("lexarium.store.engine.postgres").PostgresBackend(
            url, statement_timeout=statement_timeout, shared_position=shared_position
        )
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


def _create_standby_pool(url: str, primary: Backend, statement_timeout: int | None) -> StandbyPool:
    if primary.is_embedded or not _is_postgres(url):
        raise SettingError(
            "Only a catalogue on PostgreSQL has standbys, at an address that begins with postgresql:// ."
        )
    return StandbyPool(
        import_module("lexarium.store.engine.postgres").PostgresBackend(
            url, statement_timeout=statement_timeout, standby=True
        )
    )


def _is_postgres(url: str) -> bool:
    return url.startswith(("postgresql://", "postgres://"))
