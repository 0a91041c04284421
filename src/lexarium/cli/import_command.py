"""`lexarium import`"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from lexarium.cli.support.options import (
    CollectionOption,
    DatabaseOption,
    JsonOption,
    choice_option,
    open_database,
    relax_gc,
)
from lexarium.cli.support.terminal import err, out, print_list, progress_bar
from lexarium.domain.editing.import_merge import ConflictPreference
from lexarium.domain.errors import ImportRejected, LexariumError
from lexarium.domain.identifiers import MAIN_VOCABULARY
from lexarium.domain.schema.collections import COLLECTIONS
from lexarium.domain.text.numbers import format_count
from lexarium.domain.vocabulary import VOCABULARIES, get_default_vocabulary
from lexarium.formats.column_mapping import parse_mapping_options
from lexarium.formats.registry import FORMATS, Format
from lexarium.services.transfer.import_report import ImportConflict, ImportReport, serialize_problems, serialize_report
from lexarium.services.transfer.imports import import_files
from lexarium.services.transfer.resource_import import import_resource_files

_NAMES = ", ".join(FORMATS)


def run(
    files: Annotated[list[Path], typer.Argument(metavar="FILE", help="Files, in any order; compressed ones too.")],
    format: Annotated[Format | None, choice_option("--format", FORMATS, _NAMES, "NAME", f"One of {_NAMES}.")] = None,
    vocabulary: Annotated[
        str | None,
        typer.Option("--vocabulary", metavar="SLUG", help="Vocabulary to import into; created if it is not there."),
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
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="ImportReport what would change, and change nothing.")
    ] = False,
    json_output: JsonOption = False,
    database: DatabaseOption = None,
) -> None:
    """Import files of any format. All of it or nothing.

    The format is told by --format, by a file's name, or by how it begins; the collection by --collection, by the
    records themselves, or by the file's name. What people have changed here since the last import is kept.
    """
    preference = parse_preference(theirs, ours)
    column_mapping = parse_mapping_options(map or [])
    store = open_database(database)
    relax_gc()
    with print_rejection(json_output), progress_bar() as progress:
        target = None if vocabulary is None else VOCABULARIES.get(vocabulary)
        if vocabulary in (None, MAIN_VOCABULARY) or (target and format and not format.resource_module):
            report = import_files(
                store,
                files,
                vocabulary=target or get_default_vocabulary(),
                format=format,
                collection=collection,
                column_mapping=column_mapping,
                prefer=preference,
                dry_run=dry_run,
                progress=progress,
            )
        else:
            report = import_resource_files(
                store,
                files,
                vocabulary=vocabulary,
                format=format,
                prefer=preference,
                dry_run=dry_run,
                progress=progress,
            )
    if json_output:
        print(json.dumps(serialize_report(report)))
    else:
        print_report(report)


def parse_preference(theirs: bool, ours: bool) -> ConflictPreference | None:
    """Return which side wins a conflict; raise where both are given."""
    if theirs and ours:
        raise LexariumError("Give --theirs or --ours, not both.")
    return "theirs" if theirs else "ours" if ours else None


@contextmanager
def print_rejection(json_output: bool) -> Iterator[None]:
    """Print the problems of a rejected import as JSON, for scripts, before the error passes."""
    try:
        yield
    except ImportRejected as error:
        if json_output:
            print(json.dumps({"error": str(error), "problems": serialize_problems(error.problems)}))
        raise


def _print_warnings(report: ImportReport) -> None:
    if report.warnings.count:
        err.print(format_count(report.warnings.count, "warning"), style="yellow")
        lines = [f"{item.field}: {item.detail}" for item in report.warnings.items]
        print_list(lines, "yellow", report.warnings.count)
    if report.conflicts.count:
        explanation = ": changed here and in the file; ours was kept (--theirs takes the file's)"
        err.print(Text.assemble((format_count(report.conflicts.count, "conflict"), "magenta"), explanation))
        print_list([_format_conflict(item) for item in report.conflicts.items], "magenta", report.conflicts.count)


def print_report(report: ImportReport) -> None:
    """Print the report of an import."""
    _print_warnings(report)
    table = Table("collection", "created", "updated", "retired", "unchanged", box=None, pad_edge=False)
    for column in table.columns[1:]:
        column.justify = "right"
    if report.created_vocabulary:
        out.print(f"The vocabulary {report.created_vocabulary} is created.")
    for name in dict.fromkeys((*COLLECTIONS, *report.created, *report.updated, *report.retired, *report.unchanged)):
        counts = [n[name] for n in (report.created, report.updated, report.retired, report.unchanged)]
        if any(counts):
            table.add_row(name, *(f"{count:,}" for count in counts))
    if table.row_count:
        out.print(table)
    if report.skipped:
        out.print(f"left out: {report.skipped:,}")
    if report.relations_added or report.relations_removed:
        out.print(f"relations: {report.relations_added:,} added, {report.relations_removed:,} removed")
    if not report.has_changes:
        out.print("Nothing changed.")
    elif report.dry_run:
        out.print("This was a dry run: nothing was changed.")


def _format_conflict(conflict: ImportConflict) -> str:
    ours, theirs = (json.dumps(value, ensure_ascii=False) for value in (conflict.ours, conflict.theirs))
    return f"{conflict.where}: {conflict.field} of {conflict.record} is {ours} here and {theirs} there"
