"""`lexarium export`"""

import os
from pathlib import Path, PurePath
from typing import Annotated

import typer

from lexarium.cli.options import CollectionOption, DatabaseOption, collect_seldom, opened
from lexarium.cli.output import OutputOption, write
from lexarium.cli.terminal import progress_bar
from lexarium.domain.collections import COLLECTIONS
from lexarium.domain.compression import compressing, uncompressed
from lexarium.domain.errors import LexariumError
from lexarium.exchange.formats import FORMATS, Format
from lexarium.service.exporting import export
from lexarium.settings import Settings

app = typer.Typer(add_completion=False)

_DEFAULT = FORMATS["v-alpha"]


def _format(name: str) -> Format:
    if name not in FORMATS:
        raise typer.BadParameter(f"{name!r} is not one of {', '.join(_written())}.")
    return FORMATS[name]


def _written() -> list[str]:
    return [each.name for each in FORMATS.values() if each.writes]


FormatOption = Annotated[
    Format | None,
    typer.Option(
        "--format",
        parser=_format,
        metavar="FORMAT",
        help=f"One of {', '.join(_written())}; else as FILE ends, else {_DEFAULT.name}.",
        show_default=False,
    ),
]


@app.command("export")
def export_command(
    format: FormatOption = None,
    collection: CollectionOption = None,
    output: OutputOption = None,
    release: Annotated[str | None, typer.Option(metavar="NAME", help="The catalogue as it was at a release.")] = None,
    as_of: Annotated[
        int | None, typer.Option(metavar="REVISION", min=0, help="The catalogue as it was at a revision.")
    ] = None,
    database: DatabaseOption = None,
) -> None:
    """Export the catalogue: every collection, unless one is named.

    A FILE that ends in .gz, .bz2, .xz or .zst is compressed.
    """
    if release is not None and as_of is not None:
        raise LexariumError("Give --release or --as-of, not both.")
    wanted = [collection] if collection else list(COLLECTIONS.values())
    chosen = format or _told_by(output)
    about = Settings.of(os.environ).about
    store = opened(database, reading=True)
    collect_seldom()
    with progress_bar() as bar:
        progress = None if output is None else bar
        write(output, export(store, about, chosen, wanted, release=release, as_of=as_of, progress=progress))


def _told_by(output: Path | None) -> Format:
    """The format that the name of a file asks for."""
    if output is not None:
        # Of an archive it is not the ending that is wrong.
        compressing(output.name)
    ending = "" if output is None else PurePath(uncompressed(output.name)).suffix.lower()
    if not ending:
        return _DEFAULT
    for each in FORMATS.values():
        if ending in each.extensions:
            return each
    raise LexariumError(f"The name of {output} does not tell a format: give --format, one of {', '.join(_written())}.")
