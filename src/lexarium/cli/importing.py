"""`lexarium import`"""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from lexarium.cli.options import CollectionOption, DatabaseOption, JsonOption, collect_seldom, opened
from lexarium.cli.terminal import err, out, progress_bar, say_lines
from lexarium.domain.collections import COLLECTIONS
from lexarium.domain.editions import Preference
from lexarium.domain.errors import ImportRefused, LexariumError
from lexarium.exchange.formats import FORMATS, Format
from lexarium.exchange.mapping import read_map
from lexarium.service.importing import import_files
from lexarium.service.reports import Conflict, Report, notes_view, report_view
from lexarium.settings import Settings

app = typer.Typer(add_completion=False)

_FORMATS = ", ".join(each.name for each in FORMATS.values() if each.reads)


def _format(name: str) -> Format:
    if name not in FORMATS or not FORMATS[name].reads:
        raise typer.BadParameter(f"{name!r} is not one of {_FORMATS}.")
    return FORMATS[name]


@app.command("import")
def import_command(
    files: Annotated[list[Path], typer.Argument(metavar="FILE", help="Files, in any order; compressed ones too.")],
    format: Annotated[
        Format | None,
        typer.Option("--format", parser=_format, metavar="NAME", help=f"One of {_FORMATS}.", show_default=False),
    ] = None,
    collection: CollectionOption = None,
    map: Annotated[
        list[str] | None,
        typer.Option(
            "--map", metavar="COLUMN=FIELD", help="What a column or predicate means; or a file of such pairs."
        ),
    ] = None,
    theirs: Annotated[
        bool, typer.Option("--theirs", help="Take the file's where it and someone here changed the same.")
    ] = False,
    ours: Annotated[bool, typer.Option("--ours", help="Keep ours there, and say nothing of it.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Report what would change, and change nothing.")] = False,
    json_output: JsonOption = False,
    database: DatabaseOption = None,
) -> None:
    """Import files of any format. All of it or nothing.

    The format is told by --format, by a file's name, or by how it begins; the collection by --collection, by the
    records themselves, or by the file's name. What people have changed here since the last import is kept.
    """
    prefer = preference(theirs, ours)
    meanings = read_map(map or [])
    about = Settings.of(os.environ, database=database).about
    store = opened(database)
    collect_seldom()
    with refusal_told(json_output), progress_bar() as progress:
        report = import_files(
            store,
            files,
            about=about,
            format=format,
            collection=collection,
            map=meanings,
            prefer=prefer,
            dry_run=dry_run,
            progress=progress,
        )
    if json_output:
        print(json.dumps(report_view(report)))
    else:
        tell(report)


def preference(theirs: bool, ours: bool) -> Preference | None:
    """Whose value stands where both sides changed the same."""
    if theirs and ours:
        raise LexariumError("Give --theirs or --ours, not both.")
    return "theirs" if theirs else "ours" if ours else None


@contextmanager
def refusal_told(json_output: bool) -> Iterator[None]:
    """Have scripts told of every problem of an import that is refused."""
    try:
        yield
    except ImportRefused as error:
        if json_output:
            print(json.dumps({"error": str(error), "problems": notes_view(error.problems)}))
        raise


def _tell_notes(report: Report) -> None:
    if report.warnings.count:
        err.print(f"[yellow]{report.warnings.count:,} {'warning' if report.warnings.count == 1 else 'warnings'}[/]")
        lines = [f"{each.field}: {each.detail}" for each in report.warnings.kept]
        say_lines(lines, report.warnings.count, "yellow")
    if report.conflicts.count:
        number = "1 conflict" if report.conflicts.count == 1 else f"{report.conflicts.count:,} conflicts"
        err.print(f"[magenta]{number}[/]: changed here and in the file; ours was kept (--theirs takes the file's)")
        say_lines([_sentence(each) for each in report.conflicts.kept], report.conflicts.count, "magenta")


def tell(report: Report) -> None:
    """Say what an import did."""
    _tell_notes(report)
    table = Table("collection", "created", "updated", "retired", "unchanged", box=None, pad_edge=False)
    for column in table.columns[1:]:
        column.justify = "right"
    for name in COLLECTIONS:
        counters = (report.created, report.updated, report.retired, report.unchanged)
        counts = [counter[name] for counter in counters]
        if any(counts):
            table.add_row(name, *(f"{count:,}" for count in counts))
    if table.row_count:
        out.print(table)
    if report.refused:
        out.print(f"left out: {report.refused:,}")
    if report.relations_added or report.relations_removed:
        out.print(f"relations: {report.relations_added:,} added, {report.relations_removed:,} removed")
    if not report.changed:
        out.print("Nothing changed.")
    elif report.dry_run:
        out.print("This was a dry run: nothing was changed.")


def _sentence(conflict: Conflict) -> str:
    ours, theirs = (json.dumps(value, ensure_ascii=False) for value in (conflict.ours, conflict.theirs))
    return f"{conflict.where}: {conflict.field} of {conflict.record} is {ours} here and {theirs} there"
