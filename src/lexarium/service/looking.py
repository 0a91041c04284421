"""Looking into the catalogue as v1 does: any record or list, now or at any revision."""

import base64
import binascii
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import orjson

from lexarium.domain.changes import Change, State
from lexarium.domain.collections import Collection
from lexarium.domain.editing import Difference, differences
from lexarium.domain.errors import Invalid, NotFound, Problem
from lexarium.domain.relations import HIERARCHICAL, RELATIONS
from lexarium.domain.text import unstorable
from lexarium.service import releases
from lexarium.service.desk import refuse_gone
from lexarium.store import edges, records, versions
from lexarium.store.backend import Snapshot, read_position
from lexarium.store.database import Database
from lexarium.store.tallies import Tallies
from lexarium.store.versions import Listing, Place

_DEEPEST = 100


@dataclass(frozen=True)
class Page:
    """Some records of a list, and the cursor of the next ones."""

    items: list[Change]
    next: str | None
    total: int


def revision_of(snapshot: Snapshot, release: str | None, as_of: int | None) -> int:
    """The revision that a request wants to read: a release's, or an earlier one, or the present."""
    present = read_position(snapshot).revision
    if release is not None:
        return releases.find(snapshot, release).revision
    if as_of is not None and as_of > present:
        raise Invalid(
            "That revision is not there yet.", [Problem("as_of", f"is past the present revision, {present}.")]
        )
    return present if as_of is None else as_of


def record(snapshot: Snapshot, identifier: str, revision: int, collection: Collection | None = None) -> Change:
    """A record as it was at a revision; raises where it was not there, retired or merged."""
    found = None if unstorable(identifier) else versions.find(snapshot, identifier, revision)
    return _there(found, identifier, collection)


def present_record(database: Database, identifier: str, collection: Collection | None = None) -> Change:
    """The same of the present, for whoever wants to know nothing else."""
    found = None
    if not unstorable(identifier):
        _, found = database.at_once(lambda connection: versions.present(connection, identifier))
    return _there(found, identifier, collection)


def _there(found: Change | None, identifier: str, collection: Collection | None) -> Change:
    if found is None or (collection is not None and found.collection != collection.name):
        raise NotFound(f"There is no {collection.name if collection else 'record'} with the id {identifier!r}.")
    refuse_gone(found.whole())
    return found


def page(  # noqa: PLR0913 (a list, where it goes on, how far, and what is known of it)
    snapshot: Snapshot,
    tallies: Tallies,
    listing: Listing,
    cursor: str | None,
    limit: int,
    *,
    of_the_present: bool = True,
) -> Page:
    """The records of a list after a cursor. Pages of the present are all of the revision that the first was of."""
    after = None
    if cursor is not None:
        listing, after = _resumed(snapshot, listing, cursor, of_the_present=of_the_present)
    found = versions.page(snapshot, listing, after, limit + 1)
    more = len(found) > limit
    items = found[:limit]
    return Page(
        items=items,
        next=_cursor(listing, items[-1]) if more else None,
        total=len(items) if after is None and not more else versions.total(snapshot, listing, tallies),
    )


def _cursor(listing: Listing, last: Change) -> str:
    """Which list at which revision, and the change that its last record was made by: short, however long a name is."""
    told = orjson.dumps([listing.revision, last.seq, _list_key(listing)])
    return base64.urlsafe_b64encode(told).decode().rstrip("=")


def _list_key(listing: Listing) -> str:
    """The same for all pages of one list, and for no other list."""
    return hashlib.sha256(repr(replace(listing, revision=0)).encode()).hexdigest()[:16]


def _resumed(snapshot: Snapshot, listing: Listing, cursor: str, *, of_the_present: bool) -> tuple[Listing, Place]:
    revision, seq, key = _told_by(cursor)
    if not 0 < seq <= revision <= read_position(snapshot).revision:
        raise _no_page("is not one that this service gave out.")
    if key != _list_key(listing) or not (of_the_present or revision == listing.revision):
        raise _no_page("is of another list: send it with the parameters that the page before was asked for with.")
    [last] = versions.since(snapshot, seq - 1, 1)
    keys: dict[str, str | int] = {"name": last.whole().rendering.name_key, "id": last.record, "updated": last.seq}
    return replace(listing, revision=revision), Place(keys[listing.sort], last.record)


