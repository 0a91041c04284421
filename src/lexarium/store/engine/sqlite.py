"""SQLite in WAL mode, for a single node."""

import fcntl
import logging
import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event, text
from sqlalchemy.dialects.sqlite.base import SQLiteDialect
from sqlalchemy.engine import ExceptionContext
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from lexarium.domain import errors
from lexarium.domain.errors import DatabaseDamaged, DatabaseUnavailable, StoreError
from lexarium.store.engine import base
from lexarium.store.engine.base import PositionWatcher
from lexarium.store.engine.position_queries import SELECT_POSITION
from lexarium.store.position import Position
from lexarium.store.schema import change_table, metadata, record_table

logger = logging.getLogger(__name__)

# Execution options of a connection whose transaction begins with the write lock.
_WRITE_OPTIONS = {"lexarium_write": True}

# Longest wait for the lock and for a connection.
_LOCK_TIMEOUT_SECONDS = 10

_SELECT_POSITION_AND_SCHEMA = SELECT_POSITION.add_columns(base.SCHEMA_VERSION_COLUMN)
_POLL_SECONDS = 0.02

_POSITION_SQL = str(SELECT_POSITION.compile(dialect=SQLiteDialect()))

_CACHE_KB = 4_000
_BULK_LOAD_CACHE_KB = 64_000

# A disk with less space than this counts as full.
_MIN_FREE_BYTES = 1 << 20

# More than there are threads.
_POOL_SIZE = 64


def build_url(path: Path) -> str:
    """Return the address of a database file, with special characters in its path escaped."""
    return URL.create("sqlite", database=str(path)).render_as_string()


