"""`lexarium schema`"""

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from lexarium.cli.support.options import DatabaseOption, JsonOption, open_database
from lexarium.cli.support.schema_files import read_schema_file
from lexarium.cli.support.terminal import err, out, print_list, print_table
from lexarium.domain.errors import InvalidSchema, LineProblem, NotFound
from lexarium.domain.identifiers import SYSTEM_USER_ID
from lexarium.domain.schema.json_schema import to_json_schema
from lexarium.domain.schema.linkml import (
    BUILTIN_NAMES,
    load_builtin_schema,
    load_schema,
    read_builtin_source,
)
from lexarium.domain.schema.model import Schema
from lexarium.domain.text.numbers import format_count
from lexarium.domain.vocabulary import VOCABULARIES, Vocabulary, resolve_schema
from lexarium.services.vocabularies import head_records
from lexarium.services.vocabularies.conformance import check_conformance

app = typer.Typer(add_completion=False, no_args_is_help=True)


@app.callback()
def schema() -> None:
    """Check, show and apply LinkML schemas of vocabularies."""


@app.command()
def check(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A LinkML schema in YAML.")],
    json_output: JsonOption = False,
) -> None:
    """Check a schema and list all problems with line numbers. Exits with 1 on problems."""
    loaded = _load_or_exit(file, json_output)
    if json_output:
        print(json.dumps(_describe_check(file, (), loaded.warnings, list(loaded.collections))))
        return
    _print_warnings(loaded.warnings)
    out.print(f"{file} is a valid schema with {_summarize_collections(loaded)}.")


@app.command()
def show(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[NAME]",
            help=f"A vocabulary, or a built-in schema: {', '.join(BUILTIN_NAMES)}. Default: list the built-in schemas.",
        ),
    ] = None,
    json_output: Annotated[
        bool, typer.Option("--json", help="Print JSON Schema; without NAME, print the list as JSON.")
    ] = False,
    database: DatabaseOption = None,
) -> None:
    """Show the schema of a vocabulary or a built-in schema as LinkML, or list the built-in schemas."""
    if name is None:
        _list_builtin(json_output)
        return
    source = name if name in BUILTIN_NAMES else _find_vocabulary(name, database).schema_source
    if json_output:
        print(json.dumps(to_json_schema(resolve_schema(source)), indent=2, ensure_ascii=False))
    else:
        print(read_builtin_source(source) if source in BUILTIN_NAMES else source, end="")


@app.command()
def apply(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A LinkML schema in YAML.")],
    vocabulary: Annotated[str, typer.Option(metavar="SLUG", help="Vocabulary to apply it to.")],
    database: DatabaseOption = None,
) -> None:
    """Apply a schema to a vocabulary and list nonconforming values. An invalid schema changes nothing."""
    loaded = _load_or_exit(file)
    _print_warnings(loaded.warnings)
    store = open_database(database)
    values = {"schema": loaded.source}
    store.run_write(lambda txn: head_records.update_vocabulary(txn, SYSTEM_USER_ID, vocabulary, values))
    with store.read() as snapshot:
        report = check_conformance(snapshot, head_records.get_vocabulary(vocabulary), list(VOCABULARIES))
    findings = report.groups["invalid_value"]
    if findings.total:
        verb = "does" if findings.total == 1 else "do"
        err.print(f"{format_count(findings.total, 'value')} of {vocabulary} {verb} not conform to it:", style="yellow")
        print_list([f"{finding.id}: {finding.detail}" for finding in findings.examples], "yellow", findings.total)
    out.print(f"Applied the schema {loaded.name} to {vocabulary}, with {_summarize_collections(loaded)}.")


def _find_vocabulary(name: str, database: str | None) -> Vocabulary:
    known = f"Built-in schema {name!r} not found; available: {', '.join(BUILTIN_NAMES)}."
    try:
        open_database(database, must_exist=True)
        return head_records.get_vocabulary(name)
    except NotFound:
        raise NotFound(f"{known} No vocabulary has this name either; see `lexarium vocabulary list`.") from None


def _load_or_exit(file: Path, json_output: bool = False) -> Schema:
    """Return the schema in a file; print all problems and exit with 1 if there are any."""
    try:
        return load_schema(read_schema_file(file))
    except InvalidSchema as error:
        if json_output:
            print(json.dumps(_describe_check(file, error.lines, error.warnings)))
        else:
            _print_warnings(error.warnings)
            err.print(f"{format_count(len(error.lines), 'problem')} in {file}:", style="bold red")
            _print_lines(error.lines, "red")
        raise typer.Exit(1) from None


def _describe_check(
    path: Path,
    problems: tuple[LineProblem, ...],
    warnings: tuple[LineProblem, ...],
    collections: list[str] | None = None,
) -> dict[str, Any]:
    return {
        "file": str(path),
        "valid": not problems,
        "collections": collections or [],
        "problems": [problem._asdict() for problem in problems],
        "warnings": [warning._asdict() for warning in warnings],
    }


def _print_warnings(warnings: tuple[LineProblem, ...]) -> None:
    if warnings:
        err.print(f"{format_count(len(warnings), 'warning')}:", style="yellow")
        _print_lines(warnings, "yellow")


def _print_lines(lines: tuple[LineProblem, ...], colour: str) -> None:
    """Print all lines, without a limit."""
    for line, message in lines:
        print_list([f"line {line}: {message}"], colour)


def _summarize_collections(loaded: Schema) -> str:
    collections = loaded.collections
    return f"{format_count(len(collections), 'collection')}: {', '.join(collections)}"


def _list_builtin(json_output: bool) -> None:
    schemas = [load_builtin_schema(name) for name in BUILTIN_NAMES]
    if json_output:
        entries = [
            {"name": entry.name, "title": entry.title, "collections": list(entry.collections)} for entry in schemas
        ]
        print(json.dumps(entries))
        return
    table = Table("name", "title", "collections", box=None, pad_edge=False)
    for column in table.columns:
        column.overflow = "fold"
    table.columns[0].no_wrap = True
    for entry in schemas:
        table.add_row(entry.name, entry.title, ", ".join(entry.collections))
    print_table(table)
