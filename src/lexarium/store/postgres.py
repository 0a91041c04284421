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

from lexarium.domain.errors import Damaged, NoRoom, SettingError, StoreError, Unavailable
from lexarium.store.backend import (
    AT,
    POSITION,
    SCHEMA,
    Position,
    Watch,
    going_on,
    read_position,
    refuse_damaged,
    refuse_upgraded,
)
from lexarium.store.links import TIMELINE, Link, Links
from lexarium.store.mark import Mark
from lexarium.store.schema import catalogue, change, delivery, lease, record

log = logging.getLogger(__name__)

# Each form of what is told has a channel of its own, so that an older node does not hear what it cannot read.
_CHANNEL = "lexarium_position"
_BETWEEN = " "
"""What stands between the parts of a position in word of a commit."""
_POSITION = list(POSITION.selected_columns)
_POSITION_NOW = POSITION.add_columns(literal_column(TIMELINE))
_BEGIN = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
# Both in one trip. It cannot be prepared: that is done with single statements.
_BEGIN_AND_TELL = f"{_BEGIN}; {POSITION}"
_AT_ONCE = "lexarium_at_once"
"""The option of a connection whose one statement is a transaction by itself."""
_DIALECT = "postgresql+psycopg://"
_CONNECTIONS = 10
_WAIT_SECONDS = 10
"""How long a writer waits for its turn, and anyone for a connection, where nobody says otherwise."""
_TRUSTED_SECONDS = 1.0
"""A connection that was used within this time is taken for good; to ask each time would cost every read a trip."""
_CONNECT_SECONDS = 5
_STANDBY_SECONDS = 2
"""How long a standby may take to let a read begin: there is the primary to turn to."""
_MORE_PATIENCE = 1
"""In seconds: how much longer the client waits than the server does, so that the server can say what is wrong."""
# Any number will do that no other program on the same server uses for a lock of this kind.
_SCHEMA_LOCK = 0x1E7A
_SCHEMA_LOCKED = text(
    "SELECT count(*) FROM pg_locks JOIN pg_database ON pg_database.oid = pg_locks.database"
    " WHERE datname = current_database() AND locktype = 'advisory' AND (classid, objid, objsubid) = (0, :lock, 1)"
).bindparams(lock=_SCHEMA_LOCK)
_POLL_SECONDS = 0.4
"""A node learns of others' writes at once; after this long it looks by itself, where word cannot come or was lost."""
_TROUBLE_SECONDS = 0.5
_AT_ONCE_SECONDS = 1.0
"""A server that refuses does so sooner; one that takes longer to fail is not there."""
_HELD = "60s"
"""How long a process that serves may hold the catalogue's lock without a word."""
# A peer that has vanished is noticed within seconds, by either side, not when the operating system gives up: a node
# that was cut off in the middle of a write must not keep the others from writing.
_KEEPALIVES = {"idle": 5, "interval": 2, "count": 3}
_UNACKNOWLEDGED_MS = 10_000
_DAMAGED = "damaged"
_DAMAGE = select(lease.c.holder).where(lease.c.name == _DAMAGED)
"""The mark of a damaged database is a lease without an end, whose holder is the reason: `copy` leaves leases behind."""
_CHECKED = 1_000
"""How many rows are checked by one statement."""
_THE_PRIMARY = {"target_session_attrs": "read-write"}
_ANY_STANDBY = {"target_session_attrs": "prefer-standby", "load_balance_hosts": "random"}


class Reach:
    """Whether the server answers at all, as those who watch it tell: while it is silent, only they wait for it."""

    silent = False


