"""PostgreSQL 14 or newer, by psycopg: the engine for several nodes."""

import logging
import threading

import psycopg
from psycopg.conninfo import conninfo_to_dict
from sqlalchemy import Connection, Engine, create_engine, text
from sqlalchemy.exc import DBAPIError

from lexarium.domain.errors import SettingError, StoreError, Unavailable
from lexarium.store.backend import Position, Watch, read_position

log = logging.getLogger(__name__)

_CHANNEL = "lexarium"
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
            if position.epoch != self._position.epoch or position.revision > self._position.revision:
                self._position = position

    def close(self) -> None:
        self._closed.set()
        self._thread.join()

    def _follow(self) -> None:
        while not self._closed.is_set():
            try:
                with psycopg.connect(self._address, autocommit=True) as listener:
                    listener.execute(f"LISTEN {_CHANNEL}")
                    while not self._closed.is_set():
                        with self._engine.connect() as connection:
                            self.advance(read_position(connection))
                        for _ in listener.notifies(timeout=_POLL_SECONDS, stop_after=1):
                            pass
            except (psycopg.OperationalError, DBAPIError) as error:
                log.warning("The database cannot be watched now, trying again: %s", str(error).strip())
                self._closed.wait(_POLL_SECONDS)


class PostgresBackend:
    """A PostgreSQL server. libpq reads the address itself, so that it may name several hosts."""

    def __init__(self, address: str) -> None:
        try:
            parts = conninfo_to_dict(address)
        except psycopg.ProgrammingError as error:
            raise SettingError(f"The database address is not one that PostgreSQL knows: {error}") from None
        self._address = address
        self.place = f"{parts.get('dbname', '')} on {parts.get('host', 'the local server')}"
        self.engine = create_engine(
            "postgresql+psycopg://",
            creator=lambda: psycopg.connect(address, connect_timeout=10),
            pool_pre_ping=True,
        )

    def reading(self) -> Connection:
        return self.engine.connect().execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)

    def writing(self) -> Connection:
        return self.engine.connect()

    def lock(self, connection: Connection) -> None:
        connection.execute(text("SELECT revision FROM catalogue FOR UPDATE"))

    def announce(self, connection: Connection) -> None:
        connection.execute(text(f"NOTIFY {_CHANNEL}"))

    def watch(self) -> Watch:
        return PostgresWatch(self._address, self.engine)

    def explain(self, error: DBAPIError) -> StoreError | None:
        if isinstance(error.orig, psycopg.OperationalError):
            reason = str(error.orig).strip().replace("\n", " ")
            return Unavailable(f"The database {self.place} cannot be used now: {reason}")
        return None
