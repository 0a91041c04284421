"""Options and arguments that several commands share."""

import atexit
import gc
import os
from dataclasses import fields
from typing import Annotated

import typer

from lexarium.cli.terminal import err
from lexarium.domain.schema.collections import COLLECTIONS, Collection
from lexarium.settings import Settings
from lexarium.store.database import Database
from lexarium.store.upgrade import require_catalogue, upgrade_schema

_GC_THRESHOLD = 100_000
"""How many objects are made before rings are looked for."""
HELP = {setting.name: setting.metadata["help"] for setting in fields(Settings)}

DatabaseOption = Annotated[
    str | None,
    typer.Option("--database", metavar="URL", help=f"{HELP['database']} (or LEXARIUM_DATABASE)", show_default=False),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON, for scripts.")]


def _parse_collection(name: str) -> Collection:
    if name not in COLLECTIONS:
        raise typer.BadParameter(f"{name!r} is not one of {', '.join(COLLECTIONS)}.")
    return COLLECTIONS[name]


CollectionOption = Annotated[
    Collection | None,
    typer.Option(
        "--collection",
        parser=_parse_collection,
        metavar="NAME",
        help=f"One of {', '.join(COLLECTIONS)}.",
        show_default=False,
    ),
]

CollectionsOption = Annotated[
    list[Collection] | None,
    typer.Option(
        "--collection",
        parser=_parse_collection,
        metavar="NAME",
        help=f"Of {', '.join(COLLECTIONS)}; may be given several times.",
        show_default=False,
    ),
]


def open_database(url: str | None, *, must_exist: bool = False) -> Database:
    """The database that the option or the environment names, ready for use, and closed when the process ends.

    A command that only reads does not make a new one: whoever asks what is in it has mistyped its name.
    """
    store = Database(Settings.from_environment(os.environ, database=url).database)
    if must_exist:
        require_catalogue(store)
    # SQLite brings all that was written into the one file only where it is closed.
    atexit.register(store.close)
    previous_schema, current_schema = upgrade_schema(store)
    if previous_schema is None:
        err.print(f"Made a new catalogue: {store.location}", markup=False)
    elif previous_schema != current_schema:
        err.print(f"Upgraded {store.location} from schema {previous_schema} to {current_schema}.", markup=False)
    return store


def relax_gc() -> None:
    """Have Python look for rings of objects seldom: among records that go through a command one by one there are none.

    For commands that end with it.
    """
    gc.set_threshold(_GC_THRESHOLD)
