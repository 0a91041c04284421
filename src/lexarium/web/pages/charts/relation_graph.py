"""SVG layout of a record and its related records.

Parents and incoming associative relations are on the left, everything else is on the right. `graph.js` reads the groups
and draws them the same way when it expands a node.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from lexarium.services.records.relation_groups import RelationGroup

WIDTH = 700
_NODE_WIDTH, _NODE_HEIGHT, _NODE_STEP = 216, 30, 38
_CENTRE_WIDTH = 150
_LABEL_HEIGHT = 24
_GROUP_GAP = 14
_MAX_NODES = 6
_MAX_CHARS, _MAX_CENTRE_CHARS = 23, 16


class GraphNode(NamedTuple):
    """A related record; `path` is the line to the centre."""

    x: float
    y: float
    text: str
    name: str
    id: str
    path: str


@dataclass(frozen=True)
class GraphGroup:
    """Records of one relation, with the place of its label, and of the number of those that are left out."""

    side: Literal["left", "right"]
    label: str
    x: float
    y: float
    is_hierarchical: bool
    nodes: Sequence[GraphNode]
    hidden_count: int
    hidden_y: float


@dataclass(frozen=True)
class RelationGraph:
    """The parts of the graph."""

    height: float
    centre: str
    groups: Sequence[GraphGroup]
    node_size: tuple[int, int] = (_NODE_WIDTH, _NODE_HEIGHT)
    centre_box: tuple[float, int] = ((WIDTH - _CENTRE_WIDTH) / 2, _CENTRE_WIDTH)


def build_graph(name: str, groups: Sequence[RelationGroup]) -> RelationGraph | None:
    """Lay out the graph; return None if there are no relations."""
    shown = [group for group in groups if group.items]
    if not shown:
        return None
    left = [group for group in shown if group.is_outgoing == group.hierarchical]
    right = [group for group in shown if group.is_outgoing != group.hierarchical]
    height = max(_compute_height(left), _compute_height(right), 60)
    placed = [*_place_groups(left, height, "left"), *_place_groups(right, height, "right")]
    return RelationGraph(height, _truncate(name, _MAX_CENTRE_CHARS), placed)


def _place_groups(groups: Sequence[RelationGroup], height: float, side: Literal["left", "right"]) -> list[GraphGroup]:
    y = (height - _compute_height(groups)) / 2
    x = 0 if side == "left" else WIDTH - _NODE_WIDTH
    placed = []
    for group in groups:
        label_y = y + 15
        y += _LABEL_HEIGHT
        nodes = []
        for item in group.items[:_MAX_NODES]:
            path = _edge_path(x, y + _NODE_HEIGHT / 2, height / 2, is_left=side == "left")
            name = item.name or item.id
            nodes.append(GraphNode(x, y, _truncate(name, _MAX_CHARS), name, item.id, path))
            y += _NODE_STEP
        hidden_count = group.total - len(nodes)
        placed.append(GraphGroup(side, group.label, x + 2, label_y, group.hierarchical, nodes, hidden_count, y + 12))
        y += (_LABEL_HEIGHT if hidden_count else 0) + _GROUP_GAP
    return placed


def _compute_height(groups: Sequence[RelationGroup]) -> float:
    height = sum(
        _LABEL_HEIGHT
        + _NODE_STEP * min(len(group.items), _MAX_NODES)
        + (_LABEL_HEIGHT if group.total > min(len(group.items), _MAX_NODES) else 0)
        for group in groups
    )
    return height + _GROUP_GAP * max(0, len(groups) - 1)


def _edge_path(x: float, y: float, centre_y: float, *, is_left: bool) -> str:
    start = x + _NODE_WIDTH if is_left else x
    end = (WIDTH - _CENTRE_WIDTH) / 2 if is_left else (WIDTH + _CENTRE_WIDTH) / 2
    control_x = (start + end) / 2
    return f"M{start:g} {y:g}C{control_x:g} {y:g} {control_x:g} {centre_y:g} {end:g} {centre_y:g}"


def _truncate(text: str, max_chars: int) -> str:
    return text if len(text) <= max_chars else text[: max_chars - 1].rstrip() + "…"
