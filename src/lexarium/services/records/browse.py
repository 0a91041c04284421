"""Browse a collection by name, class, state or hierarchy."""

from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from lexarium.domain.cache_tags import collection_tag
from lexarium.domain.change import Change
from lexarium.domain.identifiers import get_local_id
from lexarium.domain.record import ListQuery, Record, RecordState
from lexarium.domain.schema.collections import COLLECTIONS
from lexarium.domain.text.characters import find_unstorable_char, name_key
from lexarium.services.not_found import find_or_raise
from lexarium.services.records.hierarchy import list_paths
from lexarium.services.records.mentions import translate_names
from lexarium.store import change_log, revisions
from lexarium.store.dependencies import depend_on
from lexarium.store.engine.position_queries import read_position
from lexarium.store.position import Snapshot
from lexarium.store.queries import hierarchy_queries, page_queries
from lexarium.store.queries.hierarchy_queries import MemberFilter, RecordName, TreeNode
from lexarium.store.revisions import PageKey

MAX_CHILDREN = 500  # records on one level of a hierarchy
MAX_EXPANDED = 2_000  # relations of a hierarchy that is shown as a whole
_MAX_DEPTH = 30


@dataclass(frozen=True)
class BrowseFilter:
    """Records of a collection, from a name on or after the last record of the page before."""

    collection: str
    start: str = ""
    after: str | None = None
    class_id: str | None = None
    flagged: bool = False
    # Record that others belong to, such as a subset.
    group_id: str | None = None
    # Language of a name beside the default one; with `has_language` false, records without one.
    language: str | None = None
    has_language: bool = True
    state: RecordState = RecordState.PUBLISHED


@dataclass(frozen=True)
class BrowsePage:
    """Records in order, and the id of the last one if there are more."""

    items: Sequence[Change]
    last_id: str | None


def list_page(snapshot: Snapshot, browse_filter: BrowseFilter, limit: int) -> BrowsePage:
    """Return the next records; raise NotFound if the last record of the page before does not exist."""
    if browse_filter.state != RecordState.PUBLISHED:
        list_changes = _list_unpublished
    elif browse_filter.group_id is not None or browse_filter.language is not None:
        list_changes = _list_members
    else:
        list_changes = _list_published
    changes = list_changes(snapshot, browse_filter, limit + 1)
    items = changes[:limit]
    return BrowsePage(items, items[-1].record_id if len(changes) > limit else None)


def _list_published(snapshot: Snapshot, browse_filter: BrowseFilter, limit: int) -> list[Change]:
    listing = ListQuery(
        browse_filter.collection,
        read_position(snapshot).revision,
        class_id=browse_filter.class_id,
        flagged=browse_filter.flagged or None,
    )
    with depend_on([collection_tag(browse_filter.collection)]):
        return revisions.list_page(snapshot, listing, _find_start(snapshot, browse_filter), limit)


def _list_members(snapshot: Snapshot, browse_filter: BrowseFilter, limit: int) -> list[Change]:
    member_filter = MemberFilter(
        browse_filter.group_id,
        COLLECTIONS[browse_filter.collection].grouping_types,
        browse_filter.language,
        browse_filter.has_language,
    )
    start = _find_start(snapshot, browse_filter)
    after = None if start is None else (str(start.key), start.record_id)
    record_ids = hierarchy_queries.list_members(snapshot, browse_filter.collection, member_filter, after, limit)
    changes = change_log.find_latest(snapshot, record_ids)
    return [changes[record_id] for record_id in record_ids]


def _find_start(snapshot: Snapshot, browse_filter: BrowseFilter) -> PageKey | None:
    """Return the name and id after which a page begins."""
    if browse_filter.after is not None:
        return PageKey(_get_last(snapshot, browse_filter.after).rendered.name_key, browse_filter.after)
    if browse_filter.start and not find_unstorable_char(browse_filter.start):
        return PageKey(name_key(browse_filter.start), "")
    return None


def _list_unpublished(snapshot: Snapshot, browse_filter: BrowseFilter, limit: int) -> list[Change]:
    # From the record table: few records are unpublished, and the log would be scanned for them.
    after = None
    with depend_on([collection_tag(browse_filter.collection)]):
        if browse_filter.after is not None:
            after = _get_last(snapshot, browse_filter.after).rendered.order_key, browse_filter.after
        record_ids = hierarchy_queries.list_ids_in_state(
            snapshot, browse_filter.collection, browse_filter.state, after, limit
        )
        changes = change_log.find_latest(snapshot, record_ids)
    return [changes[record_id] for record_id in record_ids]


def _get_last(snapshot: Snapshot, record_id: str) -> Record:
    message = f"Record {get_local_id(record_id)!r} of the cursor not found."
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


def list_parents(
    snapshot: Snapshot, collection: str, record_id: str, languages: Sequence[str] = ()
) -> list[RecordName]:
    """Return the parents of a record by name, with names in languages that the reader wants."""
    parents = hierarchy_queries.find_parents(snapshot, record_id, COLLECTIONS.hierarchies.get(collection, ()))
    names = translate_names(snapshot, [parent.id for parent in parents], languages)
    return [parent._replace(name=names.get(parent.id, parent.name)) for parent in parents]


def _translate_nodes(snapshot: Snapshot, nodes: list[TreeNode], languages: Sequence[str]) -> list[TreeNode]:
    names = translate_names(snapshot, [node.id for node in nodes], languages)
    translated = [node._replace(name=names.get(node.id, node.name)) for node in nodes]
    return sorted(translated, key=lambda node: (name_key(node.name), node.id)) if names else nodes


