"""`lexarium copy`"""

from typing import Annotated

import typer

from lexarium.cli.options import opened
from lexarium.cli.terminal import err, out, progress_bar, say_lines
from lexarium.service.copying import copy
from lexarium.store.database import Database
from lexarium.store.migrate import refuse_other

app = typer.Typer(add_completion=False)


@app.command("copy")
def copy_command(
    source: Annotated[str, typer.Argument(metavar="FROM", help="The address of the catalogue.")],
    target: Annotated[str, typer.Argument(metavar="TO", help="The address of an empty database.")],
) -> None:
    """Take a whole catalogue into another database, say from SQLite to PostgreSQL: all of it, or nothing.

    History, accounts, tokens, proposals, releases, webhooks: everything, and it is checked. The source stays as it is.
    Where something is written to it meanwhile, nothing is kept of the copy: its servers must be stopped.
    """
    before = Database(source)
    refuse_other(before)
    after = opened(target)
    with progress_bar() as told:
        copied, found = copy(before, after, told)
    if found.problems:
        err.print(f"[bold red]{len(found.problems):,} problems, which the source has too:[/]")
        say_lines(found.problems, len(found.problems), "red")
        raise typer.Exit(1)
    rows = sum(copied.rows.values())
    out.print(f"Copied {found.records:,} records, {found.changes:,} changes, {rows:,} rows in all; they agree.")
    out.print(
        f"To switch: stop the servers of {before.place}, set LEXARIUM_DATABASE to the new address and start them again."
        f" What is written to {before.place} from now on (after revision {copied.position.revision}) is not copied.",
        markup=False,
    )
