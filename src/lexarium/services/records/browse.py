"""Browse a collection by name, class, state or hierarchy."""

from collections.abc import Sequence
from dataclasses import dataclass

from lexarium.domain.change import Change
from lexarium.domain.identifiers import get_local_id
from lexarium.domain.record import ListQuery, Record, RecordState
from lexarium.domain.schema.collections import COLLECTIONS
from lexarium.domain.text.characters import find_unstorable_char, name_key
from lexarium.services.not_found import find_or_raise
from lexarium.services.records.detail import translate_names
from lexarium.store import change_log, hierarchy_queries, revisions
from lexarium.store.engine.position_queries import read_position
from lexarium.store.hierarchy_queries import RecordName, TreeNode
from lexarium.store.position import Snapshot
from lexarium.store.revisions import PageKey

MAX_CHILDREN = 500  # records on one level of a hierarchy
_MAX_DEPTH = 30


@dataclass(frozen=True)
class BrowseFilter:
    """Records of a collection, from a name on or after the last record of the page before."""

    collection: str
    start: str = ""
    after: str | None = None
    class_id: str | None = None
    flagged: bool = False
    state: RecordState = RecordState.PUBLISHED


@dataclass(frozen=True)
class BrowsePage:
    """Records in order, and the id of the last one if there are more."""

    items: Sequence[Change]
    last_id: str | None


def list_page(snapshot: Snapshot, browse_filter: BrowseFilter, limit: int) -> BrowsePage:
    """Return the next records; raise NotFound if the last record of the page before does not exist."""
    list_changes = _list_published if browse_filter.state == RecordState.PUBLISHED else _list_unpublished
    changes = list_changes(snapshot, browse_filter, limit + 1)
    items = changes[:limit]
    return BrowsePage(items, items[-1].record_id if len(changes) > limit else None)


def _list_published(snapshot: Snapshot, browse_filter: BrowseFilter, limit: int) -> list[Change]:
    after = None
    if browse_filter.after is not None:
        after = PageKey(_get_last(snapshot, browse_filter.after).rendered.name_key, browse_filter.after)
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
    # From the record table: few records are unpublished, and the log would be scanned for them.
    after = None
    if browse_filter.after is not None:
        after = _get_last(snapshot, browse_filter.after).rendered.order_key, browse_filter.after
    record_ids = hierarchy_queries.list_ids_in_state(
        snapshot, browse_filter.collection, browse_filter.state, after, limit
    )
    changes = change_log.find_latest(snapshot, record_ids)
    return [changes[record_id] for record_id in record_ids]


def _get_last(snapshot: Snapshot, record_id: str) -> Record:
    message = f"There is no record with the id {get_local_id(record_id)!r} to go on after."
    change = find_or_raise(lambda: change_log.find_latest(snapshot, [record_id]).get(record_id), record_id, message)
    return change.to_record()


def list_children(snapshot: Snapshot, collection: str, parent_id: str, languages: Sequence[str] = ()) -> list[TreeNode]:
    """Return the children of a record by name, with names in languages that the reader wants."""
    types = COLLECTIONS.hierarchies[collection]
    return _translate_nodes(
        snapshot, hierarchy_queries.find_children(snapshot, parent_id, types, MAX_CHILDREN), languages
    )


def list_roots(
    snapshot: Snapshot, collection: str, record_ids: Sequence[str], languages: Sequence[str] = ()
) -> list[TreeNode]:
    """Return these records as roots of a hierarchy, by name, with names in languages that the reader wants."""
    types = COLLECTIONS.hierarchies[collection]
    return _translate_nodes(
        snapshot, hierarchy_queries.find_tree_nodes(snapshot, record_ids[:MAX_CHILDREN], types), languages
    )


def _translate_nodes(snapshot: Snapshot, nodes: list[TreeNode], languages: Sequence[str]) -> list[TreeNode]:
    names = translate_names(snapshot, [node.id for node in nodes], languages)
    translated = [node._replace(name=names.get(node.id, node.name)) for node in nodes]
    return sorted(translated, key=lambda node: (name_key(node.name), node.id)) if names else nodes


def find_path_to_root(snapshot: Snapshot, collection: str, record_id: str) -> list[RecordName]:
    """Return the ancestors of a record from a root down, through the first parent by name."""
    path: list[RecordName] = []
    seen = {record_id}
    while len(path) < _MAX_DEPTH:
        parents = hierarchy_queries.find_parents(snapshot, record_id, COLLECTIONS.hierarchies[collection])
        parent = next((parent for parent in parents if parent.id not in seen), None)
        if parent is None:
            break
        record_id = parent.id
        seen.add(record_id)
        path.insert(0, parent)
    return path