class PostgresWatch:
    """Listens, in a thread, for word of commits on other nodes; this node's own are told to it."""

    def __init__(self, links: Links, reach: Reach, place: str, mark: Mark | None) -> None:
        self._links = links
        self._reach = reach
        self._place = place
        self._mark = mark
        self._link: Link | None = None
        self._asked = 0.0
        """When the server was last asked for anything."""
        self._position: Position | None = None
        self._troubled = False
        self._closed = threading.Event()
        self._tried = threading.Event()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._follow, name="lexarium-watch", daemon=True)
        self._thread.start()
        self._tried.wait()

    def current(self) -> Position:
        position = self._seen()
        if position is None:
            raise Unavailable(f"The database {self._place} could not be reached yet.")
        return position

    def _seen(self) -> Position | None:
        return self._position if self._mark is None else self._mark.read() or self._position

    def advance(self, position: Position) -> None:
        with self._lock:
            if self._position is None or position.follows(self._position):
                self._position = position
                if self._mark is not None:
                    self._mark.advance(position)

    def close(self) -> None:
        self._closed.set()
        if self._link is not None:
            self._link.hang_up()
        self._thread.join()

    def _follow(self) -> None:
        """Never ends by an error: a node whose watch has died would serve the past for good."""
        while not self._closed.is_set():
            try:
                self._listen()
            except Exception as error:
                if self._closed.is_set():
                    return
                self._reach.silent = time.monotonic() - self._asked > _AT_ONCE_SECONDS
                if not self._troubled:
                    log.warning("The database cannot be watched now, trying again: %s", _reason(error))
                self._troubled = True
                self._tried.set()
                self._closed.wait(_TROUBLE_SECONDS)

    def _listen(self) -> None:
        # A connection of its own: waiting for one of the pool's could take long when readers are many.
        engine = create_engine(_DIALECT, creator=self._links.for_watch, poolclass=NullPool)
        self._asked = time.monotonic()
        with engine.connect() as connection:
            self._link = driver = _link_of(connection)
            try:
                driver.execute(f"LISTEN {_CHANNEL}")
            except psycopg.Error:
                if driver.closed:
                    raise
                # A standby takes no listeners. Looking now and then is all there is to do.
            while not self._closed.is_set():
                seen = self._seen()
                self._asked = time.monotonic()
                found = read_position(connection)
                self.advance(found)
                self._be_well()
                if seen is not None and found.lacks_some_of(seen):
                    _mourn(engine, seen, self._place)
                for heard in driver.notifies(timeout=_POLL_SECONDS):
                    self.advance(_position_of(heard.payload))

    def _be_well(self) -> None:
        if self._troubled:
            log.info("The database %s is there again.", self._place)
        self._reach.silent = self._troubled = False
        self._tried.set()


def _mourn(engine: Engine, seen: Position, place: str) -> None:
    """Where a primary has lost what was seen of it, begin a new epoch: nothing that was told before holds.

    A standby may show a commit a little earlier than the primary that waits for it. Until then the catalogue is locked:
    nothing is found here, and the next look tells.
    """
    with engine.begin() as connection:
        _begin(connection)
        if connection.execute(select(func.pg_is_in_recovery())).scalar_one():
            return
        found = connection.execute(_POSITION_NOW.with_for_update(skip_locked=True)).one_or_none()
        if found is not None:
            then = _now(found)
            after = going_on(then, seen, place)
            if after != then:
                connection.execute(_announced(update(catalogue).values(after._asdict())))


def _announced(move: Update) -> Executable:
    # With the statement itself: a statement of its own would be one more trip, with the lock held.
    return move.returning(func.pg_notify(_CHANNEL, func.concat_ws(_BETWEEN, *_POSITION)))


def _now(row: Any) -> Position:
    """The position that a row tells, on the timeline that the server is on: the last write may have been before it."""
    found, timeline = Position._make(row[: len(Position._fields)]), row[len(Position._fields)]
    return found if timeline == found.timeline else found._replace(timeline=timeline, parted=found.writes)


def _link_of(connection: Connection) -> Link:
    link = connection.connection.driver_connection
    assert isinstance(link, Link)
    return link


def _begin(connection: Connection) -> None:
    """Begin a transaction, unless none is wanted, or it is done: whoever reads has its position with the same trip."""
    if connection.get_execution_options().get(_AT_ONCE):
        return
    link = _link_of(connection)
    if link.info.transaction_status == psycopg.pq.TransactionStatus.IDLE:
        connection.exec_driver_sql("BEGIN")


def _begun(driver: "psycopg.Connection[Any]") -> Position | None:
    """Begin to read: the position at which; None where this is no catalogue yet, or an older one."""
    try:
        # Several statements in one go can only be told in words.
        found = psycopg.Cursor(driver).execute(_BEGIN_AND_TELL, prepare=False)
    except (psycopg.errors.UndefinedTable, psycopg.errors.UndefinedColumn):
        driver.rollback()
        driver.execute(_BEGIN)
        return None
    found.nextset()
    return Position._make(found.fetchone() or ())


def _position_of(told: str) -> Position:
    epoch, *numbers = told.split(_BETWEEN)
    return Position(epoch, *map(int, numbers))


def _refuse_if_dead(link: Link) -> None:
    try:
        link.execute("SELECT")
        link.rollback()
    except psycopg.Error as error:
        raise InvalidatePoolError(str(error)) from error


def _note_use(_link: object, record: Any) -> None:
    record.info["used"] = time.monotonic()


