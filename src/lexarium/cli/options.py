"""Options and arguments that several commands share."""

import atexit
import gc
import os
from dataclasses import fields
from typing import Annotated

import typer

from lexarium.cli.terminal import err
from lexarium.domain.collections import COLLECTIONS, Collection
from lexarium.settings import Settings
from lexarium.store.database import Database
from lexarium.store.migrate import migrate, refuse_none

_COLLECTED = 100_000
"""How many objects are made before rings are looked for."""
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

CollectionsOption = Annotated[
    list[Collection] | None,
    typer.Option(
        "--collection",
        parser=_collection,
        metavar="NAME",
        help=f"Of {', '.join(COLLECTIONS)}; may be given several times.",
        show_default=False,
    ),
]


def opened(database: str | None, *, reading: bool = False) -> Database:
    """The database that the option or the environment names, ready for use, and closed when the process ends.

    A command that only reads does not make a new one: whoever asks what is in it has mistyped its name.
    """
    store = Database(Settings.of(os.environ, database=database).database)
    if reading:
        refuse_none(store)
    # SQLite brings all that was written into the one file only where it is closed.
    atexit.register(store.close)
    before, after = migrate(store)
    if before is None:
        err.print(f"Made a new catalogue: {store.place}", markup=False)
    elif before != after:
        err.print(f"Upgraded {store.place} from schema {before} to {after}.", markup=False)
    return store


def collect_seldom() -> None:
    """Have Python look for rings of objects seldom: among records that go through a command one by one there are none.

    For commands that end with it.
    """
    gc.set_threshold(_COLLECTED)
