"""Databases created by earlier versions serve the same bytes after an upgrade."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

from lexarium.services.maintenance.database_check import check_database
from lexarium.store import migrations
from lexarium.store.database import Database
from lexarium.store.migrations import SCHEMA_VERSION
from lexarium.store.schema import metadata
from lexarium.store.upgrade import upgrade_schema
from tests.support.databases import DatabaseUrlFactory
from tests.support.old_databases import UPGRADES_FOLDER, copy_old_database, create_old_database
from tests.support.postgres import open_sqlalchemy
from tests.support.server import Server, run_cli

VERSIONS = sorted(path.stem for path in UPGRADES_FOLDER.glob("*.sql"))
# Upgrades a database and exits without cleanup after a step.
KILL_AT_STEP_SCRIPT = """
import os, signal, sys
from sqlalchemy import Engine, event
from lexarium.store.upgrade import open_database

url, step = sys.argv[1:]

@event.listens_for(Engine, "after_cursor_execute")
def kill(connection, cursor, statement, parameters, context, many):
    if f"SET version_num='{step}'" in statement:
        os.kill(os.getpid(), signal.SIGKILL)

open_database(url)
"""


EARLY_STEPS = (VERSIONS[1], VERSIONS[len(VERSIONS) // 2])


def test_there_is_a_database_of_every_version() -> None:
    steps = Path(migrations.__file__).parent / "versions"
    assert sorted(path.name[1:5] for path in steps.glob("v*.py")) == VERSIONS
    assert VERSIONS[-1] == SCHEMA_VERSION


@pytest.fixture(params=["sqlite", "postgres"])
def old_url(request: pytest.FixtureRequest, version: str, blank_url: DatabaseUrlFactory, tmp_path: Path) -> str:
    """URL of a database of an earlier version, on each engine."""
    file = create_old_database(version, tmp_path / "old.db")
    if request.param == "sqlite":
        return file
    url = blank_url("postgres")
    copy_old_database(file, url)
    return url


@pytest.mark.parametrize("version", VERSIONS)
def test_a_database_of_an_earlier_version_is_upgraded_and_serves_the_same_bytes(version: str, old_url: str) -> None:
    check_upgrade(old_url, version)


@pytest.mark.parametrize("version", VERSIONS[:1])
@pytest.mark.parametrize(
    "step", [*(pytest.param(early_step, marks=pytest.mark.full) for early_step in EARLY_STEPS), SCHEMA_VERSION]
)
def test_an_upgrade_that_is_killed_midway_has_changed_nothing_and_can_be_done_again(
    version: str, step: str, old_url: str
) -> None:
    result = subprocess.run([sys.executable, "-c", KILL_AT_STEP_SCRIPT, old_url, step], check=False)
    assert result.returncode == -signal.SIGKILL
    check_upgrade(old_url, version)


def check_upgrade(old_url: str, version: str) -> None:
    """Upgrade a database; check that it serves the same responses and accepts writes."""
    database = Database(old_url)
    assert upgrade_schema(database) == (version, SCHEMA_VERSION)
    report = check_database(database)
    assert report.problems == []
    assert not any("digest" in remark for remark in report.remarks)
    database.close()
    with open_sqlalchemy(old_url) as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, metadata) == []
    with Server(old_url) as server:
        for path, body in json.loads((UPGRADES_FOLDER / f"{version}.json").read_text()).items():
            if "?" not in path:
                assert server.get(path).body.decode() == body, path
            else:  # One record has further lists since.
                old = json.loads(body)
                assert {key: value for key, value in server.get(path).json.items() if key in old} == old, path
        assert server.get("/api/v1/concept/trm_4").status == 410
        assert server.get("/api/v1/concept/trm_3/history").json["items"][0]["version"] == 2
        assert server.get("/api/v1/releases").json["items"][0]["name"] == "2026.1"
        token = server.create_token("curator")
        response = server.post_json("/api/v1/concept", {"name": "after"}, token)
        assert response.status == 201
        assert [hit["id"] for hit in server.get("/api/v1/search?q=after").json["hits"]] == [response.json["id"]]


@pytest.mark.parametrize("version", VERSIONS[-2:-1])
def test_a_command_that_upgrades_a_database_says_so_once(version: str, old_url: str) -> None:
    result = run_cli("user", "list", "--database", old_url)
    assert result.returncode == 0
    assert f"from schema {version} to {SCHEMA_VERSION}." in " ".join(result.stderr.split())
    assert run_cli("user", "list", "--database", old_url).stderr == ""


@pytest.mark.parametrize("version", VERSIONS[-2:-1])
def test_a_server_that_upgrades_a_database_logs_it(version: str, old_url: str) -> None:
    with Server(old_url) as server:
        assert server.log.count(f"is upgraded from schema {version} to {SCHEMA_VERSION}.") == 1
