"""Opening files: decompressed as they are read, and not without end."""

import bz2
import gzip
import io
import lzma
import os
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any, BinaryIO

from lexarium.domain.errors import LexariumError

_COMPRESSED = (".gz", ".zip", ".bz2", ".xz")
_OPENERS: dict[bytes, Callable[[BinaryIO], Any]] = {
    b"\x1f\x8b": gzip.open,
    b"BZh": bz2.open,
    b"\xfd7zXZ\x00": lzma.open,
}
_ZIPPED = b"PK\x03\x04"
_DAMAGE = (EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile, NotImplementedError, RuntimeError, OSError)

FREE_BYTES = 64 << 20
"""So much may come out of a file however small it is."""
MOST_TIMES = 200
"""Past that, so many times its size: text comes to a fifth or a fiftieth, only what is made to harm to less."""
MOST_BYTES = 64 << 30
"""No more than this comes out of any file."""
MOST_MEMBERS = 1_000
"""So many files may be in one archive."""


class Unreadable(LexariumError):
    """A file cannot be read: the sentence goes on after its name."""


@dataclass(frozen=True)
class Part:
    """A document to be read: a file, or one of those in an archive."""

    place: str
    """What people call it."""
    name: str
    """Its file's name, without an ending that only says how it is compressed."""
    stream: BinaryIO
    consumed: Callable[[], int]
    """How many bytes of the file on disk have been read."""


def parts(path: Path) -> Iterator[Part]:
    """What a file holds, one after the other; each is to be read before the next is asked for.

    Raises `OSError` where it cannot be opened, and `Unreadable`, also while it is read, where it is damaged or
    becomes absurdly large.
    """
    with path.open("rb") as file:
        # Of a pipe nobody knows.
        consumed = file.tell if file.seekable() else int
        start = file.peek(6)[:6]
        if start.startswith(_ZIPPED):
            yield from _members(path, file)
            return
        for sign, opener in _OPENERS.items():
            if start.startswith(sign):
                stream = io.BufferedReader(_Bounded(opener(file), _Budget(consumed)))
                yield Part(str(path), _plain(path.name), stream, consumed)
                return
        yield Part(str(path), _plain(path.name), file, consumed)


def _members(path: Path, file: BinaryIO) -> Iterator[Part]:
    try:
        archive = zipfile.ZipFile(file)
    except _DAMAGE as error:
        raise Unreadable(f"is a damaged zip archive: {error}") from None
    with archive:
        members = [each for each in archive.infolist() if not each.is_dir() and not _hidden(each.filename)]
        if len(members) > MOST_MEMBERS:
            raise Unreadable(f"holds {len(members):,} files; at most {MOST_MEMBERS:,} are read from one archive.")
        # One for all of them, by the archive's own size: what it says of its members may not be so.
        size = os.fstat(file.fileno()).st_size
        budget = _Budget(lambda: size)
        for member in members:
            place = str(path) if len(members) == 1 else f"{path}, {member.filename}"
            name = _plain(path.name) if len(members) == 1 and _known_only_outside(path, member) else member.filename
            with io.BufferedReader(_Bounded(_Member(archive, member), budget)) as stream:
                yield Part(place, _plain(PurePath(name).name), stream, file.tell)


def _hidden(name: str) -> bool:
    """Whether it is something that a system put there for itself."""
    return name.startswith("__MACOSX/") or PurePath(name).name.startswith(".")


def _known_only_outside(path: Path, member: zipfile.ZipInfo) -> bool:
    return not PurePath(member.filename).suffix and bool(PurePath(_plain(path.name)).suffix)


def _plain(name: str) -> str:
    """A file's name without an ending that only says how it is compressed."""
    stem, dot, ending = name.rpartition(".")
    return stem if dot + ending.lower() in _COMPRESSED else name


class _Member:
    """A file in an archive, opened when it is first read: what is wrong with it is told as of any other."""

    def __init__(self, archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> None:
        self._archive = archive
        self._member = member
        self._stream: Any = None

    def read(self, size: int) -> bytes:
        if self._stream is None:
            self._stream = self._archive.open(self._member)
        data: bytes = self._stream.read(size)
        return data


class _Budget:
    """How much may come out of a file."""

    def __init__(self, consumed: Callable[[], int]) -> None:
        self._consumed = consumed
        self._given = 0

    def spend(self, size: int) -> None:
        """So much more comes out. Raises `Unreadable` where that is beyond reason."""
        self._given += size
        if self._given > MOST_BYTES or self._given > max(FREE_BYTES, MOST_TIMES * self._consumed()):
            raise Unreadable(
                f"becomes absurdly large when it is decompressed: more than {self._given >> 20:,} MiB. "
                "If it is sound, decompress it first."
            )


class _Bounded(io.RawIOBase):
    """What comes out of a compressed stream, as long as that is sound and stays within its budget."""

    def __init__(self, stream: Any, budget: _Budget) -> None:
        super().__init__()
        self._stream = stream
        self._budget = budget

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            data = self._stream.read(len(buffer))
        except _DAMAGE as error:
            raise Unreadable(f"is damaged, or not compressed as it says: {error}") from None
        self._budget.spend(len(data))
        buffer[: len(data)] = data
        return len(data)
