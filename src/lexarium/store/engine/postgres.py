"""PostgreSQL 14 or newer, by psycopg: the engine for several nodes."""

import logging
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from itertools import zip_longest
from pathlib import Path
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from sqlalchemy import (
    Connection,
    Engine,
    Executable,
    Update,
    create_engine,
    delete,
    event,
    func,
    literal_column,
    select,
    text,
    update,
)
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.exc import DBAPIError, InvalidatePoolError, OperationalError
from sqlalchemy.pool import NullPool

from lexarium.domain.errors import DatabaseDamaged, DatabaseUnavailable, DiskFull, SettingError, StoreError
from lexarium.store.engine.base import SCHEMA_VERSION_COLUMN, PositionWatcher, require_schema_version, require_undamaged
from lexarium.store.engine.postgres_connections import TIMELINE_SQL, PostgresConnection, PostgresConnector
from lexarium.store.engine.shared_position import SharedPosition
from lexarium.store.position import POSITION_OPTION, SELECT_POSITION, Position, read_position, reconcile_position
from lexarium.store.schema import catalogue_table, change_table, delivery_table, lease_table, record_table

logger = logging.getLogger(__name__)

# Each form of what is told has a channel of its own, so that an older node does not hear what it cannot read.
_CHANNEL = "lexarium_position"
_SEPARATOR = " "
"""What stands between the parts of a position in word of a commit."""
_POSITION_COLUMNS = list(SELECT_POSITION.selected_columns)
_SELECT_POSITION_AND_TIMELINE = SELECT_POSITION.add_columns(literal_column(TIMELINE_SQL))
_BEGIN = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
# Both in one trip. It cannot be prepared: that is done with single statements.
_BEGIN_AND_SELECT_POSITION = f"{_BEGIN}; {SELECT_POSITION}"
_AUTOCOMMIT_OPTION = "lexarium_at_once"
"""The option of a connection whose one statement is a transaction by itself."""
_DIALECT = "postgresql+psycopg://"
_POOL_SIZE = 10
_LOCK_TIMEOUT_SECONDS = 10
"""How long a writer waits for its turn, and anyone for a connection, where nobody says otherwise."""
_PING_AFTER_SECONDS = 1.0
"""A connection that was used within this time is taken for good; to ask each time would cost every read a trip."""
_CONNECT_TIMEOUT_SECONDS = 5
_STANDBY_TIMEOUT_SECONDS = 2
"""How long a standby may take to let a read begin: there is the primary to turn to."""
_CLIENT_MARGIN_SECONDS = 1
"""In seconds: how much longer the client waits than the server does, so that the server can say what is wrong."""
# Any number will do that no other program on the same server uses for a lock of this kind.
_UPGRADE_LOCK_ID = 0x1E7A
_SELECT_UPGRADE_LOCK = text(
    "SELECT count(*) FROM pg_locks JOIN pg_database ON pg_database.oid = pg_locks.database"
    " WHERE datname = current_database() AND locktype = 'advisory' AND (classid, objid, objsubid) = (0, :lock, 1)"
).bindparams(lock=_UPGRADE_LOCK_ID)
_POLL_SECONDS = 0.4
"""A node learns of others' writes at once; after this long it looks by itself, where word cannot come or was lost."""
_RETRY_SECONDS = 0.5
_FAST_FAILURE_SECONDS = 1.0
"""A server that refuses does so sooner; one that takes longer to fail is not there."""
_IDLE_TRANSACTION_TIMEOUT = "60s"
"""How long a process that serves may hold the catalogue's lock without a word."""
# A peer that has vanished is noticed within seconds, by either side, not when the operating system gives up: a node
# that was cut off in the middle of a write must not keep the others from writing.
_KEEPALIVES = {"idle": 5, "interval": 2, "count": 3}
_TCP_USER_TIMEOUT_MS = 10_000
_DAMAGE_LEASE = "damaged"
_SELECT_DAMAGE = select(lease_table.c.holder).where(lease_table.c.name == _DAMAGE_LEASE)
"""The mark of a damaged database is a lease without an end, whose holder is the reason: `copy` leaves leases behind."""
_CHECK_BATCH_SIZE = 1_000
"""How many rows are checked by one statement."""
_PRIMARY_OPTIONS = {"target_session_attrs": "read-write"}
_STANDBY_OPTIONS = {"target_session_attrs": "prefer-standby", "load_balance_hosts": "random"}


