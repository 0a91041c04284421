"""`lexarium reindex`"""

import os

import typer

from lexarium.cli.options import DatabaseOption, opened
from lexarium.cli.terminal import out, progress_bar
from lexarium.service.indexing import Indexer
from lexarium.settings import Settings

app = typer.Typer(add_completion=False)


@app.command()
def reindex(database: DatabaseOption = None) -> None:
    """Make the search index anew. A server goes on searching in the old one until it is done."""
    indexer = Indexer(opened(database, reading=True), Settings.of(os.environ).index)
    with progress_bar() as told:
        records = indexer.rebuild(told)
    indexer.stop()
    out.print(f"Indexed {records:,} records.")
