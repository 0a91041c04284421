"""Stacked area chart of record counts per month."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, count

from lexarium.services.records.statistics import MonthlyCounts

WIDTH, HEIGHT = 960, 320
_LEFT_MARGIN, _BOTTOM_MARGIN, _TOP_MARGIN = 60, 36, 24
_MAX_GRIDLINES = 6
_MAX_LABELS = 8


@dataclass(frozen=True)
class ChartSeries:
    """One area: its key, final count and SVG outline."""

    key: str
    total: int
    path: str


@dataclass(frozen=True)
class AreaChart:
    """The parts of a chart; gridlines and labels are pairs of coordinate and text."""

    series: Sequence[ChartSeries]
    gridlines: Sequence[tuple[float, str]]
    year_labels: Sequence[tuple[float, str]]
    first: str
    last: str
    left: int = _LEFT_MARGIN
    right: int = WIDTH
    bottom: int = HEIGHT - _BOTTOM_MARGIN


def build_chart(growth: MonthlyCounts, keys: Sequence[str], others_key: str) -> AreaChart | None:
    """Build a chart of these keys and of all others together; return None if there is no data."""
    months = _list_months(growth)
    if not months:
        return None
    selected = {key: growth[key] for key in keys if key in growth}
    other_counts = [counts for key, counts in growth.items() if key not in selected]
    if other_counts:
        selected[others_key] = {month: sum(counts.get(month, 0) for counts in other_counts) for month in months}
    cumulated = {key: list(accumulate(counts.get(month, 0) for month in months)) for key, counts in selected.items()}
    max_total = max(map(sum, zip(*cumulated.values(), strict=True)))
    tick_step = _choose_tick_step(max_total)
    top = tick_step * max(1, -(-max_total // tick_step))
    lower = [0.0] * len(months)
    series = []
    for key, values in cumulated.items():
        upper = [base + value for base, value in zip(lower, values, strict=True)]
        series.append(ChartSeries(key, values[-1], _area_path(lower, upper, top)))
        lower = upper
    gridlines = [(_to_y(value, top), _abbreviate(value)) for value in range(0, top + 1, tick_step)]
    return AreaChart(series, gridlines, _label_years(months), months[0], months[-1])


def _list_months(growth: MonthlyCounts) -> list[str]:
    """Return every month from the first to the last with data; at least two."""
    known_months = [month for counts in growth.values() for month in counts if _is_month(month)]
    if not known_months:
        return []
    first, last = (12 * int(month[:4]) + int(month[5:]) - 1 for month in (min(known_months), max(known_months)))
    return [f"{index // 12:04d}-{index % 12 + 1:02d}" for index in range(min(first, last - 1), last + 1)]


def _is_month(text: str) -> bool:
    year, _, month = text.partition("-")
    return len(text) == 7 and text.isascii() and year.isdecimal() and month.isdecimal() and 1 <= int(month) <= 12


def _choose_tick_step(value: float) -> int:
    """Return the smallest of 1, 2, 5, 10, 20 … that needs few gridlines."""
    steps: Iterator[int] = (digit * 10**power for power in count() for digit in (1, 2, 5))
    return next(step for step in steps if value <= step * _MAX_GRIDLINES)


def _abbreviate(value: int) -> str:
    """Format a round number, as in "20k"."""
    for size, suffix in ((1_000_000, "M"), (1_000, "k")):
        if value >= 10_000 and value >= size and value % size == 0:
            return f"{value // size:,}{suffix}"
    return f"{value:,}"


def _to_y(value: float, top: int) -> float:
    return round(HEIGHT - _BOTTOM_MARGIN - value / top * (HEIGHT - _BOTTOM_MARGIN - _TOP_MARGIN), 1)


def _to_x(index: int, count: int) -> float:
    return round(_LEFT_MARGIN + index / (count - 1) * (WIDTH - _LEFT_MARGIN), 1)


def _area_path(lower: Sequence[float], upper: Sequence[float], top: int) -> str:
    outline = [*enumerate(upper), *reversed(list(enumerate(lower)))]
    return "M" + "L".join(f"{_to_x(index, len(upper)):g} {_to_y(value, top):g}" for index, value in outline) + "Z"


def _label_years(months: Sequence[str]) -> list[tuple[float, str]]:
    """Return labels for the years, or for the months if there are at most 24."""
    labels = [(index, month[:4]) for index, month in enumerate(months) if month.endswith("-01")]
    if len(months) <= 24:
        labels = list(enumerate(months))
    step = -(-len(labels) // _MAX_LABELS) or 1
    return [(_to_x(index, len(months)), name) for index, name in labels[::step]]
