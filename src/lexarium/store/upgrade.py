"""Making and upgrading a database, step by step."""

import logging
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy import inspect, update

from lexarium.domain.errors import NotACatalogue, TooNew
from lexarium.store import migrations
from lexarium.store.backend import first_epoch
from lexarium.store.database import Database
from lexarium.store.migrate import version_of
from lexarium.store.schema import catalogue

log = logging.getLogger(__name__)


def upgrade(database: Database) -> str | None:
    """Bring a database to the present schema, in one transaction: the version that it had, None where it was new.

    Refuses one that is not Lexarium's, or that a newer Lexarium made. Of several processes that do this at once, one
    does the work and the rest find it done.
    """
    scripts = ScriptDirectory(str(Path(migrations.__file__).parent))
    with database.errors_explained(), database.backend.upgrading() as connection:
        before = version_of(connection)
        if before is None and set(inspect(connection).get_table_names()):
            raise NotACatalogue(f"{database.place} is a database, but not one of Lexarium's. Choose another.")
        if before is not None and before not in {script.revision for script in scripts.walk_revisions()}:
            raise TooNew(
                f"{database.place} was written by a newer Lexarium (its schema is {before}, "
                f"this one knows up to {migrations.HEAD}). Upgrade Lexarium to use it."
            )
        if before not in (None, migrations.HEAD):
            database.backend.keep_writers_out(connection)
        config = Config()
        config.set_main_option("script_location", scripts.dir.replace("%", "%%"))
        config.attributes["connection"] = connection
        command.upgrade(config, "head")
        if before is None:
            connection.execute(catalogue.insert().values(id=1, epoch=first_epoch(), revision=0))
        elif before != migrations.HEAD:
            # It counts as a write: a standby that has not followed it yet is not to be read.
            connection.execute(update(catalogue).values(writes=catalogue.c.writes + 1))
    if before not in (None, migrations.HEAD):
        log.info("%s is upgraded from schema %s to %s.", database.place, before, migrations.HEAD)
    return before
