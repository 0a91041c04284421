"""Create databases of earlier releases."""

import sqlite3
from contextlib import closing
from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy import MetaData, insert, select

from lexarium.store import migrations
from tests.support.postgres import open_sqlalchemy

UPGRADES_FOLDER = Path(__file__).parents[1] / "upgrades"


def create_old_database(version: str, path: Path) -> str:
    """Create a database file of an earlier schema version and return its URL."""
    with closing(sqlite3.connect(path)) as database:
        database.executescript((UPGRADES_FOLDER / f"{version}.sql").read_text())
    return f"sqlite:///{path}"


def copy_old_rows(source_url: str, version: str, url: str) -> None:
    """Migrate an empty database to a schema version and copy the rows of another into it."""
    config = Config()
    config.set_main_option("script_location", str(Path(migrations.__file__).parent))
    with open_sqlalchemy(url) as connection, open_sqlalchemy(source_url) as rows:
        config.attributes["connection"] = connection
        command.upgrade(config, version)
        target_metadata = MetaData()
        target_metadata.reflect(connection)
        source_metadata = MetaData()
        source_metadata.reflect(rows)
        for table in target_metadata.sorted_tables:
            source_rows = rows.execute(select(source_metadata.tables[table.name])).mappings().all()
            converted_rows = [
                {**row, "flagged": bool(row["flagged"])} if "flagged" in row else dict(row) for row in source_rows
            ]
            if converted_rows and table.name != "alembic_version":
                connection.execute(insert(table), converted_rows)
