"""A map of rectangles, each as large as what it stands for: squarified, as Bruls, Huizing and van Wijk have it."""

from collections.abc import Sequence
from typing import NamedTuple


class Rectangle(NamedTuple):
    """A rectangle."""

    x: float
    y: float
    width: float
    height: float


def layout_treemap(sizes: Sequence[float], width: float, height: float) -> list[Rectangle]:
    """A rectangle for each size (the largest first, none of them 0), which fill the whole together."""
    if not sizes:
        return []
    scale = width * height / sum(sizes)
    rectangles: list[Rectangle] = []
    free, areas = Rectangle(0, 0, width, height), [size * scale for size in sizes]
    while areas:
        short_side = min(free.width, free.height)
        count = 1
        while count < len(areas) and _worst_aspect_ratio(areas[: count + 1], short_side) <= _worst_aspect_ratio(
            areas[:count], short_side
        ):
            count += 1
        row, free = _layout_row(areas[:count], free)
        rectangles += row
        areas = areas[count:]
    return rectangles


def _worst_aspect_ratio(areas: Sequence[float], short_side: float) -> float:
    """The ratio of sides of the most oblong rectangle of a row along the shorter side."""
    thickness = sum(areas) / short_side
    return max(max(thickness**2 / area, area / thickness**2) for area in areas)


def _layout_row(areas: Sequence[float], container: Rectangle) -> tuple[list[Rectangle], Rectangle]:
    """A row of rectangles along the shorter side, and what is left beside it."""
    rectangles, offset = [], 0.0
    if container.width >= container.height:
        thickness = sum(areas) / container.height
        for area in areas:
            rectangles.append(Rectangle(container.x, container.y + offset, thickness, area / thickness))
            offset += area / thickness
        return rectangles, Rectangle(
            container.x + thickness, container.y, container.width - thickness, container.height
        )
    thickness = sum(areas) / container.width
    for area in areas:
        rectangles.append(Rectangle(container.x + offset, container.y, area / thickness, thickness))
        offset += area / thickness
    return rectangles, Rectangle(container.x, container.y + thickness, container.width, container.height - thickness)
