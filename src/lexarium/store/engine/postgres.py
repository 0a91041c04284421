"""PostgreSQL 14 or newer through psycopg, for several nodes."""

import logging
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import zip_longest
from typing import Any

import psycopg
import sqlalchemy as sa
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from sqlalchemy import Connection, Engine, Executable, Update, create_engine, event, func, select, text
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.exc import DBAPIError, InvalidatePoolError, OperationalError
from sqlalchemy.pool import NullPool

from lexarium.domain.errors import DatabaseDamaged, DatabaseUnavailable, DiskFull, SettingError, StoreError
from lexarium.store.engine import base
from lexarium.store.engine.base import PositionWatcher
from lexarium.store.engine.node_state import NodeState
from lexarium.store.engine.position_queries import SELECT_POSITION, read_position, reconcile_position
from lexarium.store.engine.postgres_connections import TIMELINE_SQL, PostgresConnection, PostgresConnector
from lexarium.store.position import POSITION_OPTION, Position
from lexarium.store.schema import catalogue_table, change_table, delivery_table, lease_table, record_table

logger = logging.getLogger(__name__)

# Nodes of other releases may send another payload: rename the channel when its form changes.
_CHANNEL = "lexarium_position"
_SEPARATOR = " "
_POSITION_COLUMNS = list(SELECT_POSITION.selected_columns)
_SELECT_POSITION_AND_TIMELINE = SELECT_POSITION.add_columns(sa.literal_column(TIMELINE_SQL))
_BEGIN = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
# One round trip. Several statements at once cannot be prepared.
_BEGIN_AND_SELECT_POSITION = f"{_BEGIN}; {SELECT_POSITION}"
# Execution option of a connection whose one statement is its own transaction.
_AUTOCOMMIT_OPTION = "lexarium_at_once"
_DIALECT = "postgresql+psycopg://"
_POOL_SIZE = 10
# Longest wait for the lock and for a connection, unless a statement timeout is set.
_LOCK_TIMEOUT_SECONDS = 10
# A connection used within this time is not checked: that would cost every read a round trip.
_PING_AFTER_SECONDS = 1.0
_CONNECT_TIMEOUT_SECONDS = 5
# Short, since the primary can be read instead.
_STANDBY_TIMEOUT_SECONDS = 2
# The client waits longer than the server, so that the server can report the error.
_CLIENT_MARGIN_SECONDS = 1
# Any number that no other program on the server uses for an advisory lock.
_UPGRADE_LOCK_ID = 0x1E7A
_SELECT_UPGRADE_LOCK = text(
    "SELECT count(*) FROM pg_locks JOIN pg_database ON pg_database.oid = pg_locks.database"
    " WHERE datname = current_database() AND locktype = 'advisory' AND (classid, objid, objsubid) = (0, :lock, 1)"
).bindparams(lock=_UPGRADE_LOCK_ID)
# Position is also polled, since notifications can be lost or, on a standby, impossible.
_POLL_SECONDS = 0.4
_RETRY_SECONDS = 0.5
# A server that refuses does so sooner; one that takes longer is unreachable.
_FAST_FAILURE_SECONDS = 1.0
# Longest time a server process may hold the lock of the catalogue without a statement.
_IDLE_TRANSACTION_TIMEOUT = "60s"
# Vanished peers are noticed by both sides within seconds: a node cut off during a write must not block the others.
_KEEPALIVES = {"idle": 5, "interval": 2, "count": 3}
_TCP_USER_TIMEOUT_MS = 10_000
_DAMAGE_LEASE = "damaged"
# The damage mark is a lease that never expires, with the reason as its holder: `copy` does not copy leases.
_SELECT_DAMAGE = select(lease_table.c.holder).where(lease_table.c.name == _DAMAGE_LEASE)
_CHECK_BATCH_SIZE = 1_000
_PRIMARY_OPTIONS = {"target_session_attrs": "read-write"}
_STANDBY_OPTIONS = {"target_session_attrs": "prefer-standby", "load_balance_hosts": "random"}


