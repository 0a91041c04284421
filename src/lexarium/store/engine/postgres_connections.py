"""Connections to PostgreSQL: which of the servers that an address names, and how long one is waited for."""

import logging
import os
import socket
from collections.abc import Iterator
from contextlib import suppress
from typing import Any
from weakref import WeakSet

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from lexarium.domain.errors import SettingError

logger = logging.getLogger(__name__)

TIMELINE_SQL = "('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::bigint"
"""The timeline that a server writes on: a promotion begins a new one."""
_SELECT_TIMELINE = f"SELECT CASE WHEN pg_is_in_recovery() THEN 0 ELSE {TIMELINE_SQL} END"
_REQUIRED_ENCODING = "UTF8"
_PER_HOST_KEYS = ("host", "hostaddr", "port")
"""The parts of an address that may name several, one for each host."""


class _BinaryCursorMixin:
    """A cursor whose rows come as the server keeps them: spelt out, bytes would be twice as long, and slow to read."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.format = psycopg.pq.Format.BINARY


class _Cursor(_BinaryCursorMixin, psycopg.Cursor[Any]):
    pass


class _ServerCursor(_BinaryCursorMixin, psycopg.ServerCursor[Any]):
    pass


class PostgresConnection(psycopg.Connection[Any]):
    """A connection that is given up where its server does not answer in time. It begins no transaction by itself."""

    timeout: float | None = None
    timeline = 0
    """That which its server wrote on when it was made; 0 for a standby."""

    def wait(self, gen: Any, interval: float = 0.1, timeout: float | None = None) -> Any:
        if timeout is not None or self.timeout is None:
            return super().wait(gen, interval, timeout)
        try:
            return super().wait(gen, interval, self.timeout)
        except psycopg.errors._WaitTimeout:
            # Not cancelled: whether a commit that hangs comes to be is the server's to decide, and must stay so.
            self.pgconn.finish()
            raise psycopg.OperationalError(f"the server did not answer within {self.timeout:g} s") from None

    def abort(self) -> None:
        """Let whoever waits for it, in whatever thread, wait no longer: they get an error."""
        with suppress(OSError, psycopg.Error), socket.socket(fileno=os.dup(self.fileno())) as sock:
            sock.shutdown(socket.SHUT_RDWR)


class PostgresConnector:
    """Makes connections to a primary, or to any standby. For any thread.

    Of servers that take writes, one is passed by that is on an older timeline than one seen before: another was
    promoted in its place, and whatever is written to it is lost.
    """

    def __init__(self, conninfo: str, timeout: float | None, *, standby: bool) -> None:
        self._timeout = timeout
        self._hosts = [conninfo] if standby else list(_split_hosts(conninfo))
        self._is_standby = standby
        self._newest_timeline = 0
        self._rejected_hosts: set[str] = set()
        self._connections: WeakSet[PostgresConnection] = WeakSet()

    def connect(self) -> PostgresConnection:
        """A connection to the first server that is there."""
        # The first time, and when the watch begins anew, every server is looked at: then it is known which is meant.
        connection = self._connect_any(try_all=self._newest_timeline == 0)
        self._connections.add(connection)
        return connection

    def connect_newest(self) -> PostgresConnection:
        """A connection to the newest of all."""
        return self._connect_any(try_all=True)

    def abort_all(self) -> None:
        """Let nobody wait any longer for an answer to what was asked by `new` connections."""
        for connection in list(self._connections):
            connection.abort()

    def is_outdated(self, connection: PostgresConnection) -> bool:
        """Whether another server has been promoted since this connection was made."""
        return not self._is_standby and connection.timeline < self._newest_timeline

    def _connect_any(self, *, try_all: bool) -> PostgresConnection:
        connections: list[PostgresConnection] = []
        failures = []
        for host in self._hosts:
            try:
                connections.append(self._open(host))
            except psycopg.Error as error:
                failures.append(str(error).strip())
            if connections and not try_all:
                break
        if not connections:
            raise psycopg.OperationalError("; ".join(failures))
        newest = max(connections, key=lambda connection: connection.timeline)
        for connection in connections:
            if connection.timeline < newest.timeline:
                self._reject_old_primary(connection)
            elif connection is not newest:
                connection.close()  # the same server by another name
        return newest

    def _open(self, host: str) -> PostgresConnection:
        """A connection to this one, unless it is older than what was seen."""
        connection = PostgresConnection.connect(host, autocommit=True)
        connection.timeout = self._timeout
        connection.cursor_factory, connection.server_cursor_factory = _Cursor, _ServerCursor
        name, encoding = connection.info.dbname, connection.info.parameter_status("server_encoding")
        if encoding != _REQUIRED_ENCODING:
            connection.close()
            raise SettingError(
                f"The database {name} is in {encoding}, which has no room for every text: "
                f"make one with ENCODING '{_REQUIRED_ENCODING}' TEMPLATE template0."
            )
        if self._is_standby:
            return connection
        connection.timeline = _read_timeline(connection)
        if 0 < connection.timeline < self._newest_timeline:
            raise psycopg.OperationalError(self._reject_old_primary(connection))
        self._newest_timeline = max(self._newest_timeline, connection.timeline)
        return connection

    def _reject_old_primary(self, connection: PostgresConnection) -> str:
        """Leave a server alone: why. The log is told once."""
        host = f"{connection.info.host}:{connection.info.port}"
        message = f"{host} is an old primary, in whose place another was promoted. Make it a standby of that one"
        connection.close()
        if host not in self._rejected_hosts:
            logger.warning("%s.", message)
            self._rejected_hosts.add(host)
        return message


def _read_timeline(connection: PostgresConnection) -> int:
    (timeline,) = connection.execute(_SELECT_TIMELINE).fetchone() or (0,)
    return int(timeline)


def _split_hosts(conninfo: str) -> Iterator[str]:
    """The address of each server that an address names."""
    parts: dict[str, Any] = conninfo_to_dict(conninfo)
    values_by_key = {name: str(parts[name]).split(",") for name in _PER_HOST_KEYS if parts.get(name)}
    for index in range(max(map(len, values_by_key.values()), default=1)):
        yield make_conninfo(
            **parts | {name: values[min(index, len(values) - 1)] for name, values in values_by_key.items()}
        )
