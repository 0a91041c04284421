"""Create databases for tests, as copies of a migrated template: faster than migrating each."""

import os
import shutil
import sqlite3
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import cached_property
from pathlib import Path

import psycopg
from psycopg.conninfo import conninfo_to_dict

from lexarium.store.maintenance.upgrade import open_database
from lexarium.store.position import create_epoch
from tests.support.postgres import PostgresServer
from tests.support.server import Server

ENGINES = ("sqlite", "postgres")
_SQLITE_NAME = "catalogue.db"
# Takes the name of an engine; returns the URL of a new database.
DatabaseUrlFactory = Callable[[str], str]


class Databases:
    """Create databases in one folder and on one PostgreSQL server."""

    def __init__(self, folder: Path, server: Callable[[], str]) -> None:
        self._folder = folder
        self._server = server

    def make_blank(self, engine: str) -> str:
        """Return the URL of a database that does not exist yet (SQLite) or has no tables (PostgreSQL)."""
        name = _new_name()
        if engine == "sqlite":
            return self._sqlite_url(name)
        return self._create(name, "template0")

    def make_migrated(self, engine: str) -> str:
        """Return the URL of an empty catalogue with the current schema and a new epoch."""
        name = _new_name()
        if engine == "sqlite":
            url = self._sqlite_url(name)
            path = url.removeprefix("sqlite:///")
            shutil.copy(self._sqlite_template, path)
            with closing(sqlite3.connect(path)) as file, file:
                file.execute("UPDATE catalogue SET epoch = ?", [create_epoch()])
        else:
            url = self._create(name, self._postgres_template)
            with psycopg.connect(url) as connection:
                connection.execute("UPDATE catalogue SET epoch = %s", [create_epoch()])
        return url

    def make_sample(self, engine: str) -> str:
        """Return the URL of a copy of the sample catalogue; on SQLite it has a search index."""
        name = _new_name()
        if engine == "sqlite":
            # The index belongs to the epoch, so the copy keeps the epoch.
            shutil.copytree(self._sqlite_sample.parent, self._folder / name)
            return f"sqlite:///{self._folder}/{name}/{_SQLITE_NAME}"
        return self._create(name, self._postgres_sample)

    def _sqlite_url(self, name: str) -> str:
        folder = self._folder / name
        folder.mkdir()
        return f"sqlite:///{folder}/{_SQLITE_NAME}"

    @cached_property
    def _sqlite_template(self) -> Path:
        url = self.make_blank("sqlite")
        open_database(url).close()
        return Path(url.removeprefix("sqlite:///"))

    @cached_property
    def _postgres_template(self) -> str:
        url = self.make_blank("postgres")
        open_database(url).close()
        return url.partition("?")[0].rpartition("/")[2]

    @cached_property
    def _sqlite_sample(self) -> Path:
        return Path(self._load_sample("sqlite").removeprefix("sqlite:///"))

    @cached_property
    def _postgres_sample(self) -> str:
        return self._load_sample("postgres").partition("?")[0].rpartition("/")[2]

    def _load_sample(self, engine: str) -> str:
        url = self.make_migrated(engine)
        with Server(url, "--sample"):
            return url

    def _create(self, name: str, template: str) -> str:
        with psycopg.connect(self._server(), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY FILE_COPY")
        return _replace_database(self._server(), name)


@contextmanager
def run_postgres() -> Iterator[str]:
    """Yield the URL of a PostgreSQL server: LEXARIUM_TEST_POSTGRES, or one started for the tests."""
    configured_url = os.environ.get("LEXARIUM_TEST_POSTGRES")
    if configured_url:
        yield configured_url
        return
    with PostgresServer().init_cluster().start() as server:
        yield server.url()


def _new_name() -> str:
    return f"test_{uuid.uuid4().hex}"


def _replace_database(server: str, name: str) -> str:
    """Return the URL of another database on the same server."""
    parts = conninfo_to_dict(server)
    user = str(parts.get("user", "postgres"))
    login = f"{user}:{parts['password']}" if parts.get("password") else user
    port = f"&port={parts['port']}" if parts.get("port") else ""
    return f"postgresql://{login}@/{name}?host={parts.get('host', 'localhost')}{port}"