def _complete(address: str, seconds: int | None, *, standby: bool) -> str:
    """The address with what a session is to be like, and which of several hosts; what it says itself goes first."""
    try:
        parts = conninfo_to_dict(address)
    except psycopg.ProgrammingError as error:
        raise SettingError(f"The database address is not one that PostgreSQL knows: {error}") from None
    if "@" in f"{parts.get('host', '')}{parts.get('dbname', '')}":
        # Not the whole of it: it holds a part of the password.
        raise SettingError(
            "The database address has an @ too many. In a password, write @ as %40, / as %2F and : as %3A."
        )
    options = {f"tcp_keepalives_{name}": str(value) for name, value in _KEEPALIVES.items()}
    options["tcp_user_timeout"] = str(_UNACKNOWLEDGED_MS)
    options["lock_timeout"] = f"{seconds or _WAIT_SECONDS}s"
    options["statement_timeout"] = f"{seconds or 0}s"
    told = " ".join(f"-c {name}={value}" for name, value in options.items())
    own: dict[str, Any] = {"tcp_user_timeout": _UNACKNOWLEDGED_MS}
    own["connect_timeout"] = _STANDBY_SECONDS if standby else _CONNECT_SECONDS
    own |= {f"keepalives_{name}": value for name, value in _KEEPALIVES.items()}
    if "," in str(parts.get("host", "")):
        own |= _ANY_STANDBY if standby else _THE_PRIMARY
    return make_conninfo(**own | parts | {"options": f"{told} {parts.get('options') or ''}".strip()})


def _place(parts: Mapping[str, Any]) -> str:
    hosts, ports = (str(parts.get(name) or "").split(",") for name in ("host", "port"))
    servers = [f"{host}:{port}".rstrip(":") for host, port in zip_longest(hosts, ports, fillvalue=ports[-1])]
    return f"{parts.get('dbname', '')} on {','.join(servers) or 'the local server'}"


