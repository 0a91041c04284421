"""Timestamps: milliseconds since the Unix epoch, and their text forms, in UTC."""

import re
import time
from datetime import UTC, datetime, timedelta
from functools import lru_cache

# Limits of `datetime`. Records may hold numbers beyond them.
_MIN = datetime.min.replace(tzinfo=UTC)
_MAX = datetime.max.replace(tzinfo=UTC, microsecond=0)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_PATTERN = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d")


def now_ms() -> int:
    """Return the current time in milliseconds since the Unix epoch."""
    return time.time_ns() // 1_000_000


@lru_cache(maxsize=256)  # one write formats the same time repeatedly
def format_timestamp(milliseconds: int) -> str:
    """Format as `YYYY-MM-DDThh:mm:ss`."""
    try:
        dt = datetime.fromtimestamp(milliseconds / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        dt = _MAX if milliseconds > 0 else _MIN
    return dt.replace(tzinfo=None).isoformat(timespec="seconds")


def is_timestamp(text: str) -> bool:
    """Return whether a text is a timestamp in the form of `format_timestamp`."""
    if _PATTERN.fullmatch(text) is None:
        return False
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True


def parse_timestamp(text: str) -> int | None:
    """Return the milliseconds of an ISO 8601 timestamp (in UTC unless it has a zone), or None if it is invalid."""
    try:
        dt = datetime.fromisoformat(text)
    except ValueError:
        return None
    # Integer division: a float would lose milliseconds.
    return ((dt if dt.tzinfo else dt.replace(tzinfo=UTC)) - _EPOCH) // timedelta(milliseconds=1)
