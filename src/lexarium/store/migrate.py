"""Bringing a database to the present schema."""

import secrets
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, inspect, text

from lexarium.domain.errors import NotACatalogue, TooNew
from lexarium.store.database import Database
from lexarium.store.schema import catalogue


def open_database(url: str) -> Database:
    """The database at an address, ready for use: made where there is none, upgraded where it is an older one."""
    database = Database(url)
    migrate(database)
    return database


def migrate(database: Database) -> tuple[str | None, str]:
    """Make a new database, or upgrade an older one: its version before (None: it was new) and after.

    Refuses a database that is not Lexarium's, or that a newer Lexarium made. All in one transaction; of several
    processes that do this at once, one does the work and the rest find it done.
    """
    scripts = ScriptDirectory(str(Path(__file__).parent / "migrations"))
    head = scripts.get_current_head()
    assert head is not None
    with database.read() as connection:
        before = _version(connection)
    if before != head:
        before = _upgrade(database, scripts, head)
    with database.errors_explained():
        database.backend.settle()
    return before, head


def _upgrade(database: Database, scripts: ScriptDirectory, head: str) -> str | None:
    with database.errors_explained(), database.backend.writing() as connection, connection.begin():
        database.backend.lock_schema(connection)
        before = _version(connection)
        if before is None and set(inspect(connection).get_table_names()):
            raise NotACatalogue(f"{database.place} is a database, but not one of Lexarium's. Choose another.")
        if before is not None and before not in {script.revision for script in scripts.walk_revisions()}:
            raise TooNew(
                f"{database.place} was written by a newer Lexarium (its schema is {before}, "
                f"this one knows up to {head}). Upgrade Lexarium to use it."
            )
        config = Config()
        config.set_main_option("script_location", scripts.dir.replace("%", "%%"))
        config.attributes["connection"] = connection
        command.upgrade(config, "head")
        if before is None:
            connection.execute(catalogue.insert().values(id=1, epoch=secrets.token_hex(4), revision=0))
    return before


def _version(connection: Connection) -> str | None:
    if not inspect(connection).has_table("alembic_version"):
        return None
    version: str | None = connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
    return version
