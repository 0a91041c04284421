"""Queries for the position of a database."""

import logging

from sqlalchemy import Connection, select

from lexarium.domain.cache_tags import CATALOGUE_TAG
from lexarium.domain.errors import DatabaseUnavailable
from lexarium.store.dependencies import add_cache_tags
from lexarium.store.position import POSITION_OPTION, Position, next_epoch
from lexarium.store.schema import catalogue_table

logger = logging.getLogger(__name__)

SELECT_POSITION = select(*(catalogue_table.c[name] for name in Position._fields))


def read_position(connection: Connection) -> Position:
    """Return the position that a transaction sees."""
    add_cache_tags([CATALOGUE_TAG])  # The position may be known without a statement.
    position: Position | None = connection.get_execution_options().get(POSITION_OPTION)
    return Position._make(connection.execute(SELECT_POSITION).one()) if position is None else position


def remember_position(connection: Connection, position: Position) -> None:
    """Let `read_position` return the position that a read transaction sees without another query."""
    connection.execution_options(**{POSITION_OPTION: position})


def reconcile_position(current: Position, last_seen: Position | None, location: str) -> Position:
    """Return the position to continue from, in a new epoch if the database has lost writes that were seen.

    `current` is the position of a primary whose catalogue is locked. Raises DatabaseUnavailable if another server
    was promoted in its place.
    """
    if last_seen is None or not current.has_lost_writes_of(last_seen):
        return current
    if current.is_on_older_timeline(last_seen):
        raise DatabaseUnavailable(f"The database {location} is an old primary; another was promoted.")
    logger.error("Database %s lost writes; starting a new epoch.", location)
    return current._replace(epoch=next_epoch(last_seen.epoch))
