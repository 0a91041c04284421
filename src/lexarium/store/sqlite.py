"""SQLite in WAL mode: the embedded engine."""

import logging
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from weakref import WeakSet

from sqlalchemy import URL, Connection, Executable, Update, create_engine, event, text
from sqlalchemy.dialects.sqlite.base import SQLiteDialect
from sqlalchemy.engine import ExceptionContext
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import QueuePool

from lexarium.domain.errors import NotACatalogue, SettingError, StoreError, Unavailable
from lexarium.store.backend import POSITION, Position, Watch, read_position
from lexarium.store.schema import change, record

log = logging.getLogger(__name__)

_WRITE = {"lexarium_write": True}
"""Execution options of a connection whose transaction begins as a writer's."""

_WAIT_SECONDS = 10
"""How long a writer waits for its turn, and anyone for a connection, before giving up."""

_POSITION = str(POSITION.compile(dialect=SQLiteDialect()))

_CACHE_KB = 4_000
_LOADING_CACHE_KB = 64_000

_CONNECTIONS = 50
"""More than there are threads to use them."""

_REOPENING_SECONDS = 1.0
"""How long those who read are waited for, where the file is to be opened anew."""
_LOOK_SECONDS = 0.005


class SqliteWatch:
    """Asks SQLite's own counter of commits, on a connection that does nothing else: microseconds a call."""

    def __init__(self, connect: Callable[[], Connection], using: threading.RLock) -> None:
        """`using` is held while it connects, or uses its connection: whoever holds it may close that."""
        self._connect = connect
        self._using = using
        self._commits = -1
        self._position = Position("", -1, -1, -1)
        self._open()

    def current(self) -> Position:
        with self._using:
            try:
                if self._connection is None:
                    self._open()
                commits = self._execute("PRAGMA data_version").fetchone()[0]
                if commits != self._commits:
                    # Not through SQLAlchemy: this one statement is a transaction of its own, run after every commit.
                    self._position = Position._make(self._execute(_POSITION).fetchone())
                    self._commits = commits
            except (sqlite3.Error, DBAPIError) as error:
                raise Unavailable(f"The database cannot be read now: {error}.") from error
        return self._position

    def _open(self) -> None:
        self._connection: Connection | None = self._connect()
        driver = self._connection.connection.driver_connection
        assert isinstance(driver, sqlite3.Connection)
        self._execute = driver.execute
        self._commits = -1

    def advance(self, position: Position) -> None:
        """Nothing to hear: this connection sees commits of every other."""

    def close(self) -> None:
        """Let go of its connection, until it is asked again."""
        with self._using:
            if self._connection is not None:
                self._connection.close()
                self._connection = None


