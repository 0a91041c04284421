"""Options and arguments that several commands share."""

import atexit
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Annotated, Any

import typer

from lexarium.cli.support.terminal import err
from lexarium.services.vocabularies.access import ReadScope, get_full_scope
from lexarium.services.vocabularies.metadata_settings import carry_settings_over
from lexarium.settings import Settings
from lexarium.store.database import Database
from lexarium.store.maintenance.upgrade import require_catalogue, upgrade_schema

HELP = {setting.name: setting.metadata["help"] for setting in fields(Settings)}

DatabaseOption = Annotated[
    str | None,
    typer.Option("--database", metavar="URL", help=f"{HELP['database']} (or LEXARIUM_DATABASE)", show_default=False),
]
YesOption = Annotated[bool, typer.Option("--yes", help="Do not ask.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def choice_option(flag: str, choices: Mapping[str, Any], listed: str, metavar: str, help: str) -> Any:
    """Return an option whose value is one of `choices` by name; `listed` names them in the error message."""

    def parse(name: str) -> Any:
        if name not in choices:
            raise typer.BadParameter(f"{name!r} is not one of {listed}.")
        return choices[name]

    return typer.Option(flag, parser=parse, metavar=metavar, help=help, show_default=False)


CollectionOption = Annotated[
    str | None, typer.Option("--collection", metavar="NAME", help="Name of a collection of the vocabulary.")
]
CollectionsOption = Annotated[
    list[str] | None,
    typer.Option("--collection", metavar="NAME", help="Only this collection; repeatable."),
]
VocabulariesOption = Annotated[
    list[str] | None,
    typer.Option("--vocabulary", metavar="SLUG", help="Only this vocabulary; repeatable."),
]


def open_scope(store: Database, chosen: Sequence[str] | None) -> ReadScope:
    """Return the chosen vocabularies of a database (default: all); raise NotFound."""
    store.run_read(store.follow_vocabularies)
    return get_full_scope(chosen or ())


def open_database(url: str | None, *, must_exist: bool = False) -> Database:
    """Open and upgrade the database that the option or the environment names; it is closed at exit.

    With `must_exist`, for commands that only read, raise instead of creating one: its name is probably mistyped.
    """
    settings = Settings.from_environment(database=url)
    store = Database(settings.database)
    if must_exist:
        require_catalogue(store)
    # SQLite merges its write-ahead log into the database file only when it is closed.
    atexit.register(store.close)
    previous_schema, current_schema = upgrade_schema(store)
    if previous_schema is None:
        err.print(f"Created a new catalogue: {store.location}")
    elif previous_schema != current_schema:
        err.print(f"Upgraded {store.location} from schema {previous_schema} to {current_schema}.")
    if not must_exist:
        apply_metadata_settings(store, settings)
    return store


def apply_metadata_settings(store: Database, settings: Settings) -> None:
    """Copy settings that describe the catalogue to the main vocabulary, and print a warning about them."""
    message = carry_settings_over(store, settings)
    if message:
        err.print(message, style="yellow")
