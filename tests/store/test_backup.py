"""Backups: created during writes, restored elsewhere."""

import errno
import fcntl
import hashlib
import random
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

import pytest

from lexarium.domain.progress import ignore_progress
from lexarium.services.maintenance.backup import create_backup, open_backup
from lexarium.services.maintenance.database_check import check_database
from lexarium.store.database import Database
from lexarium.store.engine.position_queries import read_position
from lexarium.store.maintenance.upgrade import open_database
from tests.support.databases import ENGINES, DatabaseUrlFactory
from tests.support.full_disk import mount_small_disk
from tests.support.polling import wait_until
from tests.support.server import Server, run_cli
from torture.crash import SETTINGS, WRITERS, create_writers
from torture.expected_state import ExpectedState

# Runs a command and exits without cleanup when a backup is about to be renamed.
KILLED_AT_THE_END = """
import os, signal
from lexarium.cli.main import run

os.link = lambda part, file: os.kill(os.getpid(), signal.SIGKILL)
run()
"""

ROOT_PAGE = "SELECT rootpage FROM sqlite_master WHERE name = 'change'"


@pytest.fixture
def busy_server(url: str) -> Iterator[Server]:
    """Server with constant writes of all kinds."""
    with Server(url, **SETTINGS) as server, ThreadPoolExecutor(WRITERS) as threads:
        ledger, stop = ExpectedState(), threading.Event()
        writers = create_writers(url, random.Random(1))
        futures = [threads.submit(writer.write, server, ledger, stop, []) for writer in writers]
        try:
            wait_until(lambda: len(ledger.acknowledged) > 30)
            before = len(ledger.acknowledged)
            yield server
            wait_until(lambda: len(ledger.acknowledged) > before)  # during the backup
        finally:
            stop.set()
        for future in futures:
            future.result()
        assert ledger.unexpected == []


