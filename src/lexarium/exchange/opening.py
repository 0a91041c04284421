"""Opening files: decompressed as they are read, and not without end."""

import bz2
import gzip
import io
import lzma
import os
import sys
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any, BinaryIO, cast

import zstandard

from lexarium.domain.errors import LexariumError

STANDARD_INPUT = Path("-")

_COMPRESSED = (".gz", ".zip", ".bz2", ".xz", ".zst")
_WINDOW = 128 << 20
"""In bytes: so much memory zstd may take for looking back."""
_OPENERS: dict[bytes, Callable[[BinaryIO], Any]] = {
    b"\x1f\x8b": gzip.open,
    b"BZh": bz2.open,
    b"\xfd7zXZ\x00": lzma.open,
    b"\x28\xb5\x2f\xfd": lambda file: zstandard.ZstdDecompressor(max_window_size=_WINDOW).stream_reader(
        file, read_across_frames=True, closefd=False
    ),
}
_ZIPPED = b"PK\x03\x04"
_DAMAGE = (
    *(EOFError, zlib.error, lzma.LZMAError, zstandard.ZstdError, zipfile.BadZipFile),
    *(NotImplementedError, RuntimeError, OSError),
)
_OFFICE = ("[Content_Types].xml", "mimetype")
"""What archives hold that an office program calls its documents."""
_OLD_OFFICE = b"\xd0\xcf\x11\xe0"
_FOREIGN: dict[bytes, str] = {
    **dict.fromkeys((_ZIPPED, *_OPENERS), "is compressed a second time: decompress it first"),
    b"7z\xbc\xaf\x27\x1c": "is a 7z archive, which is not read: unpack it first",
    b"Rar!\x1a\x07": "is a RAR archive, which is not read: unpack it first",
    b"\x04\x22\x4d\x18": "is compressed by lz4, which is not read: decompress it first",
    _OLD_OFFICE: "is a document of an office program, which is not read: save a table as CSV",
    b"%PDF": "is a PDF document, which is not read",
    b"SQLite format 3\0": "is an SQLite database, which is not imported: a backup comes back by `lexarium restore`",
}
_TAR, _TAR_AT = b"ustar", 257

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


class Foreign(LexariumError):
    """A document is something that is known, and not read: the sentence goes on after its name."""


@dataclass(frozen=True)
class Part:
    """A document to be read: a file, or one of those in an archive."""

    place: str
    """What people call it."""
    name: str
    """Its file's name, without an ending that only says how it is compressed."""
    head: bytes
    """Some of its first bytes."""
    stream: BinaryIO
    consumed: Callable[[], int]
    """How many bytes of the file on disk have been read."""
    beside: tuple[str, ...] = ()
    """The names of the others in the same archive."""


def parts(path: Path) -> Iterator[Part]:
    """What a file holds, one after the other; each is to be read before the next is asked for.

    Raises `OSError` where it cannot be opened, and `Unreadable`, also while it is read, where it is damaged or
    becomes absurdly large. `STANDARD_INPUT` is what comes from there.
    """
    piped = path == STANDARD_INPUT
    place = "standard input" if piped else str(path)
    with nullcontext(cast(io.BufferedReader, sys.stdin.buffer)) if piped else path.open("rb") as file:
        # Of a pipe nobody knows.
        consumed = file.tell if file.seekable() else int
        start = file.peek(6)[:6]
        if start.startswith(_ZIPPED):
            yield from _members(path, file)
            return
        for sign, opener in _OPENERS.items():
            if start.startswith(sign):
                stream = io.BufferedReader(_Bounded(opener(file), _Budget(consumed)))
                yield Part(place, _plain(path.name), stream.peek(), stream, consumed)
                return
        yield Part(place, _plain(path.name), file.peek(), file, consumed)


def refuse_foreign(head: bytes) -> None:
    """Raise `Foreign` where what begins so is no text, but something that is known."""
    for sign, what in _FOREIGN.items():
        if head.startswith(sign):
            raise Foreign(what)
    if head[_TAR_AT:].startswith(_TAR):
        raise Foreign("is a tar archive, which is not read: unpack it first")


def _members(path: Path, file: BinaryIO) -> Iterator[Part]:
    if not file.seekable():
        raise Unreadable("is a zip archive, which cannot be read from a pipe: give it as a file")
    try:
        archive = zipfile.ZipFile(file)
    except _DAMAGE as error:
        raise Unreadable(f"is a damaged zip archive: {error}") from None
    with archive:
        members = [each for each in archive.infolist() if not each.is_dir() and not _hidden(each.filename)]
        if any(each.filename in _OFFICE for each in members):
            raise Unreadable(_FOREIGN[_OLD_OFFICE])
        if len(members) > MOST_MEMBERS:
            raise Unreadable(f"holds {len(members):,} files; at most {MOST_MEMBERS:,} are read from one archive.")
        # One for all of them, by the archive's own size: what it says of its members may not be so.
        size = os.fstat(file.fileno()).st_size
        budget = _Budget(lambda: size)
        for member in members:
            place = str(path) if len(members) == 1 else f"{path}, {member.filename}"
            name = _plain(path.name) if len(members) == 1 and _known_only_outside(path, member) else member.filename
            with io.BufferedReader(_Bounded(_Member(archive, member), budget)) as stream:
                beside = tuple(each.filename for each in members if each is not member)
                yield Part(place, _plain(PurePath(name).name), stream.peek(), stream, file.tell, beside)


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