class ServerHealth:
    """Whether the server answers at all, as those who watch it tell: while it is silent, only they wait for it."""

    is_unreachable = False


class PostgresPositionWatcher:
    """Listens, in a thread, for word of commits on other nodes; this node's own are told to it."""

    def __init__(
        self, connector: PostgresConnector, health: ServerHealth, location: str, shared_position: SharedPosition | None
    ) -> None:
        self._connector = connector
        self._health = health
        self._location = location
        self._shared_position = shared_position
        self._connection: PostgresConnection | None = None
        self._last_request = 0.0
        """When the server was last asked for anything."""
        self._position: Position | None = None
        self._is_failing = False
        self._closed = threading.Event()
        self._first_attempt = threading.Event()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="lexarium-watch", daemon=True)
        self._thread.start()
        self._first_attempt.wait()

    def get_position(self) -> Position:
        position = self._last_position()
        if position is None:
            raise DatabaseUnavailable(f"The database {self._location} could not be reached yet.")
        return position

    def _last_position(self) -> Position | None:
        return self._position if self._shared_position is None else self._shared_position.read() or self._position

    def advance(self, position: Position) -> None:
        with self._lock:
            if self._position is None or position.supersedes(self._position):
                self._position = position
                if self._shared_position is not None:
                    self._shared_position.advance(position)

    def close(self) -> None:
        self._closed.set()
        if self._connection is not None:
            self._connection.abort()
        self._thread.join()

    def _run(self) -> None:
        """Never ends by an error: a node whose watch has died would serve the past for good."""
        while not self._closed.is_set():
            try:
                self._listen()
            except Exception as error:
                if self._closed.is_set():
                    return
                self._health.is_unreachable = time.monotonic() - self._last_request > _FAST_FAILURE_SECONDS
                if not self._is_failing:
                    logger.warning("The database cannot be watched now, trying again: %s", _format_error(error))
                self._is_failing = True
                self._first_attempt.set()
                self._closed.wait(_RETRY_SECONDS)

    def _listen(self) -> None:
        # A connection of its own: waiting for one of the pool's could take long when readers are many.
        engine = create_engine(_DIALECT, creator=self._connector.connect_newest, poolclass=NullPool)
        self._last_request = time.monotonic()
        with engine.connect() as connection:
            self._connection = driver = _driver_connection(connection)
            try:
                driver.execute(f"LISTEN {_CHANNEL}")
            except psycopg.Error:
                if driver.closed:
                    raise
                # A standby takes no listeners. Looking now and then is all there is to do.
            while not self._closed.is_set():
                last_seen = self._last_position()
                self._last_request = time.monotonic()
                position = read_position(connection)
                self.advance(position)
                self._mark_healthy()
                if last_seen is not None and position.has_lost_writes_of(last_seen):
                    _start_new_epoch(engine, last_seen, self._location)
                for notification in driver.notifies(timeout=_POLL_SECONDS):
                    self.advance(_parse_position(notification.payload))

    def _mark_healthy(self) -> None:
        if self._is_failing:
            logger.info("The database %s is there again.", self._location)
        self._health.is_unreachable = self._is_failing = False
        self._first_attempt.set()


def _start_new_epoch(engine: Engine, last_seen: Position, location: str) -> None:
    """Where a primary has lost what was seen of it, begin a new epoch: nothing that was told before holds.

    A standby may show a commit a little earlier than the primary that waits for it. Until then the catalogue is locked:
    nothing is found here, and the next look tells.
    """
    with engine.begin() as connection:
        _begin(connection)
        if connection.execute(select(func.pg_is_in_recovery())).scalar_one():
            return
        row = connection.execute(_SELECT_POSITION_AND_TIMELINE.with_for_update(skip_locked=True)).one_or_none()
        if row is not None:
            position = _to_position(row)
            reconciled = reconcile_position(position, last_seen, location)
            if reconciled != position:
                connection.execute(_with_notify(update(catalogue_table).values(reconciled._asdict())))


def _with_notify(statement: Update) -> Executable:
    # With the statement itself: a statement of its own would be one more trip, with the lock held.
    return statement.returning(func.pg_notify(_CHANNEL, func.concat_ws(_SEPARATOR, *_POSITION_COLUMNS)))


