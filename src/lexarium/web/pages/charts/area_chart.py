"""A chart of growth: areas on top of each other, month by month."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lexarium.services.records.statistics import MonthlyCounts

WIDTH, HEIGHT = 960, 320
_LEFT_MARGIN, _BOTTOM_MARGIN, _TOP_MARGIN = 60, 36, 24
_MAX_GRIDLINES = 6
"""How many lines there are across at most."""
_MAX_LABELS = 8


@dataclass(frozen=True)
class ChartSeries:
    """One area: whose it is, how many there are at the end, and its outline."""

    key: str
    total: int
    path: str


@dataclass(frozen=True)
class AreaChart:
    """What is to be drawn."""

    series: Sequence[ChartSeries]
    gridlines: Sequence[tuple[float, str]]
    """Lines across, each with its number."""
    year_labels: Sequence[tuple[float, str]]
    """Years along the bottom."""
    first: str
    last: str
    left: int = _LEFT_MARGIN
    right: int = WIDTH
    bottom: int = HEIGHT - _BOTTOM_MARGIN


def build_chart(growth: MonthlyCounts, keys: Sequence[str], others_key: str) -> AreaChart | None:
    """The growth of these, and of all others together; None where nothing has grown."""
    months = _list_months(growth)
    if not months:
        return None
    selected = {key: growth[key] for key in keys if key in growth}
    other_counts = [counts for key, counts in growth.items() if key not in selected]
    if other_counts:
        selected[others_key] = {month: sum(counts.get(month, 0) for counts in other_counts) for month in months}
    cumulated = {key: _cumulate(counts, months) for key, counts in selected.items()}
    max_total = max(sum(totals[month_index] for totals in cumulated.values()) for month_index in range(len(months)))
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
    """Every month from the first to the last, also those without."""
    known_months = [month for counts in growth.values() for month in counts if _is_month(month)]
    if not known_months:
        return []
    (year, month), (last_year, last_month) = (
        map(int, bound.split("-")) for bound in (min(known_months), max(known_months))
    )
    count = (last_year - year) * 12 + last_month - month + 1
    months = [f"{year + (month - 1 + offset) // 12:04d}-{(month - 1 + offset) % 12 + 1:02d}" for offset in range(count)]
    return months if len(months) > 1 else [_previous_month(months[0]), *months]


def _is_month(text: str) -> bool:
    year, _, month = text.partition("-")
    return len(text) == 7 and text.isascii() and year.isdecimal() and month.isdecimal() and 1 <= int(month) <= 12


def _previous_month(month: str) -> str:
    year, number = map(int, month.split("-"))
    return f"{year - (number == 1):04d}-{(number - 2) % 12 + 1:02d}"


def _cumulate(counts: Mapping[str, int], months: Sequence[str]) -> list[int]:
    total, totals = 0, []
    for month in months:
        total += counts.get(month, 0)
        totals.append(total)
    return totals


def _choose_tick_step(value: float) -> int:
    """How far lines across are apart, so that there are few of them with round numbers."""
    magnitude = 1
    while True:
        for step in (magnitude, 2 * magnitude, 5 * magnitude):
            if value <= step * _MAX_GRIDLINES:
                return step
        magnitude *= 10


def _abbreviate(value: int) -> str:
    """A round number in few characters."""
    for size, suffix in ((1_000_000, "M"), (1_000, "k")):
        if value >= 10_000 and value >= size and value % size == 0:
            return f"{value // size:,}{suffix}"
    return f"{value:,}"


def _to_y(value: float, top: int) -> float:
    return round(HEIGHT - _BOTTOM_MARGIN - value / top * (HEIGHT - _BOTTOM_MARGIN - _TOP_MARGIN), 1)


def _to_x(index: int, count: int) -> float:
    return round(_LEFT_MARGIN + index / (count - 1) * (WIDTH - _LEFT_MARGIN), 1)


def _area_path(lower: Sequence[float], upper: Sequence[float], top: int) -> str:
    count = len(upper)
    forward = "L".join(f"{_to_x(index, count):g} {_to_y(value, top):g}" for index, value in enumerate(upper))
    backward = "L".join(f"{_to_x(index, count):g} {_to_y(lower[index], top):g}" for index in reversed(range(count)))
    return f"M{forward}L{backward}Z"


def _label_years(months: Sequence[str]) -> list[tuple[float, str]]:
    """Where years begin; months, where there is no more than a year or two."""
    labels = [(index, month[:4]) for index, month in enumerate(months) if month.endswith("-01")]
    if len(months) <= 24:
        labels = list(enumerate(months))
    step = -(-len(labels) // _MAX_LABELS) or 1
    return [(_to_x(index, len(months)), name) for index, name in labels[::step]]
