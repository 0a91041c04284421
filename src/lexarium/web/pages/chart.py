"""A chart of growth: areas on top of each other, month by month."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lexarium.service.statistics import Growth

WIDTH, HEIGHT = 960, 320
_LEFT, _BOTTOM, _TOP = 60, 36, 24
_LINES = 6
"""How many lines there are across at most."""
_MOST_LABELS = 8


@dataclass(frozen=True)
class Series:
    """One area: whose it is, how many there are at the end, and its outline."""

    key: str
    total: int
    path: str


@dataclass(frozen=True)
class Chart:
    """What is to be drawn."""

    series: Sequence[Series]
    lines: Sequence[tuple[float, str]]
    """Lines across, each with its number."""
    labels: Sequence[tuple[float, str]]
    """Years along the bottom."""
    first: str
    last: str
    left: int = _LEFT
    right: int = WIDTH
    bottom: int = HEIGHT - _BOTTOM


def chart(growth: Growth, keys: Sequence[str], others: str) -> Chart | None:
    """The growth of these, and of all others together; None where nothing has grown."""
    months = _months(growth)
    if not months:
        return None
    grown = {key: growth[key] for key in keys if key in growth}
    rest = [counts for key, counts in growth.items() if key not in grown]
    if rest:
        grown[others] = {month: sum(counts.get(month, 0) for counts in rest) for month in months}
    sums = {key: _running(counts, months) for key, counts in grown.items()}
    most = max(sum(each[at] for each in sums.values()) for at in range(len(months)))
    step = _step(most)
    top = step * max(1, -(-most // step))
    floor = [0.0] * len(months)
    series = []
    for key, values in sums.items():
        roof = [below + value for below, value in zip(floor, values, strict=True)]
        series.append(Series(key, values[-1], _outline(floor, roof, top)))
        floor = roof
    lines = [(_y(value, top), _compact(value)) for value in range(0, top + 1, step)]
    return Chart(series, lines, _years(months), months[0], months[-1])


def _months(growth: Growth) -> list[str]:
    """Every month from the first to the last, also those without."""
    told = [month for counts in growth.values() for month in counts if _is_month(month)]
    if not told:
        return []
    (year, month), (last_year, last_month) = (map(int, each.split("-")) for each in (min(told), max(told)))
    count = (last_year - year) * 12 + last_month - month + 1
    found = [f"{year + (month - 1 + step) // 12:04d}-{(month - 1 + step) % 12 + 1:02d}" for step in range(count)]
    return found if len(found) > 1 else [_before(found[0]), *found]


def _is_month(text: str) -> bool:
    year, _, month = text.partition("-")
    return len(text) == 7 and text.isascii() and year.isdecimal() and month.isdecimal() and 1 <= int(month) <= 12


def _before(month: str) -> str:
    year, number = map(int, month.split("-"))
    return f"{year - (number == 1):04d}-{(number - 2) % 12 + 1:02d}"


def _running(counts: Mapping[str, int], months: Sequence[str]) -> list[int]:
    total, found = 0, []
    for month in months:
        total += counts.get(month, 0)
        found.append(total)
    return found


def _step(value: float) -> int:
    """How far lines across are apart, so that there are few of them with round numbers."""
    magnitude = 1
    while True:
        for each in (magnitude, 2 * magnitude, 5 * magnitude):
            if value <= each * _LINES:
                return each
        magnitude *= 10


def _compact(value: int) -> str:
    """A round number in few characters."""
    for size, sign in ((1_000_000, "M"), (1_000, "k")):
        if value >= 10_000 and value >= size and value % size == 0:
            return f"{value // size:,}{sign}"
    return f"{value:,}"


def _y(value: float, top: int) -> float:
    return round(HEIGHT - _BOTTOM - value / top * (HEIGHT - _BOTTOM - _TOP), 1)


def _x(at: int, count: int) -> float:
    return round(_LEFT + at / (count - 1) * (WIDTH - _LEFT), 1)


def _outline(floor: Sequence[float], roof: Sequence[float], top: int) -> str:
    count = len(roof)
    there = "L".join(f"{_x(at, count):g} {_y(value, top):g}" for at, value in enumerate(roof))
    back = "L".join(f"{_x(at, count):g} {_y(floor[at], top):g}" for at in reversed(range(count)))
    return f"M{there}L{back}Z"


def _years(months: Sequence[str]) -> list[tuple[float, str]]:
    """Where years begin; months, where there is no more than a year or two."""
    named = [(at, month[:4]) for at, month in enumerate(months) if month.endswith("-01")]
    if len(months) <= 24:
        named = list(enumerate(months))
    step = -(-len(named) // _MOST_LABELS) or 1
    return [(_x(at, len(months)), name) for at, name in named[::step]]
