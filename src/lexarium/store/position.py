"""Position of a database in its history, and types of connections at one."""

import secrets
from collections.abc import Set
from typing import NamedTuple

from sqlalchemy import Connection

from lexarium.domain.cache_tags import CacheTag

# A connection in a read transaction, which sees one unchanging state of the database.
Snapshot = Connection

_EPOCH_SEPARATOR = "."


class Position(NamedTuple):
    """One committed state of a database."""

    # Uninterrupted life of one database: a new one begins when it is created, restored, or has lost writes.
    epoch: str
    # Seq of the last change.
    revision: int
    # Number of changes to accounts, tokens, releases and comments, which are not in the log.
    accounts: int
    # Number of write transactions of any kind.
    writes: int
    # PostgreSQL's timeline, which counts promotions, at the last write.
    timeline: int = 0
    # Value of `writes` when this timeline began. Later writes of older timelines are not part of it.
    parted: int = 0
    # Number of changes to vocabularies and their schemas.
    vocabularies: int = 0

    def supersedes(self, other: "Position") -> bool:
        """Return whether this position is later and includes the other, or is of a later epoch or another database."""
        if self.epoch == other.epoch:
            return self.writes > other.writes and self.includes(other)
        return not self.is_same_database(other) or _epoch_number(self.epoch) > _epoch_number(other.epoch)

    def has_news_since(self, other: "Position") -> bool:
        """Return whether something that is published may have changed since another position."""
        return (
            self.revision > other.revision
            or self.epoch != other.epoch
            or self.accounts > other.accounts
            or self.vocabularies > other.vocabularies
        )

    def is_same_database(self, other: "Position") -> bool:
        """Return whether both are positions of one database, in any epoch."""
        return _database_id(self.epoch) == _database_id(other.epoch)

    def includes(self, other: "Position") -> bool:
        """Return whether all writes up to the other position are part of this one."""
        if self.timeline == other.timeline:
            return self.epoch == other.epoch and self.writes >= other.writes
        return self.epoch == other.epoch and self.timeline > other.timeline and self.parted >= other.writes

    def has_lost_writes_of(self, other: "Position") -> bool:
        """Return whether this is the same database, but without all writes up to the other position."""
        if self.epoch == other.epoch:
            return not self.includes(other)
        return self.is_same_database(other) and not self.supersedes(other)

    def is_on_older_timeline(self, other: "Position") -> bool:
        """Return whether this is a position of a server that the other one's server was promoted to replace."""
        return self.is_same_database(other) and self.timeline < other.timeline


class RevisionChange(NamedTuple):
    """Step from one position to a later one."""

    before: Position
    after: Position
    # None if too much changed, or the database is another one: everything is invalid then.
    invalidated_tags: Set[CacheTag] | None


# Execution option of a connection that holds the position of its transaction, when it is already known.
POSITION_OPTION = "lexarium_position"


def create_epoch() -> str:
    """Return the epoch of a new database."""
    return secrets.token_hex(4)


def next_epoch(epoch: str) -> str:
    """Return a later epoch of the same database."""
    return _EPOCH_SEPARATOR.join((_database_id(epoch), str(_epoch_number(epoch) + 1), secrets.token_hex(4)))


def _database_id(epoch: str) -> str:
    return epoch.partition(_EPOCH_SEPARATOR)[0]


def _epoch_number(epoch: str) -> int:
    _, _, rest = epoch.partition(_EPOCH_SEPARATOR)
    return int(rest.partition(_EPOCH_SEPARATOR)[0] or 0)
