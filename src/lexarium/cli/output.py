"""Where a command writes what it is asked for."""

import os
import sys
import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from lexarium.domain.errors import LexariumError

OutputOption = Annotated[
    Path | None, typer.Option("-o", "--output", metavar="FILE", help="Where to write; else standard output.")
]

_COMPRESSED = ".gz"


def uncompressed(name: str) -> str:
    """The name of a file without the ending that asks for compressing it."""
    return name[: -len(_COMPRESSED)] if name.lower().endswith(_COMPRESSED) else name


def write(output: Path | None, pieces: Iterator[bytes]) -> None:
    """Write to a file, which is there only once it is whole; to standard output where none is named.

    A file whose name ends in .gz is compressed.
    """
    if output is None:
        for piece in pieces:
            sys.stdout.buffer.write(piece)
        sys.stdout.buffer.flush()
    else:
        _write_whole(output, pieces if uncompressed(output.name) == output.name else _compressed(pieces))


def _compressed(pieces: Iterator[bytes]) -> Iterator[bytes]:
    compressor = zlib.compressobj(6, zlib.DEFLATED, 31)
    for piece in pieces:
        yield compressor.compress(piece)
    yield compressor.flush()


def _write_whole(path: Path, pieces: Iterator[bytes]) -> None:
    """Write a file that is there only once it is whole; a pipe or a device is written as it comes."""
    try:
        target = path.resolve()
        if target.exists() and not target.is_file():
            with target.open("wb") as special:
                special.writelines(pieces)
            return
        unfinished = target.with_name(f".{target.name}.{os.getpid()}.unfinished")
        try:
            with unfinished.open("xb") as file:
                file.writelines(pieces)
                file.flush()
                os.fsync(file.fileno())
            unfinished.replace(target)
        finally:
            with suppress(OSError):
                unfinished.unlink()
    except OSError as error:
        raise LexariumError(f"Cannot write {path}: {error.strerror or error}.") from None
