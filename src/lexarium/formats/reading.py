"""Opening files: decompressed as they are read, and not without end."""

import bz2
import gzip
import io
import lzma
import os
import shutil
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import IO, Any, BinaryIO, cast

import zstandard

from lexarium.domain.errors import LexariumError
from lexarium.formats.text_encoding import SupportsRead

STANDARD_INPUT = Path("-")

_COMPRESSION_SUFFIXES = (".gz", ".zip", ".bz2", ".xz", ".zst")
_MAX_WINDOW_BYTES = 128 << 20
"""In bytes: so much memory zstd may take for looking back."""
_DECOMPRESSORS: dict[bytes, Callable[[BinaryIO], Any]] = {
    b"\x1f\x8b": gzip.open,
    b"BZh": bz2.open,
    b"\xfd7zXZ\x00": lzma.open,
    b"\x28\xb5\x2f\xfd": lambda file: zstandard.ZstdDecompressor(max_window_size=_MAX_WINDOW_BYTES).stream_reader(
        file, read_across_frames=True, closefd=False
    ),
}
_ZIP_MAGIC = b"PK\x03\x04"
_DECOMPRESSION_ERRORS = (
    *(EOFError, zlib.error, lzma.LZMAError, zstandard.ZstdError, zipfile.BadZipFile),
    *(NotImplementedError, RuntimeError, OSError),
)
_OFFICE_MEMBERS = ("[Content_Types].xml", "mimetype")
"""What archives hold that an office program calls its documents."""
_OLE_MAGIC = b"\xd0\xcf\x11\xe0"
_UNSUPPORTED_MAGIC: dict[bytes, str] = {
    **dict.fromkeys((_ZIP_MAGIC, *_DECOMPRESSORS), "is compressed a second time: decompress it first"),
    b"7z\xbc\xaf\x27\x1c": "is a 7z archive, which is not read: unpack it first",
    b"Rar!\x1a\x07": "is a RAR archive, which is not read: unpack it first",
    b"\x04\x22\x4d\x18": "is compressed by lz4, which is not read: decompress it first",
    _OLE_MAGIC: "is a document of an office program, which is not read: save a table as CSV",
    b"%PDF": "is a PDF document, which is not read",
    b"SQLite format 3\0": "is an SQLite database, which is not imported: a backup comes back by `lexarium restore`",
}
_TAR_MAGIC, _TAR_OFFSET = b"ustar", 257

MIN_ALLOWED_BYTES = 64 << 20
"""So much may come out of a file however small it is."""
MAX_COMPRESSION_RATIO = 200
"""Past that, so many times its size: text comes to a fifth or a fiftieth, only what is made to harm to less."""
MAX_BYTES = 64 << 30
"""No more than this comes out of any file."""
MAX_MEMBERS = 1_000
"""So many files may be in one archive."""


class UnreadableFileError(LexariumError):
    """A file cannot be read: the sentence goes on after its name."""


class UnsupportedFileError(LexariumError):
    """A document is something that is known, and not read: the sentence goes on after its name."""


@dataclass(frozen=True)
class SourceDocument:
    """A document to be read: a file, or one of those in an archive."""

    display_name: str
    """What people call it."""
    file_name: str
    """Its file's name, without an ending that only says how it is compressed."""
    head: bytes
    """Some of its first bytes."""
    stream: BinaryIO
    bytes_read: Callable[[], int]
    """How many bytes of the file on disk have been read."""
    sibling_names: tuple[str, ...] = ()
    """The names of the others in the same archive."""


def open_documents(path: Path) -> Iterator[SourceDocument]:
    """What a file holds, one after the other; each is to be read before the next is asked for.

    Raises `OSError` where it cannot be opened, and `Unreadable`, also while it is read, where it is damaged or
    becomes absurdly large. `STANDARD_INPUT` is what comes from there.
    """
    is_piped = path == STANDARD_INPUT
    display_name = "standard input" if is_piped else str(path)
    with nullcontext(cast(io.BufferedReader, sys.stdin.buffer)) if is_piped else path.open("rb") as file:
        # Of a pipe nobody knows.
        bytes_read = file.tell if file.seekable() else int
        head = file.peek(6)[:6]
        if head.startswith(_ZIP_MAGIC):
            yield from _open_zip_members(path, file)
            return
        for magic, opener in _DECOMPRESSORS.items():
            if head.startswith(magic):
                stream = io.BufferedReader(_LimitedStream(opener(file), _DecompressionLimit(bytes_read)))
                yield SourceDocument(
                    display_name, _strip_compression_suffix(path.name), stream.peek(), stream, bytes_read
                )
                return
        yield SourceDocument(display_name, _strip_compression_suffix(path.name), file.peek(), file, bytes_read)


