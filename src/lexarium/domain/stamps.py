"""Points in time: milliseconds since the Unix epoch, and the contract's text form of them. All in UTC."""

import time
from datetime import UTC, datetime

# The last second that `datetime` can say; larger numbers are kept in records but have no text form.
_LAST = datetime.max.replace(tzinfo=UTC, microsecond=0)


def now() -> int:
    """This moment, in milliseconds since the Unix epoch."""
    return time.time_ns() // 1_000_000


def text_of(milliseconds: int) -> str:
    """`YYYY-MM-DDThh:mm:ss`, with no zone designator."""
    try:
        moment = datetime.fromtimestamp(milliseconds / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        moment = _LAST
    return moment.replace(tzinfo=None).isoformat(timespec="seconds")


def milliseconds_of(text: str) -> int | None:
    """The point in time a stamp names (UTC where it names no zone), or None where it is no stamp."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)
