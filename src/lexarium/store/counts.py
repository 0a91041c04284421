"""How many records there are, at any revision, without counting them each time."""

from collections import Counter

from sqlalchemy import Connection, bindparam, func, select

from lexarium.store.position import Position, read_position
from lexarium.store.schema import change_table, record_table

_MAX_LAG = 500
_previous_change = change_table.alias("before")
_SELECT_COUNTS = select(record_table.c.collection, record_table.c.state, func.count()).group_by(
    record_table.c.collection, record_table.c.state
)
_SELECT_CHANGES = (
    select(change_table.c.collection, change_table.c.state, _previous_change.c.state, func.count())
    .join(
        _previous_change,
        (_previous_change.c.record == change_table.c.record)
        & (_previous_change.c.version == change_table.c.version - 1),
        isouter=True,
    )
    .where(change_table.c.seq > bindparam("after"), change_table.c.seq <= bindparam("until"))
    .group_by(change_table.c.collection, change_table.c.state, _previous_change.c.state)
)
_MAX_CACHED = 20
"""Of how many revisions of the past, releases say, the numbers are remembered."""


class RecordCounts:
    """Counts once, and from then on only what has changed. For any thread."""

    def __init__(self) -> None:
        self._latest: tuple[Position, Counter[tuple[str, str]]] | None = None
        self._cache: dict[tuple[str, int], Counter[tuple[str, str]]] = {}

    def count_at(self, connection: Connection, revision: int) -> Counter[tuple[str, str]]:
        """How many records each collection had in each state at a revision, by collection and state."""
        position = read_position(connection)
        if position.revision - revision <= _MAX_LAG:
            return self._compute(connection, position, revision)
        cache = self._cache  # which another thread may begin anew meanwhile
        counts = cache.get((position.epoch, revision))
        if counts is None:
            if len(cache) >= _MAX_CACHED:
                cache = self._cache = {}
            counts = cache[position.epoch, revision] = self._compute(connection, position, revision)
        return counts

    def _compute(self, connection: Connection, position: Position, revision: int) -> Counter[tuple[str, str]]:
        if revision < position.revision / 2:
            return _count_changes(connection, 0, revision)
        latest = self._latest
        if latest is None or latest[0].epoch != position.epoch or latest[0].revision > position.revision:
            rows = connection.execute(_SELECT_COUNTS)
            latest = position, Counter({(collection, state): number for collection, state, number in rows})
            self._latest = latest
        latest_position, latest_counts = latest
        if revision < latest_position.revision:
            return latest_counts - _count_changes(connection, revision, latest_position.revision)
        counts = latest_counts + _count_changes(connection, latest_position.revision, revision)
        # Not at every step: a reader whose snapshot is a little older would have to count all of them again.
        if revision > latest_position.revision + _MAX_LAG:
            self._latest = position._replace(revision=revision), counts
        return counts


def _count_changes(connection: Connection, after: int, until: int) -> Counter[tuple[str, str]]:
    """How many more there came to be, or fewer, after one revision and up to another."""
    counts: Counter[tuple[str, str]] = Counter()
    if after < until:
        for collection, state, previous_state, number in connection.execute(
            _SELECT_CHANGES, {"after": after, "until": until}
        ):
            counts[collection, state] += number
            if previous_state is not None:
                counts[collection, previous_state] -= number
    return counts
