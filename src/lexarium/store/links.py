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

log = logging.getLogger(__name__)

TIMELINE = "('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::bigint"
"""The timeline that a server writes on: a promotion begins a new one."""
_TIMELINE = f"SELECT CASE WHEN pg_is_in_recovery() THEN 0 ELSE {TIMELINE} END"
_ENCODING = "UTF8"
_BY_HOST = ("host", "hostaddr", "port")
"""The parts of an address that may name several, one for each host."""


class _Binary:
    """A cursor whose rows come as the server keeps them: spelt out, bytes would be twice as long, and slow to read."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.format = psycopg.pq.Format.BINARY


class _Cursor(_Binary, psycopg.Cursor[Any]):
    pass


class _ServerCursor(_Binary, psycopg.ServerCursor[Any]):
    pass


class Link(psycopg.Connection[Any]):
    """A connection that is given up where its server does not answer in time. It begins no transaction by itself."""

    patience: float | None = None
    timeline = 0
    """That which its server wrote on when it was made; 0 for a standby."""

    def wait(self, gen: Any, interval: float = 0.1, timeout: float | None = None) -> Any:
        if timeout is not None or self.patience is None:
            return super().wait(gen, interval, timeout)
        try:
            return super().wait(gen, interval, self.patience)
        except psycopg.errors._WaitTimeout:
            # Not cancelled: whether a commit that hangs comes to be is the server's to decide, and must stay so.
            self.pgconn.finish()
            raise psycopg.OperationalError(f"the server did not answer within {self.patience:g} s") from None

    def hang_up(self) -> None:
        """Let whoever waits for it, in whatever thread, wait no longer: they get an error."""
        with suppress(OSError, psycopg.Error), socket.socket(fileno=os.dup(self.fileno())) as line:
            line.shutdown(socket.SHUT_RDWR)


class Links:
    """Makes connections to a primary, or to any standby. For any thread.

    Of servers that take writes, one is passed by that is on an older timeline than one seen before: another was
    promoted in its place, and whatever is written to it is lost.
    """

    def __init__(self, address: str, patience: float | None, *, standby: bool) -> None:
        self._patience = patience
        self._hosts = [address] if standby else list(_each_host(address))
        self._standby = standby
        self._newest = 0
        self._passed_by: set[str] = set()
        self._made: WeakSet[Link] = WeakSet()

    def new(self) -> Link:
        """A connection to the first server that is there."""
        # The first time, and when the watch begins anew, every server is looked at: then it is known which is meant.
        link = self._connected(all_of_them=self._newest == 0)
        self._made.add(link)
        return link

    def for_watch(self) -> Link:
        """A connection to the newest of all."""
        return self._connected(all_of_them=True)

    def hang_up(self) -> None:
        """Let nobody wait any longer for an answer to what was asked by `new` connections."""
        for link in list(self._made):
            link.hang_up()

    def outdated(self, link: Link) -> bool:
        """Whether another server has been promoted since this connection was made."""
        return not self._standby and link.timeline < self._newest

    def _connected(self, *, all_of_them: bool) -> Link:
        found: list[Link] = []
        failures = []
        for host in self._hosts:
            try:
                found.append(self._opened(host))
            except psycopg.Error as error:
                failures.append(str(error).strip())
            if found and not all_of_them:
                break
        if not found:
            raise psycopg.OperationalError("; ".join(failures))
        newest = max(found, key=lambda link: link.timeline)
        for link in found:
            if link.timeline < newest.timeline:
                self._pass_by(link)
            elif link is not newest:
                link.close()  # the same server by another name
        return newest

    def _opened(self, host: str) -> Link:
        """A connection to this one, unless it is older than what was seen."""
        link = Link.connect(host, autocommit=True)
        link.patience = self._patience
        link.cursor_factory, link.server_cursor_factory = _Cursor, _ServerCursor
        name, encoding = link.info.dbname, link.info.parameter_status("server_encoding")
        if encoding != _ENCODING:
            link.close()
            raise SettingError(
                f"The database {name} is in {encoding}, which has no room for every text: "
                f"make one with ENCODING '{_ENCODING}' TEMPLATE template0."
            )
        if self._standby:
            return link
        link.timeline = _timeline(link)
        if 0 < link.timeline < self._newest:
            raise psycopg.OperationalError(self._pass_by(link))
        self._newest = max(self._newest, link.timeline)
        return link

    def _pass_by(self, link: Link) -> str:
        """Leave a server alone: why. The log is told once."""
        place = f"{link.info.host}:{link.info.port}"
        why = f"{place} is an old primary, in whose place another was promoted. Make it a standby of that one"
        link.close()
        if place not in self._passed_by:
            log.warning("%s.", why)
            self._passed_by.add(place)
        return why


def _timeline(link: Link) -> int:
    (timeline,) = link.execute(_TIMELINE).fetchone() or (0,)
    return int(timeline)


def _each_host(address: str) -> Iterator[str]:
    """The address of each server that an address names."""
    parts: dict[str, Any] = conninfo_to_dict(address)
    several = {name: str(parts[name]).split(",") for name in _BY_HOST if parts.get(name)}
    for place in range(max(map(len, several.values()), default=1)):
        yield make_conninfo(**parts | {name: each[min(place, len(each) - 1)] for name, each in several.items()})
