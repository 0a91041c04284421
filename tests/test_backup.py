"""Backups: taken while others write, restored elsewhere."""

import hashlib
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from lexarium.service.checking import check
from lexarium.store.backend import read_position
from lexarium.store.database import Database
from tests.conftest import ENGINES, NewUrl
from tests.server import Server, run


@pytest.fixture
def written(url: str) -> Iterator[Server]:
    """A server that is written to all the time."""
    with Server(url) as server:
        token = server.token("curator")
        stop = threading.Event()
        began = threading.Event()

        def write() -> None:
            number = 0
            while not stop.is_set():
                answer = server.post_json("/api/v-alpha/concept", {"name": f"concept {number}"}, token)
                assert answer.status == 201
                number += 1
                if number > 3:
                    began.set()

        writer = threading.Thread(target=write)
        writer.start()
        assert began.wait(20)
        yield server
        stop.set()
        writer.join()


@pytest.mark.parametrize("other", ENGINES)
def test_a_backup_taken_while_others_write_is_the_catalogue_at_a_revision(
    written: Server, new_url: NewUrl, other: str, tmp_path: Path
) -> None:
    file, there = tmp_path / "catalogue.backup", new_url(other)
    done = run("backup", file, "--database", written.url)
    assert done.returncode == 0, done.stderr
    assert [path.name for path in tmp_path.iterdir()] == [file.name]
    before = hashlib.sha256(file.read_bytes()).digest()
    assert run("restore", file, "--database", there).returncode == 0
    assert hashlib.sha256(file.read_bytes()).digest() == before
    restored = Database(there)
    with restored.read() as snapshot:
        position = read_position(snapshot)
    assert check(restored).problems == []
    restored.close()
    then = run("export", "--format", "v-alpha", "--as-of", position.revision, "--database", written.url)
    assert run("export", "--format", "v-alpha", "--database", there).stdout == then.stdout != "[]\n"
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
    nothing = run("restore", tmp_path / "mistyped", "--database", f"sqlite:///{tmp_path}/new.db")
    assert nothing.returncode == 1
    assert "There is no backup at" in nothing.stderr
    file.write_bytes(b"no database at all" * 100)
    broken = run("restore", file, "--database", f"sqlite:///{tmp_path}/new.db")
    assert broken.returncode == 1
    assert "Traceback" not in broken.stderr
    assert "made a mistake" not in broken.stderr
