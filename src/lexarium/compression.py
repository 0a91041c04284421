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
_ARCHIVE_SUFFIXES = (".zip", ".7z", ".rar", ".tar", ".tgz", ".lz4")


def strip_compression_suffix(filename: str) -> str:
    """The name of a file without the ending that asks for compressing it."""
    suffix = PurePath(filename).suffix
    return filename[: -len(suffix)] if suffix.lower() in _COMPRESSORS else filename


def get_compressor(filename: str) -> Callable[[Iterable[bytes]], Iterator[bytes]]:
    """What makes of all that a file of this name shall say what it holds.

    Raises where its ending asks for an archive.
    """
    suffix = PurePath(filename).suffix.lower()
    if suffix in _ARCHIVE_SUFFIXES:
        raise LexariumError(
            f"{filename} would be an archive, and none is written: {', '.join(_COMPRESSORS)} are compressed."
        )
    factory = _COMPRESSORS.get(suffix)
    return iter if factory is None else lambda chunks: _compress(chunks, factory())


def _compress(chunks: Iterable[bytes], compressor: _Compressor) -> Iterator[bytes]:
    for chunk in chunks:
        yield compressor.compress(chunk)
    yield compressor.flush()
