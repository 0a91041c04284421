"""A full disk: reads go on, `/readyz` says that writes do not, and a restore leaves its target as it was."""

from pathlib import Path

import pytest

from lexarium.store.migrate import open_database
from tests.disks import small_disk
from tests.postgres import Postgres
from tests.server import Answer, Server, run
from tests.test_faults import LARGE, create, fill
from tests.waiting import wait_until


def says_that_only_writes_fail(answer: Answer) -> bool:
    if answer.status != 503 or "full" not in answer.json["detail"]:
        return False
    return (answer.json["reads"], answer.json["writes"]) == (True, False)


def is_ready(server: Server) -> bool:
    return server.get("/readyz").status == 200


def test_a_server_is_not_ready_to_write_while_the_disk_of_its_file_is_full(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 6_000) as disk:
        url = f"sqlite:///{disk.path}/catalogue.db"
        with Server(url, "--workers", "2", LEXARIUM_INDEX=str(tmp_path / "index")) as server:
            wait_until(is_ready, server)
            token = server.token("curator")
            taken, refusal = fill(server, token)
            assert (refusal.status, "full" in refusal.json["detail"]) == (503, True)
            for _ in range(10):  # whichever worker answers
                assert says_that_only_writes_fail(server.get("/readyz"))
            assert len(server.get("/api/v-alpha/concept").json) == len(taken)
            disk.resize(30_000)
            assert is_ready(server)
            assert create(server, token, "there is room again").status == 201


def test_a_server_is_not_ready_to_write_while_the_disk_of_postgresql_is_full(tmp_path: Path) -> None:
    settings = {"wal_keep_size": "0", "min_wal_size": "32MB", "max_wal_size": "32MB"}
    with small_disk(tmp_path / "disk", 150_000) as disk, Postgres(disk.path / "cluster").make() as postgres:
        postgres.start(**settings)
        url = postgres.new_database("catalogue")
        with Server(url, "--workers", "2") as server:
            wait_until(is_ready, server)
            token = server.token("curator")
            disk.fill()
            _, refusal = fill(server, token)
            assert (refusal.status, "full" in refusal.json["detail"]) == (503, True)
            for _ in range(10):
                assert says_that_only_writes_fail(server.get("/readyz"))
            assert server.get("/api/v-alpha/concept?id=trm_none").status in (200, 404)
            disk.make_room()
            wait_until(is_ready, server)
            for number in range(10):
                assert create(server, token, f"there is room again {number}", **LARGE).status == 201


@pytest.fixture
def backup(sample_paths: list[Path], tmp_path: Path) -> Path:
    """A backup of the sample catalogue."""
    url = f"sqlite:///{tmp_path}/catalogue.db"
    run("import", *sample_paths, "--database", url)
    assert run("backup", tmp_path / "backup", "--database", url).returncode == 0
    return tmp_path / "backup"


@pytest.mark.parametrize("target", ["missing", "empty file", "empty catalogue"])
def test_a_restore_that_finds_no_room_leaves_its_target_as_it_was(backup: Path, tmp_path: Path, target: str) -> None:
    size = backup.stat().st_size // 1024
    with small_disk(tmp_path / "disk", size // 2) as disk:
        file = disk.path / "catalogue.db"
        if target == "empty file":
            file.touch()
        if target == "empty catalogue":
            database = open_database(f"sqlite:///{file}")
            database.close()
        before = {path.name: path.read_bytes() for path in disk.path.iterdir()}
        codes: list[int] = []
        while 0 not in codes and len(codes) < 20:
            done = run("restore", backup, "--database", f"sqlite:///{file}")
            codes.append(done.returncode)
            if done.returncode:
                told = "".join(done.stderr.split())
                assert (done.returncode, told.count(".")) == (1, told.count(str(file)) + 1), done.stderr
                assert str(file) in told
                assert any(words in told for words in ("isfull", "noroom", "Nospaceleft")), done.stderr
                assert {path.name: path.read_bytes() for path in disk.path.iterdir()} == before
            disk.resize(size * (len(codes) + 1) // 2)
        assert len(codes) > 2
        assert 0 in codes


def test_a_restore_that_finds_no_room_for_its_own_copy_says_where(backup: Path, tmp_path: Path) -> None:
    target = tmp_path / "restored.db"
    with small_disk(tmp_path / "disk", backup.stat().st_size // 2048) as disk:
        refused = run("restore", backup, "--database", f"sqlite:///{target}", TMPDIR=str(disk.path))
        told = "".join(refused.stderr.split())
        assert refused.returncode == 1
        assert f"noroomin{disk.path}" in told
        assert not target.exists()
        assert list(disk.path.iterdir()) == []