def _to_position(row: Any) -> Position:
    """The position that a row tells, on the timeline that the server is on: the last write may have been before it."""
    position, timeline = Position._make(row[: len(Position._fields)]), row[len(Position._fields)]
    return position if timeline == position.timeline else position._replace(timeline=timeline, parted=position.writes)


def _driver_connection(connection: Connection) -> PostgresConnection:
    driver_connection = connection.connection.driver_connection
    assert isinstance(driver_connection, PostgresConnection)
    return driver_connection


def _begin(connection: Connection) -> None:
    """Begin a transaction, unless none is wanted, or it is done: whoever reads has its position with the same trip."""
    if connection.get_execution_options().get(_AUTOCOMMIT_OPTION):
        return
    driver_connection = _driver_connection(connection)
    if driver_connection.info.transaction_status == psycopg.pq.TransactionStatus.IDLE:
        connection.exec_driver_sql("BEGIN")


def _begin_read(driver: "psycopg.Connection[Any]") -> Position | None:
    """Begin to read: the position at which; None where this is no catalogue yet, or an older one."""
    try:
        # Several statements in one go can only be told in words.
        cursor = psycopg.Cursor(driver).execute(_BEGIN_AND_SELECT_POSITION, prepare=False)
    except (psycopg.errors.UndefinedTable, psycopg.errors.UndefinedColumn):
        driver.rollback()
        driver.execute(_BEGIN)
        return None
    cursor.nextset()
    return Position._make(cursor.fetchone() or ())


def _parse_position(payload: str) -> Position:
    epoch, *numbers = payload.split(_SEPARATOR)
    return Position(epoch, *map(int, numbers))


def _ping(connection: PostgresConnection) -> None:
    try:
        connection.execute("SELECT")
        connection.rollback()
    except psycopg.Error as error:
        raise InvalidatePoolError(str(error)) from error


def _remember_checkin(_connection: object, connection_record: Any) -> None:
    connection_record.info["used"] = time.monotonic()


def _build_conninfo(conninfo: str, statement_timeout: int | None, *, standby: bool) -> str:
    """The address with what a session is to be like, and which of several hosts; what it says itself goes first."""
    try:
        parts = conninfo_to_dict(conninfo)
    except psycopg.ProgrammingError as error:
        raise SettingError(f"The database address is not one that PostgreSQL knows: {error}") from None
    if "@" in f"{parts.get('host', '')}{parts.get('dbname', '')}":
        # Not the whole of it: it holds a part of the password.
        raise SettingError(
            "The database address has an @ too many. In a password, write @ as %40, / as %2F and : as %3A."
        )
    options = {f"tcp_keepalives_{name}": str(value) for name, value in _KEEPALIVES.items()}
    options["tcp_user_timeout"] = str(_TCP_USER_TIMEOUT_MS)
    options["lock_timeout"] = f"{statement_timeout or _LOCK_TIMEOUT_SECONDS}s"
    options["statement_timeout"] = f"{statement_timeout or 0}s"
    session_options = " ".join(f"-c {name}={value}" for name, value in options.items())
    parameters: dict[str, Any] = {"tcp_user_timeout": _TCP_USER_TIMEOUT_MS}
    parameters["connect_timeout"] = _STANDBY_TIMEOUT_SECONDS if standby else _CONNECT_TIMEOUT_SECONDS
    parameters |= {f"keepalives_{name}": value for name, value in _KEEPALIVES.items()}
    if "," in str(parts.get("host", "")):
        parameters |= _STANDBY_OPTIONS if standby else _PRIMARY_OPTIONS
    return make_conninfo(**parameters | parts | {"options": f"{session_options} {parts.get('options') or ''}".strip()})


def _format_location(parts: Mapping[str, Any]) -> str:
    hosts, ports = (str(parts.get(name) or "").split(",") for name in ("host", "port"))
    servers = [f"{host}:{port}".rstrip(":") for host, port in zip_longest(hosts, ports, fillvalue=ports[-1])]
    return f"{parts.get('dbname', '')} on {','.join(servers) or 'the local server'}"


