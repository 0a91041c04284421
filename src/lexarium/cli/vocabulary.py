"""`lexarium vocabulary`"""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from lexarium.cli.support.options import DatabaseOption, JsonOption, YesOption, open_database
from lexarium.cli.support.schema_files import SchemaSourceOption, read_schema_source
from lexarium.cli.support.terminal import confirm, out, print_table
from lexarium.domain.errors import FieldProblem, InvalidInput
from lexarium.domain.identifiers import SYSTEM_USER_ID
from lexarium.domain.text.numbers import format_count
from lexarium.domain.vocabulary import (
    VOCABULARIES,
    Vocabulary,
    check_values,
    find_valpha_vocabulary,
    get_default_vocabulary,
)
from lexarium.services.vocabularies import head_records
from lexarium.store.database import Database

app = typer.Typer(add_completion=False, no_args_is_help=True)
SlugArgument = Annotated[str, typer.Argument(metavar="SLUG", help="Short name of the vocabulary.")]

_TEXT_KEYS = ("title", "description", "licence", "publisher", "base", "minting")
_LIST_KEYS = ("languages", "defines")
_KEYS = (*_TEXT_KEYS, *_LIST_KEYS, "prefixes", "private")
# Keys that have a command of their own.
_OTHER_COMMANDS = {
    "schema": "schema apply FILE --vocabulary",
    "default": "vocabulary default",
    "valpha": "vocabulary valpha",
}
_BOOLEANS = {"yes": True, "true": True, "no": False, "false": False, "": False}


@app.callback()
def vocabulary() -> None:
    """Manage the vocabularies of a database: metadata, rules and schemas."""


@app.command("list")
def list_command(json_output: JsonOption = False, database: DatabaseOption = None) -> None:
    """List all vocabularies, the default one first, including removed ones."""
    store = open_database(database, must_exist=True)
    counts = store.run_read(head_records.count_records)
    listed = head_records.list_vocabularies(removed=True)
    if json_output:
        print(json.dumps([_serialize(item, counts) for item in listed]))
        return
    table = Table("vocabulary", "title", "schema", "languages", "records", "", box=None, pad_edge=False)
    table.columns[4].justify = "right"
    for item in listed:
        figures = (
            _name_schema(item),
            ", ".join(item.languages),
            f"{counts[item.slug]:,}",
            ", ".join(_list_flags(item)),
        )
        table.add_row(item.slug, Text(item.title), *figures)
    print_table(table)


@app.command()
def add(
    slug: SlugArgument,
    schema: SchemaSourceOption,
    title: Annotated[str, typer.Option(help="Title.")],
    description: Annotated[str, typer.Option(help="Description.", show_default=False)] = "",
    licence: Annotated[str, typer.Option(help="Licence: an IRI or a short text.", show_default=False)] = "",
    publisher: Annotated[str, typer.Option(help="Publisher.", show_default=False)] = "",
    language: Annotated[
        list[str] | None,
        typer.Option(help="Language of its texts, the default one first; repeatable.", metavar="TAG"),
    ] = None,
    base: Annotated[
        str, typer.Option(metavar="IRI", help="Start of the IRIs of its records.", show_default=False)
    ] = "",
    prefix: Annotated[
        list[str] | None, typer.Option(metavar="P=IRI", help="Prefix defined by this vocabulary; repeatable.")
    ] = None,
    defines: Annotated[
        list[str] | None,
        typer.Option(metavar="P", help="Prefix whose IDs belong to this vocabulary; repeatable."),
    ] = None,
    minting: Annotated[
        str, typer.Option(metavar="RULE", help="Pattern of new IDs, such as DOID:{n:07}.", show_default=False)
    ] = "",
    private: Annotated[bool, typer.Option("--private", help="Readable only by accounts with a role in it.")] = False,
    database: DatabaseOption = None,
) -> None:
    """Add a vocabulary."""
    problems: list[FieldProblem] = []
    values: dict[str, Any] = {
        "title": title,
        "description": description,
        "licence": licence,
        "publisher": publisher,
        "base": base,
        "minting": minting,
        "prefixes": _parse_prefixes(prefix or [], problems),
        "defines": defines or [],
        "private": private,
        "schema": read_schema_source(schema),
    }
    if language:
        values["languages"] = language
    store = open_database(database)
    _raise_problems(slug, values, problems)
    added = store.run_write(lambda txn: head_records.create_vocabulary(txn, SYSTEM_USER_ID, slug, values))
    out.print(f"Added the vocabulary {slug} ({added.title}) with the schema {_name_schema(added)}.")


