"""Bring the search index up to date at the end of a command that changed the catalogue."""

from lexarium.cli.support.terminal import err, progress_bar
from lexarium.domain.errors import LexariumError
from lexarium.services.search.indexer import Indexer, index_folder
from lexarium.settings import Settings
from lexarium.store.database import Database


def update_index(store: Database) -> None:
    """Bring the index up to date and print that; leave it to a server that holds it. A failure is only a warning."""
    setting = Settings.from_environment().index
    if not store.is_embedded and setting == "auto" and not index_folder(store, setting).exists():
        return  # The servers of a PostgreSQL database, each with an index, may be elsewhere.
    indexer = Indexer(store, setting)
    try:
        with progress_bar() as progress:
            is_current = indexer.catch_up(progress)
        if is_current:
            err.print("The search index is up to date.")
        else:
            err.print("Another process is updating the search index.")
    except LexariumError as error:
        err.print(f"Warning: {error} A server will build it when it starts.", style="yellow")
    finally:
        indexer.stop()
