"""Points in time: milliseconds since the Unix epoch, and the contract's text form of them. All in UTC."""

import re
import time
from datetime import UTC, datetime, timedelta
from functools import lru_cache

# The ends of what `datetime` can say; numbers beyond are kept in records but have no text form of their own.
_MIN = datetime.min.replace(tzinfo=UTC)
_MAX = datetime.max.replace(tzinfo=UTC, microsecond=0)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_PATTERN = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d")


def now_ms() -> int:
    """This moment, in milliseconds since the Unix epoch."""
    return time.time_ns() // 1_000_000


@lru_cache(maxsize=256)  # what is written at one moment tells it several times
def format_timestamp(milliseconds: int) -> str:
    """`YYYY-MM-DDThh:mm:ss`, with no zone designator."""
    try:
        dt = datetime.fromtimestamp(milliseconds / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        dt = _MAX if milliseconds > 0 else _MIN
    return dt.replace(tzinfo=None).isoformat(timespec="seconds")


def format_timestamp_ms(milliseconds: int) -> str | None:
    """`YYYY-MM-DDThh:mm:ss.sssZ`; None where no date can say it."""
    try:
        dt = _EPOCH + timedelta(milliseconds=milliseconds)
    except OverflowError:
        return None
    return dt.replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"


def is_timestamp(text: str) -> bool:
    """Whether a text is a date and time in the form that `text_of` gives."""
    if _PATTERN.fullmatch(text) is None:
        return False
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True


def parse_timestamp(text: str) -> int | None:
    """The point in time a stamp names (UTC where it names no zone), or None where it is no stamp."""
    try:
        dt = datetime.fromisoformat(text)
    except ValueError:
        return None
    # Without fractions: as a float, some milliseconds would be lost.
    return ((dt if dt.tzinfo else dt.replace(tzinfo=UTC)) - _EPOCH) // timedelta(milliseconds=1)