@app.command()
def show(slug: SlugArgument, json_output: JsonOption = False, database: DatabaseOption = None) -> None:
    """Show the metadata, rules and collections of a vocabulary."""
    store = open_database(database, must_exist=True)
    shown = head_records.get_vocabulary(slug, removed=True)
    with store.read() as snapshot:
        counts = head_records.count_records(snapshot)
        collections = head_records.count_by_collection(snapshot, shown)
    if json_output:
        print(json.dumps({**_serialize(shown, counts), "collections": collections}))
        return
    table = Table("field", "value", show_header=False, box=None, pad_edge=False)
    for key, value in {**_serialize(shown, counts), "collections": collections}.items():
        table.add_row(Text(key, "bold"), Text(_format_value(value)))
    print_table(table)


@app.command("set")
def set_command(
    slug: SlugArgument,
    assignments: Annotated[
        list[str],
        typer.Argument(
            metavar="KEY=VALUE...",
            help=f"Keys: {', '.join(_KEYS)}. KEY= clears a value; separate list items with commas; write prefixes as uat=http://….",
        ),
    ],
    database: DatabaseOption = None,
) -> None:
    """Change the metadata or rules of a vocabulary."""
    store = open_database(database)
    head_records.get_vocabulary(slug)
    problems: list[FieldProblem] = []
    values = _parse_assignments(assignments, problems)
    _raise_problems(slug, values, problems)
    _update(store, slug, values)
    out.print(f"Updated the vocabulary {slug}: {', '.join(values)}.")


@app.command()
def default(slug: SlugArgument, database: DatabaseOption = None) -> None:
    """Set the default vocabulary, which pages and requests show first."""
    _update(open_database(database), slug, {"default": True})
    out.print(f"{slug} is the default vocabulary.")


@app.command()
def valpha(slug: SlugArgument, database: DatabaseOption = None) -> None:
    """Set the vocabulary that v-alpha serves."""
    _update(open_database(database), slug, {"valpha": True})
    out.print(f"v-alpha serves the vocabulary {slug}.")


@app.command()
def remove(slug: SlugArgument, yes: YesOption = False, database: DatabaseOption = None) -> None:
    """Hide a vocabulary and its records. This can be undone."""
    store = open_database(database)
    found = head_records.get_vocabulary(slug)
    records = _format_records(store, slug)
    confirm(yes, f"Remove the vocabulary {slug} ({found.title}) with {records}? It can be restored.")
    store.run_write(lambda txn: head_records.remove_vocabulary(txn, SYSTEM_USER_ID, slug))
    out.print(f"Removed the vocabulary {slug}. Restore it with `lexarium vocabulary restore {slug}`.")


@app.command()
def restore(slug: SlugArgument, database: DatabaseOption = None) -> None:
    """Show a removed vocabulary and its records again."""
    store = open_database(database)
    store.run_write(lambda txn: head_records.restore_vocabulary(txn, SYSTEM_USER_ID, slug))
    out.print(f"Restored the vocabulary {slug} with {_format_records(store, slug)}.")


