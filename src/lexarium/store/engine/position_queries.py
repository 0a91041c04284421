"""Queries for the position of a database."""

import logging

from sqlalchemy import Connection, select

from lexarium.domain.errors import DatabaseUnavailable
from lexarium.store.position import POSITION_OPTION, Position, next_epoch
from lexarium.store.schema import catalogue_table

logger = logging.getLogger(__name__)

SELECT_POSITION = select(*(catalogue_table.c[name] for name in Position._fields))


def read_position(connection: Connection) -> Position:
    """Return the position that a transaction sees."""
    position: Position | None = connection.get_execution_options().get(POSITION_OPTION)
    return Position._make(connection.execute(SELECT_POSITION).one()) if position is None else position


def reconcile_position(current: Position, last_seen: Position | None, location: str) -> Position:
    """Return the position to continue from, in a new epoch if the database has lost writes that were seen.

    `current` is the position of a primary whose catalogue is locked. Raises DatabaseUnavailable if another server
    was promoted in its place.
    """
    if last_seen is None or not current.has_lost_writes_of(last_seen):
        return current
    if current.is_on_older_timeline(last_seen):
        raise DatabaseUnavailable(f"The database {location} is an old primary, in whose place another was promoted.")
    logger.error("The database %s has lost writes that were there; a new epoch begins.", location)
    return current._replace(epoch=next_epoch(last_seen.epoch))
