"""Hot standbys: servers that have what the primary has, perhaps a little later, and can be read from."""

import logging
import threading
from contextlib import suppress

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from lexarium.domain.errors import Unavailable
from lexarium.store.backend import Backend, Position, read_position

log = logging.getLogger(__name__)

_LOOK_SECONDS = 2.0
"""How long standbys that could not be read are left alone before they are looked for."""
_FAILURES = (DBAPIError, PoolTimeout, Unavailable)


class Standbys:
    """Gives transactions on a standby, where one has all that a node has seen. For any thread.

    Standbys that failed once are set aside until a thread of its own finds them well: nobody else waits for them.
    """

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._aside = threading.Event()
        self._closed = threading.Event()
        self._setting_aside = threading.Lock()
        self._other = False
        """Whether what was read there last was another catalogue."""

    def opened(self, floor: Position | None) -> Connection | None:
        """A connection, in a transaction that sees one state with all that was written up to a position.

        None where no standby can give that now.
        """
        if self._aside.is_set() or self._closed.is_set():
            return None
        try:
            return self._tried(floor)
        except _FAILURES as error:
            self._set_aside(error)
            return None

    def _tried(self, floor: Position | None) -> Connection | None:
        connection = self._backend.reading()
        try:
            if floor is None or self._has_all_of(floor, read_position(connection)):
                return connection
        except BaseException:
            connection.close()
            raise
        connection.close()
        return None

    def _has_all_of(self, floor: Position, found: Position) -> bool:
        other = not found.is_of_the_same_database_as(floor)
        if other and not self._other:
            log.warning(
                "The database %s, which LEXARIUM_DATABASE_READ names, holds another catalogue than LEXARIUM_DATABASE. "
                "Nothing is read there: name a standby.",
                self._backend.place,
            )
        self._other = other
        return found.holds_all_of(floor)

    def _set_aside(self, error: Exception) -> None:
        with self._setting_aside:
            if self._aside.is_set():
                return  # by another that failed at the same time
            self._aside.set()
        told = self._backend.explain(error) or error.orig if isinstance(error, DBAPIError) else error
        log.warning("The standbys cannot be read now: %s", told)
        threading.Thread(target=self._look_for_them, name="lexarium-standbys", daemon=True).start()

    def _look_for_them(self) -> None:
        while not self._closed.wait(_LOOK_SECONDS):
            with suppress(*_FAILURES):
                with self._backend.reading() as connection:
                    read_position(connection)
                self._aside.clear()
                return

    def leave(self) -> None:
        """Read there no more, also what is being read now: one that is silent could be waited for for long."""
        self._closed.set()
        self._backend.hang_up()

    def close(self) -> None:
        """Let go of every connection."""
        self.leave()
        self._backend.engine.dispose()
