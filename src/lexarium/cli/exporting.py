"""`lexarium export`"""

import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from lexarium.cli.options import CollectionOption, DatabaseOption, opened
from lexarium.domain.collections import COLLECTIONS
from lexarium.domain.errors import LexariumError
from lexarium.service.exporting import export_valpha

app = typer.Typer(add_completion=False)


class Format(StrEnum):
    """The formats there are."""

    VALPHA = "v-alpha"


@app.command()
def export(
    format: Annotated[Format, typer.Option("--format", help="The format to write.")] = Format.VALPHA,
    collection: CollectionOption = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="Where to write; else standard output.")
    ] = None,
    release: Annotated[str | None, typer.Option(metavar="NAME", help="The catalogue as it was at a release.")] = None,
    as_of: Annotated[
        int | None, typer.Option(metavar="REVISION", min=0, help="The catalogue as it was at a revision.")
    ] = None,
    database: DatabaseOption = None,
) -> None:
    """Export published records with their relations; every collection, unless one is named."""
    if release is not None and as_of is not None:
        raise LexariumError("Give --release or --as-of, not both.")
    wanted = [collection] if collection else list(COLLECTIONS.values())
    pieces = export_valpha(opened(database, reading=True), wanted, release, as_of)
    if output is None:
        for piece in pieces:
            sys.stdout.buffer.write(piece)
        sys.stdout.buffer.flush()
    else:
        _write_whole(output, pieces)


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