class PostgresPositionWatcher:
    """Watch for commits of other nodes with LISTEN, in a thread."""

    def __init__(
        self,
        connector: PostgresConnector,
        unreachable: threading.Event,
        location: str,
        node_state: NodeState,
    ) -> None:
        self._connector = connector
        self._unreachable = unreachable
        self._location = location
        self._node_state = node_state
        self._connection: PostgresConnection | None = None
        self._last_request = 0.0
        self._is_failing = False
        self._closed = threading.Event()
        self._first_attempt = threading.Event()
        self._thread = threading.Thread(target=self._run, name="lexarium-watch", daemon=True)
        self._thread.start()
        self._first_attempt.wait()

    def get_position(self) -> Position:
        position = self._node_state.position
        if position is None:
            raise DatabaseUnavailable(f"The database {self._location} has not been reached yet.")
        return position

    def advance(self, position: Position) -> None:
        last_seen = self._node_state.position
        if last_seen is None or position.supersedes(last_seen):
            self._node_state.advance(position)

    def close(self) -> None:
        self._closed.set()
        if self._connection is not None:
            self._connection.abort()
        self._thread.join()

    def _run(self) -> None:
        """Watch until closed. Errors must not end this: the node would serve old data forever."""
        while not self._closed.is_set():
            try:
                self._listen()
            except Exception as error:
                if self._closed.is_set():
                    return
                if time.monotonic() - self._last_request > _FAST_FAILURE_SECONDS:
                    self._unreachable.set()
                else:
                    self._unreachable.clear()
                if not self._is_failing:
                    logger.warning("Cannot watch the database, retrying: %s", _format_error(error))
                self._is_failing = True
                self._first_attempt.set()
                self._closed.wait(_RETRY_SECONDS)

    def _listen(self) -> None:
        # A separate connection: with many readers, the pool may have none free for long.
        engine = create_engine(_DIALECT, creator=self._connector.connect_newest, poolclass=NullPool)
        self._last_request = time.monotonic()
        with engine.connect() as connection:
            self._connection = driver = _driver_connection(connection)
            try:
                driver.execute(f"LISTEN {_CHANNEL}")
            except psycopg.Error:
                if driver.closed:
                    raise
                # Standbys do not support LISTEN, so polling is all there is.
            while not self._closed.is_set():
                last_seen = self._node_state.position
                self._last_request = time.monotonic()
                position = read_position(connection)
                self.advance(position)
                self._mark_healthy()
                if last_seen is not None and position.has_lost_writes_of(last_seen):
                    _start_new_epoch(engine, last_seen, self._location)
                for notification in driver.notifies(timeout=_POLL_SECONDS):
                    epoch, *numbers = notification.payload.split(_SEPARATOR)
                    self.advance(Position(epoch, *map(int, numbers)))

    def _mark_healthy(self) -> None:
        if self._is_failing:
            logger.info("Database %s is available again.", self._location)
        self._is_failing = False
        self._unreachable.clear()
        self._first_attempt.set()


def _start_new_epoch(engine: Engine, last_seen: Position, location: str) -> None:
    """Begin a new epoch if the primary has lost writes that were seen.

    A standby may show a commit before the primary that waits for it does. The catalogue is locked until then: nothing
    is selected here, and the next poll decides.
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
                connection.execute(_with_notify(sa.update(catalogue_table).values(reconciled._asdict())))


def _with_notify(statement: Update) -> Executable:
    # In the same statement: a separate one would be another round trip with the lock held.
    return statement.returning(func.pg_notify(_CHANNEL, func.concat_ws(_SEPARATOR, *_POSITION_COLUMNS)))


def _to_position(row: Any) -> Position:
    """Return the position in a row, on the server's current timeline, which may be newer than the last write."""
    position, timeline = Position._make(row[: len(Position._fields)]), row[len(Position._fields)]
    return position if timeline == position.timeline else position._replace(timeline=timeline, parted=position.writes)


def _driver_connection(connection: Connection) -> PostgresConnection:
    driver_connection = connection.connection.driver_connection
    assert isinstance(driver_connection, PostgresConnection)
    return driver_connection


def _begin(connection: Connection) -> None:
    """Begin a transaction, unless in autocommit mode or already begun by `_begin_read`."""
    if connection.get_execution_options().get(_AUTOCOMMIT_OPTION):
        return
    if _driver_connection(connection).info.transaction_status == psycopg.pq.TransactionStatus.IDLE:
        connection.exec_driver_sql("BEGIN")


