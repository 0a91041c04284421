"""Databases of every earlier version, made by the code of their time: upgraded, they serve the same bytes."""

import json
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from alembic import command
from alembic.config import Config
from sqlalchemy import MetaData, insert, select

from lexarium.service.checking import check
from lexarium.store import migrations
from lexarium.store.database import Database
from lexarium.store.migrate import migrate
from lexarium.store.migrations import HEAD
from tests.databases import NewUrl
from tests.postgres import plain
from tests.server import Server, run

FOLDER = Path(__file__).parent / "upgrades"
VERSIONS = sorted(path.stem for path in FOLDER.glob("*.sql"))
KILLED_AT_A_STEP = """
import os, signal, sys
from sqlalchemy import Engine, event
from lexarium.store.migrate import open_database

url, step = sys.argv[1:]

@event.listens_for(Engine, "after_cursor_execute")
def kill(connection, cursor, statement, parameters, context, many):
    if f"SET version_num='{step}'" in statement:
        os.kill(os.getpid(), signal.SIGKILL)

open_database(url)
"""
"""A program that upgrades a database, and ends without a word once a step is done."""


EARLY_STEPS = (VERSIONS[1], VERSIONS[len(VERSIONS) // 2])


def test_there_is_a_database_of_every_version() -> None:
    steps = Path(migrations.__file__).parent / "versions"
    assert sorted(path.name[1:5] for path in steps.glob("v*.py")) == VERSIONS
    assert VERSIONS[-1] == HEAD


def old_file(version: str, path: Path) -> str:
    """The address of a database file as that version left it."""
    with closing(sqlite3.connect(path)) as database:
        database.executescript((FOLDER / f"{version}.sql").read_text())
    return f"sqlite:///{path}"


def with_rows_of(file: str, version: str, url: str) -> None:
    """Bring an empty database to that version, and fill its tables with what those of the file hold."""
    config = Config()
    config.set_main_option("script_location", str(Path(migrations.__file__).parent))
    with plain(url) as connection, plain(file) as rows:
        config.attributes["connection"] = connection
        command.upgrade(config, version)
        there = MetaData()
        there.reflect(connection)
        here = MetaData()
        here.reflect(rows)
        for table in there.sorted_tables:
            found = rows.execute(select(here.tables[table.name])).mappings().all()
            flagged = [{**row, "flagged": bool(row["flagged"])} if "flagged" in row else dict(row) for row in found]
            if flagged and table.name != "alembic_version":
                connection.execute(insert(table), flagged)


@pytest.fixture(params=["sqlite", "postgres"])
def old(request: pytest.FixtureRequest, version: str, blank_url: NewUrl, tmp_path: Path) -> str:
    """The address of a database of that version, on each engine in turn."""
    file = old_file(version, tmp_path / "old.db")
    if request.param == "sqlite":
        return file
    url = blank_url("postgres")
    with_rows_of(file, version, url)
    return url


@pytest.mark.parametrize("version", VERSIONS)
def test_a_database_of_an_earlier_version_is_upgraded_and_serves_the_same_bytes(version: str, old: str) -> None:
    upgraded(old, version)


@pytest.mark.parametrize("version", VERSIONS[:1])
@pytest.mark.parametrize("step", [*(pytest.param(each, marks=pytest.mark.full) for each in EARLY_STEPS), HEAD])
def test_an_upgrade_that_is_killed_midway_has_changed_nothing_and_can_be_done_again(
    version: str, step: str, old: str
) -> None:
    killed = subprocess.run([sys.executable, "-c", KILLED_AT_A_STEP, old, step], check=False)
    assert killed.returncode == -signal.SIGKILL
    upgraded(old, version)


def upgraded(old: str, version: str) -> None:
    """Upgrade a database of that version, and see that it serves what it did, and can be written."""
    database = Database(old)
    assert migrate(database) == (version, HEAD)
    found = check(database)
    assert found.problems == []
    assert not any("digest" in remark for remark in found.remarks)
    database.close()
    with Server(old) as server:
        for path, body in json.loads((FOLDER / f"{version}.json").read_text()).items():
            assert server.get(path).body.decode() == body, path
        assert server.get("/api/v1/concept/trm_4").status == 410
        assert server.get("/api/v1/concept/trm_3/history").json["items"][0]["version"] == 2
        assert server.get("/api/v1/releases").json["items"][0]["name"] == "2026.1"
        token = server.token("curator")
        made = server.post_json("/api/v1/concept", {"name": "after"}, token)
        assert made.status == 201
        assert [hit["id"] for hit in server.get("/api/v1/search?q=after").json["hits"]] == [made.json["id"]]


@pytest.mark.parametrize("version", VERSIONS[-2:-1])
def test_a_command_that_upgrades_a_database_says_so_once(version: str, old: str) -> None:
    told = run("user", "list", "--database", old)
    assert told.returncode == 0
    assert f"from schema {version} to {HEAD}." in " ".join(told.stderr.split())
    assert run("user", "list", "--database", old).stderr == ""


@pytest.mark.parametrize("version", VERSIONS[-2:-1])
def test_a_server_that_upgrades_a_database_logs_it(version: str, old: str) -> None:
    with Server(old) as server:
        assert server.log.count(f"is upgraded from schema {version} to {HEAD}.") == 1
