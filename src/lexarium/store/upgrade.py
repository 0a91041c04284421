"""Create databases and upgrade them to the present schema."""

import logging
from pathlib import Path

from sqlalchemy import Connection, inspect, text, update

from lexarium.domain.errors import InvalidDatabase, NotFound, SchemaTooNew, StoreError
from lexarium.store import migrations
from lexarium.store.database import Database
from lexarium.store.migrations import SCHEMA_VERSION
from lexarium.store.position import create_epoch
from lexarium.store.schema import catalogue_table

logger = logging.getLogger(__name__)


def _run_migrations(database: Database) -> str | None:
    """Bring a database to the present schema, in one transaction: the version that it had, None where it was new.

    Refuses one that is not Lexarium's, or that a newer Lexarium made. Of several processes that do this at once, one
    does the work and the rest find it done.
    """
    # Imported here: Alembic takes long to load, and a database of the present schema does not need it.
    from alembic import command  # noqa: PLC0415
    from alembic.config import Config  # noqa: PLC0415
    from alembic.script import ScriptDirectory  # noqa: PLC0415

    scripts = ScriptDirectory(str(Path(migrations.__file__).parent))
    with database.translate_errors(), database.backend.begin_upgrade() as connection:
        before = read_schema_version(connection)
        if before is None and set(inspect(connection).get_table_names()):
            raise InvalidDatabase(f"{database.location} is a database, but not one of Lexarium's. Choose another.")
        if before is not None and before not in {script.revision for script in scripts.walk_revisions()}:
            raise SchemaTooNew(
                f"{database.location} was written by a newer Lexarium (its schema is {before}, "
                f"this one knows up to {migrations.SCHEMA_VERSION}). Upgrade Lexarium to use it."
            )
        if before not in (None, migrations.SCHEMA_VERSION):
            database.backend.lock_out_writers(connection)
        config = Config()
        config.set_main_option("script_location", scripts.dir.replace("%", "%%"))
        config.attributes["connection"] = connection
        command.upgrade(config, "head")
        if before is None:
            connection.execute(catalogue_table.insert().values(id=1, epoch=create_epoch(), revision=0))
        elif before != migrations.SCHEMA_VERSION:
            # It counts as a write: a standby that has not followed it yet is not to be read.
            connection.execute(update(catalogue_table).values(writes=catalogue_table.c.writes + 1))
    if before not in (None, migrations.SCHEMA_VERSION):
        logger.info("%s is upgraded from schema %s to %s.", database.location, before, migrations.SCHEMA_VERSION)
    return before


def open_database(url: str) -> Database:
    """The database at an address, ready for use: made where there is none, upgraded where it is an older one."""
    database = Database(url)
    upgrade_schema(database)
    return database


def upgrade_schema(database: Database) -> tuple[str | None, str]:
    """Make a new database, or upgrade an older one: its version before (None: it was new) and after.

    Refuses a database that is not Lexarium's, or that a newer Lexarium made. All in one transaction; of several
    processes that do this at once, one does the work and the rest find it done.
    """
    with database.read(from_primary=True) as connection:
        before = read_schema_version(connection)
    if before != SCHEMA_VERSION:
        before = _run_migrations(database)
    with database.translate_errors():
        database.backend.configure()
    return before, SCHEMA_VERSION


def require_current_schema(database: Database) -> None:
    """Raise where there is no catalogue of the present schema. Nothing is made or changed."""
    require_catalogue(database)
    with database.read(from_primary=True) as connection:
        schema_version = read_schema_version(connection)
    if schema_version != SCHEMA_VERSION:
        raise StoreError(
            f"The schema of {database.location} is {schema_version or 'not one of ours'}, and should"
            f" be {SCHEMA_VERSION}. "
            "`lexarium migrate` upgrades an older one."
        )


def require_catalogue(database: Database) -> None:
    """Raise where there is nothing at all at an address, which is left so."""
    if database.backend.exists():
        with database.read(from_primary=True) as connection:
            if inspect(connection).get_table_names():
                return
    raise NotFound(f"There is no catalogue at {database.location}. `lexarium import` or `lexarium serve` make one.")


def read_schema_version(connection: Connection) -> str | None:
    """The step that a database has come to; None where it has none."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    schema_version: str | None = connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
    return schema_version
