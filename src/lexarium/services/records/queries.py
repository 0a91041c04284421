"""Looking into the catalogue as v1 does: any record or list, now or at any revision."""

import base64
import binascii
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import orjson

from lexarium.domain.change import Change
from lexarium.domain.edit import FieldDiff, diff_records
from lexarium.domain.errors import FieldProblem, InvalidInput, NotFound
from lexarium.domain.record import RecordState
from lexarium.domain.schema.collections import Collection
from lexarium.domain.schema.relation_types import HIERARCHICAL_TYPES, RELATION_TYPES
from lexarium.domain.text.characters import find_unstorable_char
from lexarium.services.records import releases
from lexarium.services.records.lookup import require_published
from lexarium.store import records, relations, revisions
from lexarium.store.counts import RecordCounts
from lexarium.store.database import Database
from lexarium.store.position import Snapshot, read_position
from lexarium.store.revisions import ListQuery, PageKey

_MAX_DEPTH = 100


@dataclass(frozen=True)
class RecordPage:
    """Some records of a list, and the cursor of the next ones."""

    items: list[Change]
    next_cursor: str | None
    total: int


def resolve_revision(snapshot: Snapshot, release: str | None, as_of: int | None) -> int:
    """The revision that a request wants to read: a release's, or an earlier one, or the present."""
    current_revision = read_position(snapshot).revision
    if release is not None:
        return releases.get_release(snapshot, release).revision
    if as_of is not None and as_of > current_revision:
        raise InvalidInput(
            "That revision is not there yet.",
            [FieldProblem("as_of", f"is past the present revision, {current_revision}.")],
        )
    return current_revision if as_of is None else as_of


def get_record_at(snapshot: Snapshot, record_id: str, revision: int, collection: Collection | None = None) -> Change:
    """A record as it was at a revision; raises where it was not there, retired or merged."""
    change = None if find_unstorable_char(record_id) else revisions.find_at(snapshot, record_id, revision)
    return _require_found(change, record_id, collection)


def get_current_record(database: Database, record_id: str, collection: Collection | None = None) -> Change:
    """The same of the present, for whoever wants to know nothing else."""
    change = None
    if not find_unstorable_char(record_id):
        _, change = database.read_with_position(
            lambda connection: revisions.find_current_with_position(connection, record_id)
        )
    return _require_found(change, record_id, collection)


def _require_found(change: Change | None, record_id: str, collection: Collection | None) -> Change:
    if change is None or (collection is not None and change.collection != collection.name):
        raise NotFound(f"There is no {collection.name if collection else 'record'} with the id {record_id!r}.")
    require_published(change.to_record())
    return change


def list_records(  # noqa: PLR0913 (a list, where it goes on, how far, and what is known of it)
    snapshot: Snapshot,
    counts: RecordCounts,
    listing: ListQuery,
    cursor: str | None,
    limit: int,
    *,
    is_current: bool = True,
) -> RecordPage:
    """The records of a list after a cursor. Pages of the present are all of the revision that the first was of."""
    after = None
    if cursor is not None:
        listing, after = _resume_listing(snapshot, listing, cursor, is_current=is_current)
    changes = revisions.list_page(snapshot, listing, after, limit + 1)
    has_more = len(changes) > limit
    items = changes[:limit]
    return RecordPage(
        items=items,
        next_cursor=_encode_cursor(listing, items[-1]) if has_more else None,
        total=len(items) if after is None and not has_more else revisions.count_matching(snapshot, listing, counts),
    )


def _encode_cursor(listing: ListQuery, last_change: Change) -> str:
    """Which list at which revision, and the change that its last record was made by: short, however long a name is."""
    payload = orjson.dumps([listing.revision, last_change.seq, _hash_listing(listing)])
    return base64.urlsafe_b64encode(payload).decode().rstrip("=")


def _hash_listing(listing: ListQuery) -> str:
    """The same for all pages of one list, and for no other list."""
    return hashlib.sha256(repr(replace(listing, revision=0)).encode()).hexdigest()[:16]


def _resume_listing(
    snapshot: Snapshot, listing: ListQuery, cursor: str, *, is_current: bool
) -> tuple[ListQuery, PageKey]:
    revision, seq, key = _decode_cursor(cursor)
    if not 0 < seq <= revision <= read_position(snapshot).revision:
        raise _build_cursor_error("is not one that this service gave out.")
    if key != _hash_listing(listing) or not (is_current or revision == listing.revision):
        raise _build_cursor_error(
            "is of another list: send it with the parameters that the page before was asked for with."
        )
    [last_change] = revisions.list_since(snapshot, seq - 1, 1)
    sort_keys: dict[str, str | int] = {
        "name": last_change.to_record().rendered.name_key,
        "id": last_change.record_id,
        "updated": last_change.seq,
    }
    return replace(listing, revision=revision), PageKey(sort_keys[listing.sort], last_change.record_id)