class SqliteBackend:
    """A database file."""

    embedded = True

    def __init__(self, url: URL) -> None:
        if not url.database or url.database == ":memory:":
            raise SettingError("The database must be a file: sqlite:///PATH (a whole path begins with four slashes).")
        self.place = url.database
        if not Path(self.place).absolute().parent.is_dir():
            raise Unavailable(f"The folder of the database {self.place} does not exist.")
        self.engine = create_engine(
            url,
            connect_args={"timeout": _WAIT_SECONDS, "check_same_thread": False},
            hide_parameters=True,  # An error that is logged must not tell what people wrote.
            pool_size=_CONNECTIONS,
            max_overflow=0,
            pool_timeout=_WAIT_SECONDS,
        )
        self.file: Path | None = Path(self.place)
        self._opened: tuple[int, int] | None = None
        self._watches: WeakSet[SqliteWatch] = WeakSet()
        self._connecting = threading.RLock()
        self._readonly = False
        """Whether a write was refused since the file was opened."""
        event.listen(self.engine, "connect", _set_up)
        event.listen(self.engine, "begin", _begin)
        event.listen(self.engine, "handle_error", self._note_readonly)

    def exists(self) -> bool:
        return Path(self.place).exists()

    def reading(self) -> Connection:
        self._refuse_if_gone()
        connection = self._connected()
        connection.begin()
        return connection

    def writing(self) -> Connection:
        self._refuse_if_gone()
        if self._readonly and self._may_be_written():
            self._open_anew()
        return self._connected().execution_options(**_WRITE)

    def _connected(self) -> Connection:
        with self._connecting:
            return self.engine.connect()

    def _may_be_written(self) -> bool:
        parts = (Path(self.place + suffix) for suffix in ("", "-wal", "-shm"))
        return all(os.access(part, os.W_OK) for part in parts if part.exists())

    def _open_anew(self) -> None:
        """Close every connection of this process, and only then open others, so that they may write.

        What they share of the file stays as the first of them has opened it. Where some are in use for long, nothing
        is done: the next write tries again.
        """
        with self._connecting:
            for watch in self._watches:
                watch.close()
            pool = self.engine.pool
            assert isinstance(pool, QueuePool)
            until = time.monotonic() + _REOPENING_SECONDS
            while pool.checkedout() and time.monotonic() < until:
                time.sleep(_LOOK_SECONDS)
            if not pool.checkedout():
                self.engine.dispose()
                self._readonly = False

    def settle(self) -> None:
        with self.engine.connect() as connection:
            # It cannot be changed within a transaction, and it stays in the file: not before the file is ours.
            driver = connection.connection.driver_connection
            assert isinstance(driver, sqlite3.Connection)
            driver.execute("PRAGMA journal_mode=WAL").close()
        self._opened = self._identity()

    def damage(self, connection: Connection) -> list[str]:
        rows = connection.execute(text("PRAGMA integrity_check"))
        return [f"the database file is damaged: {row[0]}" for row in rows if row[0] != "ok"]

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Without the write-ahead log, if no one else has the file open: rows are written once, and found sooner.

        A crash undoes all of it, as ever: the journal then holds how the file was before.
        """
        self.engine.dispose()
        self._try_journal("TRUNCATE")
        try:
            yield
        finally:
            self._try_journal("WAL")

    def _try_journal(self, mode: str) -> None:
        with self.engine.connect() as connection:
            driver = connection.connection.driver_connection
            assert isinstance(driver, sqlite3.Connection)
            driver.execute("PRAGMA busy_timeout=0").close()
            # Where others have it open it cannot be changed, and need not be: whoever opens it sets it right.
            with suppress(sqlite3.OperationalError):
                driver.execute(f"PRAGMA journal_mode={mode}").close()
            driver.execute(f"PRAGMA busy_timeout={_WAIT_SECONDS * 1000}").close()

    @contextmanager
    def loading(self, connection: Connection) -> Iterator[None]:
        """Indexes by name are made once at the end, sorted, and not row by row. Readers go on in the state before.

        But for that of flagged records, which are few.
        """
        indexes = [
            index
            for table in (record, change)
            for index in table.indexes
            if ("name_key" in index.c or "order_key" in index.c) and index.name != "change_flagged"
        ]
        for index in indexes:
            index.drop(connection)
        connection.exec_driver_sql(f"PRAGMA cache_size=-{_LOADING_CACHE_KB}")
        try:
            yield
            for index in indexes:
                index.create(connection)
        finally:
            connection.exec_driver_sql(f"PRAGMA cache_size=-{_CACHE_KB}")

    def lock_schema(self, connection: Connection) -> None:
        """Nothing to do: a writing transaction begins with the lock."""

    def _identity(self) -> tuple[int, int] | None:
        try:
            status = Path(self.place).stat()
        except OSError:
            return None
        return status.st_dev, status.st_ino

    def _refuse_if_gone(self) -> None:
        # What is written to a file that has no name any more is lost when it is closed.
        if self._opened is not None and self._opened != self._identity():
            raise Unavailable(f"The database file {self.place} was removed or replaced while it was in use.")

    def lock(self, connection: Connection) -> Position:
        return read_position(connection)  # a writing transaction begins with the lock

    def _note_readonly(self, context: ExceptionContext) -> None:
        if "readonly" in str(context.original_exception):
            log.warning("The database file cannot be written: %s.", context.original_exception)
            context.is_disconnect = True
            self._readonly = True

    def announced(self, move: Update) -> Executable:
        return move  # SQLite counts commits for every reader

    def go_on(self, connection: Connection) -> None:
        """Nothing to do: SQLite counts on from the largest number."""

    def watch(self) -> Watch:
        watch = SqliteWatch(self._connected, self._connecting)
        self._watches.add(watch)
        return watch

    def hang_up(self) -> None:
        """Nothing to do: a file answers."""

    def explain(self, error: DBAPIError) -> StoreError | None:
        reason = str(error.orig)
        if "not a database" in reason or "malformed" in reason:
            return NotACatalogue(f"{self.place} is not an SQLite database, or it is damaged: {reason}.")
        if isinstance(error.orig, sqlite3.OperationalError) and any(sign in reason for sign in _UNAVAILABLE):
            return Unavailable(f"The database {self.place} cannot be used now: {reason}.")
        return None


_UNAVAILABLE = ("locked", "unable to open", "readonly", "full", "disk I/O")


def _set_up(connection: sqlite3.Connection, _record: Any) -> None:
    # The driver would begin transactions by itself, and too late; `_begin` does.
    connection.isolation_level = None
    # What is erased is overwritten, where that costs no reading and no writing of its own.
    for pragma in ("synchronous=FULL", "foreign_keys=ON", "secure_delete=FAST", f"cache_size=-{_CACHE_KB}"):
        connection.execute(f"PRAGMA {pragma}").close()


def _begin(connection: Connection) -> None:
    # A writer takes the lock at once: one that began by reading could not wait for another's commit.
    writes = connection.get_execution_options().items() >= _WRITE.items()
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")
