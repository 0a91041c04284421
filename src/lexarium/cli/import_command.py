"""`lexarium import`"""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated, cast

import typer
from rich.table import Table
from rich.text import Text

from lexarium.cli.support.index_update import update_index
from lexarium.cli.support.options import (
    CollectionOption,
    DatabaseOption,
    JsonOption,
    choice_option,
    open_database,
)
from lexarium.cli.support.terminal import MAX_LINES, err, out, print_list, progress_bar
from lexarium.domain.editing.import_merge import ConflictPreference
from lexarium.domain.errors import FieldProblem, ImportRejected, LexariumError
from lexarium.domain.identifiers import MAIN_VOCABULARY
from lexarium.domain.schema.collections import COLLECTIONS
from lexarium.domain.text.numbers import format_count
from lexarium.formats.column_mapping import MAPPING_TARGETS, parse_mapping_options
from lexarium.formats.registry import FORMATS, Format
from lexarium.services.transfer.file_import import run_import
from lexarium.services.transfer.import_report import (
    AffectedKind,
    ImportConflict,
    ImportReport,
    ValueChange,
    serialize_problems,
    serialize_report,
)
from lexarium.services.transfer.import_request import ImportMode, ImportRequest

_NAMES = ", ".join(FORMATS)


def run(
    files: Annotated[list[Path], typer.Argument(metavar="FILE", help="Files in any order; may be compressed.")],
    format: Annotated[Format | None, choice_option("--format", FORMATS, _NAMES, "NAME", f"One of {_NAMES}.")] = None,
    vocabulary: Annotated[
        str | None,
        typer.Option(
            "--vocabulary",
            metavar="SLUG",
            help="Vocabulary to import into; created if it does not exist. Default: the vocabulary named in the file.",
        ),
    ] = None,
    collection: CollectionOption = None,
    map: Annotated[
        list[str] | None,
        typer.Option("--map", metavar="COLUMN=FIELD", help="Map a column to a field, or name a file with such pairs."),
    ] = None,
    lang: Annotated[str, typer.Option("--lang", metavar="TAG", help="Language of texts without a language tag.")] = "",
    mode: Annotated[
        ImportMode,
        typer.Option(
            "--mode",
            help="update: replace earlier values from the same source. add: remove nothing. replace: like update,"
            " and retire records that are missing from the source.",
        ),
    ] = ImportMode.UPDATE,
    source: Annotated[
        str, typer.Option("--source", metavar="NAME", help="Source of the data, if the file does not name one.")
    ] = "",
    adopt: Annotated[
        bool,
        typer.Option(
            "--adopt",
            help="Rename records that map to one term of the file (exactMatch, else cross-reference) to its id."
            " The old id redirects.",
        ),
    ] = False,
    theirs: Annotated[bool, typer.Option("--theirs", help="On conflict, use the value from the file.")] = False,
    ours: Annotated[
        bool, typer.Option("--ours", help="On conflict, keep the local value and do not report it.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would change without changing anything.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Retire records without asking.")] = False,
    report: Annotated[
        Path | None, typer.Option("--report", metavar="FILE", help="Write the report, with all warnings, as JSON.")
    ] = None,
    json_output: JsonOption = False,
    database: DatabaseOption = None,
) -> None:
    """Import files of any supported format. All or nothing.

    Format: --format, else the file name, else the content. Without --vocabulary, an RDF or OBO file goes to the
    vocabulary that it names, a table to the one that has most of its records, any other file to the main one. Local
    edits since the last import are kept.
    """
    is_main = vocabulary == MAIN_VOCABULARY and not (format and format.needs_records)
    column_mapping = parse_mapping_options(map or [], MAPPING_TARGETS if is_main else None)
    store = open_database(database)
    request = ImportRequest(
        files,
        vocabulary=vocabulary or "",
        format=format,
        collection=collection or "",
        column_mapping=column_mapping,
        language=lang,
        mode=mode,
        prefer=parse_preference(theirs, ours),
        source=source,
        adopt=adopt,
        dry_run=dry_run,
    )
    with print_rejection(json_output), progress_bar() as progress:
        if mode == ImportMode.REPLACE and not dry_run and not yes:
            preview = run_import(store, replace(request, dry_run=True), progress)
            _confirm_retirements(preview)
        result = run_import(store, request, progress)
    if result.has_changes and not dry_run:
        update_index(store)
    if report is not None:
        report.write_text(json.dumps(serialize_report(result), indent=2, ensure_ascii=False), encoding="utf-8")
    if json_output:
        print(json.dumps(serialize_report(result)))
    else:
        print_report(result)


