"""`lexarium backup`"""

from pathlib import Path
from typing import Annotated

import typer

from lexarium.cli.support.options import DatabaseOption, open_database
from lexarium.cli.support.terminal import out, progress_bar
from lexarium.services.maintenance.backup import create_backup


def run(file: Annotated[Path, typer.Argument(help="The file to make.")], database: DatabaseOption = None) -> None:
    """Write the whole catalogue to a new file, checked, while servers go on: everything, of either engine."""
    with progress_bar() as progress:
        result = create_backup(open_database(database, must_exist=True), file, progress)
    out.print(f"{file} holds revision {result.position.revision}: {result.rows['record']:,} records.")
