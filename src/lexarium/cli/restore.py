"""`lexarium restore`"""

from pathlib import Path
from typing import Annotated

import typer

from lexarium.cli.options import DatabaseOption, opened
from lexarium.cli.terminal import out, progress_bar
from lexarium.service.backups import opened_backup, restore

app = typer.Typer(add_completion=False)


@app.command("restore")
def restore_command(
    file: Annotated[Path, typer.Argument(help="A file that `lexarium backup` made.")], database: DatabaseOption = None
) -> None:
    """Put what a backup holds into an empty database, checked; the backup stays as it is."""
    with opened_backup(file) as source:
        store = opened(database)  # not before it is known that there is something to put into it
        with progress_bar() as told:
            copied = restore(source, store, told)
    told_of = f"revision {copied.position.revision}, {copied.rows['record']:,} records"
    out.print(f"{store.place} is what {file} holds: {told_of}.", markup=False)
