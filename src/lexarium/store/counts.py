"""Counts of records at any revision, without counting all of them each time."""

from collections import Counter

from sqlalchemy import Connection, bindparam, func, select

from lexarium.store.engine.position_queries import read_position
from lexarium.store.position import Position
from lexarium.store.schema import change_table, record_table

_MAX_LAG = 500
# Revisions of the past whose counts are cached.
_MAX_CACHED = 20

_change, _previous_change = change_table.c, change_table.alias("before")
_is_previous = (_previous_change.c.record == _change.record) & (_previous_change.c.version == _change.version - 1)
_SELECT_COUNTS = select(record_table.c.collection, record_table.c.state, func.count()).group_by(
    record_table.c.collection, record_table.c.state
)
_SELECT_CHANGES = (
    select(_change.collection, _change.state, _previous_change.c.state, func.count())
    .join(_previous_change, _is_previous, isouter=True)
    .where(_change.seq > bindparam("after"), _change.seq <= bindparam("until"))
    .group_by(_change.collection, _change.state, _previous_change.c.state)
)


class RecordCounts:
    """Count all records once, then only changes. Thread-safe."""

    def __init__(self) -> None:
        self._latest: tuple[Position, Counter[tuple[str, str]]] | None = None
        self._cache: dict[tuple[str, int, int], Counter[tuple[str, str]]] = {}

    def count_at(self, connection: Connection, revision: int) -> Counter[tuple[str, str]]:
        """Return the number of records at a revision, by collection and state."""
        position = read_position(connection)
        if position.revision - revision <= _MAX_LAG:
            return self._compute(connection, position, revision)
        cache = self._cache  # another thread may replace it meanwhile
        key = position.epoch, position.vocabularies, revision
        counts = cache.get(key)
        if counts is None:
            if len(cache) >= _MAX_CACHED:
                cache = self._cache = {}
            counts = cache[key] = self._compute(connection, position, revision)
        return counts

    def _compute(self, connection: Connection, position: Position, revision: int) -> Counter[tuple[str, str]]:
        if revision < position.revision / 2:
            return _count_changes(connection, 0, revision)
        latest = self._latest
        if latest is None or not _is_prefix(latest[0], position):
            rows = connection.execute(_SELECT_COUNTS)
            latest = position, Counter({(collection, state): number for collection, state, number in rows})
            self._latest = latest
        latest_position, latest_counts = latest
        if revision < latest_position.revision:
            return latest_counts - _count_changes(connection, revision, latest_position.revision)
        counts = latest_counts + _count_changes(connection, latest_position.revision, revision)
        # Not at every revision: a reader with a slightly older snapshot would have to count all records again.
        if revision > latest_position.revision + _MAX_LAG:
            self._latest = position._replace(revision=revision), counts
        return counts


def _is_prefix(earlier: Position, position: Position) -> bool:
    """Return whether the changes up to a position are part of another. A purged vocabulary takes its changes along."""
    is_same = (earlier.epoch, earlier.vocabularies) == (position.epoch, position.vocabularies)
    return is_same and earlier.revision <= position.revision


def _count_changes(connection: Connection, after: int, until: int) -> Counter[tuple[str, str]]:
    """Return the differences in counts after one revision and up to another."""
    counts: Counter[tuple[str, str]] = Counter()
    if after < until:
        rows = connection.execute(_SELECT_CHANGES, {"after": after, "until": until})
        for collection, state, previous_state, number in rows:
            counts[collection, state] += number
            if previous_state is not None:
                counts[collection, previous_state] -= number
    return counts