class SqlitePositionWatcher:
    """Watch SQLite's counter of commits through a separate connection. A call takes microseconds."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._position = Position("", -1, -1, -1)
        self._connect()

    def _connect(self) -> None:
        self._connection = self._engine.connect()
        self._execute = _driver_connection(self._connection).execute
        self._data_version = -1

    def get_position(self) -> Position:
        try:
            data_version = self._execute("PRAGMA data_version").fetchone()[0]
            if data_version != self._data_version:
                # Not through SQLAlchemy: this runs after every commit, as a transaction of its own.
                self._position = Position._make(self._execute(_POSITION_SQL).fetchone())
                self._data_version = data_version
        except sqlite3.Error as error:
            is_damaged = _is_damage_message(str(error))
            if is_damaged or self._connection.closed:
                self._reconnect()
            if is_damaged:
                raise DatabaseDamaged(f"The database is damaged: {error}.") from error
            raise DatabaseUnavailable(f"The database cannot be read now: {error}.") from error
        return self._position

    def _reconnect(self) -> None:
        """Replace the connection: its cache keeps a damaged page even after the file is repaired."""
        if not self._connection.closed:
            self._connection.invalidate()
            self._connection.close()
        with suppress(SQLAlchemyError):  # the next call tries again
            self._connect()

    def advance(self, position: Position) -> None:
        """Do nothing: the connection sees all commits."""

    def close(self) -> None:
        self._connection.close()


class SqliteBackend(base.Backend):
    """Database file."""

    is_embedded = True

    def __init__(self, url: URL) -> None:
        if not url.database or url.database == ":memory:":
            raise errors.SettingError(
                "The database must be a file: sqlite:///PATH (an absolute path starts with four slashes)."
            )
        self.location = url.database
        if not Path(self.location).absolute().parent.is_dir():
            raise DatabaseUnavailable(f"The folder of the database {self.location} does not exist.")
        self.engine = create_engine(
            url,
            connect_args={"timeout": _LOCK_TIMEOUT_SECONDS, "check_same_thread": False},
            hide_parameters=True,  # logged errors must not contain user data
            pool_size=_POOL_SIZE,
            max_overflow=0,
            pool_timeout=_LOCK_TIMEOUT_SECONDS,
        )
        self.path = Path(self.location)
        self._upgrade_marker = Path(f"{self.location}-upgrading")
        self._damage_marker = Path(f"{self.location}-damaged")
        self._opened_identity: tuple[int, int] | None = None
        event.listen(self.engine, "do_connect", self._create_private_file)
        event.listen(self.engine, "connect", _configure_connection)
        event.listen(self.engine, "begin", _begin)
        event.listen(self.engine, "handle_error", _drop_readonly_connection)

    def exists(self) -> bool:
        try:
            return Path(self.location).stat().st_size > 0
        except OSError:
            return False

    def connect_read(self) -> Connection:
        self._require_same_file()
        connection = self.engine.connect()
        connection.begin()
        return connection

    def connect_autocommit(self) -> Connection:
        return self.connect_read()

    def connect_write(self) -> Connection:
        self._require_same_file()
        return self.engine.connect().execution_options(**_WRITE_OPTIONS)

    def configure(self) -> None:
        with self.engine.connect() as connection:
            # Not within a transaction, and only once the file is ours: the mode is part of the file.
            self._enable_wal(_driver_connection(connection))
        self._opened_identity = self._file_identity()

    def _enable_wal(self, driver: sqlite3.Connection) -> None:
        # SQLite itself does not wait here for another process that is about to write.
        deadline = time.monotonic() + _LOCK_TIMEOUT_SECONDS
        while True:
            try:
                driver.execute("PRAGMA journal_mode=WAL").close()
                return
            except sqlite3.OperationalError as error:
                if "locked" not in str(error) or time.monotonic() > deadline:
                    raise DatabaseUnavailable(f"The database {self.location} cannot be used now: {error}.") from error
            time.sleep(_POLL_SECONDS)

    def check_integrity(self, connection: Connection) -> list[str]:
        rows = connection.execute(text("PRAGMA integrity_check"))
        return [f"the database file is damaged: {row[0]}" for row in rows if row[0] != "ok"]

    def quick_check(self) -> Iterator[str | None]:
        for table in metadata.sorted_tables:
            with self.connect_read() as connection:
                messages = connection.execute(text(f"PRAGMA quick_check('{table.name}')")).scalars().all()
            yield None if messages == ["ok"] else f"the database file is damaged: {messages[0]}"

    def find_damage(self) -> str | None:
        # In a separate file, since a damaged database may not be writable.
        try:
            return self._damage_marker.read_text()
        except FileNotFoundError:
            return None
        except (OSError, UnicodeDecodeError) as error:
            if not os.access(self._damage_marker.parent, os.X_OK):
                reason = "the permissions of its folder do not allow it"
                raise DatabaseUnavailable(f"The database {self.location} cannot be used now: {reason}.") from error
            return f"{self._damage_marker} cannot be read: {error}"

    def record_damage(self, reason: str) -> None:
        with open(os.open(self._damage_marker, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600), "w") as file:
            file.write(reason)

    def clear_damage(self) -> None:
        self._damage_marker.unlink(missing_ok=True)

    def has_disk_space(self) -> bool:
        try:
            disk = os.statvfs(Path(self.location).absolute().parent)
        except OSError:
            return True  # reported elsewhere
        return disk.f_bavail * disk.f_frsize >= _MIN_FREE_BYTES

    @contextmanager
    def initial_load(self) -> Iterator[None]:
        """Turn the write-ahead log off if no one else has the file open, so that rows are written once.

        A crash rolls everything back as usual, from the rollback journal.
        """
        self.engine.dispose()
        self._try_journal_mode("TRUNCATE")
        try:
            yield
        finally:
            self._try_journal_mode("WAL")

    def _try_journal_mode(self, mode: str) -> None:
        with self.engine.connect() as connection:
            driver = _driver_connection(connection)
            driver.execute("PRAGMA busy_timeout=0").close()
            # The mode cannot change while others have the file open. The next process to open it sets it.
            with suppress(sqlite3.OperationalError):
                driver.execute(f"PRAGMA journal_mode={mode}").close()
            driver.execute(f"PRAGMA busy_timeout={_LOCK_TIMEOUT_SECONDS * 1000}").close()

    @contextmanager
    def bulk_load(self, connection: Connection) -> Iterator[None]:
        """Create the indexes by name once at the end, sorted. Readers see the state before.

        The index of flagged records is small and stays.
        """
        indexes = [
            index
            for table in (record_table, change_table)
            for index in table.indexes
            if ("name_key" in index.c or "order_key" in index.c) and index.name != "change_flagged"
        ]
        for index in indexes:
            index.drop(connection)
        connection.exec_driver_sql(f"PRAGMA cache_size=-{_BULK_LOAD_CACHE_KB}")
        try:
            yield
            for index in indexes:
                index.create(connection)
        finally:
            connection.exec_driver_sql(f"PRAGMA cache_size=-{_CACHE_KB}")

    @contextmanager
    def begin_upgrade(self) -> Iterator[Connection]:
        with _hold_marker(self._upgrade_marker), self.connect_write() as connection, connection.begin():
            yield connection

    def is_upgrading(self, connection: Connection) -> bool:
        return _is_marker_held(self._upgrade_marker)

    def _create_private_file(self, *_: Any) -> None:
        """Create the file, if missing, readable by its owner only. SQLite reports errors itself."""
        with suppress(OSError):
            os.close(os.open(self.location, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))

    def _file_identity(self) -> tuple[int, int] | None:
        try:
            status = os.stat(self.location)
        except OSError:
            return None
        return status.st_dev, status.st_ino

    def _require_same_file(self) -> None:
        # Writes to a deleted file are lost when it is closed.
        if self._opened_identity is not None and self._opened_identity != self._file_identity():
            raise DatabaseUnavailable(f"The database file {self.location} was removed or replaced while it was in use.")

    def lock_catalogue(self, connection: Connection) -> Position:
        base.require_undamaged(self.find_damage(), self.location)
        # A write transaction begins with the lock.
        *position, schema_version = connection.execute(_SELECT_POSITION_AND_SCHEMA).one()
        base.require_schema_version(schema_version, self.location)
        return Position._make(position)

    def start_watcher(self) -> PositionWatcher:
        return SqlitePositionWatcher(self.engine)

    def translate_error(self, error: DBAPIError) -> StoreError | None:
        reason = str(error.orig)
        if _is_damage_message(reason):
            if _NOT_UTF8_MESSAGE in reason:
                reason = "a text is not valid UTF-8"  # SQLite's message contains the text
            message = f"{self.location} is not an SQLite database, or it is damaged: {reason}."
            is_foreign = _NOT_A_DATABASE_MESSAGE in reason and self._opened_identity is None
            return errors.InvalidDatabase(message) if is_foreign else DatabaseDamaged(message)
        if "full" in reason or ("disk I/O" in reason and not self.has_disk_space()):
            return errors.DiskFull(f"The disk of the database {self.location} is full: {reason}.")
        is_unavailable = any(fragment in reason for fragment in _UNAVAILABLE_MESSAGES)
        if isinstance(error.orig, sqlite3.OperationalError) and is_unavailable:
            return DatabaseUnavailable(f"The database {self.location} cannot be used now: {reason}.")
        return None


def _driver_connection(connection: Connection) -> sqlite3.Connection:
    driver = connection.connection.driver_connection
    assert isinstance(driver, sqlite3.Connection)
    return driver


@contextmanager
def _hold_marker(marker: Path) -> Iterator[None]:
    """Hold a marker file, which counts only while the process lives. Without write access there is none."""
    try:
        file = marker.open("w")
    except OSError:
        yield
        return
    with file:
        fcntl.flock(file, fcntl.LOCK_SH)
        try:
            yield
        finally:
            marker.unlink(missing_ok=True)


def _is_marker_held(marker: Path) -> bool:
    """Return whether a process holds a marker. A file left by a killed process does not count."""
    try:
        with marker.open() as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


_NOT_A_DATABASE_MESSAGE = "not a database"
_NOT_UTF8_MESSAGE = "not decode to UTF-8"


def _is_damage_message(reason: str) -> bool:
    return any(fragment in reason for fragment in ("malformed", _NOT_A_DATABASE_MESSAGE, _NOT_UTF8_MESSAGE))


_UNAVAILABLE_MESSAGES = ("locked", "unable to open", "readonly", "disk I/O")


def _configure_connection(connection: sqlite3.Connection, _record: Any) -> None:
    # The driver would begin transactions implicitly, and too late; `_begin` does it.
    connection.isolation_level = None
    # Deleted content is overwritten where that needs no extra I/O.
    try:
        for pragma in ("synchronous=FULL", "foreign_keys=ON", "secure_delete=FAST", f"cache_size=-{_CACHE_KB}"):
            connection.execute(f"PRAGMA {pragma}").close()
    except UnicodeDecodeError:
        # SQLite quotes the broken schema, and the driver cannot decode it.
        raise sqlite3.DatabaseError("malformed database schema") from None


def _drop_readonly_connection(context: ExceptionContext) -> None:
    # A connection opened while the file was read-only stays read-only, so it is replaced.
    if "readonly" in str(context.original_exception):
        logger.warning("Cannot write the database file: %s.", context.original_exception)
        context.is_disconnect = True


def _begin(connection: Connection) -> None:
    # Writers take the lock at once: a transaction that began as a reader could not wait for another's commit.
    if connection.get_execution_options().items() >= _WRITE_OPTIONS.items():
        connection.exec_driver_sql("BEGIN IMMEDIATE")
    else:
        # Not through SQLAlchemy, which takes ten times as long: this reads nothing and does not fail.
        _driver_connection(connection).execute("BEGIN").close()
