"""`lexarium copy`"""

from typing import Annotated

import typer

from lexarium.cli.support.options import open_database
from lexarium.cli.support.terminal import err, out, print_list, progress_bar
from lexarium.services.maintenance.backup import copy_database
from lexarium.store.database import Database
from lexarium.store.maintenance.upgrade import require_current_schema


def run(
    source: Annotated[str, typer.Argument(metavar="FROM", help="The address of the catalogue.")],
    target: Annotated[str, typer.Argument(metavar="TO", help="The address of an empty database.")],
) -> None:
    """Take a whole catalogue into another database, say from SQLite to PostgreSQL: all of it, or nothing.

    History, accounts, tokens, proposals, releases, webhooks: everything, and it is checked. The source stays as it is.
    Where something is written to it meanwhile, nothing is kept of the copy: its servers must be stopped.
    """
    source_database = Database(source)
    require_current_schema(source_database)
    target_database = open_database(target)
    with progress_bar() as progress:
        copy_result, report = copy_database(source_database, target_database, progress)
    if report.problems:
        err.print(f"{len(report.problems):,} problems, which the source has too:", style="bold red")
        print_list(report.problems, "red")
        raise typer.Exit(1)
    rows, location = sum(copy_result.rows.values()), source_database.location
    out.print(f"Copied {report.records:,} records, {report.changes:,} changes, {rows:,} rows in all; they agree.")
    out.print(
        f"To switch: stop the servers of {location}, set LEXARIUM_DATABASE to the new address and start them again."
        f" What is written to {location} from now on (after revision {copy_result.position.revision}) is not copied."
    )
