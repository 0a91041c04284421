"""Options and arguments that several commands share."""

import os
from dataclasses import fields
from typing import Annotated

import typer

from lexarium.domain.collections import COLLECTIONS, Collection
from lexarium.settings import Settings
from lexarium.store.database import Database
from lexarium.store.migrate import open_database

HELP = {each.name: each.metadata["help"] for each in fields(Settings)}

DatabaseOption = Annotated[
    str | None,
    typer.Option("--database", metavar="URL", help=f"{HELP['database']} (or LEXARIUM_DATABASE)", show_default=False),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON, for scripts.")]


def _collection(name: str) -> Collection:
    if name not in COLLECTIONS:
        raise typer.BadParameter(f"{name!r} is not one of {', '.join(COLLECTIONS)}.")
    return COLLECTIONS[name]


CollectionOption = Annotated[
    Collection | None,
    typer.Option(
        "--collection", parser=_collection, metavar="NAME", help=f"One of {', '.join(COLLECTIONS)}.", show_default=False
    ),
]


def opened(database: str | None) -> Database:
    """The database that the option or the environment names, ready for use."""
    return open_database(Settings.read(os.environ, database=database).database)