def reject_unsupported(head: bytes) -> None:
    """Raise `Foreign` where what begins so is no text, but something that is known."""
    for magic, message in _UNSUPPORTED_MAGIC.items():
        if head.startswith(magic):
            raise UnsupportedFileError(message)
    if head[_TAR_OFFSET:].startswith(_TAR_MAGIC):
        raise UnsupportedFileError("is a tar archive, which is not read: unpack it first")


def _open_zip_members(path: Path, file: BinaryIO) -> Iterator[SourceDocument]:
    if not file.seekable():
        raise UnreadableFileError("is a zip archive, which cannot be read from a pipe: give it as a file")
    try:
        archive = zipfile.ZipFile(file)
    except _DECOMPRESSION_ERRORS as error:
        raise UnreadableFileError(f"is a damaged zip archive: {error}") from None
    with archive:
        members = [info for info in archive.infolist() if not info.is_dir() and not _is_hidden(info.filename)]
        if any(info.filename in _OFFICE_MEMBERS for info in members):
            raise UnreadableFileError(_UNSUPPORTED_MAGIC[_OLE_MAGIC])
        if len(members) > MAX_MEMBERS:
            raise UnreadableFileError(
                f"holds {len(members):,} files; at most {MAX_MEMBERS:,} are read from one archive."
            )
        # One for all of them, by the archive's own size: what it says of its members may not be so.
        size = os.fstat(file.fileno()).st_size
        limit = _DecompressionLimit(lambda: size)
        for member in members:
            display_name = str(path) if len(members) == 1 else f"{path}, {member.filename}"
            file_name = (
                _strip_compression_suffix(path.name)
                if len(members) == 1 and _has_suffix_only_outside(path, member)
                else member.filename
            )
            with io.BufferedReader(_LimitedStream(_LazyZipMember(archive, member), limit)) as stream:
                sibling_names = tuple(info.filename for info in members if info is not member)
                yield SourceDocument(
                    display_name,
                    _strip_compression_suffix(PurePath(file_name).name),
                    stream.peek(),
                    stream,
                    file.tell,
                    sibling_names,
                )


def _is_hidden(name: str) -> bool:
    """Whether it is something that a system put there for itself."""
    return name.startswith("__MACOSX/") or PurePath(name).name.startswith(".")


def _has_suffix_only_outside(path: Path, member: zipfile.ZipInfo) -> bool:
    return not PurePath(member.filename).suffix and bool(PurePath(_strip_compression_suffix(path.name)).suffix)


def _strip_compression_suffix(name: str) -> str:
    """A file's name without an ending that only says how it is compressed."""
    stem, dot, suffix = name.rpartition(".")
    return stem if dot + suffix.lower() in _COMPRESSION_SUFFIXES else name


class _LazyZipMember:
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


class _DecompressionLimit:
    """How much may come out of a file."""

    def __init__(self, bytes_read: Callable[[], int]) -> None:
        self._bytes_read = bytes_read
        self._bytes_out = 0

    def add(self, size: int) -> None:
        """So much more comes out. Raises `Unreadable` where that is beyond reason."""
        self._bytes_out += size
        if self._bytes_out > MAX_BYTES or self._bytes_out > max(
            MIN_ALLOWED_BYTES, MAX_COMPRESSION_RATIO * self._bytes_read()
        ):
            raise UnreadableFileError(
                f"becomes absurdly large when it is decompressed: more than {self._bytes_out >> 20:,} MiB. "
                "If it is sound, decompress it first."
            )


class _LimitedStream(io.RawIOBase):
    """What comes out of a compressed stream, as long as that is sound and stays within its budget."""

    def __init__(self, stream: Any, limit: _DecompressionLimit) -> None:
        super().__init__()
        self._stream = stream
        self._limit = limit

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            data = self._stream.read(len(buffer))
        except _DECOMPRESSION_ERRORS as error:
            raise UnreadableFileError(f"is damaged, or not compressed as it says: {error}") from None
        self._limit.add(len(data))
        buffer[: len(data)] = data
        return len(data)


_MAX_MEMORY_BYTES = 8 << 20


_COPY_CHUNK_BYTES = 1 << 20


@contextmanager
def open_seekable(stream: SupportsRead) -> Iterator[IO[bytes]]:
    """The stream as a file that can be gone back in; past a few megabytes it is on disk."""
    with tempfile.SpooledTemporaryFile(_MAX_MEMORY_BYTES) as file:
        shutil.copyfileobj(stream, file, _COPY_CHUNK_BYTES)
        file.seek(0)
        yield file
