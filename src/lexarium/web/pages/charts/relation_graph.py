"""SVG layout of a record and its related records.

Parents and incoming associative relations are on the left, everything else is on the right.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from lexarium.services.records.detail import RelationGroup

WIDTH = 700
_NODE_WIDTH, _NODE_HEIGHT, _NODE_STEP = 216, 30, 38
_CENTRE_WIDTH = 150
_LABEL_HEIGHT = 24
_GROUP_GAP = 14
_MAX_NODES = 6
_MAX_CHARS, _MAX_CENTRE_CHARS = 25, 16


@dataclass(frozen=True)
class GraphNode:
    """A related record; `path` is the line to the centre."""

    x: float
    y: float
    text: str
    name: str
    id: str
    path: str
    is_hierarchical: bool


@dataclass(frozen=True)
class RelationGraph:
    """The parts of the graph; labels are triples of coordinates and text."""

    height: float
    centre: str
    nodes: Sequence[GraphNode]
    labels: Sequence[tuple[float, float, str]]
    node_size: tuple[int, int] = (_NODE_WIDTH, _NODE_HEIGHT)
    centre_box: tuple[float, int] = ((WIDTH - _CENTRE_WIDTH) / 2, _CENTRE_WIDTH)


def build_graph(name: str, groups: Sequence[RelationGroup]) -> RelationGraph | None:
    """Lay out the graph; return None if there are no relations."""
    if not groups:
        return None
    left = [group for group in groups if group.is_outgoing == group.hierarchical]
    right = [group for group in groups if group.is_outgoing != group.hierarchical]
    height = max(_compute_height(left), _compute_height(right), 60)
    nodes: list[GraphNode] = []
    labels: list[tuple[float, float, str]] = []
    for is_left, side_groups in ((True, left), (False, right)):
        y = (height - _compute_height(side_groups)) / 2
        x = 0 if is_left else WIDTH - _NODE_WIDTH
        for group in side_groups:
            labels.append((x + 2, y + 15, group.label))
            y += _LABEL_HEIGHT
            for item in group.items[:_MAX_NODES]:
                path = _edge_path(x, y + _NODE_HEIGHT / 2, height / 2, is_left=is_left)
                shown_name = item.name or item.id
                text = _truncate(shown_name, _MAX_CHARS)
                nodes.append(GraphNode(x, y, text, shown_name, item.id, path, group.hierarchical))
                y += _NODE_STEP
            hidden_count = group.total - min(len(group.items), _MAX_NODES)
            if hidden_count:
                labels.append((x + 2, y + 12, f"and {hidden_count:,} more"))
                y += _LABEL_HEIGHT
            y += _GROUP_GAP
    return RelationGraph(height, _truncate(name, _MAX_CENTRE_CHARS), nodes, labels)


def _compute_height(groups: Sequence[RelationGroup]) -> float:
    height = sum(
        _LABEL_HEIGHT
        + _NODE_STEP * min(len(group.items), _MAX_NODES)
        + (_LABEL_HEIGHT if group.total > _MAX_NODES else 0)
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
