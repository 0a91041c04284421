"""Read records, lists, versions and changes at any revision (v1)."""

import base64
import binascii
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import orjson

from lexarium.domain.change import Change, ChangeFilter
from lexarium.domain.editing.edit import FieldDiff, diff_records
from lexarium.domain.errors import FieldProblem, InvalidInput
from lexarium.domain.identifiers import MAIN_VOCABULARY, get_local_id, split_id
from lexarium.domain.record import ListQuery, RecordState, RelatedRecord
from lexarium.domain.schema.collections import COLLECTIONS, RELATION_TYPES, Collection
from lexarium.services.records import releases
from lexarium.services.records.lookup import VersionedRecord, find_published, get_change, list_mappings
from lexarium.store import records, relations, revisions
from lexarium.store.counts import RecordCounts
from lexarium.store.database import Database
from lexarium.store.engine.position_queries import read_position
from lexarium.store.position import Snapshot
from lexarium.store.revisions import PageKey

_MAX_DEPTH = 100


@dataclass(frozen=True)
class RecordPage:
    """A page of a list of records, and the cursor of the next page."""

    items: list[Change]
    next_cursor: str | None
    total: int


class Referrer(NamedTuple):
    """Published record that has a relation to another."""

    id: str
    name: str
    collection: str


def resolve_revision(
    snapshot: Snapshot, release: str | None, as_of: int | None, vocabulary: str = MAIN_VOCABULARY
) -> int:
    """Return the revision of a release of a vocabulary, or `as_of`, or the current one.

    Raise NotFound or InvalidInput.
    """
    current_revision = read_position(snapshot).revision
    if release is not None:
        return releases.get_release(snapshot, release, vocabulary).revision
    if as_of is None:
        return current_revision
    _require_past(current_revision, "as_of", as_of, "Unknown revision.")
    return as_of


def _require_past(current_revision: int, parameter: str, revision: int, message: str) -> None:
    if revision > current_revision:
        detail = f"is greater than the current revision, {current_revision}."
        raise InvalidInput(message, [FieldProblem(parameter, detail)])


def get_record_at(
    snapshot: Snapshot, record_id: str, revision: int, collection: Collection | None = None
) -> VersionedRecord:
    """Return a record at a revision; raise if it did not exist or was unpublished."""
    return find_published(lambda: revisions.find_at(snapshot, record_id, revision), record_id, collection)


def get_current_record(database: Database, record_id: str, collection: Collection | None = None) -> VersionedRecord:
    """Return a published record, read without a transaction of its own; raise as `get_record_at`."""
    return find_published(lambda: find_current_change(database, record_id), record_id, collection)


def find_current_change(database: Database, record_id: str) -> Change | None:
    """Return the last change of a record, read without a transaction of its own, or None."""
    return database.read_with_position(lambda connection: revisions.find_current_with_position(connection, record_id))[
        1
    ]


def list_records(  # noqa: PLR0913 (a list, its page and its counts)
    snapshot: Snapshot,
    counts: RecordCounts,
    listing: ListQuery,
    cursor: str | None,
    limit: int,
    *,
    is_current: bool = True,
) -> RecordPage:
    """Return the records of a list after a cursor; all pages are of the revision of the first page."""
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
    # The last change replaces the sort key, which may be long.
    payload = orjson.dumps([listing.revision, last_change.seq, _hash_listing(listing)])
    return base64.urlsafe_b64encode(payload).decode().rstrip("=")


def _hash_listing(listing: ListQuery) -> str:
    return hashlib.sha256(repr(replace(listing, revision=0)).encode()).hexdigest()[:16]


def _resume_listing(
    snapshot: Snapshot, listing: ListQuery, cursor: str, *, is_current: bool
) -> tuple[ListQuery, PageKey]:
    revision, seq, key = _decode_cursor(cursor)
    if not 0 < seq <= revision <= read_position(snapshot).revision:
        raise _build_cursor_error("is not a cursor of this service.")
    if key != _hash_listing(listing) or not (is_current or revision == listing.revision):
        reason = "is of another list; send the same parameters as for the previous page."
        raise _build_cursor_error(reason)
    last_change = next(iter(revisions.list_since(snapshot, seq - 1, 1)), None)
    if last_change is None or last_change.seq != seq:
        raise _build_cursor_error("is of a record that was deleted with its vocabulary. Start the list again.")
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
    raise _build_cursor_error("is not a cursor of this service.")


def _build_cursor_error(reason: str) -> InvalidInput:
    return InvalidInput("Invalid cursor.", [FieldProblem("cursor", reason)])


def list_versions(snapshot: Snapshot, collection: Collection | None, record_id: str, revision: int) -> list[Change]:
    """Return all versions of a record in any state, the newest first; raise NotFound."""
    get_change(lambda: revisions.find_at(snapshot, record_id, revision), record_id, collection)
    return revisions.list_history(snapshot, record_id, revision)


