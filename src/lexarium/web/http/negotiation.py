"""Which of the media types there are suits a client best, by its `Accept` header."""

from collections.abc import Iterator, Sequence

_MAX_ACCEPT_CHARS = 4_000
"""In characters; of a longer header the rest is not looked at."""


def choose_media_type(accept: str, offered: Sequence[str]) -> str | None:
    """The media type that a client likes best; of those it likes alike the first. None where it takes none of them.

    A client that says nothing takes all. Of several ranges that hold a type, the one that says most counts.
    """
    if not accept.strip():
        return offered[0]
    ranges = dict(_parse_ranges(accept[:_MAX_ACCEPT_CHARS]))
    best, best_weight = None, 0.0
    for media_type in offered:
        weight = next(
            (
                ranges[media_range]
                for media_range in (media_type, f"{media_type.partition('/')[0]}/*", "*/*")
                if media_range in ranges
            ),
            0.0,
        )
        if weight > best_weight:
            best, best_weight = media_type, weight
    return best


def _parse_ranges(accept: str) -> Iterator[tuple[str, float]]:
    """Each range with how much it is liked; parameters other than that say nothing here."""
    for part in accept.lower().split(","):
        name, *parameters = (item.strip() for item in part.split(";"))
        weight = next((item[2:] for item in parameters if item.startswith("q=")), "1")
        try:
            yield name, float(weight)
        except ValueError:
            yield name, 0.0
