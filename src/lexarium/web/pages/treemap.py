"""A map of rectangles, each as large as what it stands for: squarified, as Bruls, Huizing and van Wijk have it."""

from collections.abc import Sequence
from typing import NamedTuple


class Box(NamedTuple):
    """A rectangle."""

    x: float
    y: float
    width: float
    height: float


def squarified(sizes: Sequence[float], width: float, height: float) -> list[Box]:
    """A rectangle for each size (the largest first, none of them 0), which fill the whole together."""
    if not sizes:
        return []
    scale = width * height / sum(sizes)
    boxes: list[Box] = []
    rest, left = Box(0, 0, width, height), [size * scale for size in sizes]
    while left:
        short = min(rest.width, rest.height)
        count = 1
        while count < len(left) and _worst(left[: count + 1], short) <= _worst(left[:count], short):
            count += 1
        placed, rest = _row(left[:count], rest)
        boxes += placed
        left = left[count:]
    return boxes


def _worst(areas: Sequence[float], short: float) -> float:
    """The ratio of sides of the most oblong rectangle of a row along the shorter side."""
    thickness = sum(areas) / short
    return max(max(thickness**2 / area, area / thickness**2) for area in areas)


def _row(areas: Sequence[float], within: Box) -> tuple[list[Box], Box]:
    """A row of rectangles along the shorter side, and what is left beside it."""
    boxes, at = [], 0.0
    if within.width >= within.height:
        thickness = sum(areas) / within.height
        for area in areas:
            boxes.append(Box(within.x, within.y + at, thickness, area / thickness))
            at += area / thickness
        return boxes, Box(within.x + thickness, within.y, within.width - thickness, within.height)
    thickness = sum(areas) / within.width
    for area in areas:
        boxes.append(Box(within.x + at, within.y, area / thickness, thickness))
        at += area / thickness
    return boxes, Box(within.x, within.y + thickness, within.width, within.height - thickness)
