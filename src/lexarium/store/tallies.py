"""How many records there are, at any revision, without counting them each time."""

from collections import Counter

from sqlalchemy import Connection, bindparam, func, select

from lexarium.store.backend import Position, read_position
from lexarium.store.schema import change, record

_STEP = 500
_before = change.alias("before")
_COUNT = select(record.c.collection, record.c.state, func.count()).group_by(record.c.collection, record.c.state)
_BETWEEN = (
    select(change.c.collection, change.c.state, _before.c.state)
    .join(_before, (_before.c.record == change.c.record) & (_before.c.version == change.c.version - 1), isouter=True)
    .where(change.c.seq > bindparam("after"), change.c.seq <= bindparam("until"))
)


class Tallies:
    """Counts once, and from then on only what has changed. For any thread."""

    def __init__(self) -> None:
        self._counted: tuple[Position, Counter[tuple[str, str]]] | None = None

    def at(self, connection: Connection, revision: int) -> Counter[tuple[str, str]]:
        """How many records each collection had in each state at a revision, by collection and state."""
        now = read_position(connection)
        if revision < now.revision / 2:
            return _gained(connection, 0, revision)
        counted = self._counted
        if counted is None or counted[0].epoch != now.epoch or counted[0].revision > now.revision:
            rows = connection.execute(_COUNT)
            counted = now, Counter({(collection, state): number for collection, state, number in rows})
            self._counted = counted
        at, numbers = counted
        if revision < at.revision:
            return numbers - _gained(connection, revision, at.revision)
        found = numbers + _gained(connection, at.revision, revision)
        # Not at every step: a reader whose snapshot is a little older would have to count all of them again.
        if revision > at.revision + _STEP:
            self._counted = now._replace(revision=revision), found
        return found


def _gained(connection: Connection, after: int, until: int) -> Counter[tuple[str, str]]:
    """How many more there came to be, or fewer, after one revision and up to another."""
    gained: Counter[tuple[str, str]] = Counter()
    if after < until:
        for collection, state, before in connection.execute(_BETWEEN, {"after": after, "until": until}):
            gained[collection, state] += 1
            if before is not None:
                gained[collection, before] -= 1
    return gained
