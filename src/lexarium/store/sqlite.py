"""SQLite in WAL mode: the embedded engine."""

import mmap
import os
import sqlite3
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event, text
from sqlalchemy.exc import DBAPIError

from lexarium.domain.errors import NotACatalogue, SettingError, StoreError, Unavailable
from lexarium.store.backend import Position, Watch, read_position

_WRITE = {"lexarium_write": True}
"""Execution options of a connection whose transaction begins as a writer's."""

_WAIT_SECONDS = 10
"""How long a writer waits for its turn, and anyone for a connection, before giving up."""

_HEAD = 48
"""How many bytes the head of a wal-index has."""

_CONNECTIONS = 50
"""More than there are threads to use them."""


class SqliteWatch:
    """Looks at the head of SQLite's wal-index, which every commit of every process changes, for a microsecond a call.

    The file and its first 48 bytes are part of SQLite's documented format. Asking SQLite itself (`PRAGMA data_version`)
    costs ten times as much, and gives up Python's lock each time: while others write, a read waits to have it back.
    """

    def __init__(self, engine: Engine, database: str) -> None:
        self._connection = engine.connect()
        self._position = self._read()  # While this connection is open, the file stays the one that it is.
        # Kept open: a process that closes a file, by whatever descriptor, lets go of the locks that SQLite has on it.
        self._file = os.open(f"{database}-shm", os.O_RDONLY)
        self._index = mmap.mmap(self._file, 0, prot=mmap.PROT_READ)
        self._head = b""

    def current(self) -> Position:
        head = self._index[:_HEAD]
        if head != self._head:
            self._position = self._read()
            self._head = head
        return self._position

    def advance(self, position: Position) -> None:
        """Nothing to hear: the index shows the commits of everyone."""

    def close(self) -> None:
        self._connection.close()
        self._index.close()
        os.close(self._file)

    def _read(self) -> Position:
        try:
            with self._connection.begin():
                return read_position(self._connection)
        except DBAPIError as error:
            raise Unavailable(f"The database cannot be read now: {error}.") from error


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
            pool_size=_CONNECTIONS,
            max_overflow=0,
            pool_timeout=_WAIT_SECONDS,
        )
        self._file: tuple[int, int] | None = None
        event.listen(self.engine, "connect", _set_up)
        event.listen(self.engine, "begin", _begin)

    def exists(self) -> bool:
        return Path(self.place).exists()

    def reading(self) -> Connection:
        self._refuse_if_gone()
        return self.engine.connect()

    def writing(self) -> Connection:
        self._refuse_if_gone()
        return self.engine.connect().execution_options(**_WRITE)

    def settle(self) -> None:
        with self.engine.connect() as connection:
            # It cannot be changed within a transaction, and it stays in the file: not before the file is ours.
            driver = connection.connection.driver_connection
            assert isinstance(driver, sqlite3.Connection)
            driver.execute("PRAGMA journal_mode=WAL").close()
        self._file = self._identity()

    def damage(self, connection: Connection) -> list[str]:
        rows = connection.execute(text("PRAGMA integrity_check"))
        return [f"the database file is damaged: {row[0]}" for row in rows if row[0] != "ok"]

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
        if self._file is not None and self._file != self._identity():
            raise Unavailable(f"The database file {self.place} was removed or replaced while it was in use.")

    def lock(self, connection: Connection) -> None:
        """Nothing to do: a writing transaction begins with the lock."""

    def announce(self, connection: Connection) -> None:
        """Nothing to do: SQLite counts commits for every reader."""

    def watch(self) -> Watch:
        return SqliteWatch(self.engine, self.place)

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
    for pragma in ("synchronous=FULL", "foreign_keys=ON", "cache_size=-4000"):
        connection.execute(f"PRAGMA {pragma}").close()


def _begin(connection: Connection) -> None:
    # A writer takes the lock at once: one that began by reading could not wait for another's commit.
    writes = connection.get_execution_options().items() >= _WRITE.items()
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")
