"""Database of one catalogue: begin and end transactions, and follow its position."""

import logging
import secrets
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from typing import Any, Concatenate, NamedTuple, ParamSpec, TypeVar

from sqlalchemy import Connection, bindparam, delete, insert, update
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, PendingRollbackError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.pool import QueuePool

from lexarium.domain.cache_tags import CacheTag
from lexarium.domain.errors import DatabaseDamaged, DatabaseUnavailable, DiskFull, SettingError, StoreError
from lexarium.domain.schema.collections import SharedValue, isolate_values
from lexarium.domain.vocabulary import VOCABULARIES, register_vocabularies
from lexarium.store import revisions, vocabularies
from lexarium.store.counts import RecordCounts
from lexarium.store.dependencies import depend_on, watch_statements
from lexarium.store.engine.base import Backend, PositionWatcher, require_undamaged
from lexarium.store.engine.node_state import NodeState
from lexarium.store.engine.position_queries import read_position, reconcile_position
from lexarium.store.engine.sqlite import SqliteBackend
from lexarium.store.engine.standbys import StandbyPool
from lexarium.store.position import Position, RevisionChange
from lexarium.store.schema import catalogue_table, lease_table
from lexarium.store.transaction import MAX_TRACKED_CHANGES, LastNumbers, Transaction
from lexarium.store.write_queue import Result, WriteQueue, WriteTask

logger = logging.getLogger(__name__)

T = TypeVar("T")
P = ParamSpec("P")

_POSTGRES_SCHEMES = ("postgresql://", "postgres://")
_MAX_RECENT_CHANGES = 100
_READ_RETRIES = 10
_RETRY_SECONDS = 0.02
# Size of the write that tests whether a full disk has room again.
_DISK_TEST_BYTES = 1 << 17
_SET_POSITION = update(catalogue_table).values({name: bindparam(f"to_{name}") for name in Position._fields})


class DatabaseLoad(NamedTuple):
    """Load of this process on its database."""

    queued_writes: int
    connections: int
    max_connections: int


