"""`lexarium import`"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from lexarium.cli.options import CollectionOption, DatabaseOption, JsonOption, opened
from lexarium.cli.terminal import err, out, progress_bar, say_lines
from lexarium.domain.collections import COLLECTIONS
from lexarium.domain.errors import ImportRefused, Problem
from lexarium.service.importing import import_files
from lexarium.service.reports import Report

app = typer.Typer(add_completion=False)


@app.command("import")
def import_command(
    files: Annotated[list[Path], typer.Argument(metavar="FILE", help="v-alpha JSON files, in any order.")],
    collection: CollectionOption = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Report what would change, and change nothing.")] = False,
    json_output: JsonOption = False,
    database: DatabaseOption = None,
) -> None:
    """Import v-alpha JSON: lists of records, and records with relations. All of it or nothing.

    The collection is told by --collection, by the records' type, or by the file's name.
    """
    store = opened(database)
    try:
        with progress_bar() as progress:
            report = import_files(store, files, collection=collection, dry_run=dry_run, progress=progress)
    except ImportRefused as error:
        if json_output:
            print(json.dumps({"error": str(error), "problems": _notes(error.problems)}))
        raise
    if json_output:
        print(json.dumps(_as_json(report)))
    else:
        _tell(report)


def _as_json(report: Report) -> dict[str, object]:
    return {
        "dry_run": report.dry_run,
        "changed": report.changed,
        "created": report.created,
        "updated": report.updated,
        "unchanged": report.unchanged,
        "relations_added": report.relations_added,
        "relations_removed": report.relations_removed,
        "warning_count": report.warnings.count,
        "warnings": _notes(report.warnings.kept),
    }


def _notes(problems: Sequence[Problem]) -> list[dict[str, str]]:
    return [{"where": each.field, "what": each.detail} for each in problems]


def _tell(report: Report) -> None:
    if report.warnings.count:
        err.print(f"[yellow]{report.warnings.count:,} {'warning' if report.warnings.count == 1 else 'warnings'}[/]")
        lines = [f"{each.field}: {each.detail}" for each in report.warnings.kept]
        say_lines(lines, report.warnings.count, "yellow")
    table = Table("collection", "created", "updated", "unchanged", box=None, pad_edge=False)
    for column in table.columns[1:]:
        column.justify = "right"
    for name in COLLECTIONS:
        counts = [counter[name] for counter in (report.created, report.updated, report.unchanged)]
        if any(counts):
            table.add_row(name, *(f"{count:,}" for count in counts))
    if table.row_count:
        out.print(table)
    if report.relations_added or report.relations_removed:
        out.print(f"relations: {report.relations_added:,} added, {report.relations_removed:,} removed")
    if not report.changed:
        out.print("Nothing changed.")
    elif report.dry_run:
        out.print("This was a dry run: nothing was changed.")
