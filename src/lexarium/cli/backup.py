"""`lexarium backup`"""

from pathlib import Path
from typing import Annotated

import typer

from lexarium.cli.support.options import DatabaseOption, open_database
from lexarium.cli.support.terminal import out, progress_bar
from lexarium.services.maintenance.backup import create_backup


def run(file: Annotated[Path, typer.Argument(help="File to create.")], database: DatabaseOption = None) -> None:
    """Back up the catalogue to a new file and verify it. Servers may keep running."""
    with progress_bar() as progress:
        result = create_backup(open_database(database, must_exist=True), file, progress)
    out.print(f"Backed up revision {result.position.revision} to {file}: {result.records:,} records.")