@app.command()
def purge(slug: SlugArgument, yes: YesOption = False, database: DatabaseOption = None) -> None:
    """Delete a removed vocabulary with its records and their history. This cannot be undone."""
    store = open_database(database)
    head_records.require_removed(slug)
    confirm(
        yes,
        f"Delete the vocabulary {slug} with {_format_records(store, slug)}, their history, proposals and roles?"
        " This cannot be undone.",
    )
    count = store.run_write(lambda txn: head_records.purge_vocabulary(txn, slug))
    out.print(f"Deleted the vocabulary {slug} with {format_count(count, 'record')}.")


def _update(store: Database, slug: str, values: Mapping[str, Any]) -> Vocabulary:
    return store.run_write(lambda txn: head_records.update_vocabulary(txn, SYSTEM_USER_ID, slug, values))


def _parse_assignments(assignments: Sequence[str], problems: list[FieldProblem]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for assignment in assignments:
        key, separator, text = assignment.partition("=")
        if key in _OTHER_COMMANDS:
            problems.append(FieldProblem(key, f"is changed with `lexarium {_OTHER_COMMANDS[key]} SLUG`."))
        elif key not in _KEYS:
            problems.append(FieldProblem(key, f"is not one of {', '.join(_KEYS)}."))
        elif not separator:
            problems.append(FieldProblem(key, f"needs a value: {key}=VALUE, or {key}= to clear it."))
        else:
            values[key] = _PARSERS[key](text, problems)
    return values


def _parse_prefixes(pairs: Sequence[str], problems: list[FieldProblem]) -> dict[str, str]:
    problems += [FieldProblem("prefixes", f"{pair!r} must be P=IRI.") for pair in pairs if "=" not in pair]
    return dict(pair.split("=", 1) for pair in pairs if "=" in pair)


def _parse_boolean(text: str, problems: list[FieldProblem]) -> bool:
    if text.lower() not in _BOOLEANS:
        problems.append(FieldProblem("private", "must be yes or no."))
    return _BOOLEANS.get(text.lower(), False)


def _split(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


_PARSERS: dict[str, Callable[[str, list[FieldProblem]], Any]] = {
    **dict.fromkeys(_TEXT_KEYS, lambda text, _: text),
    **dict.fromkeys(_LIST_KEYS, lambda text, _: _split(text)),
    "prefixes": lambda text, problems: _parse_prefixes(_split(text), problems),
    "private": _parse_boolean,
}


def _raise_problems(slug: str, values: Mapping[str, Any], problems: list[FieldProblem]) -> None:
    """Raise InvalidInput if values are malformed, with all other problems too."""
    if problems:
        try:
            check_values(slug, values, VOCABULARIES.values())
        except InvalidInput as error:
            problems += error.problems
        raise InvalidInput("Invalid vocabulary.", problems)


def _format_records(store: Database, slug: str) -> str:
    return format_count(store.run_read(head_records.count_records)[slug], "record")


def _name_schema(item: Vocabulary) -> str:
    return item.schema.name if item.has_own_schema else item.schema_source


def _list_flags(item: Vocabulary) -> list[str]:
    is_default = item.slug == get_default_vocabulary().slug and not item.is_removed
    is_valpha = item is find_valpha_vocabulary()
    flags = {"default": is_default, "v-alpha": is_valpha, "private": item.is_private, "removed": item.is_removed}
    return [name for name, is_set in flags.items() if is_set]


def _serialize(item: Vocabulary, counts: Mapping[str, int]) -> dict[str, Any]:
    flags = _list_flags(item)
    return {
        "slug": item.slug,
        **item.to_values(),
        "schema": _name_schema(item),
        "default": "default" in flags,
        "valpha": "v-alpha" in flags,
        "removed": item.is_removed,
        "records": counts[item.slug],
    }


def _format_value(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return "\n".join(f"{key}  {_format_value(item)}" for key, item in value.items())
    return ", ".join(value) if isinstance(value, list) else f"{value:,}" if isinstance(value, int) else str(value)
