"""Databases created by earlier versions serve the same bytes after an upgrade."""

import json
import signal
import sqlite3
import subprocess
import sys
from collections import namedtuple
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

from lexarium.domain.errors import DiskFull
from lexarium.services.maintenance.backup import create_upgrade_backup
from lexarium.services.maintenance.database_check import check_database
from lexarium.store import migrations
from lexarium.store.database import Database
from lexarium.store.maintenance.upgrade import BACKUP_VERSION, read_schema_version, upgrade_schema
from lexarium.store.migrations import SCHEMA_VERSION
from lexarium.store.schema import metadata
from tests.support.databases import DatabaseUrlFactory
from tests.support.old_databases import UPGRADES_FOLDER, copy_old_database, create_old_database
from tests.support.postgres import open_sqlalchemy
from tests.support.server import Server, run_cli

DiskUsage = namedtuple("DiskUsage", "total used free")
VERSIONS = sorted(path.stem for path in UPGRADES_FOLDER.glob("*.sql"))
# Upgrades a database and exits without cleanup after a step.
KILL_AT_STEP_SCRIPT = """
import os, signal, sys
from sqlalchemy import Engine, event
from lexarium.store.database import Database
from lexarium.store.maintenance.upgrade import upgrade_schema

url, step = sys.argv[1:]

@event.listens_for(Engine, "after_cursor_execute")
def kill(connection, cursor, statement, parameters, context, many):
    if f"SET version_num='{step}'" in statement:
        os.kill(os.getpid(), signal.SIGKILL)

upgrade_schema(Database(url), lambda connection: None)
"""


# The last that is not upgraded without a backup.
BACKED_UP_VERSIONS = [version for version in VERSIONS if version < BACKUP_VERSION][-1:]
EARLY_STEPS = (VERSIONS[1], VERSIONS[len(VERSIONS) // 2])


def test_there_is_a_test_database_of_every_version() -> None:
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
def test_an_upgraded_database_serves_the_same_bytes_as_its_earlier_version(version: str, old_url: str) -> None:
    check_upgrade(old_url, version)


@pytest.mark.parametrize("version", VERSIONS[:1])
@pytest.mark.parametrize(
    "step", [*(pytest.param(early_step, marks=pytest.mark.full) for early_step in EARLY_STEPS), SCHEMA_VERSION]
)
def test_a_killed_upgrade_changes_nothing_and_can_be_repeated(version: str, step: str, old_url: str) -> None:
    result = subprocess.run([sys.executable, "-c", KILL_AT_STEP_SCRIPT, old_url, step], check=False)
    assert result.returncode == -signal.SIGKILL
    check_upgrade(old_url, version)


def check_upgrade(old_url: str, version: str) -> None:
    """Upgrade a database; check that it serves the same responses and accepts writes."""
    database = Database(old_url)
    assert upgrade_schema(database, lambda _: None) == (version, SCHEMA_VERSION)
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
def test_a_database_that_needs_no_backup_is_upgraded_by_any_command(version: str, old_url: str) -> None:
    result = run_cli("user", "list", "--database", old_url)
    assert (result.returncode, read_version(old_url)) == (0, SCHEMA_VERSION), result.stderr


@pytest.mark.parametrize("version", BACKED_UP_VERSIONS)
@pytest.mark.parametrize(
    "command", [("serve", "--port", "0"), ("user", "list"), ("import", "x.csv"), ("vocabulary", "list"), ("check",)]
)
def test_commands_other_than_migrate_leave_an_old_database_unchanged_and_suggest_migrate(
    version: str, old_url: str, command: tuple[str, ...]
) -> None:
    result = run_cli(*command, "--database", old_url)
    assert result.returncode == 1
    assert f"its schema is {version}). Run `lexarium migrate` to back it up and upgrade it." in unwrap(result.stderr)
    assert read_version(old_url) == version


@pytest.mark.parametrize("version", BACKED_UP_VERSIONS)
def test_migrate_backs_up_an_old_database_before_upgrading_it(
    version: str, old_url: str, tmp_path: Path, blank_url: DatabaseUrlFactory
) -> None:
    file = tmp_path / "kept.db"
    result = run_cli("migrate", "--backup", file, "--database", old_url)
    assert result.returncode == 0, result.stderr
    assert f"{file} and verified it (" in result.stdout
    assert "To downgrade: stop the servers, " in result.stdout
    assert f"from schema {version} to {SCHEMA_VERSION}." in result.stdout
    assert (read_version(old_url), read_version(f"sqlite:///{file}")) == (SCHEMA_VERSION, version)
    with closing(sqlite3.connect(file)) as copy, closing(sqlite3.connect(":memory:")) as expected:
        expected.executescript((UPGRADES_FOLDER / f"{version}.sql").read_text())
        assert read_tables(copy) == read_tables(expected)
    again = run_cli("migrate", "--database", old_url)
    assert (again.returncode, "is already at schema" in again.stdout) == (0, True)
    restored = blank_url("sqlite")
    assert run_cli("restore", file, "--database", restored).returncode == 0
    assert read_version(restored) == SCHEMA_VERSION


@pytest.mark.parametrize("version", BACKED_UP_VERSIONS)
def test_migrate_changes_nothing_if_the_backup_fails(version: str, old_url: str, tmp_path: Path) -> None:
    file = tmp_path / "kept.db"
    file.touch()
    result = run_cli("migrate", "--backup", file, "--database", old_url)
    assert (result.returncode, read_version(old_url)) == (1, version)
    assert f"{file} already exists." in unwrap(result.stderr)
    result = run_cli("migrate", "--backup", tmp_path / "missing" / "kept.db", "--database", old_url)
    assert (result.returncode, read_version(old_url)) == (1, version)


@pytest.mark.parametrize("version", BACKED_UP_VERSIONS)
def test_migrate_requires_enough_disk_space_for_the_backup(
    version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = Database(create_old_database(version, tmp_path / "old.db"))
    monkeypatch.setattr("shutil.disk_usage", lambda _: DiskUsage(1, 1, 0))
    with pytest.raises(
        DiskFull, match=r"Not enough disk space for the backup .*old\.db\.before-0013: .* Nothing was changed"
    ):
        upgrade_schema(database, lambda connection: create_upgrade_backup(database, connection))
    database.close()
    assert read_version(f"sqlite:///{tmp_path}/old.db") == version
    assert not list(tmp_path.glob("*before*"))


def unwrap(text: str) -> str:
    return " ".join(text.split())


def read_version(url: str) -> str:
    with open_sqlalchemy(url) as connection:
        version = read_schema_version(connection)
    assert version is not None
    return version


def read_tables(database: sqlite3.Connection) -> dict[str, list[Any]]:
    """Return the rows of all tables, as sets of columns and values."""
    database.row_factory = sqlite3.Row
    names = [row["name"] for row in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    return {
        name: sorted(repr(sorted(dict(row).items())) for row in database.execute(f'SELECT * FROM "{name}"'))
        for name in names
    }
