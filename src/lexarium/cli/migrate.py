"""`lexarium migrate`"""

from pathlib import Path
from typing import Annotated

import typer

from lexarium.cli.support.options import DatabaseOption
from lexarium.cli.support.terminal import out
from lexarium.services.maintenance.backup import UpgradeBackup, create_upgrade_backup
from lexarium.settings import Settings
from lexarium.store.database import Database
from lexarium.store.maintenance.upgrade import BACKUP_VERSION, upgrade_schema
from lexarium.store.position import Snapshot


def run(
    backup: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help=f"The backup to make first of a database older than schema {BACKUP_VERSION}.",
            show_default=f"FILE.before-{BACKUP_VERSION}",
        ),
    ] = None,
    database: DatabaseOption = None,
) -> None:
    """Make the database, or upgrade it from an older version, after a backup where that is needed."""
    store = Database(Settings.from_environment(database=database).database)

    def back_up(snapshot: Snapshot) -> None:
        _print_backup(store, create_upgrade_backup(store, snapshot, backup))

    previous_schema, current_schema = upgrade_schema(store, back_up)
    if previous_schema is None:
        out.print(f"{store.location} is made, with schema {current_schema}.")
    elif previous_schema != current_schema:
        out.print(f"{store.location} is upgraded from schema {previous_schema} to {current_schema}.")
    else:
        out.print(f"{store.location} has schema {current_schema} already.")


def _print_backup(store: Database, made: UpgradeBackup) -> None:
    rows, path = sum(made.rows.values()), store.backend.path
    figures = f"{rows:,} rows, {made.size / 1e6:,.1f} MB, {made.seconds:.1f} s"
    out.print(f"The database is backed up, and the backup checked: {made.file} ({figures}).")
    if path is None:
        way = f"put it into an empty database with the older Lexarium: `lexarium restore {made.file}`"
    else:
        way = f"remove {path}, {path}-wal and {path}-shm, rename the backup to {path}, and start the older Lexarium"
    out.print(f"To go back: stop the servers, {way}.")