class PostgresBackend:
    """A PostgreSQL server. libpq reads the address itself, so that it may name several hosts."""

    embedded = False

    def __init__(
        self, address: str, *, seconds: int | None = None, mark: Mark | None = None, standby: bool = False
    ) -> None:
        """`seconds`: how long a statement may take; None, for commands: as long as it takes."""
        complete = _complete(address, seconds, standby=standby)
        parts = conninfo_to_dict(complete)
        self._mark = mark
        # Should a process that serves be stopped in the midst of a write, the others get their turn.
        held = [] if seconds is None else [func.set_config("idle_in_transaction_session_timeout", _HELD, True)]
        self._lock = _POSITION_NOW.add_columns(SCHEMA, _DAMAGE.scalar_subquery(), *held).with_for_update()
        self._patience = None if seconds is None else seconds + _MORE_PATIENCE
        self._patience_at_first = _STANDBY_SECONDS if standby else self._patience
        self._links = Links(complete, self._patience_at_first, standby=standby)
        self._reach = Reach()
        self.place = _place(parts)
        self.file: Path | None = None
        self.engine = create_engine(
            _DIALECT,
            creator=self._links.new,
            hide_parameters=True,  # An error that is logged must not tell what people wrote.
            pool_size=_CONNECTIONS,
            max_overflow=0,
            pool_timeout=_STANDBY_SECONDS if standby else seconds or _WAIT_SECONDS,
            pool_use_lifo=True,  # the last that was used has its statements prepared, and is surely good
        )
        event.listen(self.engine, "begin", _begin)
        event.listen(self.engine, "checkin", _note_use)
        event.listen(self.engine, "checkout", self._refuse_if_bad)

    def exists(self) -> bool:
        return True  # a database that is not there cannot be connected to, and is told so

    def reading(self) -> Connection:
        self._refuse_if_silent()
        connection = self.engine.connect()
        driver = _link_of(connection)
        try:
            begun = connection.execution_options(**{AT: _begun(driver)})
            driver.patience = self._patience
            return begun
        except psycopg.Error as error:
            if driver.closed:
                connection.invalidate(error)
            connection.close()
            raise OperationalError(_BEGIN, None, error) from error

    def _refuse_if_bad(self, link: Any, record: Any, _proxy: object) -> None:
        """Look whether a connection that was idle is still good; the pool makes another where it is not."""
        if self._links.outdated(link):
            raise InvalidatePoolError("another server was promoted")
        link.patience = self._patience_at_first
        if time.monotonic() - record.info.get("used", time.monotonic()) >= _TRUSTED_SECONDS:
            _refuse_if_dead(link)

    def glancing(self) -> Connection:
        self._refuse_if_silent()
        return self.engine.connect().execution_options(**{_AT_ONCE: True})

    def writing(self) -> Connection:
        self._refuse_if_silent()
        return self.engine.connect()

    def _refuse_if_silent(self) -> None:
        if self._reach.silent:
            raise Unavailable(f"The database {self.place} does not answer.")

    def settle(self) -> None:
        """Nothing to do: what there is to set up is the operator's."""

    def damage(self, connection: Connection) -> list[str]:
        """PostgreSQL has no such look that is open to everyone."""
        return []

    def quick_check(self) -> Iterator[str | None]:
        """Have the server read every record and change, some at a time: it raises where a page is damaged."""
        for key, value in ((record.c.id, record.c.body), (change.c.seq, change.c.document)):
            last = None
            while True:
                some = select(key.label("key"), value.label("value")).order_by(key).limit(_CHECKED)
                part = (some if last is None else some.where(key > last)).subquery()
                with self.reading() as connection:
                    # The digest makes the server read values that are kept outside of their row.
                    last = connection.execute(select(func.max(part.c.key), func.count(func.md5(part.c.value)))).one()[0]
                if last is None:
                    break
                yield None

    def has_room(self) -> bool:
        """Return True: the disk is the server's, and only a write can tell."""
        return True

    def find_damage(self) -> str | None:
        with self.glancing() as connection:
            reason: str | None = connection.execute(_DAMAGE).scalar()
            return reason

    def record_damage(self, reason: str) -> None:
        with self.writing() as connection, connection.begin():
            values = {"name": _DAMAGED, "holder": reason, "until": 0}
            connection.execute(insert(lease).values(values).on_conflict_do_nothing())

    def clear_damage(self) -> None:
        with self.writing() as connection, connection.begin():
            connection.execute(delete(lease).where(lease.c.name == _DAMAGED))

    def alone(self) -> AbstractContextManager[None]:
        """Nothing to do."""
        return nullcontext()

    @contextmanager
    def loading(self, connection: Connection) -> Iterator[None]:
        """Indexes stay: without one others could not even read until the end.

        How much there is now is told at once: until PostgreSQL counts by itself it would plan as for a few rows.
        """
        yield
        connection.execute(text("ANALYZE record, change, relation"))

    @contextmanager
    def upgrading(self) -> Iterator[Connection]:
        with self.writing() as connection, connection.begin():
            # Another node's upgrade may take longer than anything else that is waited for.
            connection.execute(text("SET LOCAL lock_timeout = 0"))
            connection.execute(text("SET LOCAL statement_timeout = 0"))
            connection.execute(text(f"SELECT pg_advisory_xact_lock({_SCHEMA_LOCK})"))
            yield connection

    def keep_writers_out(self, connection: Connection) -> None:
        # They wait for the table, not for its row: so they look at the schema afterwards, and see what became of it.
        connection.execute(text(f"LOCK TABLE {catalogue.name} IN EXCLUSIVE MODE"))

    def is_upgraded(self, connection: Connection) -> bool:
        return bool(connection.execute(_SCHEMA_LOCKED).scalar())

    def lock(self, connection: Connection) -> Position:
        found = connection.execute(self._lock).one()
        schema, damage = found[len(Position._fields) + 1 :][:2]
        refuse_upgraded(schema, self.place)
        refuse_damaged(damage, self.place)
        return _now(found)

    def announced(self, move: Update) -> Executable:
        return _announced(move)

    def go_on(self, connection: Connection) -> None:
        last = connection.execute(select(func.max(delivery.c.id))).scalar()
        if last is not None:
            counter = func.pg_get_serial_sequence(delivery.name, delivery.c.id.name)
            connection.execute(select(func.setval(counter, last)))
        connection.execute(text("ANALYZE"))

    def watch(self) -> Watch:
        return PostgresWatch(self._links, self._reach, self.place, self._mark)

    def hang_up(self) -> None:
        self._links.hang_up()

    def explain(self, error: DBAPIError) -> StoreError | None:
        code = getattr(error.orig, "sqlstate", None) or ""
        if code.startswith(_TOO_LARGE):
            return None
        if code in _CORRUPTED:
            return Damaged(f"The database {self.place} is damaged: {_reason(error.orig)}")
        if code == _DISK_FULL:
            return NoRoom(f"The disk of the database {self.place} is full: {_reason(error.orig)}")
        if code == _NOT_ALLOWED:
            owner = "Make the role that it is used by its owner: ALTER DATABASE … OWNER TO … ."
            return StoreError(
                f"The database {self.place} cannot be used: {_reason(error.orig).partition('  ')[0]}. {owner}"
            )
        if isinstance(error.orig, psycopg.OperationalError | psycopg.InterfaceError) or code.startswith(_UNAVAILABLE):
            return Unavailable(f"The database {self.place} cannot be used now: {_reason(error.orig)}")
        return None


def _reason(error: BaseException | None) -> str:
    return str(error).strip().replace("\n", " ")


# Connection, resources, operator's intervention, lock not available; what a standby answers to a write; and what is
# said to all that comes after one of these in the same transaction.
_UNAVAILABLE = ("08", "53", "57", "55P03", "25006", "0A000", "25P02")
_NOT_ALLOWED = "42501"
_DISK_FULL = "53100"
_CORRUPTED = ("XX001", "XX002")
# A limit of PostgreSQL's own that nothing of ours may come up to. Its driver takes it for trouble that may pass.
_TOO_LARGE = "54"
