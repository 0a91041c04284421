"""Hot standbys: servers that have what the primary has, perhaps a little later, and can be read from."""

import logging
import time

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from lexarium.domain.errors import Unavailable
from lexarium.store.backend import Backend, Position, read_position

log = logging.getLogger(__name__)

_AWAY_SECONDS = 2.0
"""For how long standbys that could not be read are left alone."""


class Standbys:
    """Gives transactions on a standby, where one has all that a node has seen. For any thread."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._away_until = 0.0

    def opened(self, floor: Position | None) -> Connection | None:
        """A connection, in a transaction that sees one state with all that was written up to a position.

        None where no standby can give that now.
        """
        if time.monotonic() < self._away_until:
            return None
        try:
            return self._tried(floor)
        except (DBAPIError, PoolTimeout, Unavailable) as error:
            self._away_until = time.monotonic() + _AWAY_SECONDS
            told = self._backend.explain(error) if isinstance(error, DBAPIError) else None
            log.warning("The standbys cannot be read now: %s", told or error)
            return None

    def _tried(self, floor: Position | None) -> Connection | None:
        connection = self._backend.reading()
        try:
            if floor is None or read_position(connection).holds_all_of(floor):
                return connection
        except BaseException:
            connection.close()
            raise
        connection.close()
        return None

    def close(self) -> None:
        """Let go of every connection."""
        self._backend.engine.dispose()
