"""`lexarium reindex`"""

import os

import typer

from lexarium.cli.options import DatabaseOption, open_database
from lexarium.cli.terminal import out, progress_bar
from lexarium.services.search.indexer import Indexer
from lexarium.settings import Settings

app = typer.Typer(add_completion=False)


@app.command()
def reindex(database: DatabaseOption = None) -> None:
    """Make the search index anew. A server goes on searching in the old one until it is done."""
    indexer = Indexer(open_database(database, must_exist=True), Settings.from_environment(os.environ).index)
    with progress_bar() as progress:
        records = indexer.rebuild(progress)
    indexer.stop()
    out.print(f"Indexed {records:,} records.")
