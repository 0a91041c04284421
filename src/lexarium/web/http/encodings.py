"""Content encodings: negotiate and apply them."""

from collections.abc import Iterable, Iterator
from functools import lru_cache

from lexarium.compression import COMPRESSORS, compress_chunks
from lexarium.web.http.negotiation import parse_quality_values

IDENTITY = "identity"
# In order of preference.
_COMPRESSORS = {"zstd": COMPRESSORS[".zst"], "gzip": COMPRESSORS[".gz"]}
# No browser sends a longer header; it is not worth caching.
_MAX_ACCEPT_BYTES = 200

Header = tuple[bytes, bytes]


def choose_encoding(accept: bytes) -> str:
    """Return the encoding that an `Accept-Encoding` header prefers among those available."""
    return _choose_cached(accept) if len(accept) <= _MAX_ACCEPT_BYTES else IDENTITY


@lru_cache(maxsize=1024)
def _choose_cached(accept: bytes) -> str:
    weights = dict(parse_quality_values(accept.decode("latin-1")))
    best = max(_COMPRESSORS, key=lambda name: weights.get(name, 0.0))
    return best if weights.get(best, 0.0) > 0 and weights[best] >= weights.get(IDENTITY, 0.0) else IDENTITY


def encode_body(encoding: str, body: bytes) -> bytes:
    """Return a whole body in an encoding."""
    return b"".join(encode_chunks(encoding, [body]))


def encode_chunks(encoding: str, chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield a body in an encoding chunk by chunk; some chunks are empty."""
    return iter(chunks) if encoding == IDENTITY else compress_chunks(chunks, _COMPRESSORS[encoding]())


def encoding_headers(encoding: str) -> list[Header]:
    """Return the header that names the encoding of a body; none for identity."""
    return [] if encoding == IDENTITY else [(b"content-encoding", encoding.encode())]
