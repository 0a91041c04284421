"""Bringing a database to the present schema."""

from importlib import import_module

from sqlalchemy import Connection, inspect, text

from lexarium.domain.errors import NotFound, StoreError
from lexarium.store.database import Database
from lexarium.store.migrations import HEAD


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
    with database.read(newest=True) as connection:
        before = version_of(connection)
    if before != HEAD:
        # Loaded here and not above: it takes long, and a database that is as it should be needs nothing of it.
        before = import_module("lexarium.store.upgrade").upgrade(database)
    with database.errors_explained():
        database.backend.settle()
    return before, HEAD


def refuse_other(database: Database) -> None:
    """Raise where there is no catalogue of the present schema. Nothing is made or changed."""
    refuse_none(database)
    with database.read(newest=True) as connection:
        version = version_of(connection)
    if version != HEAD:
        raise StoreError(
            f"The schema of {database.place} is {version or 'not one of ours'}, and should be {HEAD}. "
            "`lexarium migrate` upgrades an older one."
        )


def refuse_none(database: Database) -> None:
    """Raise where there is nothing at all at an address, which is left so."""
    if database.backend.exists():
        with database.read(newest=True) as connection:
            if inspect(connection).get_table_names():
                return
    raise NotFound(f"There is no catalogue at {database.place}. `lexarium import` or `lexarium serve` make one.")


def version_of(connection: Connection) -> str | None:
    """The step that a database has come to; None where it has none."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    version: str | None = connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
    return version