@dataclass(frozen=True)
class TreeItem:
    """Record in a hierarchy, with the children that are shown below it."""

    node: TreeNode
    children: Sequence["TreeItem"] = ()
    is_match: bool = False


def to_items(nodes: Iterable[TreeNode]) -> list[TreeItem]:
    """Return nodes as items that are closed."""
    return [TreeItem(node) for node in nodes]


def list_top_terms(
    snapshot: Snapshot, collection: str, root_ids: Sequence[str], languages: Sequence[str] = ()
) -> list[TreeItem]:
    """Return the roots of a hierarchy, or the children of its only root if they have some, the largest first."""
    nodes = list_roots(snapshot, collection, root_ids, languages)
    if len(nodes) == 1:
        below = list_children(snapshot, collection, nodes[0].id, languages)
        nodes = below if any(node.child_count for node in below) else nodes
    return to_items(sorted(nodes, key=lambda node: -node.child_count))


def add_children(
    snapshot: Snapshot, collection: str, items: Sequence[TreeItem], languages: Sequence[str] = ()
) -> list[TreeItem]:
    """Return items with their children, the first `MAX_CHILDREN` of all."""
    types, parent_ids = COLLECTIONS.hierarchies[collection], [item.node.id for item in items]
    edges = hierarchy_queries.find_edges_below(snapshot, parent_ids, types, MAX_CHILDREN)
    names = translate_names(snapshot, [edge.id for edge in edges], languages)
    children: dict[str, list[TreeItem]] = {}
    for edge in edges:
        node = TreeNode(edge.id, names.get(edge.id, edge.name), edge.type_name, 0)
        children.setdefault(edge.parent_id, []).append(TreeItem(node))
    return [replace(item, children=children.get(item.node.id, ())) for item in items]


def group_by_class(snapshot: Snapshot, items: Sequence[TreeItem]) -> dict[str, list[TreeItem]]:
    """Return items (at most MAX_CHILDREN) by the id of their class, empty for none."""
    class_ids = hierarchy_queries.find_class_ids(snapshot, [item.node.id for item in items])
    groups: dict[str, list[TreeItem]] = {}
    for item in items:
        groups.setdefault(class_ids.get(item.node.id, ""), []).append(item)
    return groups


def expand_tree(
    snapshot: Snapshot, collection: str, roots: Sequence[TreeNode], languages: Sequence[str] = ()
) -> list[TreeItem] | None:
    """Return a whole hierarchy, or None if it is too large. A record below several parents is expanded once."""
    edges = hierarchy_queries.list_edges(snapshot, collection, COLLECTIONS.hierarchies[collection], MAX_EXPANDED + 1)
    if len(edges) > MAX_EXPANDED:
        return None
    names = translate_names(snapshot, [edge.id for edge in edges], languages)
    counts = Counter(edge.parent_id for edge in edges)
    children: dict[str, list[TreeNode]] = {}
    for edge in edges:
        node = TreeNode(edge.id, names.get(edge.id, edge.name), edge.type_name, counts[edge.id])
        children.setdefault(edge.parent_id, []).append(node)
    return _nest(roots, children)


def filter_tree(
    snapshot: Snapshot, collection: str, record_ids: Sequence[str], languages: Sequence[str] = ()
) -> list[TreeItem]:
    """Return the part of a hierarchy that leads to some records (at most MAX_CHILDREN)."""
    types = COLLECTIONS.hierarchies[collection]
    edges = hierarchy_queries.find_edges_above(snapshot, record_ids, types)
    shown_ids = list(dict.fromkeys([*record_ids, *chain.from_iterable((edge.id, edge.parent_id) for edge in edges)]))
    nodes = {node.id: node for node in list_roots(snapshot, collection, shown_ids, languages)}
    children: dict[str, list[TreeNode]] = {}
    for edge in edges:
        if edge.id in nodes and edge.parent_id in nodes:
            children.setdefault(edge.parent_id, []).append(nodes[edge.id]._replace(type_name=edge.type_name))
    below = {node.id for level in children.values() for node in level}
    roots = [node for node in nodes.values() if node.id not in below]
    return _nest(roots, children, frozenset(record_ids))


def _nest(
    roots: Sequence[TreeNode], children: Mapping[str, Sequence[TreeNode]], matches: Container[str] = ()
) -> list[TreeItem]:
    """Nest nodes. Those that were expanded before, and those deeper than `_MAX_DEPTH`, stay closed."""
    expanded: set[str] = set()

    def nest(node: TreeNode, depth: int) -> TreeItem:
        if node.id in expanded or depth == _MAX_DEPTH:
            return TreeItem(node, (), node.id in matches)
        expanded.add(node.id)
        below = tuple(nest(child, depth + 1) for child in children.get(node.id, ()))
        return TreeItem(node, below, node.id in matches)

    return [nest(root, 0) for root in roots]


def list_members(snapshot: Snapshot, record: Record, limit: int) -> dict[str, list[tuple[str, str]]]:
    """Return the ids and names of the first records that have a record as their class, by collection."""
    collections = [
        name
        for name in COLLECTIONS.list_names(record.collection.vocabulary)
        if record.collection.name in COLLECTIONS[name].class_fields.values()
    ]
    return page_queries.list_members(snapshot, collections, record.id, limit)


def find_path_to_root(snapshot: Snapshot, collection: str, record_id: str) -> Sequence[RecordName]:
    """Return the ancestors of a record on the shortest path from a root."""
    return next(iter(list_paths(snapshot, record_id, COLLECTIONS.hierarchies[collection])), ())
