"""How many records there are, at any revision, without counting them each time."""

from collections import Counter

from sqlalchemy import Connection, bindparam, func, select

from lexarium.store.backend import Position, read_position
from lexarium.store.schema import change, record

_STEP = 500
_before = change.alias("before")
_COUNT = select(record.c.collection, record.c.state, func.count()).group_by(record.c.collection, record.c.state)
_BETWEEN = (
    select(change.c.collection, change.c.state, _before.c.state, func.count())
    .join(_before, (_before.c.record == change.c.record) & (_before.c.version == change.c.version - 1), isouter=True)
    .where(change.c.seq > bindparam("after"), change.c.seq <= bindparam("until"))
    .group_by(change.c.collection, change.c.state, _before.c.state)
)
_REMEMBERED = 20
"""Of how many revisions of the past, releases say, the numbers are remembered."""


class Tallies:
    """Counts once, and from then on only what has changed. For any thread."""

    def __init__(self) -> None:
        self._counted: tuple[Position, Counter[tuple[str, str]]] | None = None
        self._past: dict[tuple[str, int], Counter[tuple[str, str]]] = {}

    def at(self, connection: Connection, revision: int) -> Counter[tuple[str, str]]:
        """How many records each collection had in each state at a revision, by collection and state."""
        now = read_position(connection)
        if now.revision - revision <= _STEP:
            return self._found(connection, now, revision)
        past = self._past  # which another thread may begin anew meanwhile
        found = past.get((now.epoch, revision))
        if found is None:
            if len(past) >= _REMEMBERED:
                past = self._past = {}
            found = past[now.epoch, revision] = self._found(connection, now, revision)
        return found

    def _found(self, connection: Connection, now: Position, revision: int) -> Counter[tuple[str, str]]:
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
        for collection, state, before, number in connection.execute(_BETWEEN, {"after": after, "until": until}):
            gained[collection, state] += number
            if before is not None:
                gained[collection, before] -= number
    return gained
