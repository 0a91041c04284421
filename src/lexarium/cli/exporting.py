"""`lexarium export`"""

from enum import StrEnum
from typing import Annotated

import typer

from lexarium.cli.options import CollectionOption, DatabaseOption, opened
from lexarium.cli.output import OutputOption, write
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
    output: OutputOption = None,
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
    write(output, export_valpha(opened(database, reading=True), wanted, release, as_of))
