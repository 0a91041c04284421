"""SQLite in WAL mode: the embedded engine."""

import fcntl
import logging
import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, Executable, Update, create_engine, event, text
from sqlalchemy.dialects.sqlite.base import SQLiteDialect
from sqlalchemy.engine import ExceptionContext
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from lexarium.domain.errors import Damaged, NoRoom, NotACatalogue, SettingError, StoreError, Unavailable
from lexarium.store.backend import POSITION, SCHEMA, Position, Watch, refuse_damaged, refuse_upgraded
from lexarium.store.schema import change, metadata, record

log = logging.getLogger(__name__)

_WRITE = {"lexarium_write": True}
"""Execution options of a connection whose transaction begins as a writer's."""

_WAIT_SECONDS = 10
"""How long a writer waits for its turn, and anyone for a connection, before giving up."""

_LOCKED = POSITION.add_columns(SCHEMA)
_LOOK_SECONDS = 0.02

_POSITION = str(POSITION.compile(dialect=SQLiteDialect()))

_CACHE_KB = 4_000
_LOADING_CACHE_KB = 64_000

_LEAST_ROOM = 1 << 20
"""In bytes: a disk with less than this left counts as full."""

_CONNECTIONS = 64
"""More than there are threads to use them."""


def address_of(file: Path) -> str:
    """The address of a database file, whatever signs are in its path."""
    return URL.create("sqlite", database=str(file)).render_as_string()


