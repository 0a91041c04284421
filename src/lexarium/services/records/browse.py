"""Going through a collection: its records by name, those of a class, and its hierarchy level by level."""

from collections.abc import Sequence
from dataclasses import dataclass

from lexarium.domain.change import Change
from lexarium.domain.errors import NotFound
from lexarium.domain.record import RecordState
from lexarium.domain.schema.relation_types import HIERARCHICAL_TYPES_BY_COLLECTION
from lexarium.domain.text.characters import find_unstorable_char, name_key
from lexarium.store import change_log, hierarchy_queries, revisions
from lexarium.store.hierarchy_queries import RecordName, TreeNode
from lexarium.store.position import Snapshot, read_position
from lexarium.store.revisions import ListQuery, PageKey

MAX_CHILDREN = 500
"""How many records a level of a hierarchy shows."""
_MAX_DEPTH = 30


@dataclass(frozen=True)
class BrowseFilter:
    """Which records of a collection, and from where on."""

    collection: str
    start: str = ""
    """Names from here on."""
    after: str | None = None
    """The last record of the page before."""
    class_id: str | None = None
    flagged: bool = False
    state: RecordState = RecordState.PUBLISHED


@dataclass(frozen=True)
class BrowsePage:
    """Some records in order, and the last of them where there are more."""

    items: Sequence[Change]
    last_id: str | None


def list_page(snapshot: Snapshot, browse_filter: BrowseFilter, limit: int) -> BrowsePage:
    """The next records. Raises `NotFound` where there is no such record to go on after."""
    changes = (
        _list_unpublished(snapshot, browse_filter, limit + 1)
        if browse_filter.state != RecordState.PUBLISHED
        else _list_published(snapshot, browse_filter, limit + 1)
    )
    items = changes[:limit]
    return BrowsePage(items, items[-1].record_id if len(changes) > limit else None)


def _list_published(snapshot: Snapshot, browse_filter: BrowseFilter, limit: int) -> list[Change]:
    after = None
    if browse_filter.after is not None:
        after = PageKey(_get_last(snapshot, browse_filter).to_record().rendered.name_key, browse_filter.after)
    elif browse_filter.start and not find_unstorable_char(browse_filter.start):
        after = PageKey(name_key(browse_filter.start), "")
    listing = ListQuery(
        browse_filter.collection,
        read_position(snapshot).revision,
        class_id=browse_filter.class_id,
        flagged=browse_filter.flagged or None,
    )
    return revisions.list_page(snapshot, listing, after, limit)


def _list_unpublished(snapshot: Snapshot, browse_filter: BrowseFilter, limit: int) -> list[Change]:
    """By the records themselves, which know their state: few are gone, and the log would be searched for them."""
    after = None
    if browse_filter.after is not None:
        after = _get_last(snapshot, browse_filter).to_record().rendered.order_key, browse_filter.after
    record_ids = hierarchy_queries.list_ids_in_state(
        snapshot, browse_filter.collection, browse_filter.state, after, limit
    )
    changes = change_log.find_latest(snapshot, record_ids)
    return [changes[record_id] for record_id in record_ids]


def _get_last(snapshot: Snapshot, browse_filter: BrowseFilter) -> Change:
    record_id = browse_filter.after or ""
    change = None if find_unstorable_char(record_id) else change_log.find_latest(snapshot, [record_id]).get(record_id)
    if change is None:
        raise NotFound(f"There is no record with the id {record_id!r} to go on after.")
    return change


def list_children(snapshot: Snapshot, collection: str, parent_id: str) -> list[TreeNode]:
    """What stands right below a record, by name."""
    return hierarchy_queries.find_children(
        snapshot, parent_id, HIERARCHICAL_TYPES_BY_COLLECTION[collection], MAX_CHILDREN
    )


def list_roots(snapshot: Snapshot, collection: str, record_ids: Sequence[str]) -> list[TreeNode]:
    """These records as the top of a hierarchy, by name."""
    return hierarchy_queries.find_tree_nodes(
        snapshot, record_ids[:MAX_CHILDREN], HIERARCHICAL_TYPES_BY_COLLECTION[collection]
    )


def find_path_to_root(snapshot: Snapshot, collection: str, record_id: str) -> list[RecordName]:
    """A way from the top down to a record, without it: of several ways the one by name."""
    path: list[RecordName] = []
    seen = {record_id}
    while len(path) < _MAX_DEPTH:
        parents = [
            parent
            for parent in hierarchy_queries.find_parents(
                snapshot, record_id, HIERARCHICAL_TYPES_BY_COLLECTION[collection]
            )
            if parent.id not in seen
        ]
        if not parents:
            break
        record_id = parents[0].id
        seen.add(record_id)
        path.insert(0, parents[0])
    return path
