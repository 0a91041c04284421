"""`lexarium export`"""

from enum import StrEnum
from typing import Annotated

import typer

from lexarium.cli.options import CollectionOption, DatabaseOption, opened
from lexarium.cli.output import OutputOption, write
from lexarium.domain.collections import COLLECTIONS
from lexarium.service.exporting import export_valpha

app = typer.Typer(add_completion=False)


class Format(StrEnum):
    """The formats there are."""

    VALPHA = "v-alpha"


@app.command()
def export(
    format: Annotated[Format, typer.Option("--format", help="The format to write.")],
    collection: CollectionOption = None,
    output: OutputOption = None,
    database: DatabaseOption = None,
) -> None:
    """Export published records with their relations; every collection, unless one is named."""
    pieces = export_valpha(opened(database, reading=True), [collection] if collection else list(COLLECTIONS.values()))
    write(output, pieces)
