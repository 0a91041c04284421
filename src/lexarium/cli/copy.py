"""`lexarium copy`"""

from typing import Annotated

import typer

from lexarium.cli.support.index_update import update_index
from lexarium.cli.support.options import open_database
from lexarium.cli.support.terminal import err, out, print_list, progress_bar
from lexarium.services.maintenance.backup import copy_database
from lexarium.store.database import Database
from lexarium.store.maintenance.upgrade import require_current_schema


def run(
    source: Annotated[str, typer.Argument(metavar="FROM", help="Database URL of the catalogue.")],
    target: Annotated[str, typer.Argument(metavar="TO", help="URL of an empty database.")],
) -> None:
    """Copy a catalogue to another database, for example from SQLite to PostgreSQL. All or nothing.

    Copies everything, including history, accounts, tokens, proposals, releases and webhooks, and verifies the copy.
    The source is not changed. Stop its servers first: if it changes during the copy, the copy is discarded.
    """
    source_database = Database(source)
    require_current_schema(source_database)
    target_database = open_database(target)
    with progress_bar() as progress:
        copy_result, report = copy_database(source_database, target_database, progress)
    if report.problems:
        err.print(f"{len(report.problems):,} problems, also present in the source:", style="bold red")
        print_list(report.problems, "red")
        raise typer.Exit(1)
    update_index(target_database)
    rows, location = sum(copy_result.rows.values()), source_database.location
    out.print(f"Copied {report.records:,} records, {report.changes:,} changes, {rows:,} rows in total; copy verified.")
    out.print(
        f"To switch: stop the servers of {location}, set LEXARIUM_DATABASE to the new URL and start them again."
        f" Later changes to {location} (after revision {copy_result.position.revision}) are not copied."
    )