def get_version(snapshot: Snapshot, collection: Collection | None, record_id: str, version: int) -> Change:
    """Return a version of a record; raise NotFound."""
    find = partial(revisions.find_version, snapshot, record_id, version)
    return get_change(find, record_id, collection, f"version {version} of a ")


def get_version_at(snapshot: Snapshot, record_id: str, revision: int) -> Change:
    """Return a record in any state at a revision; raise NotFound."""
    return get_change(lambda: revisions.find_at(snapshot, record_id, revision), record_id)


def diff_versions(
    snapshot: Snapshot, collection: Collection | None, record_id: str, from_version: int, to_version: int
) -> list[FieldDiff]:
    """Return the fields that differ between two versions of a record."""
    older = get_version(snapshot, collection, record_id, from_version)
    return diff_records(older.to_record(), get_version(snapshot, collection, record_id, to_version).to_record())


def find_related(snapshot: Snapshot, record_id: str) -> list[RelatedRecord]:
    """Return the published records related to one, in both directions."""
    related_records = relations.find_related(snapshot, [record_id]).get(record_id, [])
    return [related for related in related_records if related.name is not None]


def list_referrers(snapshot: Snapshot, record_id: str, limit: int) -> list[Referrer]:
    """Return up to `limit` other published records that have a relation to one, by name."""
    referrer_ids = relations.list_referrers(snapshot, record_id, limit)
    summaries = records.find_collections_and_names(snapshot, referrer_ids)
    return [Referrer(referrer_id, summaries[referrer_id][1], summaries[referrer_id][0]) for referrer_id in referrer_ids]


def list_related(snapshot: Snapshot, change: Change) -> list[dict[str, Any]]:
    """Return the records related to one, in both directions, and its mappings."""
    related_records, mappings = find_related(snapshot, change.record_id), list_mappings(change.to_record())
    names = [*(related.type_name for related in related_records), *(mapping.relation for mapping in mappings)]
    labels = relations.find_relation_labels(snapshot, split_id(change.record_id)[0], dict.fromkeys(names))
    items = [
        {
            "relation": related.type_name,
            "label": labels[related.type_name],
            "direction": "out" if related.side == "source" else "in",
            "id": get_local_id(related.id),
            "name": related.name,
            "vocabulary": split_id(related.id)[0],
        }
        for related in related_records
    ]
    return items + [
        {
            "relation": mapping.relation,
            "label": labels[mapping.relation],
            "direction": "out",
            "id": mapping.target,
            "name": "",
            "vocabulary": None,
        }
        for mapping in mappings
    ]


def list_hierarchy(
    snapshot: Snapshot, change: Change, type_name: str | None, *, upward: bool
) -> dict[str, list[dict[str, Any]]]:
    """Return the published ancestors or descendants of a record, the nearest first, and the retired ones on the way.

    Paths continue through retired records.
    """
    own_collections = set(COLLECTIONS.list_names(split_id(change.record_id)[0]))
    type_names = [
        name
        for name in RELATION_TYPES.hierarchical
        if type_name in (None, name) and not own_collections.isdisjoint(RELATION_TYPES[name].targets)
    ]
    if not type_names:
        raise InvalidInput("Unknown hierarchy.", [FieldProblem("relation", "is not the name of a hierarchy.")])
    depths = relations.walk_hierarchy(snapshot, change.record_id, type_names, upward=upward, max_depth=_MAX_DEPTH)
    return {
        "items": _sort_by_depth(depths, records.find_names(snapshot, sorted(depths))),
        "retired": _sort_by_depth(depths, records.find_names(snapshot, sorted(depths), RecordState.RETIRED)),
    }


def _sort_by_depth(depths: Mapping[str, int], names: Mapping[str, str]) -> list[dict[str, Any]]:
    items = [{"id": get_local_id(item), "name": name, "depth": depths[item]} for item, name in names.items()]
    return sorted(items, key=lambda item: (item["depth"], str(item["name"]).casefold(), item["id"]))


def list_changes(snapshot: Snapshot, since: int, limit: int, shown: ChangeFilter | None = None) -> list[Change]:
    """Return the changes of a filter after a sequence number; raise InvalidInput if it is in the future."""
    _require_past(read_position(snapshot).revision, "since", since, "Unknown revision.")
    return revisions.list_since(snapshot, since, limit, shown)


def list_changes_newest(database: Database, since: int, limit: int, shown: ChangeFilter | None = None) -> list[Change]:
    """Return the changes after a sequence number that another node may have given out: retry on the primary."""
    try:
        return database.run_read(list_changes, since, limit, shown)
    except InvalidInput:
        with database.read(from_primary=True) as snapshot:
            return list_changes(snapshot, since, limit, shown)
