"""Which of the media types there are suits a client best, by its `Accept` header."""

from collections.abc import Iterator, Sequence

_LONGEST = 4_000
"""In characters; of a longer header the rest is not looked at."""


def preferred(accept: str, offered: Sequence[str]) -> str | None:
    """The media type that a client likes best; of those it likes alike the first. None where it takes none of them.

    A client that says nothing takes all. Of several ranges that hold a type, the one that says most counts.
    """
    if not accept.strip():
        return offered[0]
    ranges = dict(_ranges(accept[:_LONGEST]))
    best, liking = None, 0.0
    for kind in offered:
        own = next((ranges[each] for each in (kind, f"{kind.partition('/')[0]}/*", "*/*") if each in ranges), 0.0)
        if own > liking:
            best, liking = kind, own
    return best


def _ranges(accept: str) -> Iterator[tuple[str, float]]:
    """Each range with how much it is liked; parameters other than that say nothing here."""
    for part in accept.lower().split(","):
        name, *parameters = (each.strip() for each in part.split(";"))
        weight = next((each[2:] for each in parameters if each.startswith("q=")), "1")
        try:
            yield name, float(weight)
        except ValueError:
            yield name, 0.0
