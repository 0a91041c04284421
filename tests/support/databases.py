"""Create databases for tests, as copies of a migrated template: faster than migrating each."""

import fcntl
import os
import shutil
import sqlite3
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import cache
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

    def __init__(self, folder: Path, templates: Path, server: Callable[[], str]) -> None:
        """Keep templates in a folder that test processes with the same PostgreSQL server share."""
        self._folder = folder
        self._templates = templates
        self._server = server
        self._find_template = cache(self._build_template)
        # Databases on PostgreSQL to drop.
        self._names: set[str] = set()

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
            path = _get_path(url)
            shutil.copy(_get_path(self._find_template("sqlite", self._load_nothing)), path)
            with closing(sqlite3.connect(path)) as file, file:
                file.execute("UPDATE catalogue SET epoch = ?", [create_epoch()])
        else:
            url = self._create(name, _get_name(self._find_template("postgres", self._load_nothing)))
            with psycopg.connect(url) as connection:
                connection.execute("UPDATE catalogue SET epoch = %s", [create_epoch()])
        return url

    def make_sample(self, engine: str) -> str:
        """Return the URL of a copy of the sample catalogue; on SQLite it has a search index."""
        name = _new_name()
        template = self._find_template(engine, self._load_sample)
        if engine == "sqlite":
            # The index belongs to the epoch, so the copy keeps the epoch.
            shutil.copytree(_get_path(template).parent, self._folder / name)
            return f"sqlite:///{self._folder}/{name}/{_SQLITE_NAME}"
        return self._create(name, _get_name(template))

    def drop(self) -> None:
        """Drop the databases on PostgreSQL: each is hundreds of files."""
        if self._names:
            with psycopg.connect(self._server(), autocommit=True) as connection:
                while self._names:
                    connection.execute(f"DROP DATABASE IF EXISTS {self._names.pop()} WITH (FORCE)")

    def _sqlite_url(self, name: str) -> str:
        folder = self._folder / name
        folder.mkdir()
        return f"sqlite:///{folder}/{_SQLITE_NAME}"

    def _build_template(self, engine: str, load: Callable[[str], str]) -> str:
        """Return the URL of a template; the first process that needs it builds it."""
        path = self._templates / f"{engine}{load.__name__}"
        with path.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not path.exists():
                url = load(engine)
                self._names.discard(_get_name(url))
                path.write_text(url)
            return path.read_text()

    def _load_nothing(self, engine: str) -> str:
        url = self.make_blank(engine)
        open_database(url).close()
        return url

    def _load_sample(self, engine: str) -> str:
        url = self.make_migrated(engine)
        with Server(url, "--sample"):
            return url

    def _create(self, name: str, template: str) -> str:
        with psycopg.connect(self._server(), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY FILE_COPY")
        self._names.add(name)
        return _replace_database(self._server(), name)


@contextmanager
def run_postgres() -> Iterator[str]:
    """Yield the URL of a PostgreSQL server: LEXARIUM_TEST_POSTGRES, or one started for the tests."""
    configured_url = os.environ.get("LEXARIUM_TEST_POSTGRES")
    if configured_url:
        yield configured_url
        return
    # Enough connections for all test processes. Databases are dropped before they need a vacuum.
    settings = {"max_connections": "1000", "autovacuum": "off", "full_page_writes": "off"}
    with PostgresServer().init_cluster().start(**settings) as server:
        yield server.url()


def _get_path(url: str) -> Path:
    """Return the file of a database on SQLite."""
    return Path(url.removeprefix("sqlite:///"))


def _get_name(url: str) -> str:
    """Return the name of a database on PostgreSQL."""
    return url.partition("?")[0].rpartition("/")[2]


def _new_name() -> str:
    return f"test_{uuid.uuid4().hex}"


def _replace_database(server: str, name: str) -> str:
    """Return the URL of another database on the same server."""
    parts = conninfo_to_dict(server)
    user = str(parts.get("user", "postgres"))
    login = f"{user}:{parts['password']}" if parts.get("password") else user
    port = f"&port={parts['port']}" if parts.get("port") else ""
    return f"postgresql://{login}@/{name}?host={parts.get('host', 'localhost')}{port}"
