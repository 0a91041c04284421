"""A record and what it is related to, drawn: the broader and what speaks of it on the left, the rest on the right."""

from collections.abc import Sequence
from dataclasses import dataclass

from lexarium.service.dossiers import Group

WIDTH = 700
_NODE_WIDTH, _NODE_HEIGHT, _STEP = 216, 30, 38
_CENTRE_WIDTH = 150
_LABEL_HEIGHT = 24
_GROUP_GAP = 14
_MOST = 6
"""How many of a group are drawn; the page lists them all."""
_LONGEST, _LONGEST_CENTRE = 28, 19


@dataclass(frozen=True)
class Node:
    """A record at its place."""

    x: float
    y: float
    text: str
    name: str
    id: str
    path: str
    """The line to the middle."""
    hierarchical: bool


@dataclass(frozen=True)
class Label:
    """Words at their place."""

    x: float
    y: float
    text: str


@dataclass(frozen=True)
class Graph:
    """What is to be drawn."""

    height: float
    centre: str
    nodes: Sequence[Node]
    labels: Sequence[Label]
    node: tuple[int, int] = (_NODE_WIDTH, _NODE_HEIGHT)
    middle: tuple[float, int] = ((WIDTH - _CENTRE_WIDTH) / 2, _CENTRE_WIDTH)


def graph(name: str, groups: Sequence[Group]) -> Graph | None:
    """The drawing, or None where there is nothing to draw."""
    if not groups:
        return None
    left = [group for group in groups if group.outward == group.hierarchical]
    right = [group for group in groups if group.outward != group.hierarchical]
    height = max(_height(left), _height(right), 60)
    nodes: list[Node] = []
    labels: list[Label] = []
    for side, several in (("left", left), ("right", right)):
        y = (height - _height(several)) / 2
        x = 0 if side == "left" else WIDTH - _NODE_WIDTH
        for group in several:
            labels.append(Label(x + 2, y + 15, group.label))
            y += _LABEL_HEIGHT
            for item in group.items[:_MOST]:
                path = _line(x, y + _NODE_HEIGHT / 2, height / 2, leftward=side == "left")
                nodes.append(Node(x, y, _short(item.name, _LONGEST), item.name, item.id, path, group.hierarchical))
                y += _STEP
            more = group.total - min(len(group.items), _MOST)
            if more:
                labels.append(Label(x + 2, y + 12, f"and {more:,} more"))
                y += _LABEL_HEIGHT
            y += _GROUP_GAP
    return Graph(height, _short(name, _LONGEST_CENTRE), nodes, labels)


def _height(groups: Sequence[Group]) -> float:
    drawn = sum(
        _LABEL_HEIGHT + _STEP * min(len(group.items), _MOST) + (_LABEL_HEIGHT if group.total > _MOST else 0)
        for group in groups
    )
    return drawn + _GROUP_GAP * max(0, len(groups) - 1)


def _line(x: float, y: float, middle: float, *, leftward: bool) -> str:
    start = x + _NODE_WIDTH if leftward else x
    end = (WIDTH - _CENTRE_WIDTH) / 2 if leftward else (WIDTH + _CENTRE_WIDTH) / 2
    bend = (start + end) / 2
    return f"M{start:g} {y:g}C{bend:g} {y:g} {bend:g} {middle:g} {end:g} {middle:g}"


def _short(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[: longest - 1].rstrip() + "…"