class SqliteWatch:
    """Asks SQLite's own counter of commits, on a connection that does nothing else: microseconds a call."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._position = Position("", -1, -1, -1)
        self._connect()

    def _connect(self) -> None:
        self._connection = self._engine.connect()
        driver = self._connection.connection.driver_connection
        assert isinstance(driver, sqlite3.Connection)
        self._execute = driver.execute
        self._commits = -1

    def current(self) -> Position:
        try:
            commits = self._execute("PRAGMA data_version").fetchone()[0]
            if commits != self._commits:
                # Not through SQLAlchemy: this one statement is a transaction of its own, and is run after every commit.
                self._position = Position._make(self._execute(_POSITION).fetchone())
                self._commits = commits
        except sqlite3.Error as error:
            damaged = _is_damage(str(error))
            if damaged or self._connection.closed:
                self._reconnect()
            if damaged:
                raise Damaged(f"The database is damaged: {error}.") from error
            raise Unavailable(f"The database cannot be read now: {error}.") from error
        return self._position

    def _reconnect(self) -> None:
        """Drop the connection: it keeps the damaged page in its cache, also when the file is whole again."""
        if not self._connection.closed:
            self._connection.invalidate()
            self._connection.close()
        with suppress(SQLAlchemyError):  # The next call tries again.
            self._connect()

    def advance(self, position: Position) -> None:
        """Nothing to hear: this connection sees commits of every other."""

    def close(self) -> None:
        self._connection.close()


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
        self._upgrading = Path(f"{self.place}-upgrading")
        self._damaged = Path(f"{self.place}-damaged")
        self._opened: tuple[int, int] | None = None
        event.listen(self.engine, "do_connect", self._make_closed)
        event.listen(self.engine, "connect", _set_up)
        event.listen(self.engine, "begin", _begin)
        event.listen(self.engine, "handle_error", _note_readonly)

    def exists(self) -> bool:
        try:
            return Path(self.place).stat().st_size > 0
        except OSError:
            return False

    def reading(self) -> Connection:
        self._refuse_if_gone()
        connection = self.engine.connect()
        connection.begin()
        return connection

    def glancing(self) -> Connection:
        return self.reading()

    def writing(self) -> Connection:
        self._refuse_if_gone()
        return self.engine.connect().execution_options(**_WRITE)

    def settle(self) -> None:
        with self.engine.connect() as connection:
            # It cannot be changed within a transaction, and it stays in the file: not before the file is ours.
            driver = connection.connection.driver_connection
            assert isinstance(driver, sqlite3.Connection)
            self._keep_log(driver)
        self._opened = self._identity()

    def _keep_log(self, driver: sqlite3.Connection) -> None:
        """Turn the write-ahead log on. Where another process is about to write, SQLite does not wait by itself."""
        deadline = time.monotonic() + _WAIT_SECONDS
        while True:
            try:
                driver.execute("PRAGMA journal_mode=WAL").close()
                return
            except sqlite3.OperationalError as error:
                if "locked" not in str(error) or time.monotonic() > deadline:
                    raise Unavailable(f"The database {self.place} cannot be used now: {error}.") from error
            time.sleep(_LOOK_SECONDS)

    def damage(self, connection: Connection) -> list[str]:
        rows = connection.execute(text("PRAGMA integrity_check"))
        return [f"the database file is damaged: {row[0]}" for row in rows if row[0] != "ok"]

    def quick_check(self) -> Iterator[str | None]:
        for table in metadata.sorted_tables:
            with self.reading() as connection:
                found = connection.execute(text(f"PRAGMA quick_check('{table.name}')")).scalars().all()
            yield None if found == ["ok"] else f"the database file is damaged: {found[0]}"

    def find_damage(self) -> str | None:
        # In a file of its own: a damaged database may not be writable.
        try:
            return self._damaged.read_text()
        except FileNotFoundError:
            return None
        except (OSError, UnicodeDecodeError) as error:
            return f"{self._damaged} cannot be read: {error}"

    def record_damage(self, reason: str) -> None:
        with open(os.open(self._damaged, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600), "w") as file:
            file.write(reason)

    def clear_damage(self) -> None:
        self._damaged.unlink(missing_ok=True)

    def has_room(self) -> bool:
        try:
            disk = os.statvfs(Path(self.place).absolute().parent)
        except OSError:
            return True  # That it cannot be reached is told elsewhere.
        return disk.f_bavail * disk.f_frsize >= _LEAST_ROOM

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

    @contextmanager
    def upgrading(self) -> Iterator[Connection]:
        with _shown(self._upgrading), self.writing() as connection, connection.begin():
            yield connection

    def keep_writers_out(self, connection: Connection) -> None:
        """Nothing to do: there is one writer at a time."""

    def is_upgraded(self, connection: Connection) -> bool:
        return _is_shown(self._upgrading)

    def _make_closed(self, *_: Any) -> None:
        """Make the file, where there is none, such that only its owner can read it; SQLite makes those beside it alike.

        Where it cannot be made, SQLite says so.
        """
        with suppress(OSError):
            os.close(os.open(self.place, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))

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
        refuse_damaged(self.find_damage(), self.place)
        *position, schema = connection.execute(_LOCKED).one()  # a writing transaction begins with the lock
        refuse_upgraded(schema, self.place)
        return Position._make(position)

    def announced(self, move: Update) -> Executable:
        return move  # SQLite counts commits for every reader

    def go_on(self, connection: Connection) -> None:
        """Nothing to do: SQLite counts on from the largest number."""

    def watch(self) -> Watch:
        return SqliteWatch(self.engine)

    def hang_up(self) -> None:
        """Nothing to do: a file answers."""

    def explain(self, error: DBAPIError) -> StoreError | None:
        reason = str(error.orig)
        if _is_damage(reason):
            if _NOT_TEXT in reason:
                reason = "a text is not UTF-8"  # SQLite's own words hold the text
            told = f"{self.place} is not an SQLite database, or it is damaged: {reason}."
            return NotACatalogue(told) if _NO_DATABASE in reason and self._opened is None else Damaged(told)
        if "full" in reason or ("disk I/O" in reason and not self.has_room()):
            return NoRoom(f"The disk of the database {self.place} is full: {reason}.")
        if isinstance(error.orig, sqlite3.OperationalError) and any(sign in reason for sign in _UNAVAILABLE):
            return Unavailable(f"The database {self.place} cannot be used now: {reason}.")
        return None


@contextmanager
def _shown(sign: Path) -> Iterator[None]:
    """Show a sign, which vanishes with the process. Where it cannot be written, there is none."""
    try:
        file = sign.open("w")
    except OSError:
        yield
        return
    with file:
        fcntl.flock(file, fcntl.LOCK_SH)
        try:
            yield
        finally:
            sign.unlink(missing_ok=True)


def _is_shown(sign: Path) -> bool:
    """Whether a process shows a sign. A file that a process has left which was killed is none."""
    try:
        with sign.open() as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


_NO_DATABASE = "not a database"
_NOT_TEXT = "not decode to UTF-8"


def _is_damage(reason: str) -> bool:
    """Whether SQLite's words for an error tell of a damaged file."""
    return any(sign in reason for sign in ("malformed", _NO_DATABASE, _NOT_TEXT))


_UNAVAILABLE = ("locked", "unable to open", "readonly", "disk I/O")


def _set_up(connection: sqlite3.Connection, _record: Any) -> None:
    # The driver would begin transactions by itself, and too late; `_begin` does.
    connection.isolation_level = None
    # What is erased is overwritten, where that costs no reading and no writing of its own.
    try:
        for pragma in ("synchronous=FULL", "foreign_keys=ON", "secure_delete=FAST", f"cache_size=-{_CACHE_KB}"):
            connection.execute(f"PRAGMA {pragma}").close()
    except UnicodeDecodeError:
        # SQLite names what it cannot read of the schema, and the driver cannot spell a name that is no text.
        raise sqlite3.DatabaseError("malformed database schema") from None


def _note_readonly(context: ExceptionContext) -> None:
    # A connection that was opened while the file could not be written stays so; new ones can be had once it can be.
    if "readonly" in str(context.original_exception):
        log.warning("The database file cannot be written: %s.", context.original_exception)
        context.is_disconnect = True


def _begin(connection: Connection) -> None:
    # A writer takes the lock at once: one that began by reading could not wait for another's commit.
    writes = connection.get_execution_options().items() >= _WRITE.items()
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")
