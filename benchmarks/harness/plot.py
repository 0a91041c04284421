"""Draw how figures grow, as an SVG image that needs no library."""

from collections.abc import Mapping, Sequence
from html import escape
from math import floor, log10

_WIDTH, _HEIGHT = 860, 480
_LEFT, _RIGHT, _TOP, _BOTTOM = 70, 250, 20, 50
_COLORS = ("#1b6650", "#b3541e", "#3b5ba5", "#8a3ffc", "#9a7d0a", "#0b7285", "#a61e4d", "#5c5f66")
_LABEL_HEIGHT = 15


def draw_growth(sizes: Sequence[int], lines: Mapping[str, Sequence[float]], unit: str) -> str:
    """Return a plot with a line per figure over the number of records; both axes are logarithmic."""
    values = [value for line in lines.values() for value in line]
    low, high = floor(log10(min(values))), floor(log10(max(values))) + 1

    def place_size(size: int) -> float:
        share = log10(size / sizes[0]) / log10(sizes[-1] / sizes[0])
        return _LEFT + share * (_WIDTH - _LEFT - _RIGHT)

    def place_value(value: float) -> float:
        return _TOP + (high - log10(value)) / (high - low) * (_HEIGHT - _TOP - _BOTTOM)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" font-family="sans-serif"'
        ' font-size="12">',
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="#fff"/>',
    ]
    for exponent in range(low, high + 1):
        y = place_value(10**exponent)
        parts.append(f'<path d="M{_LEFT} {y:.1f}H{_WIDTH - _RIGHT}" stroke="#ddd"/>')
        parts.append(f'<text x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{10**exponent:g} {escape(unit)}</text>')
    for size in sizes:
        text = f'<text x="{place_size(size):.1f}" y="{_HEIGHT - _BOTTOM + 20}" text-anchor="middle">{size:,}</text>'
        parts.append(text)
    middle = (_LEFT + _WIDTH - _RIGHT) / 2
    parts.append(f'<text x="{middle}" y="{_HEIGHT - 10}" text-anchor="middle">records</text>')
    label_y = float(_TOP)
    for number, (name, line) in enumerate(sorted(lines.items(), key=lambda item: -item[1][-1])):
        color = _COLORS[number % len(_COLORS)]
        points = [(place_size(size), place_value(value)) for size, value in zip(sizes, line, strict=True)]
        path = "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
        parts.append(f'<path d="M{path}" fill="none" stroke="{color}" stroke-width="2"/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{color}"/>' for x, y in points]
        # Labels of lines that end close together are moved apart.
        label_y = max(label_y + _LABEL_HEIGHT, points[-1][1] + 4)
        parts.append(f'<text x="{_WIDTH - _RIGHT + 10}" y="{label_y:.1f}" fill="{color}">{escape(name)}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"
