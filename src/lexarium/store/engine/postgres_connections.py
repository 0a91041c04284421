"""Connections to the PostgreSQL servers that an address names."""

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

# Timeline that a server writes on. A promotion begins a new one.
TIMELINE_SQL = "('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::bigint"
_SELECT_TIMELINE = f"SELECT CASE WHEN pg_is_in_recovery() THEN 0 ELSE {TIMELINE_SQL} END"
_REQUIRED_ENCODING = "UTF8"
# Parameters of an address that may have one value per host.
_PER_HOST_KEYS = ("host", "hostaddr", "port")


class _BinaryCursorMixin:
    """Fetch rows in binary: as text, bytes would be twice as long and slow to parse."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.format = psycopg.pq.Format.BINARY


class _Cursor(_BinaryCursorMixin, psycopg.Cursor[Any]):
    pass


class _ServerCursor(_BinaryCursorMixin, psycopg.ServerCursor[Any]):
    pass


class PostgresConnection(psycopg.Connection[Any]):
    """Connection with a timeout for the server's response, and without implicit transactions."""

    timeout: float | None = None
    # Timeline of the server when the connection was made; 0 for a standby.
    timeline = 0

    def wait(self, gen: Any, interval: float = 0.1, timeout: float | None = None) -> Any:
        if timeout is not None or self.timeout is None:
            return super().wait(gen, interval, timeout)
        try:
            return super().wait(gen, interval, self.timeout)
        except psycopg.errors._WaitTimeout:
            # Not cancelled: only the server may decide whether a pending commit succeeds.
            self.pgconn.finish()
            raise psycopg.OperationalError(f"the server did not respond within {self.timeout:g} s") from None

    def abort(self) -> None:
        """Make all threads that wait for this connection fail with an error."""
        with suppress(OSError, psycopg.Error), socket.socket(fileno=os.dup(self.fileno())) as sock:
            sock.shutdown(socket.SHUT_RDWR)


class PostgresConnector:
    """Connect to the primary, or to any standby. Thread-safe.

    Servers that accept writes on an older timeline than one seen before are rejected: another was promoted in their
    place, and writes to them are lost.
    """

    def __init__(self, conninfo: str, timeout: float | None, *, standby: bool) -> None:
        self._timeout = timeout
        self._hosts = [conninfo] if standby else list(_split_hosts(conninfo))
        self._is_standby = standby
        self._newest_timeline = 0
        self._rejected_hosts: set[str] = set()
        self._connections: WeakSet[PostgresConnection] = WeakSet()

    def connect(self) -> PostgresConnection:
        """Connect to the first available server."""
        # The first connection looks at all servers, to find the newest timeline.
        connection = self._connect_any(try_all=self._newest_timeline == 0)
        self._connections.add(connection)
        return connection

    def connect_newest(self) -> PostgresConnection:
        """Connect to the server with the newest timeline."""
        return self._connect_any(try_all=True)

    def abort_all(self) -> None:
        """Make all threads that wait for connections made by `connect` fail with an error."""
        for connection in list(self._connections):
            connection.abort()

    def is_outdated(self, connection: PostgresConnection) -> bool:
        """Return whether another server was promoted since this connection was made."""
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
        connection = PostgresConnection.connect(host, autocommit=True)
        connection.timeout = self._timeout
        connection.cursor_factory, connection.server_cursor_factory = _Cursor, _ServerCursor
        name, encoding = connection.info.dbname, connection.info.parameter_status("server_encoding")
        if encoding != _REQUIRED_ENCODING:
            connection.close()
            raise SettingError(
                f"The database {name} has the encoding {encoding}, which cannot store every text. Create one with"
                f" ENCODING '{_REQUIRED_ENCODING}' TEMPLATE template0."
            )
        if self._is_standby:
            return connection
        (connection.timeline,) = connection.execute(_SELECT_TIMELINE).fetchone() or (0,)
        if 0 < connection.timeline < self._newest_timeline:
            raise psycopg.OperationalError(self._reject_old_primary(connection))
        self._newest_timeline = max(self._newest_timeline, connection.timeline)
        return connection

    def _reject_old_primary(self, connection: PostgresConnection) -> str:
        """Close the connection and return the reason. Logged once per host."""
        host = f"{connection.info.host}:{connection.info.port}"
        message = f"{host} is an old primary; another was promoted. Make it a standby of the new one"
        connection.close()
        if host not in self._rejected_hosts:
            logger.warning("%s.", message)
            self._rejected_hosts.add(host)
        return message


def _split_hosts(conninfo: str) -> Iterator[str]:
    parts: dict[str, Any] = conninfo_to_dict(conninfo)
    values_by_key = {name: str(parts[name]).split(",") for name in _PER_HOST_KEYS if parts.get(name)}
    for index in range(max(map(len, values_by_key.values()), default=1)):
        yield make_conninfo(
            **parts | {name: values[min(index, len(values) - 1)] for name, values in values_by_key.items()}
        )
