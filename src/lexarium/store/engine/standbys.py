"""Reads from hot standbys, which may lag behind the primary."""

import logging
import threading
from contextlib import suppress

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from lexarium.domain.errors import DatabaseUnavailable
from lexarium.store.engine.base import Backend
from lexarium.store.engine.position_queries import read_position
from lexarium.store.position import Position

logger = logging.getLogger(__name__)

# Time between attempts to reach standbys that failed.
_RETRY_SECONDS = 2.0
_FAILURES = (DBAPIError, PoolTimeout, DatabaseUnavailable)


class StandbyPool:
    """Provide read transactions on standbys that have all writes this node has seen. Thread-safe.

    Standbys that fail are suspended until a thread finds them available again, so that no reader waits for them.
    """

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._suspended = threading.Event()
        self._closed = threading.Event()
        self._suspend_lock = threading.Lock()
        self._is_other_catalogue = False

    def connect_read(self, min_position: Position | None) -> Connection | None:
        """Return a connection in a read transaction that includes a position, or None if no standby can."""
        if self._suspended.is_set() or self._closed.is_set():
            return None
        try:
            return self._try_connect(min_position)
        except _FAILURES as error:
            self._suspend(error)
            return None

    def _try_connect(self, min_position: Position | None) -> Connection | None:
        connection = self._backend.connect_read()
        try:
            if min_position is None or self._includes(min_position, read_position(connection)):
                return connection
        except BaseException:
            connection.close()
            raise
        connection.close()
        return None

    def _includes(self, min_position: Position, position: Position) -> bool:
        is_other = not position.is_same_database(min_position)
        if is_other and not self._is_other_catalogue:
            logger.warning(
                "Database %s (LEXARIUM_DATABASE_READ) has another catalogue than LEXARIUM_DATABASE and is not"
                " used. Set it to a standby.",
                self._backend.location,
            )
        self._is_other_catalogue = is_other
        return position.includes(min_position)

    def _suspend(self, error: Exception) -> None:
        with self._suspend_lock:
            if self._suspended.is_set():
                return  # by another thread
            self._suspended.set()
        reason = self._backend.translate_error(error) or error.orig if isinstance(error, DBAPIError) else error
        logger.warning("Cannot read from standbys: %s", reason)
        threading.Thread(target=self._wait_for_recovery, name="lexarium-standbys", daemon=True).start()

    def _wait_for_recovery(self) -> None:
        while not self._closed.wait(_RETRY_SECONDS):
            with suppress(*_FAILURES):
                with self._backend.connect_read() as connection:
                    read_position(connection)
                self._suspended.clear()
                return

    def stop(self) -> None:
        """Stop using standbys, and abort running reads: an unreachable standby could block for long."""
        self._closed.set()
        self._backend.abort_connections()

    def close(self) -> None:
        """Close all connections."""
        self.stop()
        self._backend.engine.dispose()