class PostgresBackend:
    """A PostgreSQL server. libpq reads the address itself, so that it may name several hosts."""

    is_embedded = False

    def __init__(
        self,
        conninfo: str,
        *,
        statement_timeout: int | None = None,
        shared_position: SharedPosition | None = None,
        standby: bool = False,
    ) -> None:
        """`seconds`: how long a statement may take; None, for commands: as long as it takes."""
        full_conninfo = _build_conninfo(conninfo, statement_timeout, standby=standby)
        parts = conninfo_to_dict(full_conninfo)
        self._shared_position = shared_position
        # Should a process that serves be stopped in the midst of a write, the others get their turn.
        extra_columns = (
            []
            if statement_timeout is None
            else [func.set_config("idle_in_transaction_session_timeout", _IDLE_TRANSACTION_TIMEOUT, True)]
        )
        self._lock_statement = _SELECT_POSITION_AND_TIMELINE.add_columns(
            SCHEMA_VERSION_COLUMN, _SELECT_DAMAGE.scalar_subquery(), *extra_columns
        ).with_for_update()
        self._timeout = None if statement_timeout is None else statement_timeout + _CLIENT_MARGIN_SECONDS
        self._first_timeout = _STANDBY_TIMEOUT_SECONDS if standby else self._timeout
        self._connector = PostgresConnector(full_conninfo, self._first_timeout, standby=standby)
        self._health = ServerHealth()
        self.location = _format_location(parts)
        self.path: Path | None = None
        self.engine = create_engine(
            _DIALECT,
            creator=self._connector.connect,
            hide_parameters=True,  # An error that is logged must not tell what people wrote.
            pool_size=_POOL_SIZE,
            max_overflow=0,
            pool_timeout=_STANDBY_TIMEOUT_SECONDS if standby else statement_timeout or _LOCK_TIMEOUT_SECONDS,
            pool_use_lifo=True,  # the last that was used has its statements prepared, and is surely good
        )
        event.listen(self.engine, "begin", _begin)
        event.listen(self.engine, "checkin", _remember_checkin)
        event.listen(self.engine, "checkout", self._check_connection)

    def exists(self) -> bool:
        return True  # a database that is not there cannot be connected to, and is told so

    def connect_read(self) -> Connection:
        self._require_reachable()
        connection = self.engine.connect()
        driver = _driver_connection(connection)
        try:
            read_connection = connection.execution_options(**{POSITION_OPTION: _begin_read(driver)})
            driver.timeout = self._timeout
            return read_connection
        except psycopg.Error as error:
            if driver.closed:
                connection.invalidate(error)
            connection.close()
            raise OperationalError(_BEGIN, None, error) from error

    def _check_connection(self, connection: Any, connection_record: Any, _proxy: object) -> None:
        """Look whether a connection that was idle is still good; the pool makes another where it is not."""
        if self._connector.is_outdated(connection):
            raise InvalidatePoolError("another server was promoted")
        connection.timeout = self._first_timeout
        if time.monotonic() - connection_record.info.get("used", time.monotonic()) >= _PING_AFTER_SECONDS:
            _ping(connection)

    def connect_autocommit(self) -> Connection:
        self._require_reachable()
        return self.engine.connect().execution_options(**{_AUTOCOMMIT_OPTION: True})

    def connect_write(self) -> Connection:
        self._require_reachable()
        return self.engine.connect()

    def _require_reachable(self) -> None:
        if self._health.is_unreachable:
            raise DatabaseUnavailable(f"The database {self.location} does not answer.")

    def configure(self) -> None:
        """Nothing to do: what there is to set up is the operator's."""

    def check_integrity(self, connection: Connection) -> list[str]:
        """PostgreSQL has no such look that is open to everyone."""
        return []

    def quick_check(self) -> Iterator[str | None]:
        """Have the server read every record and change, some at a time: it raises where a page is damaged."""
        for key, value in ((record_table.c.id, record_table.c.body), (change_table.c.seq, change_table.c.document)):
            last = None
            while True:
                query = select(key.label("key"), value.label("value")).order_by(key).limit(_CHECK_BATCH_SIZE)
                batch = (query if last is None else query.where(key > last)).subquery()
                with self.connect_read() as connection:
                    # The digest makes the server read values that are kept outside of their row.
                    last = connection.execute(select(func.max(batch.c.key), func.count(func.md5(batch.c.value)))).one()[
                        0
                    ]
                if last is None:
                    break
                yield None

    def has_disk_space(self) -> bool:
        """Return True: the disk is the server's, and only a write can tell."""
        return True

    def find_damage(self) -> str | None:
        with self.connect_autocommit() as connection:
            reason: str | None = connection.execute(_SELECT_DAMAGE).scalar()
            return reason

    def record_damage(self, reason: str) -> None:
        with self.connect_write() as connection, connection.begin():
            values = {"name": _DAMAGE_LEASE, "holder": reason, "until": 0}
            connection.execute(insert(lease_table).values(values).on_conflict_do_nothing())

    def clear_damage(self) -> None:
        with self.connect_write() as connection, connection.begin():
            connection.execute(delete(lease_table).where(lease_table.c.name == _DAMAGE_LEASE))

    def initial_load(self) -> AbstractContextManager[None]:
        """Nothing to do."""
        return nullcontext()

    @contextmanager
    def bulk_load(self, connection: Connection) -> Iterator[None]:
        """Indexes stay: without one others could not even read until the end.

        How much there is now is told at once: until PostgreSQL counts by itself it would plan as for a few rows.
        """
        yield
        connection.execute(text("ANALYZE record, change, relation"))

    @contextmanager
    def begin_upgrade(self) -> Iterator[Connection]:
        with self.connect_write() as connection, connection.begin():
            # Another node's upgrade may take longer than anything else that is waited for.
            connection.execute(text("SET LOCAL lock_timeout = 0"))
            connection.execute(text("SET LOCAL statement_timeout = 0"))
            connection.execute(text(f"SELECT pg_advisory_xact_lock({_UPGRADE_LOCK_ID})"))
            yield connection

    def lock_out_writers(self, connection: Connection) -> None:
        # They wait for the table, not for its row: so they look at the schema afterwards, and see what became of it.
        connection.execute(text(f"LOCK TABLE {catalogue_table.name} IN EXCLUSIVE MODE"))

    def is_upgrading(self, connection: Connection) -> bool:
        return bool(connection.execute(_SELECT_UPGRADE_LOCK).scalar())

    def lock_catalogue(self, connection: Connection) -> Position:
        row = connection.execute(self._lock_statement).one()
        schema_version, damage = row[len(Position._fields) + 1 :][:2]
        require_schema_version(schema_version, self.location)
        require_undamaged(damage, self.location)
        return _to_position(row)

    def with_notify(self, statement: Update) -> Executable:
        return _with_notify(statement)

    def finish_copy(self, connection: Connection) -> None:
        last = connection.execute(select(func.max(delivery_table.c.id))).scalar()
        if last is not None:
            counter = func.pg_get_serial_sequence(delivery_table.name, delivery_table.c.id.name)
            connection.execute(select(func.setval(counter, last)))
        connection.execute(text("ANALYZE"))

    def start_watcher(self) -> PositionWatcher:
        return PostgresPositionWatcher(self._connector, self._health, self.location, self._shared_position)

    def abort_connections(self) -> None:
        self._connector.abort_all()

    def translate_error(self, error: DBAPIError) -> StoreError | None:
        code = getattr(error.orig, "sqlstate", None) or ""
        if code.startswith(_LIMIT_EXCEEDED_STATE):
            return None
        if code in _CORRUPTED_STATES:
            return DatabaseDamaged(f"The database {self.location} is damaged: {_format_error(error.orig)}")
        if code == _DISK_FULL_STATE:
            return DiskFull(f"The disk of the database {self.location} is full: {_format_error(error.orig)}")
        if code == _PERMISSION_DENIED_STATE:
            advice = "Make the role that it is used by its owner: ALTER DATABASE … OWNER TO … ."
            return StoreError(
                f"The database {self.location} cannot be used: {_format_error(error.orig).partition('  ')[0]}. {advice}"
            )
        if isinstance(error.orig, psycopg.OperationalError | psycopg.InterfaceError) or code.startswith(
            _UNAVAILABLE_STATES
        ):
            return DatabaseUnavailable(f"The database {self.location} cannot be used now: {_format_error(error.orig)}")
        return None


def _format_error(error: BaseException | None) -> str:
    return str(error).strip().replace("\n", " ")


# Connection, resources, operator's intervention, lock not available; what a standby answers to a write; and what is
# said to all that comes after one of these in the same transaction.
_UNAVAILABLE_STATES = ("08", "53", "57", "55P03", "25006", "0A000", "25P02")
_PERMISSION_DENIED_STATE = "42501"
_DISK_FULL_STATE = "53100"
_CORRUPTED_STATES = ("XX001", "XX002")
# A limit of PostgreSQL's own that nothing of ours may come up to. Its driver takes it for trouble that may pass.
_LIMIT_EXCEEDED_STATE = "54"
