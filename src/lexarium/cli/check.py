"""`lexarium check`"""

import json
import os
from dataclasses import asdict

import typer

from lexarium.cli.options import DatabaseOption, JsonOption, opened
from lexarium.cli.terminal import err, out, say_lines
from lexarium.service.checking import check
from lexarium.service.indexed import compare
from lexarium.service.indexing import index_folder
from lexarium.settings import Settings

app = typer.Typer(add_completion=False)

_NEXT = (
    "Keep the database as it is, and put the last good backup into a new one: `lexarium restore`. "
    'docs/deploying.md, "When something is broken", has the steps.'
)


@app.command("check")
def check_command(json_output: JsonOption = False, database: DatabaseOption = None) -> None:
    """Check that the catalogue agrees with itself: records, relations, log, index. Exit code 1 where it does not."""
    store = opened(database, reading=True)
    found = check(store)
    broken = bool(found.problems)
    cleared = not broken and store.backend.find_damage() is not None
    if cleared:
        store.clear_damage()
    if not broken:  # what does not agree with itself is nothing to hold an index against
        index = compare(store, index_folder(store, Settings.of(os.environ).index))
        found.problems += index.problems
        found.remarks += index.remarks
    if json_output:
        print(json.dumps(asdict(found)))
    else:
        if found.remarks:
            err.print("[yellow]Worth knowing:[/]")
            say_lines(found.remarks, len(found.remarks), "yellow")
        if found.problems:
            err.print(f"[bold red]{len(found.problems):,} problem{'s' if len(found.problems) > 1 else ''}:[/]")
            say_lines(found.problems, len(found.problems), "red")
            if broken:  # what is wrong of the index alone says itself what to do
                err.print(_NEXT)
        else:
            out.print(f"{found.records:,} records and {found.changes:,} changes agree.")
        if cleared:
            out.print("The database is no longer marked as damaged: servers read and write it again.")
    if found.problems:
        raise typer.Exit(1)