@pytest.mark.full
def test_a_backup_without_enough_disk_space_leaves_no_file(sample_paths: list[Path], tmp_path: Path) -> None:
    """Also where the backup fits, but moving it into place fails."""
    catalogue = tmp_path / "catalogue.db"
    url = f"sqlite:///{catalogue}"
    run_cli("import", *sample_paths, "--database", url)
    size = catalogue.stat().st_size // 1024
    with mount_small_disk(tmp_path / "disk", size // 2) as disk:
        file = disk.path / "catalogue.backup"
        codes: list[int] = []
        while 0 not in codes and len(codes) < 20:
            assert list(disk.path.iterdir()) == []
            disk.resize(size * (len(codes) + 1) // 2)
            result = run_cli("backup", file, "--database", url)
            codes.append(result.returncode)
            assert result.returncode == 0 or str(file) in result.stderr.replace("\n", "")
        assert len(codes) > 2
        assert run_cli("restore", file, "--database", f"sqlite:///{tmp_path / 'restored.db'}").returncode == 0


def test_a_restore_without_enough_disk_space_leaves_no_file(sample_url: DatabaseUrlFactory, tmp_path: Path) -> None:
    file = tmp_path / "backup"
    assert run_cli("backup", file, "--database", sample_url("sqlite")).returncode == 0
    with mount_small_disk(tmp_path / "disk", file.stat().st_size // 2048) as disk:
        result = run_cli("restore", file, "--database", f"sqlite:///{disk.path}/catalogue.db")
        assert result.returncode == 1
        assert f"{disk.path}/catalogue.db" in result.stderr.replace("\n", "")
        assert "Internal error" not in result.stderr
        assert list(disk.path.iterdir()) == []


@pytest.mark.parametrize(
    "folder", [*(pytest.param(name, marks=pytest.mark.full) for name in ("a%20b", "what?")), "ä #"]
)
def test_a_path_may_contain_any_character(tmp_path: Path, folder: str) -> None:
    target = tmp_path / folder
    target.mkdir()
    url = f"sqlite:///{quote(str(target))}/catalogue.db"
    assert run_cli("migrate", "--database", url).returncode == 0
    assert run_cli("backup", target / "backup", "--database", url).returncode == 0
    restored = run_cli("restore", target / "backup", "--database", f"sqlite:///{quote(str(target))}/restored.db")
    assert restored.returncode == 0, restored.stderr
    assert {path.name for path in target.iterdir()} >= {"catalogue.db", "backup", "restored.db"}
    assert [path.name for path in tmp_path.iterdir()] == [folder]


def test_a_restore_follows_symlinks(tmp_path: Path) -> None:
    volume = tmp_path / "volume"
    volume.mkdir()
    link = tmp_path / "catalogue.db"
    link.symlink_to(volume / "catalogue.db")
    run_cli("migrate", "--database", f"sqlite:///{tmp_path}/other.db")
    run_cli("backup", tmp_path / "backup", "--database", f"sqlite:///{tmp_path}/other.db")
    assert run_cli("restore", tmp_path / "backup", "--database", f"sqlite:///{link}").returncode == 0
    assert link.is_symlink()
    assert [path.name for path in volume.iterdir()] == ["catalogue.db"]


def test_a_backup_works_on_a_file_system_without_hard_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse_link(*_: object) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr("os.link", refuse_link)
    database = open_database(f"sqlite:///{tmp_path}/catalogue.db")
    create_backup(database, tmp_path / "backup", ignore_progress)
    database.close()
    with open_backup(tmp_path / "backup") as source:
        assert check_database(source).problems == []
    assert {path.name for path in tmp_path.iterdir()} == {"catalogue.db", "backup"}


def test_a_stale_journal_is_not_used_for_a_restored_database(tmp_path: Path) -> None:
    url, file, target = f"sqlite:///{tmp_path}/catalogue.db", tmp_path / "backup", tmp_path / "restored.db"
    run_cli("migrate", "--database", url)
    leftover = Path(f"{target}-wal")
    leftover.write_bytes(b"left behind")
    run_cli("backup", file, "--database", url)
    result = run_cli("restore", file, "--database", f"sqlite:///{target}")
    assert result.returncode == 1
    assert "Move it away first" in " ".join(result.stderr.split())
    assert not target.exists()
    leftover.unlink()
    assert run_cli("restore", file, "--database", f"sqlite:///{target}").returncode == 0


@pytest.mark.parametrize("other_engine", ENGINES)
def test_a_backup_taken_during_writes_is_a_consistent_snapshot(
    busy_server: Server, new_url: DatabaseUrlFactory, other_engine: str, tmp_path: Path
) -> None:
    file, target = tmp_path / "catalogue.backup", new_url(other_engine)
    result = run_cli("backup", file, "--database", busy_server.url)
    assert result.returncode == 0, result.stderr
    assert [path.name for path in tmp_path.iterdir()] == [file.name]
    assert file.stat().st_mode & 0o777 == 0o600
    before = hashlib.sha256(file.read_bytes()).digest()
    assert run_cli("restore", file, "--database", target).returncode == 0
    assert hashlib.sha256(file.read_bytes()).digest() == before
    restored = Database(target)
    with restored.read() as snapshot:
        position = read_position(snapshot)
    assert check_database(restored).problems == []
    restored.close()
    for form in ("v-alpha", "jsonl", "skos"):
        exported = run_cli("export", "--format", form, "--as-of", position.revision, "--database", busy_server.url)
        now = run_cli("export", "--format", form, "--database", target)
        assert now.returncode == exported.returncode == 0
        assert now.stdout == exported.stdout
        assert len(exported.stdout) > 10_000
    assert f"revision {position.revision} " in result.stdout
    source = Database(busy_server.url)
    with source.read() as snapshot:
        assert (
            read_position(snapshot).epoch != position.epoch
        )  # clients must not reuse cached responses of the original
    source.close()


def test_a_backup_never_overwrites_a_file(tmp_path: Path) -> None:
    database_url = f"sqlite:///{tmp_path}/catalogue.db"
    assert run_cli("migrate", "--database", database_url).returncode == 0
    file = tmp_path / "kept"
    file.write_text("precious")
    result = run_cli("backup", file, "--database", database_url)
    assert result.returncode == 1
    assert "already exists" in result.stderr
    assert file.read_text() == "precious"
    missing = run_cli("backup", tmp_path / "no" / "folder", "--database", database_url)
    assert missing.returncode == 1
    assert "Cannot write" in missing.stderr


def test_a_restore_requires_an_empty_database(tmp_path: Path, sample_url: DatabaseUrlFactory) -> None:
    database_url = sample_url("sqlite")
    file = tmp_path / "backup"
    assert run_cli("backup", file, "--database", database_url).returncode == 0
    result = run_cli("restore", file, "--database", database_url)
    assert result.returncode == 1
    assert "is not empty" in result.stderr


def test_an_invalid_backup_is_reported_and_nothing_is_restored(tmp_path: Path, sample_url: DatabaseUrlFactory) -> None:
    database_url = sample_url("sqlite")
    file = tmp_path / "backup"
    assert run_cli("backup", file, "--database", database_url).returncode == 0
    valid_bytes = file.read_bytes()
    invalid_contents = {
        "mistyped": None,
        "empty": b"",
        "text": b"no database at all" * 100,
        "cut short": valid_bytes[: len(valid_bytes) // 2],
        "overwritten": valid_bytes[:40_960] + bytes(8_192) + valid_bytes[49_152:],
    }
    folder = tmp_path / "new"
    folder.mkdir()
    for name, content in invalid_contents.items():
        invalid_file = tmp_path / name
        if content is not None:
            invalid_file.write_bytes(content)
        result = run_cli("restore", invalid_file, "--database", f"sqlite:///{folder}/new.db")
        assert result.returncode == 1, name
        assert str(invalid_file) in " ".join(result.stderr.split())
        assert "lexarium-restore" not in result.stderr
        assert "Internal error" not in result.stderr
        assert "Created a new catalogue" not in result.stderr
        assert list(folder.iterdir()) == [], name


def test_a_backup_of_an_inconsistent_catalogue_fails_and_names_the_catalogue(
    tmp_path: Path, sample_paths: list[Path]
) -> None:
    catalogue = tmp_path / "catalogue.db"
    database_url = f"sqlite:///{catalogue}"
    assert run_cli("import", *sample_paths, "--database", database_url).returncode == 0
    with closing(sqlite3.connect(catalogue)) as driver, driver:
        driver.execute("UPDATE change SET name_key = 'altered' WHERE seq = 1")
    result = run_cli("backup", tmp_path / "backup", "--database", database_url)
    assert result.returncode == 1
    assert f"{catalogue} is inconsistent" in " ".join(result.stderr.split())
    with closing(sqlite3.connect(catalogue)) as driver:
        page, size = (driver.execute(query).fetchone()[0] for query in (ROOT_PAGE, "PRAGMA page_size"))
        driver.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    with catalogue.open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(bytes(size))
    result = run_cli("backup", tmp_path / "backup", "--database", database_url)
    assert result.returncode == 1
    assert f"{catalogue} is not an SQLite database, or it is damaged" in " ".join(result.stderr.split())
    assert not (tmp_path / "backup").exists()


def test_leftovers_of_a_killed_backup_are_removed_by_the_next_one(tmp_path: Path) -> None:
    database_url = f"sqlite:///{tmp_path}/catalogue.db"
    assert run_cli("migrate", "--database", database_url).returncode == 0
    folder = tmp_path / "backups"
    folder.mkdir()
    file = folder / "backup"
    arguments = ["backup", str(file), "--database", database_url]
    killed = subprocess.run([sys.executable, "-c", KILLED_AT_THE_END, *arguments], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert list(folder.iterdir()) != []
    assert run_cli(*arguments).returncode == 0
    assert list(folder.iterdir()) == [file]


def test_a_backup_in_progress_is_not_disturbed_by_another_one(tmp_path: Path) -> None:
    database_url = f"sqlite:///{tmp_path}/catalogue.db"
    assert run_cli("migrate", "--database", database_url).returncode == 0
    other = tmp_path / ".backup-unfinished"
    other.mkdir()
    with (other / "held").open("w") as sign:
        fcntl.flock(sign, fcntl.LOCK_EX)
        result = run_cli("backup", tmp_path / "backup", "--database", database_url)
    assert result.returncode == 1
    assert "is in progress" in result.stderr
    assert other.is_dir()
