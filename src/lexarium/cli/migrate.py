"""`lexarium migrate`"""

from lexarium.cli.support.options import DatabaseOption
from lexarium.cli.support.terminal import out
from lexarium.settings import Settings
from lexarium.store.database import Database
from lexarium.store.upgrade import upgrade_schema


def run(database: DatabaseOption = None) -> None:
    """Make the database, or upgrade it from an older version. (Every command does so by itself.)"""
    store = Database(Settings.from_environment(database=database).database)
    previous_schema, current_schema = upgrade_schema(store)
    if previous_schema is None:
        out.print(f"{store.location} is made, with schema {current_schema}.")
    elif previous_schema != current_schema:
        out.print(f"{store.location} is upgraded from schema {previous_schema} to {current_schema}.")
    else:
        out.print(f"{store.location} has schema {current_schema} already.")
