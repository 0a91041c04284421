"""Squarified treemap layout (Bruls, Huizing, van Wijk)."""

from collections.abc import Sequence
from typing import NamedTuple


class Rectangle(NamedTuple):
    """Position and size."""

    x: float
    y: float
    width: float
    height: float


def layout_treemap(sizes: Sequence[float], width: float, height: float) -> list[Rectangle]:
    """Fill an area with one rectangle for each size. Sizes are positive, the largest first."""
    if not sizes:
        return []
    scale = width * height / sum(sizes)
    rectangles: list[Rectangle] = []
    free, areas = Rectangle(0, 0, width, height), [size * scale for size in sizes]
    while areas:
        short_side = min(free.width, free.height)
        count = 1
        ratio = _worst_aspect_ratio(areas[:1], short_side)
        while count < len(areas) and (next_ratio := _worst_aspect_ratio(areas[: count + 1], short_side)) <= ratio:
            ratio = next_ratio
            count += 1
        row, free = _layout_row(areas[:count], free)
        rectangles += row
        areas = areas[count:]
    return rectangles


def _worst_aspect_ratio(areas: Sequence[float], short_side: float) -> float:
    """Return the aspect ratio of the most oblong rectangle of a row along the shorter side."""
    thickness = sum(areas) / short_side
    return max(max(thickness**2 / area, area / thickness**2) for area in areas)


def _layout_row(areas: Sequence[float], free: Rectangle) -> tuple[list[Rectangle], Rectangle]:
    """Place a row along the shorter side; return its rectangles and the remaining area."""
    is_column = free.width >= free.height
    thickness = sum(areas) / min(free.width, free.height)
    row, (x, y) = [], (free.x, free.y)
    for area in areas:
        length = area / thickness
        if is_column:
            row.append(Rectangle(x, y, thickness, length))
            y += length
        else:
            row.append(Rectangle(x, y, length, thickness))
            x += length
    if is_column:
        return row, Rectangle(free.x + thickness, free.y, free.width - thickness, free.height)
    return row, Rectangle(free.x, free.y + thickness, free.width, free.height - thickness)