def _begin_read(driver: "psycopg.Connection[Any]") -> Position | None:
    """Begin a read transaction; return its position, or None if the tables are missing or of an older schema."""
    try:
        # Only the simple query protocol takes several statements at once.
        cursor = psycopg.Cursor(driver).execute(_BEGIN_AND_SELECT_POSITION, prepare=False)
    except (psycopg.errors.UndefinedTable, psycopg.errors.UndefinedColumn):
        driver.rollback()
        driver.execute(_BEGIN)
        return None
    cursor.nextset()
    return Position._make(cursor.fetchone() or ())


def _remember_checkin(_connection: object, connection_record: Any) -> None:
    connection_record.info["used"] = time.monotonic()


def _build_conninfo(conninfo: str, statement_timeout: int | None, *, standby: bool) -> str:
    """Return the address with session options and the choice of host. Its own parameters take precedence."""
    try:
        parts = conninfo_to_dict(conninfo)
    except psycopg.ProgrammingError as error:
        raise SettingError(f"Invalid PostgreSQL URL: {error}") from None
    if "@" in f"{parts.get('host', '')}{parts.get('dbname', '')}":
        # Without the address: it holds a part of the password.
        raise SettingError(
            "The database URL contains an unescaped @. In a password, write @ as %40, / as %2F and : as %3A."
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


class PostgresBackend(base.Backend):
    """PostgreSQL server. libpq parses the address, so that it may name several hosts."""

    is_embedded = False

    def __init__(
        self,
        conninfo: str,
        node_state: NodeState,
        *,
        statement_timeout: int | None,
        standby: bool = False,
    ) -> None:
        """Create a backend. Without a statement timeout, as in commands, statements may take any time."""
        full_conninfo = _build_conninfo(conninfo, statement_timeout, standby=standby)
        parts = conninfo_to_dict(full_conninfo)
        self._node_state = node_state
        # If a server process is suspended during a write, the others can go on.
        columns = [base.SCHEMA_VERSION_COLUMN, _SELECT_DAMAGE.scalar_subquery()]
        if statement_timeout is not None:
            columns.append(func.set_config("idle_in_transaction_session_timeout", _IDLE_TRANSACTION_TIMEOUT, True))
        self._lock_statement = _SELECT_POSITION_AND_TIMELINE.add_columns(*columns).with_for_update()
        self._timeout = None if statement_timeout is None else statement_timeout + _CLIENT_MARGIN_SECONDS
        self._first_timeout = _STANDBY_TIMEOUT_SECONDS if standby else self._timeout
        self._connector = PostgresConnector(full_conninfo, self._first_timeout, standby=standby)
        # Set by the watcher. Meanwhile, only the watcher waits for the server.
        self._unreachable = threading.Event()
        self.location = _format_location(parts)
        self.engine = create_engine(
            _DIALECT,
            creator=self._connector.connect,
            hide_parameters=True,  # logged errors must not contain user data
            pool_size=_POOL_SIZE,
            max_overflow=0,
            pool_timeout=_STANDBY_TIMEOUT_SECONDS if standby else statement_timeout or _LOCK_TIMEOUT_SECONDS,
            pool_use_lifo=True,  # the last used has its statements prepared, and is surely alive
        )
        event.listen(self.engine, "begin", _begin)
        event.listen(self.engine, "checkin", _remember_checkin)
        event.listen(self.engine, "checkout", self._check_connection)

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
        """Check an idle connection. On InvalidatePoolError the pool creates another."""
        if self._connector.is_outdated(connection):
            raise InvalidatePoolError("another server was promoted")
        connection.timeout = self._first_timeout
        if time.monotonic() - connection_record.info.get("used", time.monotonic()) >= _PING_AFTER_SECONDS:
            try:
                connection.execute("SELECT")
                connection.rollback()
            except psycopg.Error as error:
                raise InvalidatePoolError(str(error)) from error

    def connect_autocommit(self) -> Connection:
        self._require_reachable()
        return self.engine.connect().execution_options(**{_AUTOCOMMIT_OPTION: True})

    def connect_write(self) -> Connection:
        self._require_reachable()
        return self.engine.connect()

    def _require_reachable(self) -> None:
        if self._unreachable.is_set():
            raise DatabaseUnavailable(f"The database {self.location} does not respond.")

    def quick_check(self) -> Iterator[str | None]:
        """Read all records and changes in batches: the server raises if a page is damaged."""
        for key, value in ((record_table.c.id, record_table.c.body), (change_table.c.seq, change_table.c.document)):
            last = None
            while True:
                query = select(key.label("key"), value.label("value")).order_by(key).limit(_CHECK_BATCH_SIZE)
                batch = (query if last is None else query.where(key > last)).subquery()
                with self.connect_read() as connection:
                    # The digest makes the server read values that are stored out of line.
                    columns = func.max(batch.c.key), func.count(func.md5(batch.c.value))
                    last = connection.execute(select(*columns)).one()[0]
                if last is None:
                    break
                yield None

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
            connection.execute(sa.delete(lease_table).where(lease_table.c.name == _DAMAGE_LEASE))

    @contextmanager
    def bulk_load(self, connection: Connection) -> Iterator[None]:
        """Keep the indexes, since other readers need them, and update the statistics.

        Until autovacuum does that, queries would be planned for a small table.
        """
        yield
        connection.execute(text("ANALYZE record, change, relation"))

    @contextmanager
    def begin_upgrade(self) -> Iterator[Connection]:
        with self.connect_write() as connection, connection.begin():
            # An upgrade by another node may take longer than the usual timeouts.
            connection.execute(text("SET LOCAL lock_timeout = 0"))
            connection.execute(text("SET LOCAL statement_timeout = 0"))
            connection.execute(text(f"SELECT pg_advisory_xact_lock({_UPGRADE_LOCK_ID})"))
            yield connection

    def lock_out_writers(self, connection: Connection) -> None:
        # Writers wait for the table, not its row, so that they read the schema version afterwards.
        connection.execute(text(f"LOCK TABLE {catalogue_table.name} IN EXCLUSIVE MODE"))

    def is_upgrading(self, connection: Connection) -> bool:
        return bool(connection.execute(_SELECT_UPGRADE_LOCK).scalar())

    def lock_catalogue(self, connection: Connection) -> Position:
        row = connection.execute(self._lock_statement).one()
        schema_version, damage = row[len(Position._fields) + 1 :][:2]
        base.require_schema_version(schema_version, self.location)
        base.require_undamaged(damage, self.location)
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
        return PostgresPositionWatcher(self._connector, self._unreachable, self.location, self._node_state)

    def abort_connections(self) -> None:
        self._connector.abort_all()

    def translate_error(self, error: DBAPIError) -> StoreError | None:
        code = getattr(error.orig, "sqlstate", None) or ""
        reason = _format_error(error.orig)
        if code.startswith(_LIMIT_EXCEEDED_STATE):
            return None
        if code in _CORRUPTED_STATES:
            return DatabaseDamaged(f"The database {self.location} is damaged: {reason}")
        if code == _DISK_FULL_STATE:
            return DiskFull(f"The disk of the database {self.location} is full: {reason}")
        if code == _PERMISSION_DENIED_STATE:
            advice = "Make the role that uses it its owner: ALTER DATABASE … OWNER TO … ."
            return StoreError(f"The database {self.location} cannot be used: {reason.partition('  ')[0]}. {advice}")
        is_connection_error = isinstance(error.orig, psycopg.OperationalError | psycopg.InterfaceError)
        if is_connection_error or code.startswith(_UNAVAILABLE_STATES):
            return DatabaseUnavailable(f"The database {self.location} cannot be used now: {reason}")
        return None


def _format_error(error: BaseException | None) -> str:
    return str(error).strip().replace("\n", " ")


# Connection, resources, operator intervention, lock not available; a write on a standby; and statements after one of
# these in the same transaction.
_UNAVAILABLE_STATES = ("08", "53", "57", "55P03", "25006", "0A000", "25P02")
_PERMISSION_DENIED_STATE = "42501"
_DISK_FULL_STATE = "53100"
_CORRUPTED_STATES = ("XX001", "XX002")
# PostgreSQL's own limits, which nothing of ours should reach. psycopg treats them as operational errors.
_LIMIT_EXCEEDED_STATE = "54"