def _told_by(cursor: str) -> tuple[int, int, str]:
    try:
        revision, seq, key = orjson.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    except (ValueError, TypeError, binascii.Error):
        revision = seq = key = None
    if type(revision) is int and type(seq) is int and isinstance(key, str):
        return revision, seq, key
    raise _no_page("is not one that this service gave out.")


def _no_page(why: str) -> Invalid:
    return Invalid("The page cannot be found.", [Problem("cursor", why)])


def history(snapshot: Snapshot, collection: Collection, identifier: str, revision: int) -> list[Change]:
    """Every version of a record, the newest first; also of one that is retired or merged."""
    found = [] if unstorable(identifier) else versions.history(snapshot, identifier, revision)
    if not found or found[0].collection != collection.name:
        raise NotFound(f"There is no {collection.name} with the id {identifier!r}.")
    return found


def version(snapshot: Snapshot, collection: Collection, identifier: str, number: int) -> Change:
    """A version of a record."""
    found = None if unstorable(identifier) else versions.find_version(snapshot, identifier, number)
    if found is None or found.collection != collection.name:
        raise NotFound(f"There is no version {number} of a {collection.name} with the id {identifier!r}.")
    return found


def diff(snapshot: Snapshot, collection: Collection, identifier: str, one: int, other: int) -> list[Difference]:
    """What differs between two versions of a record."""
    before = version(snapshot, collection, identifier, one)
    return differences(before.whole(), version(snapshot, collection, identifier, other).whole())


def related(snapshot: Snapshot, change: Change) -> list[dict[str, Any]]:
    """The records related to one, in both directions, with their names; mappings with what they point to."""
    items = [
        {
            "relation": other.relation,
            "direction": "out" if other.side == "source" else "in",
            "id": other.id,
            "name": other.name,
        }
        for other in edges.related(snapshot, [change.record]).get(change.record, [])
        if other.name is not None
    ]
    outside = [edge for edge in sorted(change.whole().edges) if RELATIONS[edge.relation].target is None]
    items += [{"relation": edge.relation, "direction": "out", "id": edge.target, "name": ""} for edge in outside]
    return items


def reached(
    snapshot: Snapshot, change: Change, relation: str | None, *, upward: bool
) -> dict[str, list[dict[str, Any]]]:
    """The published records above or below one in the hierarchies, the nearest first; and the retired on the way.

    A way goes on through a retired record, which counts as a step.
    """
    names = [name for name in HIERARCHICAL if relation in (None, name)]
    if not names:
        raise Invalid("That is no hierarchy.", [Problem("relation", "is not the name of a hierarchy.")])
    depths = edges.walk(snapshot, change.record, names, upward=upward, deepest=_DEEPEST)
    return {
        "items": _named(depths, records.names(snapshot, sorted(depths))),
        "retired": _named(depths, records.names(snapshot, sorted(depths), State.RETIRED)),
    }


def _named(depths: Mapping[str, int], names: Mapping[str, str]) -> list[dict[str, Any]]:
    found = [{"id": each, "name": name, "depth": depths[each]} for each, name in names.items()]
    return sorted(found, key=lambda each: (each["depth"], str(each["name"]).casefold(), each["id"]))


def changes_since(snapshot: Snapshot, since: int, limit: int, collections: Sequence[str] = ()) -> list[Change]:
    """The changes after a seq, in order. Raises `Invalid` for a seq that no change has yet."""
    present = read_position(snapshot).revision
    if since > present:
        raise Invalid("There are no such changes yet.", [Problem("since", f"is past the present revision, {present}.")])
    return versions.since(snapshot, since, limit, collections)


def changes_after(database: Database, since: int, limit: int, collections: Sequence[str] = ()) -> list[Change]:
    """The same, where another node may have told of a change that this one, or a standby, has not heard of yet."""
    try:
        with database.read() as snapshot:
            return changes_since(snapshot, since, limit, collections)
    except Invalid:
        with database.read(newest=True) as snapshot:
            return changes_since(snapshot, since, limit, collections)
