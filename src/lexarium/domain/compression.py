"""Compressing a file as its name ends."""

import bz2
import lzma
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import PurePath
from typing import Protocol

import zstandard

from lexarium.domain.errors import LexariumError


class _Compressor(Protocol):
    def compress(self, data: bytes, /) -> bytes: ...

    def flush(self) -> bytes: ...


_COMPRESSORS: dict[str, Callable[[], _Compressor]] = {
    ".gz": lambda: zlib.compressobj(6, zlib.DEFLATED, 31),
    ".bz2": bz2.BZ2Compressor,
    ".xz": lzma.LZMACompressor,
    ".zst": lambda: zstandard.ZstdCompressor().compressobj(),
}
_NOT_WRITTEN = (".zip", ".7z", ".rar", ".tar", ".tgz", ".lz4")


def uncompressed(name: str) -> str:
    """The name of a file without the ending that asks for compressing it."""
    ending = PurePath(name).suffix
    return name[: -len(ending)] if ending.lower() in _COMPRESSORS else name


def compressing(name: str) -> Callable[[Iterable[bytes]], Iterator[bytes]]:
    """What makes of all that a file of this name shall say what it holds.

    Raises where its ending asks for an archive.
    """
    ending = PurePath(name).suffix.lower()
    if ending in _NOT_WRITTEN:
        raise LexariumError(
            f"{name} would be an archive, and none is written: {', '.join(_COMPRESSORS)} are compressed."
        )
    made = _COMPRESSORS.get(ending)
    return iter if made is None else lambda pieces: _compressed(pieces, made())


def _compressed(pieces: Iterable[bytes], compressor: _Compressor) -> Iterator[bytes]:
    for piece in pieces:
        yield compressor.compress(piece)
    yield compressor.flush()
