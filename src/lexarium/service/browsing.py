"""Going through a collection: its records by name, those of a class, and its hierarchy level by level."""

from collections.abc import Sequence
from dataclasses import dataclass

from lexarium.domain.changes import Change, State
from lexarium.domain.errors import NotFound
from lexarium.domain.relations import HIERARCHIES
from lexarium.domain.text import name_key, unstorable
from lexarium.store import log, surveys, versions
from lexarium.store.backend import Snapshot, read_position
from lexarium.store.surveys import Branch, Named
from lexarium.store.versions import Listing, Place

MOST_BRANCHES = 500
"""How many records a level of a hierarchy shows."""
_DEEPEST = 30


@dataclass(frozen=True)
class Wanted:
    """Which records of a collection, and from where on."""

    collection: str
    start: str = ""
    """Names from here on."""
    after: str | None = None
    """The last record of the page before."""
    class_id: str | None = None
    flagged: bool = False
    state: State = State.PUBLISHED


@dataclass(frozen=True)
class Shelf:
    """Some records in order, and the last of them where there are more."""

    items: Sequence[Change]
    last: str | None


def shelf(snapshot: Snapshot, wanted: Wanted, limit: int) -> Shelf:
    """The next records. Raises `NotFound` where there is no such record to go on after."""
    found = (
        _gone(snapshot, wanted, limit + 1) if wanted.state != State.PUBLISHED else _named(snapshot, wanted, limit + 1)
    )
    items = found[:limit]
    return Shelf(items, items[-1].record if len(found) > limit else None)


def _named(snapshot: Snapshot, wanted: Wanted, limit: int) -> list[Change]:
    after = None
    if wanted.after is not None:
        after = Place(_last(snapshot, wanted).whole().rendering.name_key, wanted.after)
    elif wanted.start and not unstorable(wanted.start):
        after = Place(name_key(wanted.start), "")
    listing = Listing(
        wanted.collection,
        read_position(snapshot).revision,
        class_id=wanted.class_id,
        flagged=wanted.flagged or None,
    )
    return versions.page(snapshot, listing, after, limit)


def _gone(snapshot: Snapshot, wanted: Wanted, limit: int) -> list[Change]:
    """By the records themselves, which know their state: few are gone, and the log would be searched for them."""
    after = None
    if wanted.after is not None:
        after = _last(snapshot, wanted).whole().rendering.order_key, wanted.after
    ids = surveys.in_state(snapshot, wanted.collection, wanted.state, after, limit)
    changes = log.latest(snapshot, ids)
    return [changes[each] for each in ids]


def _last(snapshot: Snapshot, wanted: Wanted) -> Change:
    identifier = wanted.after or ""
    found = None if unstorable(identifier) else log.latest(snapshot, [identifier]).get(identifier)
    if found is None:
        raise NotFound(f"There is no record with the id {identifier!r} to go on after.")
    return found


def level(snapshot: Snapshot, collection: str, parent: str) -> list[Branch]:
    """What stands right below a record, by name."""
    return surveys.below(snapshot, parent, HIERARCHIES[collection], MOST_BRANCHES)


def top(snapshot: Snapshot, collection: str, identifiers: Sequence[str]) -> list[Branch]:
    """These records as the top of a hierarchy, by name."""
    return surveys.branches(snapshot, identifiers[:MOST_BRANCHES], HIERARCHIES[collection])


def way_up(snapshot: Snapshot, collection: str, identifier: str) -> list[Named]:
    """A way from the top down to a record, without it: of several ways the one by name."""
    way: list[Named] = []
    seen = {identifier}
    while len(way) < _DEEPEST:
        above = [each for each in surveys.above(snapshot, identifier, HIERARCHIES[collection]) if each.id not in seen]
        if not above:
            break
        identifier = above[0].id
        seen.add(identifier)
        way.insert(0, above[0])
    return way
