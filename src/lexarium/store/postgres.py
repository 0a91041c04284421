"""PostgreSQL 14 or newer, by psycopg: the engine for several nodes."""

import logging
import threading
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict
from sqlalchemy import Connection, Engine, create_engine, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool

from lexarium.domain.errors import SettingError, StoreError, Unavailable
from lexarium.store.backend import Position, Watch, read_position

log = logging.getLogger(__name__)

_CHANNEL = "lexarium"
_DIALECT = "postgresql+psycopg://"
_CONNECTIONS = 10
_WAIT_SECONDS = 10
"""How long a writer waits for its turn, and anyone for a connection, before giving up."""
# Any number will do that no other program on the same server uses for a lock of this kind.
_SCHEMA_LOCK = 0x1E7A
_POLL_SECONDS = 1.0
"""A node learns of others' writes at once; after this long it looks by itself, should word have been lost."""


class PostgresWatch:
    """Listens, in a thread, for word of commits on other nodes; this node's own are told to it."""

    def __init__(self, address: str, engine: Engine) -> None:
        self._address = address
        self._engine = engine
        self._closed = threading.Event()
        self._lock = threading.Lock()
        with engine.connect() as connection:
            self._position = read_position(connection)
        self._thread = threading.Thread(target=self._follow, name="lexarium-watch", daemon=True)
        self._thread.start()

    def current(self) -> Position:
        return self._position

    def advance(self, position: Position) -> None:
        with self._lock:
            if position.epoch != self._position.epoch or position > self._position:
                self._position = position

    def close(self) -> None:
        self._closed.set()
        self._thread.join()

    def _follow(self) -> None:
        """Never ends by an error: a node whose watch has died would serve the past for good."""
        while not self._closed.is_set():
            try:
                self._listen()
            except Exception as error:
                log.warning("The database cannot be watched now, trying again: %s", str(error).strip())
                self._closed.wait(_POLL_SECONDS)

    def _listen(self) -> None:
        # A connection of its own: waiting for one of the pool's could take long when readers are many.
        engine = create_engine(_DIALECT, creator=partial(_connect, self._address), poolclass=NullPool)
        with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            driver = connection.connection.driver_connection
            assert isinstance(driver, psycopg.Connection)
            driver.execute(f"LISTEN {_CHANNEL}")
            while not self._closed.is_set():
                self.advance(read_position(connection))
                for _ in driver.notifies(timeout=_POLL_SECONDS, stop_after=1):
                    pass


def _connect(address: str) -> psycopg.Connection[Any]:
    # A server that has vanished is noticed within seconds, not when the operating system gives up.
    return psycopg.connect(
        address,
        connect_timeout=5,
        keepalives_idle=5,
        keepalives_interval=2,
        keepalives_count=3,
        tcp_user_timeout=10_000,
    )


class PostgresBackend:
    """A PostgreSQL server. libpq reads the address itself, so that it may name several hosts."""

    embedded = False

    def __init__(self, address: str) -> None:
        try:
            parts = conninfo_to_dict(address)
        except psycopg.ProgrammingError as error:
            raise SettingError(f"The database address is not one that PostgreSQL knows: {error}") from None
        self._address = address
        self.place = f"{parts.get('dbname', '')} on {parts.get('host', 'the local server')}"
        self.file: Path | None = None
        self.engine = create_engine(
            _DIALECT,
            creator=partial(_connect, address),
            pool_pre_ping=True,
            pool_size=_CONNECTIONS,
            max_overflow=0,
            pool_timeout=_WAIT_SECONDS,
        )

    def exists(self) -> bool:
        return True  # a database that is not there cannot be connected to, and is told so

    def reading(self) -> Connection:
        return self.engine.connect().execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)

    def writing(self) -> Connection:
        return self.engine.connect()

    def settle(self) -> None:
        """Nothing to do: what there is to set up is the operator's."""

    def damage(self, connection: Connection) -> list[str]:
        """PostgreSQL has no such look that is open to everyone."""
        return []

    def loading(self, connection: Connection) -> AbstractContextManager[None]:
        """Nothing to do: without an index others could not even read until the end."""
        return nullcontext()

    def lock_schema(self, connection: Connection) -> None:
        connection.execute(text(f"SELECT pg_advisory_xact_lock({_SCHEMA_LOCK})"))

    def lock(self, connection: Connection) -> None:
        connection.execute(text(f"SET LOCAL lock_timeout = '{_WAIT_SECONDS}s'"))
        connection.execute(text("SELECT revision FROM catalogue FOR UPDATE"))

    def announce(self, connection: Connection) -> None:
        connection.execute(text(f"NOTIFY {_CHANNEL}"))

    def watch(self) -> Watch:
        return PostgresWatch(self._address, self.engine)

    def explain(self, error: DBAPIError) -> StoreError | None:
        code = getattr(error.orig, "sqlstate", None) or ""
        if code.startswith(_TOO_LARGE):
            return None
        if isinstance(error.orig, psycopg.OperationalError | psycopg.InterfaceError) or code.startswith(_UNAVAILABLE):
            reason = str(error.orig).strip().replace("\n", " ")
            return Unavailable(f"The database {self.place} cannot be used now: {reason}")
        return None


# Connection, resources, operator's intervention, lock not available; and what a standby answers to a write.
_UNAVAILABLE = ("08", "53", "57", "55P03", "25006", "0A000")
# A limit of PostgreSQL's own that nothing of ours may come up to. Its driver takes it for trouble that may pass.
_TOO_LARGE = "54"
