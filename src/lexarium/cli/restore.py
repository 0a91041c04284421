"""`lexarium restore`"""

import os
from pathlib import Path
from typing import Annotated

import typer

from lexarium.cli.options import DatabaseOption, opened
from lexarium.cli.terminal import out, progress_bar
from lexarium.service.backups import opened_backup, restore
from lexarium.settings import Settings
from lexarium.store.database import Database

app = typer.Typer(add_completion=False)


@app.command("restore")
def restore_command(
    file: Annotated[Path, typer.Argument(help="A file that `lexarium backup` made.")], database: DatabaseOption = None
) -> None:
    """Put what a backup holds into an empty database, checked; the backup stays as it is."""
    with opened_backup(file) as source:
        store = Database(Settings.of(os.environ, database=database).database)
        if store.backend.exists():
            store = opened(database)
        try:
            with progress_bar() as told:
                copied = restore(source, store, told)
        finally:
            store.close()  # At once, so that what was undone leaves no files beside it.
    told_of = f"revision {copied.position.revision}, {copied.rows['record']:,} records"
    out.print(f"{store.place} is what {file} holds: {told_of}.", markup=False)
