"""Create databases and upgrade them to the present schema."""

import logging
from collections.abc import Callable
from pathlib import Path

from sqlalchemy import Connection, inspect, text, update

from lexarium.domain.errors import InvalidDatabase, NotFound, SchemaTooNew, StoreError
from lexarium.store import migrations
from lexarium.store.database import Database
from lexarium.store.migrations import SCHEMA_VERSION
from lexarium.store.position import create_epoch
from lexarium.store.schema import catalogue_table, metadata

logger = logging.getLogger(__name__)

# Databases of earlier versions are upgraded only after a backup.
BACKUP_VERSION = "0013"
# Called before an upgrade, in its transaction. Nobody else can write then.
BackUp = Callable[[Connection], object]


def _run_migrations(database: Database, back_up: BackUp | None) -> str | None:
    """Run the missing migrations in one transaction; return the previous version, None for a new database.

    Raises InvalidDatabase if the database is not one of Lexarium's, SchemaTooNew if a newer Lexarium wrote it. If
    several processes do this at once, one runs the migrations and the others find them done.
    """
    # Imported late: Alembic is slow to load, and not needed when the schema is current.
    from alembic import command  # noqa: PLC0415
    from alembic.config import Config  # noqa: PLC0415
    from alembic.script import ScriptDirectory  # noqa: PLC0415

    scripts = ScriptDirectory(str(Path(migrations.__file__).parent))
    with database.translate_errors(), database.backend.begin_upgrade() as connection:
        before = read_schema_version(connection)
        if before is None and inspect(connection).get_table_names():
            raise InvalidDatabase(f"{database.location} is not a Lexarium database.")
        if before is not None and before not in {script.revision for script in scripts.walk_revisions()}:
            raise SchemaTooNew(
                f"{database.location} was written by a newer Lexarium (its schema is {before}, this version"
                f" supports up to {SCHEMA_VERSION}). Upgrade Lexarium to use it."
            )
        config = Config()
        config.set_main_option("script_location", scripts.dir.replace("%", "%%"))
        config.attributes["connection"] = connection
        if before is None:
            create_tables(connection)
            command.stamp(config, "head")
            connection.execute(catalogue_table.insert().values(id=1, epoch=create_epoch(), revision=0))
        elif before != SCHEMA_VERSION:
            database.backend.lock_out_writers(connection)
            if back_up is not None and before < BACKUP_VERSION:
                back_up(connection)
            command.upgrade(config, "head")
            # Counts as a write, so that standbys without it are not read.
            connection.execute(update(catalogue_table).values(writes=catalogue_table.c.writes + 1))
    if before not in (None, SCHEMA_VERSION):
        logger.info("Upgraded %s from schema %s to %s.", database.location, before, SCHEMA_VERSION)
    return before


def create_tables(connection: Connection) -> None:
    """Create the tables in an empty database."""
    for table in metadata.tables.values():
        for index in table.indexes:
            if connection.dialect.name == "postgresql" and index.dialect_kwargs:
                index.dialect_kwargs["postgresql_where"] = index.dialect_kwargs["sqlite_where"]
    metadata.create_all(connection, checkfirst=False)


def open_database(url: str) -> Database:
    """Open a database; create or upgrade it if needed. Raises StoreError if that needs a backup first."""
    database = Database(url)
    upgrade_schema(database)
    return database


def upgrade_schema(database: Database, back_up: BackUp | None = None) -> tuple[str | None, str]:
    """Create or upgrade a database; return its schema version before (None for a new one) and after.

    Databases older than BACKUP_VERSION are upgraded only with `back_up`; otherwise this raises StoreError. Raises
    InvalidDatabase if the database is not one of Lexarium's, SchemaTooNew if a newer Lexarium wrote it.
    """
    with database.read(from_primary=True) as connection:
        before = read_schema_version(connection)
    if before is not None and before < BACKUP_VERSION and back_up is None:
        raise StoreError(
            f"{database.location} was written by an older Lexarium (its schema is {before}). Run `lexarium"
            " migrate` to back it up and upgrade it."
        )
    if before != SCHEMA_VERSION:
        before = _run_migrations(database, back_up)
    with database.translate_errors():
        database.backend.configure()
    with database.read() as connection:
        database.follow_vocabularies(connection)
    return before, SCHEMA_VERSION


def require_current_schema(database: Database) -> None:
    """Raise StoreError unless the database has the current schema. Changes nothing."""
    require_catalogue(database)
    with database.read(from_primary=True) as connection:
        schema_version = read_schema_version(connection)
    if schema_version != SCHEMA_VERSION:
        raise StoreError(
            f"The schema of {database.location} is {schema_version or 'unknown'}, but must be {SCHEMA_VERSION}."
            " Upgrade an older one with `lexarium migrate`."
        )


def require_catalogue(database: Database) -> None:
    """Raise NotFound unless there is a database with tables. Creates nothing."""
    if database.backend.exists():
        with database.read(from_primary=True) as connection:
            if inspect(connection).get_table_names():
                return
    raise NotFound(f"Catalogue {database.location} not found. Create one with `lexarium import` or `lexarium serve`.")


def read_schema_version(connection: Connection) -> str | None:
    """Return the schema version of a database, or None if it has none."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    schema_version: str | None = connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
    return schema_version
