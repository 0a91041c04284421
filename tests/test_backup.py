"""Backups: taken while others write, restored elsewhere."""

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

from lexarium.domain.progress import silent
from lexarium.service.backups import backup, opened_backup
from lexarium.service.checking import check
from lexarium.store.backend import read_position
from lexarium.store.database import Database
from lexarium.store.migrate import open_database
from tests.databases import ENGINES, NewUrl
from tests.disks import small_disk
from tests.server import Server, run
from tests.waiting import wait_until
from torture.crash import SETTINGS, WRITERS, writers_of
from torture.ledger import Ledger

KILLED_AT_THE_END = """
import os, signal
from lexarium.cli.main import run

os.link = lambda part, file: os.kill(os.getpid(), signal.SIGKILL)
run()
"""
"""A program that runs a command, and ends without a word when a backup is to get its name."""

ROOT_PAGE = "SELECT rootpage FROM sqlite_master WHERE name = 'change'"


@pytest.fixture
def written(url: str) -> Iterator[Server]:
    """A server that is written to all the time, in every way."""
    with Server(url, **SETTINGS) as server, ThreadPoolExecutor(WRITERS) as threads:
        ledger, stop = Ledger(), threading.Event()
        writers = writers_of(url, random.Random(1))
        writing = [threads.submit(writer.write, server, ledger, stop, []) for writer in writers]
        try:
            wait_until(lambda: len(ledger.acknowledged) > 30)
            before = len(ledger.acknowledged)
            yield server
            wait_until(lambda: len(ledger.acknowledged) > before)  # all the while
        finally:
            stop.set()
        for each in writing:
            each.result()
        assert ledger.wrong == []