class Database:
    """Provide transactions and the current position. Connects on first use."""

    def __init__(
        self,
        url: str,
        *,
        standbys: str = "",
        statement_timeout: int | None = None,
        node_state: NodeState | None = None,
    ) -> None:
        """Create a database. Server processes set the options."""
        self._node_state = node_state or NodeState()
        self.backend = _create_backend(url, self._node_state, statement_timeout=statement_timeout)
        self.location = self.backend.location
        self.is_embedded = self.backend.is_embedded
        self._standby_pool: StandbyPool | None = None
        if standbys:
            if self.is_embedded or not standbys.startswith(_POSTGRES_SCHEMES):
                raise SettingError("Standbys need PostgreSQL; their URL must start with postgresql:// .")
            standby_backend = _create_backend(
                standbys, self._node_state, statement_timeout=statement_timeout, standby=True
            )
            watch_statements(standby_backend.engine)
            self._standby_pool = StandbyPool(standby_backend)
        watch_statements(self.backend.engine)
        self._set_position_notify = self.backend.with_notify(_SET_POSITION)
        self.counts = RecordCounts()
        self._watcher: PositionWatcher | None = None
        self._write_queue = WriteQueue(self.write, self.translate_errors)
        # The last changes of this process, which it need not query.
        self._recent_changes: deque[RevisionChange] = deque(maxlen=_MAX_RECENT_CHANGES)
        # Numbers of ids, so that those of all records are read once.
        self._last_numbers: LastNumbers = {}
        self._is_server = statement_timeout is not None
        # Reason to refuse reads and writes. Set only in server processes: commands read what they can.
        self._damage_reason: str | None = None
        self._is_damage_recorded = False
        self._damage_lock = threading.Lock()
        # Epoch and number of the last change of the vocabularies that are registered; None after a rollback.
        self._vocabularies_position: SharedValue[tuple[str, int] | None] = SharedValue(None)
        self._vocabularies_lock = threading.Lock()

    @property
    def load(self) -> DatabaseLoad:
        """Approximate load of this process."""
        pool = self.backend.engine.pool
        assert isinstance(pool, QueuePool)
        return DatabaseLoad(self._write_queue.size, pool.checkedout(), pool.size())

    @contextmanager
    def read(self, *, from_primary: bool = False) -> Iterator[Connection]:
        """Begin a transaction that sees one unchanging state.

        The state is not older than any this node has seen. `from_primary` gives the newest of all nodes.
        """
        require_undamaged(self._damage_reason, self.location)
        with (
            self.translate_errors(),
            self._connect_read(from_primary) as connection,
            self._translate_standby_errors(connection),
        ):
            if self._watcher is not None and not self.is_embedded:
                with depend_on():
                    self.observe_position(read_position(connection))
            yield connection

    def run_read(self, query: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Return the result of a query in a read transaction of its own. It must not be read from later."""
        with self.read() as connection:
            return query(connection, *args, **kwargs)

    def read_with_position(self, query: Callable[[Connection], tuple[Position, T]]) -> tuple[Position, T]:
        """Run one statement that returns its position; the same as within `read`, with fewer round trips."""
        if self._standby_pool is not None:  # standbys may lag, so their position is checked first
            with self.read() as connection:
                return query(connection)
        require_undamaged(self._damage_reason, self.location)
        with self.translate_errors():
            with depend_on():
                connection = self.backend.connect_autocommit()
            with connection:
                position, result = query(connection)
        self.observe_position(position)
        return position, result

    @depend_on()
    def _connect_read(self, from_primary: bool) -> Connection:
        min_position = None if self._standby_pool is None else self._min_position()
        standby = None if from_primary or self._standby_pool is None else self._standby_pool.connect_read(min_position)
        if standby is not None:
            return standby
        connection = self.backend.connect_read()
        for _ in range(_READ_RETRIES):
            if min_position is None or read_position(connection).includes(min_position):
                break
            # A standby has shown a commit that the primary still waits to confirm.
            connection.close()
            time.sleep(_RETRY_SECONDS)
            connection = self.backend.connect_read()
        return connection

    @contextmanager
    def write(self) -> Iterator[Transaction]:
        """Begin a write transaction. It is committed at the end of the block, and rolled back on an error."""
        require_undamaged(self._damage_reason, self.location)
        with (
            self.translate_errors(),
            ExitStack() as on_error,
            self.backend.connect_write() as connection,
            connection.begin(),
        ):
            position = self.backend.lock_catalogue(connection)
            start_position = reconcile_position(position, self._min_position(), self.location)
            transaction = Transaction(connection, start_position, self._last_numbers)
            self.follow_vocabularies(connection, position)
            on_error.enter_context(self._forget_vocabularies_on_error())
            yield transaction
            revision_change = transaction.finish()
            if revision_change.after != position:
                is_counter_only = revision_change.after._replace(writes=position.writes) == position
                statement = _SET_POSITION if is_counter_only else self._set_position_notify
                values = revision_change.after._asdict()
                connection.execute(statement, {f"to_{name}": value for name, value in values.items()})
            self.follow_vocabularies(connection, revision_change.after)
        self._recent_changes.append(revision_change)
        self.observe_position(revision_change.after)

    def has_disk_space(self) -> bool:
        """Return whether the disk has room for writes. After a write that found none, test it with another.

        A small write that succeeds meanwhile proves nothing: it may have fitted into allocated space.
        """
        if not self.backend.has_disk_space():
            return False
        if self._node_state.is_disk_full:
            try:
                self.run_write(_test_disk_space)
            except DiskFull:
                return False
            self._node_state.is_disk_full = False
        return True

    def initial_load(self) -> AbstractContextManager[None]:
        """Return a context for many writes, faster if the database is new."""
        with self.read() as connection:
            is_new = read_position(connection).revision == 0
        return self.backend.initial_load() if is_new else nullcontext()

    def bulk_load(self, transaction: Transaction) -> AbstractContextManager[None]:
        """Return a context, within a transaction, that more than doubles the number of records."""
        return self.backend.bulk_load(transaction.flush())

    def run_write(self, task: WriteTask[Result]) -> Result:
        """Run a short task in a write transaction, perhaps together with others; return its result after the commit.

        If the task raises, the error is raised here and nothing of it is kept.
        """
        return self.submit_write(task).result()

    def submit_write(self, task: WriteTask[Result]) -> Future[Result]:
        """Do the same without waiting."""
        return self._write_queue.submit(task)

    def get_position(self) -> Position:
        """Return the current position. Called from one thread."""
        require_undamaged(self._damage_reason, self.location)
        if self._watcher is None:
            with self.translate_errors():
                self._watcher = self.backend.start_watcher()
        try:
            position = self._watcher.get_position()
        except DatabaseDamaged as error:
            self.mark_damaged(error.reason)
            raise
        if self._vocabularies_position.get() != (position.epoch, position.vocabularies):
            with self.read() as connection:
                self.follow_vocabularies(connection)
        return position

    @depend_on()
    def follow_vocabularies(self, connection: Connection, position: Position | None = None) -> bool:
        """Register the vocabularies as a transaction sees them, unless they are not newer; return whether."""
        position = position or read_position(connection)
        current = (position.epoch, position.vocabularies)
        with self._vocabularies_lock:
            registered = self._vocabularies_position.get()
            # A thread with an old snapshot must not bring back a vocabulary that was removed or made private since.
            is_new = registered is None or registered[0] != current[0] or registered < current
            if is_new:
                register_vocabularies(vocabularies.list_vocabularies(connection))
                self._vocabularies_position.set(current)
        return is_new

    def reload_vocabularies(self) -> None:
        """Register the vocabularies as the database has them, after others that may not have been committed."""
        self._vocabularies_position.set(None)
        self.run_read(self.follow_vocabularies)

    @contextmanager
    def isolate_vocabularies(self) -> Iterator[None]:
        """Register vocabularies for the current thread alone: those of a long write, before it is committed."""
        with isolate_values():
            self.reload_vocabularies()
            yield

    @contextmanager
    def _forget_vocabularies_on_error(self) -> Iterator[None]:
        """Have the vocabularies registered again if a transaction that has registered its own is rolled back."""
        before = dict(VOCABULARIES)
        try:
            yield
        except BaseException:
            if before != VOCABULARIES:
                self._vocabularies_position.set(None)
            raise

    def observe_position(self, position: Position) -> None:
        """Take note of a position that was read or written, so that no older one is returned."""
        if self._watcher is not None:
            self._watcher.advance(position)

    def get_revision_change(self, since: Position) -> RevisionChange:
        """Return the step from a position to the current one."""
        invalidated_tags: set[CacheTag] = set()
        after = since
        for change in list(self._recent_changes):
            is_next = change.before.revision == after.revision and change.before.epoch == after.epoch
            if is_next and change.invalidated_tags is not None:
                invalidated_tags |= change.invalidated_tags
                after = change.after
        if not self.get_position().has_news_since(after):
            return RevisionChange(since, after, invalidated_tags)
        with self.read() as snapshot:
            after = read_position(snapshot)
            is_same = after.epoch == since.epoch and after.vocabularies == since.vocabularies
            if not is_same or after.revision < since.revision:
                return RevisionChange(since, after, None)
            tags = revisions.find_invalidated_tags(snapshot, since.revision, MAX_TRACKED_CHANGES)
            return RevisionChange(since, after, tags)

    @contextmanager
    def _translate_standby_errors(self, connection: Connection) -> Iterator[None]:
        """Stop using standbys if one is damaged or full: that says nothing about the primary."""
        try:
            yield
        except DBAPIError as error:
            if self._standby_pool is None or connection.engine.pool is self.backend.engine.pool:
                raise
            if not isinstance(translated := self.backend.translate_error(error), DatabaseDamaged | DiskFull):
                raise
            self._standby_pool.stop()
            logger.error("Standby cannot be used; reading only from the primary until a restart. %s", translated)
            raise DatabaseUnavailable("Cannot read from a standby of the database.") from error

    @contextmanager
    def translate_errors(self) -> Iterator[None]:
        """Translate errors of the driver, other than bugs, to errors for people."""
        try:
            yield
        except PoolTimeout as error:
            raise DatabaseUnavailable(f"All connections to the database {self.location} are in use.") from error
        except PendingRollbackError as error:
            raise DatabaseUnavailable(
                f"The connection to the database {self.location} was lost during the transaction."
            ) from error
        except DBAPIError as error:
            translated = self.backend.translate_error(error)
            if translated is None:
                raise
            if isinstance(translated, DatabaseDamaged):
                self.mark_damaged(translated.reason)
            if isinstance(translated, DiskFull):
                self._node_state.is_disk_full = True
            raise translated from error
        except DatabaseDamaged as error:
            self.mark_damaged(error.reason)
            raise

    def mark_damaged(self, reason: str) -> None:
        """Refuse all reads and writes, in all server processes, until a check has passed."""
        with self._damage_lock:
            if not self._is_server or self._damage_reason is not None:
                return
            self._damage_reason, self._is_damage_recorded = reason, False
        logger.error(
            "Database is damaged; reads and writes are refused until `lexarium check` finds no problems or a"
            " backup is restored. %s",
            reason,
        )
        self._record_damage()

    def refresh_damage(self) -> None:
        """Read the damage mark, which other processes may have set or cleared."""
        was_recorded = self._is_damage_recorded  # read first, since another thread may record it meanwhile
        with self.translate_errors():
            recorded = self.backend.find_damage()
        if recorded is not None:
            self.mark_damaged(recorded)
        elif was_recorded:
            self.backend.engine.dispose()  # their caches may hold damaged pages
            self._damage_reason, self._is_damage_recorded = None, False
            logger.warning("Database passed a check; reads and writes are accepted again.")
        elif self._damage_reason is not None and not self._is_damage_recorded:
            self._record_damage()

    def clear_damage(self) -> None:
        """Remove the damage mark, after a check has passed."""
        try:
            with self.translate_errors():
                self.backend.clear_damage()
        except OSError as error:
            raise StoreError(
                f"Cannot remove the damage mark of {self.location}: {error.strerror}. Run this as the server's user."
            ) from error

    def _record_damage(self) -> None:
        assert self._damage_reason is not None
        try:
            if self.backend.find_damage() is None:
                self.backend.record_damage(self._damage_reason)
            self._is_damage_recorded = True
        except (OSError, SQLAlchemyError, DatabaseUnavailable) as error:
            logger.warning("Cannot write the damage mark, retrying: %s", error)

    def stop_using_standbys(self) -> None:
        """Read from the primary alone from now on. Running reads from standbys fail."""
        if self._standby_pool is not None:
            self._standby_pool.stop()

    def close(self) -> None:
        """Finish queued writes and close all connections."""
        self._write_queue.close()
        if self._watcher is not None:
            self._watcher.close()
            self._watcher = None
        self.backend.engine.dispose()
        if self._standby_pool is not None:
            self._standby_pool.close()
        self._node_state.close()

    def _min_position(self) -> Position | None:
        """Return the position that reads must include, for any thread; None if unknown or embedded."""
        try:
            return None if self._watcher is None or self.is_embedded else self._watcher.get_position()
        except DatabaseUnavailable:
            return None


def _test_disk_space(transaction: Transaction) -> None:
    """Write enough to need new space, and delete it."""
    delete_row = delete(lease_table).where(lease_table.c.name == "room")
    row = {"name": "room", "holder": secrets.token_hex(_DISK_TEST_BYTES), "until": 0}
    for statement in (delete_row, insert(lease_table).values(row), delete_row):
        transaction.execute(statement)


def _create_backend(url: str, node_state: NodeState, **options: Any) -> Backend:
    """Return the backend for an address. The options are those of PostgresBackend."""
    if url.startswith(_POSTGRES_SCHEMES):
        # Imported late: the driver is slow to load, and not needed for SQLite.
        from lexarium.store.engine.postgres import PostgresBackend  # noqa: PLC0415

        return PostgresBackend(url, node_state, **options)
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        parsed = None
    if parsed is None or parsed.drivername != "sqlite":
        # Only the scheme: the rest may hold a password.
        scheme = url.partition(":")[0]
        raise SettingError(f"The database URL must start with sqlite:/// or postgresql:// , not with {scheme!r}.")
    return SqliteBackend(parsed)
