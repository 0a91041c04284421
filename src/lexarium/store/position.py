"""Position of a database in its history, and snapshots at it."""

import logging
import secrets
from collections.abc import Set
from typing import NamedTuple

from sqlalchemy import Connection, select

from lexarium.domain.cache_tags import CacheTag
from lexarium.domain.errors import DatabaseUnavailable
from lexarium.store.schema import catalogue_table

logger = logging.getLogger(__name__)


Snapshot = Connection
"""A connection within a transaction that reads: what is read through it is of one state of the catalogue."""


class Position(NamedTuple):
    """A state of a catalogue."""

    epoch: str
    """Which database; and where it has lost writes, in which life of it."""
    revision: int
    """The last change in it."""
    accounts: int
    """How often an account or a token has changed."""
    writes: int
    """How often anything was written, also what is in no record: one state that has more of them is the later one."""
    timeline: int = 0
    """PostgreSQL's count of promotions, as it was at the last write: what came after one may lack what was before."""
    parted: int = 0
    """How much had been written when this timeline began: so much, and no more, it has of what was before."""

    def supersedes(self, other: "Position") -> bool:
        """Whether it is later than another, and has all of it; or of a later epoch, or of another database."""
        if self.epoch == other.epoch:
            return self.writes > other.writes and self.includes(other)
        return not self.is_same_database(other) or _epoch_number(self.epoch) > _epoch_number(other.epoch)

    def is_same_database(self, other: "Position") -> bool:
        """Whether both are of one database, in whichever epoch."""
        return _database_id(self.epoch) == _database_id(other.epoch)

    def includes(self, other: "Position") -> bool:
        """Whether all that was written up to another is there."""
        if self.timeline == other.timeline:
            return self.epoch == other.epoch and self.writes >= other.writes
        return self.epoch == other.epoch and self.timeline > other.timeline and self.parted >= other.writes

    def has_lost_writes_of(self, other: "Position") -> bool:
        """Whether it is of the same database, and not all that was written up to another is there."""
        if self.epoch == other.epoch:
            return not self.includes(other)
        return self.is_same_database(other) and not self.supersedes(other)

    def is_on_older_timeline(self, other: "Position") -> bool:
        """Whether it is of a server in whose place another was promoted, and the other position of that one."""
        return self.is_same_database(other) and self.timeline < other.timeline


_EPOCH_SEPARATOR = "."


def create_epoch() -> str:
    """The epoch of a database that is made."""
    return secrets.token_hex(4)


def next_epoch(epoch: str) -> str:
    """Another epoch of the same database, which tells that it comes later."""
    return _EPOCH_SEPARATOR.join((_database_id(epoch), str(_epoch_number(epoch) + 1), secrets.token_hex(4)))


def _database_id(epoch: str) -> str:
    return epoch.partition(_EPOCH_SEPARATOR)[0]


def _epoch_number(epoch: str) -> int:
    """How many epochs of this database were before."""
    _, _, rest = epoch.partition(_EPOCH_SEPARATOR)
    return int(rest.partition(_EPOCH_SEPARATOR)[0] or 0)


class RevisionChange(NamedTuple):
    """How the catalogue came from one position to a later one."""

    before: Position
    after: Position
    invalidated_tags: Set[CacheTag] | None
    """None: too much has changed to tell, or it is another catalogue."""


POSITION_OPTION = "lexarium_position"
"""The option of a connection that tells the position of its transaction, where that is known already."""


def read_position(connection: Connection) -> Position:
    """The catalogue's position as this transaction sees it."""
    position: Position | None = connection.get_execution_options().get(POSITION_OPTION)
    return Position._make(connection.execute(SELECT_POSITION).one()) if position is None else position


def reconcile_position(found: Position, last_seen: Position | None, location: str) -> Position:
    """Where a database goes on from, held against what was seen of it: in a new epoch, where it has lost some of that.

    `found` is of a primary, with the catalogue locked. Raises `Unavailable` where another has taken its place.
    """
    if last_seen is None or not found.has_lost_writes_of(last_seen):
        return found
    if found.is_on_older_timeline(last_seen):
        raise DatabaseUnavailable(f"The database {location} is an old primary, in whose place another was promoted.")
    logger.error("The database %s has lost writes that were there; a new epoch begins.", location)
    return found._replace(epoch=next_epoch(last_seen.epoch))


SELECT_POSITION = select(*(catalogue_table.c[name] for name in Position._fields))
