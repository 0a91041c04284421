"""Content encodings: which one a client gets, and how bytes get it."""

import zlib
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Protocol

import zstandard

IDENTITY = "identity"


class Compressor(Protocol):
    """What the standard library's and zstandard's compressing objects have in common."""

    def compress(self, data: bytes, /) -> bytes:
        """Take some bytes, give those that are ready."""

    def flush(self) -> bytes:
        """End, and give the rest."""


# The one that is preferred among equals first. Levels as measured: 1 MB takes 3 ms and 40 ms.
_COMPRESSORS: dict[str, Callable[[], Compressor]] = {
    "zstd": lambda: zstandard.ZstdCompressor(level=3).compressobj(),
    "gzip": lambda: zlib.compressobj(6, zlib.DEFLATED, 31),
}


_LONGEST_ACCEPT = 200
"""In bytes; what is longer is no browser's, and not worth reading, let alone remembering."""


def chosen(accept: bytes) -> str:
    """The encoding for a client that sent this `Accept-Encoding`: what it likes best of what there is."""
    return _chosen(accept) if len(accept) <= _LONGEST_ACCEPT else IDENTITY


@lru_cache(maxsize=1024)
def _chosen(accept: bytes) -> str:
    best, liking = IDENTITY, 0.0
    weights = _weights(accept.decode("latin-1"))
    for name in _COMPRESSORS:
        if weights.get(name, 0.0) > liking:
            best, liking = name, weights[name]
    return best if liking >= weights.get(IDENTITY, 0.0) else IDENTITY


def encoded(encoding: str, body: bytes) -> bytes:
    """The whole body in this encoding."""
    return b"".join(encoded_pieces(encoding, [body]))


def encoded_pieces(encoding: str, pieces: Iterable[bytes]) -> Iterator[bytes]:
    """A body in this encoding, piece by piece; some come out empty."""
    if encoding == IDENTITY:
        yield from pieces
        return
    compressor = _COMPRESSORS[encoding]()
    for piece in pieces:
        yield compressor.compress(piece)
    yield compressor.flush()


def _weights(accept: str) -> dict[str, float]:
    weights = {}
    for part in accept.lower().split(","):
        name, _, parameters = part.partition(";")
        weight = parameters.strip().removeprefix("q=")
        try:
            weights[name.strip()] = float(weight) if weight else 1.0
        except ValueError:
            weights[name.strip()] = 0.0
    return weights
