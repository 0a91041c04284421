"""Output files of commands."""

import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from lexarium.cli.support.file_permissions import apply_own_umask
from lexarium.compression import get_compressor
from lexarium.domain.errors import LexariumError

OutputOption = Annotated[
    Path | None, typer.Option("-o", "--output", metavar="FILE", help="Output file (default: standard output).")
]


def write_output(output: Path | None, chunks: Iterator[bytes]) -> None:
    """Write to a file, which appears only when complete, or to standard output if no file is given.

    A file whose name ends in .gz, .bz2, .xz or .zst is compressed.
    """
    if output is None:
        for chunk in chunks:
            sys.stdout.buffer.write(chunk)
        sys.stdout.buffer.flush()
    else:
        _write_atomically(output, get_compressor(output.name)(chunks))


def _write_atomically(path: Path, chunks: Iterator[bytes]) -> None:
    """Write a temporary file and rename it; write to pipes and devices directly."""
    try:
        target = path.resolve()
        if target.exists() and not target.is_file():
            with target.open("wb") as special:
                special.writelines(chunks)
            return
        temporary_path = target.with_name(f".{target.name}.{os.getpid()}.unfinished")
        try:
            with temporary_path.open("xb") as file:
                apply_own_umask(file.fileno())
                file.writelines(chunks)
                file.flush()
                os.fsync(file.fileno())
            temporary_path.replace(target)
        finally:
            with suppress(OSError):
                temporary_path.unlink()
    except OSError as error:
        raise LexariumError(f"Cannot write {path}: {error.strerror or error}.") from None
