"""`lexarium schema`"""

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from lexarium.cli.support.options import JsonOption
from lexarium.cli.support.schema_files import read_schema_file
from lexarium.cli.support.terminal import err, out, print_list, print_table
from lexarium.domain.errors import InvalidSchema, LineProblem, NotFound
from lexarium.domain.schema.json_schema import to_json_schema
from lexarium.domain.schema.linkml import (
    BUILTIN_NAMES,
    load_builtin_schema,
    load_schema,
    read_builtin_source,
)
from lexarium.domain.schema.model import Schema
from lexarium.domain.text.numbers import format_count

app = typer.Typer(add_completion=False, no_args_is_help=True)


@app.callback()
def schema() -> None:
    """Check and show the schemas of vocabularies, which are written in LinkML."""


@app.command()
def check(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A LinkML schema in YAML.")],
    json_output: JsonOption = False,
) -> None:
    """Check a schema, and list every problem with its line. Exit code 1 where there is one."""
    try:
        loaded = load_schema(read_schema_file(file))
    except InvalidSchema as error:
        if json_output:
            print(json.dumps(_describe_check(file, error.lines, error.warnings)))
        else:
            _print_warnings(error.warnings)
            err.print(f"{format_count(len(error.lines), 'problem')} in {file}:", style="bold red")
            _print_lines(error.lines, "red")
        raise typer.Exit(1) from None
    if json_output:
        print(json.dumps(_describe_check(file, (), loaded.warnings, list(loaded.collections))))
        return
    _print_warnings(loaded.warnings)
    out.print(f"{file} is a valid schema with {_summarize_collections(loaded)}.")


@app.command()
def show(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help=f"One of {', '.join(BUILTIN_NAMES)}; without it, list them.")
    ] = None,
    json_output: Annotated[
        bool, typer.Option("--json", help="Print JSON Schema, for scripts; without NAME, the list as JSON.")
    ] = False,
) -> None:
    """Show a built-in schema as LinkML, or list them."""
    if name is None:
        _list_builtin(json_output)
    elif name not in BUILTIN_NAMES:
        raise NotFound(f"There is no built-in schema {name!r}. There are {', '.join(BUILTIN_NAMES)}.")
    elif json_output:
        print(json.dumps(to_json_schema(load_builtin_schema(name)), indent=2, ensure_ascii=False))
    else:
        print(read_builtin_source(name), end="")


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
    """Print all lines, however many there are."""
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
