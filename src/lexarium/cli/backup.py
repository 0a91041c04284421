"""`lexarium backup`"""

from pathlib import Path
from typing import Annotated

import typer

from lexarium.cli.options import DatabaseOption, opened
from lexarium.cli.terminal import out, progress_bar
from lexarium.service.backups import backup

app = typer.Typer(add_completion=False)


@app.command("backup")
def backup_command(
    file: Annotated[Path, typer.Argument(help="The file to make.")], database: DatabaseOption = None
) -> None:
    """Write the whole catalogue to a new file, checked, while servers go on: everything, of either engine."""
    with progress_bar() as told:
        copied = backup(opened(database, reading=True), file, told)
    out.print(f"{file} holds revision {copied.position.revision}: {copied.rows['record']:,} records.", markup=False)
