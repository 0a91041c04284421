"""`lexarium migrate`"""

import os

import typer

from lexarium.cli.options import DatabaseOption
from lexarium.cli.terminal import out
from lexarium.settings import Settings
from lexarium.store.database import Database
from lexarium.store.migrate import migrate

app = typer.Typer(add_completion=False)


@app.command("migrate")
def migrate_command(database: DatabaseOption = None) -> None:
    """Make the database, or upgrade it from an older version. (Every command does so by itself.)"""
    store = Database(Settings.of(os.environ, database=database).database)
    before, after = migrate(store)
    if before is None:
        out.print(f"{store.place} is made, with schema {after}.", markup=False)
    elif before != after:
        out.print(f"{store.place} is upgraded from schema {before} to {after}.", markup=False)
    else:
        out.print(f"{store.place} has schema {after} already.", markup=False)
