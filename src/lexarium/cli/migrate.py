"""`lexarium migrate`"""

import shlex
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
            help=f"Backup file, created before upgrading a database older than schema {BACKUP_VERSION}.",
            show_default=f"FILE.before-{BACKUP_VERSION}",
        ),
    ] = None,
    database: DatabaseOption = None,
) -> None:
    """Create the database or upgrade its schema, after a backup if needed."""
    store = Database(Settings.from_environment(database=database).database)

    def back_up(snapshot: Snapshot) -> None:
        _print_backup(store, create_upgrade_backup(store, snapshot, backup))

    previous_schema, current_schema = upgrade_schema(store, back_up)
    if previous_schema is None:
        out.print(f"Created {store.location} with schema {current_schema}.")
    elif previous_schema != current_schema:
        out.print(f"Upgraded {store.location} from schema {previous_schema} to {current_schema}.")
    else:
        out.print(f"{store.location} is already at schema {current_schema}.")


def _print_backup(store: Database, made: UpgradeBackup) -> None:
    rows, path = sum(made.rows.values()), store.backend.path
    figures = f"{rows:,} rows, {made.size / 1e6:,.1f} MB, {made.seconds:.1f} s"
    out.print(f"Backed up the database to {made.file} and verified it ({figures}).")
    if path is None:
        way = f"run `lexarium restore {shlex.quote(str(made.file))}` of the older Lexarium on an empty database"
    else:
        way = f"remove {path}, {path}-wal and {path}-shm, rename the backup to {path}, and start the older Lexarium"
    out.print(f"To downgrade: stop the servers, {way}.")