def _confirm_retirements(preview: ImportReport) -> None:
    """Ask before records are retired; raise LexariumError if there is no terminal or the answer is no."""
    count = preview.retired.total()
    if not count:
        return
    err.print(f"{format_count(count, 'record')} of earlier imports not in the file:")
    lines = [f"{item.id} {item.name}" for item in preview.affected["retired"]]
    print_list(lines, "yellow", count)
    if not err.is_terminal:
        raise LexariumError("Use --yes to retire them without a terminal. Nothing was imported.")
    if not typer.confirm("Retire them?", err=True):
        raise LexariumError("Nothing was imported.")


def parse_preference(theirs: bool, ours: bool) -> ConflictPreference | None:
    """Return which side wins a conflict; raise LexariumError if both are given."""
    if theirs and ours:
        raise LexariumError("Use --theirs or --ours, not both.")
    return "theirs" if theirs else "ours" if ours else None


@contextmanager
def print_rejection(json_output: bool) -> Iterator[None]:
    """Print the problems of a rejected import as JSON before the error is raised again."""
    try:
        yield
    except ImportRejected as error:
        if json_output:
            print(json.dumps({"error": str(error), "problems": serialize_problems(error.problems)}))
        raise


def _print_warnings(report: ImportReport) -> None:
    if report.warnings.count:
        err.print(format_count(report.warnings.count, "warning"), style="yellow")
    for kind in report.warnings.kinds:
        if kind.count == 1:
            err.print(Text.assemble("  ", ("•", "yellow"), f" {_format_problem(kind.examples[0])}"))
            continue
        err.print(Text.assemble("  ", ("•", "yellow"), f" {kind.message} ({kind.count:,} times)"))
        for example in kind.examples:
            err.print(f"      {_format_problem(example)}")
    if report.conflicts.count:
        explanation = ": changed locally and in the file; local value kept (use --theirs for the file's)"
        err.print(Text.assemble((format_count(report.conflicts.count, "conflict"), "magenta"), explanation))
        print_list([_format_conflict(item) for item in report.conflicts.items], "magenta", report.conflicts.count)


def _format_problem(problem: FieldProblem) -> str:
    return f"{problem.field}: {problem.detail}"


def print_report(report: ImportReport) -> None:
    """Print the report of an import."""
    _print_warnings(report)
    _print_vocabulary(report)
    _print_counts(report)
    if not report.has_changes:
        out.print("Nothing changed.")
    elif report.dry_run:
        _print_changes(report)
        out.print("Dry run: nothing was changed.")


def _print_vocabulary(report: ImportReport) -> None:
    if report.is_new_vocabulary:
        for slug in report.new_vocabularies or [report.vocabulary]:
            out.print(f"New vocabulary: {slug}")
    elif report.vocabulary != MAIN_VOCABULARY:
        out.print(f"Vocabulary: {report.vocabulary}")


def _print_counts(report: ImportReport) -> None:
    table = Table("collection", "created", "updated", "retired", "unchanged", box=None, pad_edge=False)
    for column in table.columns[1:]:
        column.justify = "right"
    for name in dict.fromkeys((*COLLECTIONS, *report.created, *report.updated, *report.retired, *report.unchanged)):
        counts = [n[name] for n in (report.created, report.updated, report.retired, report.unchanged)]
        if any(counts):
            table.add_row(name, *(f"{count:,}" for count in counts))
    if table.row_count:
        out.print(table)
    if report.metadata:
        out.print("metadata of the vocabulary: updated")
    for name, count in ("adopted", report.adopted.total()), ("skipped", report.skipped):
        if count:
            out.print(f"{name}: {count:,}")
    if report.relations_added or report.relations_removed:
        out.print(f"relations: {report.relations_added:,} added, {report.relations_removed:,} removed")


def _print_changes(report: ImportReport) -> None:
    """Print what would be added, changed and retired, by record and field."""
    if report.metadata:
        out.print(Text.assemble(("~", "yellow"), f" vocabulary {report.vocabulary}"))
        _print_values(report.metadata)
    kinds = (("adopted", "=", "cyan"), ("created", "+", "green"), ("updated", "~", "yellow"), ("retired", "-", "red"))
    for kind, sign, colour in kinds:
        items = report.affected[cast(AffectedKind, kind)]
        for item in items[:MAX_LINES]:
            out.print(Text.assemble((sign, colour), f" {item.id} {item.name}"))
            _print_values(item.changes)
        total = getattr(report, kind).total()
        if total > MAX_LINES:
            out.print(f"  … and {total - MAX_LINES:,} more {kind}")


def _print_values(changes: Sequence[ValueChange]) -> None:
    for change in changes:
        for text in change.removed:
            out.print(Text(f"    {change.field} - {text}", style="red"))
        for text in change.added:
            out.print(Text(f"    {change.field} + {text}", style="green"))


def _format_conflict(conflict: ImportConflict) -> str:
    ours, theirs = (json.dumps(value, ensure_ascii=False) for value in (conflict.ours, conflict.theirs))
    return f"{conflict.where}: {conflict.field} of {conflict.record} is {ours} locally and {theirs} in the file"
