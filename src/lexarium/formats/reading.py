"""Open files and archives; decompress them while they are read, up to a limit."""

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
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePath
from typing import IO, Any, BinaryIO, cast

import zstandard

from lexarium.compression import strip_compression_suffix
from lexarium.domain.errors import LexariumError

STANDARD_INPUT = Path("-")

# Memory of a zstd decompressor.
_MAX_WINDOW_BYTES = 128 << 20
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
# Members of the archives that are documents of an office program.
_OFFICE_MEMBERS = ("[Content_Types].xml", "mimetype")
_OLE_MAGIC = b"\xd0\xcf\x11\xe0"
_UNSUPPORTED_MAGIC: dict[bytes, str] = {
    **dict.fromkeys((_ZIP_MAGIC, *_DECOMPRESSORS), "is compressed a second time: decompress it first"),
    b"7z\xbc\xaf\x27\x1c": "is a 7z archive, which is not read: unpack it first",
    b"Rar!\x1a\x07": "is a RAR archive, which is not read: unpack it first",
    b"\x04\x22\x4d\x18": "is compressed by lz4, which is not read: decompress it first",
    _OLE_MAGIC: "is a document of an office program, which is not read: save a table as CSV",
    b"%PDF": "is a PDF document, which is not read",
    b"SQLite format 3\0": "is an SQLite database, which is not imported: restore a backup with `lexarium restore`",
}
_TAR_MAGIC, _TAR_OFFSET = b"ustar", 257

# Decompressed size that is always allowed.
MIN_ALLOWED_BYTES = 64 << 20
# Text compresses to a fifth or a fiftieth; only a decompression bomb exceeds this.
MAX_COMPRESSION_RATIO = 200
MAX_BYTES = 64 << 30
MAX_MEMBERS = 1_000
_MAX_MEMORY_BYTES = 8 << 20
_COPY_CHUNK_BYTES = 1 << 20


class UnreadableFileError(LexariumError):
    """A file cannot be read. The message continues after its name."""


class UnsupportedFileError(LexariumError):
    """A document has a known format that is not supported. The message continues after its name."""


@dataclass(frozen=True)
class SourceDocument:
    """A document to read: a file, or a member of an archive."""

    display_name: str
    # Without the suffix of a compression.
    file_name: str
    # Some of its first bytes.
    head: bytes
    stream: io.BufferedReader
    # Returns the number of bytes read from the file on disk.
    bytes_read: Callable[[], int]
    # The names of the other members of the archive.
    sibling_names: tuple[str, ...] = ()


def open_documents(path: Path) -> Generator[SourceDocument]:
    """Yield the documents of a file or of STANDARD_INPUT; read each before the next.

    Raise OSError if it cannot be opened, and UnreadableFileError, also while it is read, if it is damaged or
    decompresses to an absurd size.
    """
    is_piped = path == STANDARD_INPUT
    display_name = "standard input" if is_piped else str(path)
    with nullcontext(cast(io.BufferedReader, sys.stdin.buffer)) if is_piped else path.open("rb") as file:
        # A pipe does not know: 0.
        bytes_read = file.tell if file.seekable() else int
        head = file.peek(6)[:6]
        if head.startswith(_ZIP_MAGIC):
            yield from _open_zip_members(display_name, file)
            return
        stream = file
        for magic, opener in _DECOMPRESSORS.items():
            if head.startswith(magic):
                stream = io.BufferedReader(_LimitedStream(partial(opener, file), _DecompressionLimit(bytes_read)))
        yield SourceDocument(display_name, strip_compression_suffix(path.name), stream.peek(), stream, bytes_read)


def reject_unsupported(head: bytes) -> None:
    """Raise UnsupportedFileError if the first bytes are those of a known binary format."""
    for magic, message in _UNSUPPORTED_MAGIC.items():
        if head.startswith(magic):
            raise UnsupportedFileError(message)
    if head[_TAR_OFFSET:].startswith(_TAR_MAGIC):
        raise UnsupportedFileError("is a tar archive, which is not read: unpack it first")


def _open_zip_members(archive_name: str, file: BinaryIO) -> Iterator[SourceDocument]:
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
            message = f"has {len(members):,} files; at most {MAX_MEMBERS:,} are read from one archive."
            raise UnreadableFileError(message)
        # One limit for all members, by the size of the archive: the sizes that it states may be wrong.
        size = os.fstat(file.fileno()).st_size
        limit = _DecompressionLimit(lambda: size)
        outer_name = strip_compression_suffix(PurePath(archive_name).name)
        for member in members:
            display_name, file_name = f"{archive_name}, {member.filename}", PurePath(member.filename)
            if len(members) == 1:
                display_name = archive_name
                # Only the name of the archive may show the format.
                file_name = PurePath(outer_name) if not file_name.suffix and PurePath(outer_name).suffix else file_name
            name = strip_compression_suffix(file_name.name)
            sibling_names = tuple(info.filename for info in members if info is not member)
            stream: io.BufferedReader = io.BufferedReader(_LimitedStream(partial(archive.open, member), limit))
            with stream:
                yield SourceDocument(display_name, name, stream.peek(), stream, file.tell, sibling_names)


def _is_hidden(name: str) -> bool:
    return name.startswith("__MACOSX/") or PurePath(name).name.startswith(".")


class _DecompressionLimit:
    """Limit the decompressed size of a file."""

    def __init__(self, bytes_read: Callable[[], int]) -> None:
        self._bytes_read = bytes_read
        self._bytes_out = 0

    def add(self, size: int) -> None:
        """Count decompressed bytes; raise UnreadableFileError beyond the limit."""
        self._bytes_out += size
        if self._bytes_out > min(MAX_BYTES, max(MIN_ALLOWED_BYTES, MAX_COMPRESSION_RATIO * self._bytes_read())):
            raise UnreadableFileError(
                f"is too large when decompressed: more than {self._bytes_out >> 20:,} MiB. "
                "If it is valid, decompress it first."
            )


class _LimitedStream(io.RawIOBase):
    """A decompressed stream, opened on the first read; raises UnreadableFileError if it is damaged or too large."""

    def __init__(self, open_stream: Callable[[], Any], limit: _DecompressionLimit) -> None:
        super().__init__()
        self._open_stream = open_stream
        self._stream: Any = None
        self._limit = limit

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            self._stream = self._stream or self._open_stream()
            data = self._stream.read(len(buffer))
        except _DECOMPRESSION_ERRORS as error:
            raise UnreadableFileError(f"is damaged, or not compressed as it says: {error}") from None
        self._limit.add(len(data))
        buffer[: len(data)] = data
        return len(data)


@contextmanager
def open_seekable(stream: BinaryIO) -> Iterator[IO[bytes]]:
    """Copy a stream to a seekable file, which is closed afterwards."""
    with copy_seekable(stream) as file:
        yield file


def copy_seekable(stream: BinaryIO) -> IO[bytes]:
    """Copy a stream to a seekable file: in memory, or on disk if it has more than a few megabytes."""
    file = tempfile.SpooledTemporaryFile(_MAX_MEMORY_BYTES)  # noqa: SIM115 (closed by the caller)
    shutil.copyfileobj(stream, file, _COPY_CHUNK_BYTES)
    file.seek(0)
    return file