def _decode_cursor(cursor: str) -> tuple[int, int, str]:
    try:
        revision, seq, key = orjson.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    except (ValueError, TypeError, binascii.Error):
        revision = seq = key = None
    if type(revision) is int and type(seq) is int and isinstance(key, str):
        return revision, seq, key
    raise _build_cursor_error("is not one that this service gave out.")


def _build_cursor_error(reason: str) -> InvalidInput:
    return InvalidInput("The page cannot be found.", [FieldProblem("cursor", reason)])


def list_versions(snapshot: Snapshot, collection: Collection, record_id: str, revision: int) -> list[Change]:
    """Every version of a record, the newest first; also of one that is retired or merged."""
    changes = [] if find_unstorable_char(record_id) else revisions.list_history(snapshot, record_id, revision)
    if not changes or changes[0].collection != collection.name:
        raise NotFound(f"There is no {collection.name} with the id {record_id!r}.")
    return changes


def get_version(snapshot: Snapshot, collection: Collection, record_id: str, version: int) -> Change:
    """A version of a record."""
    change = None if find_unstorable_char(record_id) else revisions.find_version(snapshot, record_id, version)
    if change is None or change.collection != collection.name:
        raise NotFound(f"There is no version {version} of a {collection.name} with the id {record_id!r}.")
    return change


def diff_versions(
    snapshot: Snapshot, collection: Collection, record_id: str, from_version: int, to_version: int
) -> list[FieldDiff]:
    """What differs between two versions of a record."""
    older = get_version(snapshot, collection, record_id, from_version)
    return diff_records(older.to_record(), get_version(snapshot, collection, record_id, to_version).to_record())


def list_related(snapshot: Snapshot, change: Change) -> list[dict[str, Any]]:
    """The records related to one, in both directions, with their names; mappings with what they point to."""
    items = [
        {
            "relation": related.type_name,
            "direction": "out" if related.side == "source" else "in",
            "id": related.id,
            "name": related.name,
        }
        for related in relations.find_related(snapshot, [change.record_id]).get(change.record_id, [])
        if related.name is not None
    ]
    external = [
        relation
        for relation in sorted(change.to_record().relations)
        if RELATION_TYPES[relation.relation].target_collection is None
    ]
    items += [
        {"relation": relation.relation, "direction": "out", "id": relation.target, "name": ""} for relation in external
    ]
    return items


def list_hierarchy(
    snapshot: Snapshot, change: Change, type_name: str | None, *, upward: bool
) -> dict[str, list[dict[str, Any]]]:
    """The published records above or below one in the hierarchies, the nearest first; and the retired on the way.

    A way goes on through a retired record, which counts as a step.
    """
    type_names = [name for name in HIERARCHICAL_TYPES if type_name in (None, name)]
    if not type_names:
        raise InvalidInput("That is no hierarchy.", [FieldProblem("relation", "is not the name of a hierarchy.")])
    depths = relations.walk_hierarchy(snapshot, change.record_id, type_names, upward=upward, max_depth=_MAX_DEPTH)
    return {
        "items": _sort_by_depth(depths, records.find_names(snapshot, sorted(depths))),
        "retired": _sort_by_depth(depths, records.find_names(snapshot, sorted(depths), RecordState.RETIRED)),
    }


def _sort_by_depth(depths: Mapping[str, int], names: Mapping[str, str]) -> list[dict[str, Any]]:
    items = [{"id": item, "name": name, "depth": depths[item]} for item, name in names.items()]
    return sorted(items, key=lambda item: (item["depth"], str(item["name"]).casefold(), item["id"]))


def list_changes(snapshot: Snapshot, since: int, limit: int, collections: Sequence[str] = ()) -> list[Change]:
    """The changes after a seq, in order. Raises `Invalid` for a seq that no change has yet."""
    current_revision = read_position(snapshot).revision
    if since > current_revision:
        raise InvalidInput(
            "There are no such changes yet.",
            [FieldProblem("since", f"is past the present revision, {current_revision}.")],
        )
    return revisions.list_since(snapshot, since, limit, collections)


def list_changes_newest(database: Database, since: int, limit: int, collections: Sequence[str] = ()) -> list[Change]:
    """The same, where another node may have told of a change that this one, or a standby, has not heard of yet."""
    try:
        with database.read() as snapshot:
            return list_changes(snapshot, since, limit, collections)
    except InvalidInput:
        with database.read(from_primary=True) as snapshot:
            return list_changes(snapshot, since, limit, collections)
