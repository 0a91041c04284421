"""Content negotiation: `Accept` headers and their quality values."""

from collections.abc import Iterator, Mapping, Sequence

from starlette.requests import Request

from lexarium.web.http.problems import HTTPProblem

# The rest of a longer header is ignored.
_MAX_ACCEPT_CHARS = 4_000


def choose_format(request: Request, offered: Mapping[str, str], headers: Mapping[str, str]) -> str:
    """Return the name of the format whose media type the request prefers; raise a 406 if it accepts none of them."""
    names = {media_type: name for name, media_type in offered.items()}
    media_type = choose_media_type(",".join(request.headers.getlist("accept")), list(names))
    if media_type is None:
        raise HTTPProblem(406, f"Available formats: {list_formats(offered)}.", headers)
    return names[media_type]


def list_formats(offered: Mapping[str, str]) -> str:
    """Return the names of formats with their media types, as text."""
    return ", ".join(f"{name} ({media_type})" for name, media_type in offered.items())


def choose_media_type(accept: str, offered: Sequence[str]) -> str | None:
    """Return the media type that an `Accept` header prefers, the first among equals; None where it takes none.

    An empty header takes all. Of several ranges that contain a type, the most specific counts.
    """
    if not accept.strip():
        return offered[0]
    weights = dict(parse_quality_values(accept[:_MAX_ACCEPT_CHARS]))

    def find_weight(media_type: str) -> float:
        ranges = (media_type, f"{media_type.partition('/')[0]}/*", "*/*")
        return next((weights[media_range] for media_range in ranges if media_range in weights), 0.0)

    best = max(offered, key=find_weight)
    return best if find_weight(best) > 0 else None


def parse_quality_values(header: str) -> Iterator[tuple[str, float]]:
    """Yield the values of a header with their weights: 1 where none is given, 0 where it is not a number."""
    for part in header.lower().split(","):
        name, *parameters = (item.strip() for item in part.split(";"))
        weight = next((item[2:] for item in parameters if item.startswith("q=")), "1")
        try:
            yield name, max(0.0, float(weight))
        except ValueError:
            yield name, 0.0