@pytest.mark.full
def test_a_backup_that_finds_no_room_is_not_there(sample_paths: list[Path], tmp_path: Path) -> None:
    """Also where there was room for all that was written, but not to bring it to where it belongs."""
    catalogue = tmp_path / "catalogue.db"
    url = f"sqlite:///{catalogue}"
    run("import", *sample_paths, "--database", url)
    size = catalogue.stat().st_size // 1024
    with small_disk(tmp_path / "disk", size // 2) as disk:
        file = disk.path / "catalogue.backup"
        codes: list[int] = []
        while 0 not in codes and len(codes) < 20:
            assert list(disk.path.iterdir()) == []
            disk.resize(size * (len(codes) + 1) // 2)
            done = run("backup", file, "--database", url)
            codes.append(done.returncode)
            assert done.returncode == 0 or str(file) in done.stderr.replace("\n", "")
        assert len(codes) > 2
        assert run("restore", file, "--database", f"sqlite:///{tmp_path / 'restored.db'}").returncode == 0


def test_a_catalogue_that_finds_no_room_when_it_is_restored_is_not_there(
    sample_paths: list[Path], tmp_path: Path
) -> None:
    url, file = f"sqlite:///{tmp_path}/catalogue.db", tmp_path / "backup"
    run("import", *sample_paths, "--database", url)
    assert run("backup", file, "--database", url).returncode == 0
    with small_disk(tmp_path / "disk", file.stat().st_size // 2048) as disk:
        refused = run("restore", file, "--database", f"sqlite:///{disk.path}/catalogue.db")
        assert refused.returncode == 1
        assert f"{disk.path}/catalogue.db" in refused.stderr.replace("\n", "")
        assert "made a mistake" not in refused.stderr
        assert list(disk.path.iterdir()) == []


@pytest.mark.parametrize("folder", ["a%20b", "what?", "ä #"])
def test_a_path_may_have_any_sign(tmp_path: Path, folder: str) -> None:
    there = tmp_path / folder
    there.mkdir()
    url = f"sqlite:///{quote(str(there))}/catalogue.db"
    assert run("migrate", "--database", url).returncode == 0
    assert run("backup", there / "backup", "--database", url).returncode == 0
    restored = run("restore", there / "backup", "--database", f"sqlite:///{quote(str(there))}/restored.db")
    assert restored.returncode == 0, restored.stderr
    assert {path.name for path in there.iterdir()} >= {"catalogue.db", "backup", "restored.db"}
    assert [path.name for path in tmp_path.iterdir()] == [folder]


def test_what_a_link_leads_to_is_restored_into(tmp_path: Path) -> None:
    volume = tmp_path / "volume"
    volume.mkdir()
    link = tmp_path / "catalogue.db"
    link.symlink_to(volume / "catalogue.db")
    run("migrate", "--database", f"sqlite:///{tmp_path}/other.db")
    run("backup", tmp_path / "backup", "--database", f"sqlite:///{tmp_path}/other.db")
    assert run("restore", tmp_path / "backup", "--database", f"sqlite:///{link}").returncode == 0
    assert link.is_symlink()
    assert [path.name for path in volume.iterdir()] == ["catalogue.db"]


def test_a_file_system_without_links_is_restored_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr("os.link", refuse)
    database = open_database(f"sqlite:///{tmp_path}/catalogue.db")
    backup(database, tmp_path / "backup", silent)
    database.close()
    with opened_backup(tmp_path / "backup") as source:
        assert check(source).problems == []
    assert {path.name for path in tmp_path.iterdir()} == {"catalogue.db", "backup"}


def test_a_journal_of_a_database_that_is_gone_is_not_taken_for_that_of_another(tmp_path: Path) -> None:
    url, file, there = f"sqlite:///{tmp_path}/catalogue.db", tmp_path / "backup", tmp_path / "restored.db"
    run("migrate", "--database", url)
    left = Path(f"{there}-wal")
    left.write_bytes(b"left behind")
    run("backup", file, "--database", url)
    refused = run("restore", file, "--database", f"sqlite:///{there}")
    assert refused.returncode == 1
    assert "Move it away first" in " ".join(refused.stderr.split())
    assert not there.exists()
    left.unlink()
    assert run("restore", file, "--database", f"sqlite:///{there}").returncode == 0


@pytest.mark.parametrize("other", ENGINES)
def test_a_backup_taken_while_others_write_is_the_catalogue_at_a_revision(
    written: Server, new_url: NewUrl, other: str, tmp_path: Path
) -> None:
    file, there = tmp_path / "catalogue.backup", new_url(other)
    done = run("backup", file, "--database", written.url)
    assert done.returncode == 0, done.stderr
    assert [path.name for path in tmp_path.iterdir()] == [file.name]
    assert file.stat().st_mode & 0o777 == 0o600
    before = hashlib.sha256(file.read_bytes()).digest()
    assert run("restore", file, "--database", there).returncode == 0
    assert hashlib.sha256(file.read_bytes()).digest() == before
    restored = Database(there)
    with restored.read() as snapshot:
        position = read_position(snapshot)
    assert check(restored).problems == []
    restored.close()
    for form in ("v-alpha", "jsonl", "skos"):
        then = run("export", "--format", form, "--as-of", position.revision, "--database", written.url)
        now = run("export", "--format", form, "--database", there)
        assert now.returncode == then.returncode == 0
        assert now.stdout == then.stdout
        assert len(then.stdout) > 10_000
    assert f"revision {position.revision}:" in done.stdout
    source = Database(written.url)
    with source.read() as snapshot:
        assert read_position(snapshot).epoch != position.epoch  # what clients keep of the one is not of the other
    source.close()


def test_a_backup_takes_the_place_of_nothing(tmp_path: Path) -> None:
    at = f"sqlite:///{tmp_path}/catalogue.db"
    assert run("migrate", "--database", at).returncode == 0
    file = tmp_path / "kept"
    file.write_text("precious")
    refused = run("backup", file, "--database", at)
    assert refused.returncode == 1
    assert "is there already" in refused.stderr
    assert file.read_text() == "precious"
    missing = run("backup", tmp_path / "no" / "folder", "--database", at)
    assert missing.returncode == 1
    assert "cannot be written" in missing.stderr


def test_only_an_empty_database_is_restored_into(tmp_path: Path, sample_paths: list[Path]) -> None:
    at = f"sqlite:///{tmp_path}/catalogue.db"
    assert run("import", *sample_paths, "--database", at).returncode == 0
    file = tmp_path / "backup"
    assert run("backup", file, "--database", at).returncode == 0
    refused = run("restore", file, "--database", at)
    assert refused.returncode == 1
    assert "is not empty" in refused.stderr


def test_a_file_that_is_no_good_backup_is_named_and_nothing_is_made_of_it(
    tmp_path: Path, sample_paths: list[Path]
) -> None:
    at = f"sqlite:///{tmp_path}/catalogue.db"
    assert run("import", *sample_paths, "--database", at).returncode == 0
    file = tmp_path / "backup"
    assert run("backup", file, "--database", at).returncode == 0
    whole = file.read_bytes()
    wrong = {
        "mistyped": None,
        "empty": b"",
        "text": b"no database at all" * 100,
        "cut short": whole[: len(whole) // 2],
        "overwritten": whole[:40_960] + bytes(8_192) + whole[49_152:],
    }
    folder = tmp_path / "new"
    folder.mkdir()
    for name, content in wrong.items():
        bad = tmp_path / name
        if content is not None:
            bad.write_bytes(content)
        refused = run("restore", bad, "--database", f"sqlite:///{folder}/new.db")
        assert refused.returncode == 1, name
        assert str(bad) in " ".join(refused.stderr.split())
        assert "lexarium-restore" not in refused.stderr
        assert "made a mistake" not in refused.stderr
        assert "Made a new catalogue" not in refused.stderr
        assert list(folder.iterdir()) == [], name


def test_a_backup_of_a_broken_catalogue_names_the_catalogue(tmp_path: Path, sample_paths: list[Path]) -> None:
    catalogue = tmp_path / "catalogue.db"
    at = f"sqlite:///{catalogue}"
    assert run("import", *sample_paths, "--database", at).returncode == 0
    with closing(sqlite3.connect(catalogue)) as driver, driver:
        driver.execute("UPDATE change SET name_key = 'altered' WHERE seq = 1")
    refused = run("backup", tmp_path / "backup", "--database", at)
    assert refused.returncode == 1
    assert f"{catalogue} does not agree with itself" in " ".join(refused.stderr.split())
    with closing(sqlite3.connect(catalogue)) as driver:
        page, size = (driver.execute(query).fetchone()[0] for query in (ROOT_PAGE, "PRAGMA page_size"))
        driver.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    with catalogue.open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(bytes(size))
    refused = run("backup", tmp_path / "backup", "--database", at)
    assert refused.returncode == 1
    assert f"{catalogue} is not an SQLite database, or it is damaged" in " ".join(refused.stderr.split())
    assert not (tmp_path / "backup").exists()


def test_what_a_killed_backup_left_is_removed_by_the_next_to_the_same_file(tmp_path: Path) -> None:
    at = f"sqlite:///{tmp_path}/catalogue.db"
    assert run("migrate", "--database", at).returncode == 0
    folder = tmp_path / "backups"
    folder.mkdir()
    file = folder / "backup"
    arguments = ["backup", str(file), "--database", at]
    killed = subprocess.run([sys.executable, "-c", KILLED_AT_THE_END, *arguments], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert list(folder.iterdir()) != []
    assert run(*arguments).returncode == 0
    assert list(folder.iterdir()) == [file]


def test_a_backup_that_is_under_way_is_left_alone_by_another_to_the_same_file(tmp_path: Path) -> None:
    at = f"sqlite:///{tmp_path}/catalogue.db"
    assert run("migrate", "--database", at).returncode == 0
    other = tmp_path / ".backup-unfinished"
    other.mkdir()
    with (other / "held").open("w") as sign:
        fcntl.flock(sign, fcntl.LOCK_EX)
        refused = run("backup", tmp_path / "backup", "--database", at)
    assert refused.returncode == 1
    assert "is under way" in refused.stderr
    assert other.is_dir()
