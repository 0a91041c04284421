"""Place of a record in its hierarchy: the paths to the root, and the tree around it."""

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from lexarium.domain.record import Record
from lexarium.domain.schema.collections import COLLECTIONS
from lexarium.store.position import Snapshot
from lexarium.store.queries import page_queries
from lexarium.store.queries.hierarchy_queries import RecordName
from lexarium.store.queries.page_queries import LevelNode, ParentEdge

MAX_PATHS = 50
MAX_SIBLINGS = 40
_MAX_STEPS = 5_000

Path = tuple[RecordName, ...]


class Branch(NamedTuple):
    """Record in a tree. `children` is None where they are not loaded."""

    id: str
    name: str
    type_name: str = ""
    has_children: bool = False
    children: Sequence["Branch"] | None = None
    # Whether there may be children that are left out.
    has_more: bool = False
    is_current: bool = False


@dataclass(frozen=True)
class Hierarchy:
    """Place of a record in its hierarchy."""

    # From a root to a parent, the shortest first.
    paths: Sequence[Path] = ()
    # From the root of the first path.
    tree: Branch | None = None

    @property
    def type_names(self) -> set[str]:
        """Types of the relations between the records of the tree, as far as they are known."""
        return {branch.type_name for branch in _iter_branches(self.tree) if branch.type_name}

    def iter_ids(self) -> Iterator[str]:
        """Yield the ids of all records that are shown."""
        yield from (item.id for path in self.paths for item in path)
        yield from (branch.id for branch in _iter_branches(self.tree))

    def translate(self, names: Mapping[str, str]) -> "Hierarchy":
        """Return the hierarchy with other names of some records."""
        if not names:
            return self
        paths = [tuple(item._replace(name=names.get(item.id, item.name)) for item in path) for path in self.paths]
        return Hierarchy(paths, _translate(self.tree, names) if self.tree else None)


def load_hierarchy(snapshot: Snapshot, record: Record, name: str) -> Hierarchy:
    """Return the place of a record, which has a name; an empty one if its collection has no hierarchy."""
    types = COLLECTIONS.hierarchies.get(record.collection.name)
    if not types:
        return Hierarchy()
    paths = list_paths(snapshot, record.id, types)
    parent_id = paths[0][-1].id if paths else None
    levels = page_queries.find_levels(snapshot, [*filter(None, [parent_id]), record.id], types, MAX_SIBLINGS)
    children = [_to_branch(node) for node in levels[record.id]]
    if not paths and not children:
        return Hierarchy()
    branch = Branch(record.id, name, "", bool(children), children, len(children) >= MAX_SIBLINGS, is_current=True)
    return Hierarchy(paths, _build_tree(branch, paths, levels.get(parent_id or "", [])))


def list_paths(snapshot: Snapshot, record_id: str, type_names: Sequence[str]) -> list[Path]:
    """Return the paths from the roots of a hierarchy to the parents of a record, the shortest first."""
    parents: dict[str, list[ParentEdge]] = {}
    edges = page_queries.find_ancestor_edges(snapshot, record_id, type_names)
    for edge in sorted(edges, key=lambda edge: (edge.parent_name.casefold(), edge.parent)):
        parents.setdefault(edge.child, []).append(edge)
    paths: list[Path] = []
    pending = deque([((), frozenset([record_id]), record_id)])  # type: deque[tuple[Path, frozenset[str], str]]
    for _ in range(_MAX_STEPS):
        if not pending or len(paths) >= MAX_PATHS:
            break
        path, seen, first_id = pending.popleft()
        above = {edge.parent: edge.parent_name for edge in parents.get(first_id, ()) if edge.parent not in seen}
        for parent_id, name in above.items():
            pending.append(((RecordName(parent_id, name), *path), seen | {parent_id}, parent_id))
        if path and not above:
            paths.append(path)
    return paths


def _build_tree(current: Branch, paths: Sequence[Path], level: Sequence[LevelNode]) -> Branch:
    """Return the tree of the first path, with the siblings of a record."""
    if not paths:
        return current
    siblings = [
        current._replace(type_name=node.type_name) if node.id == current.id else _to_branch(node) for node in level
    ]
    if not any(item.is_current for item in siblings):
        siblings.insert(0, current)
    *above, parent = paths[0]
    tree = Branch(parent.id, parent.name, "", True, siblings, len(level) >= MAX_SIBLINGS)
    for item in reversed(above):
        tree = Branch(item.id, item.name, "", True, [tree], has_more=True)
    return tree


def _to_branch(node: LevelNode) -> Branch:
    return Branch(node.id, node.name, node.type_name, node.has_children)


def _iter_branches(branch: Branch | None) -> Iterator[Branch]:
    if branch is not None:
        yield branch
        for child in branch.children or ():
            yield from _iter_branches(child)


def _translate(branch: Branch, names: Mapping[str, str]) -> Branch:
    children = None if branch.children is None else [_translate(child, names) for child in branch.children]
    return branch._replace(name=names.get(branch.id, branch.name), children=children)
