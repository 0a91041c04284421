"""`lexarium restore`"""

from pathlib import Path
from typing import Annotated

import typer

from lexarium.cli.support.index_update import update_index
from lexarium.cli.support.options import DatabaseOption, open_database
from lexarium.cli.support.terminal import out, progress_bar
from lexarium.services.maintenance.backup import open_backup, restore_backup
from lexarium.settings import Settings
from lexarium.store.database import Database


def run(
    file: Annotated[Path, typer.Argument(help="File created by `lexarium backup`.")], database: DatabaseOption = None
) -> None:
    """Restore a backup into an empty database and verify it."""
    with open_backup(file) as source:
        store = Database(Settings.from_environment(database=database).database)
        if store.backend.exists():
            store = open_database(database)
        try:
            with progress_bar() as progress:
                copy_result = restore_backup(source, store, progress)
            update_index(store)
        finally:
            store.close()  # now, so that a failed restore leaves no files beside it
    summary = f"revision {copy_result.position.revision}, {copy_result.records:,} records"
    out.print(f"{store.location} was restored from {file}: {summary}.")
