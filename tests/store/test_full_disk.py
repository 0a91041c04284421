"""Full disk: reads continue, `/readyz` fails, and a failed restore leaves its target unchanged."""

from pathlib import Path

import pytest

from lexarium.store.maintenance.upgrade import open_database
from tests.support.databases import DatabaseUrlFactory
from tests.support.full_disk import LARGE_FIELDS, mount_small_disk, write_until_full
from tests.support.postgres import PostgresServer
from tests.support.server import HttpResponse, Server, run_cli


def is_read_only(response: HttpResponse) -> bool:
    if response.status != 503 or "full" not in response.json["detail"]:
        return False
    return (response.json["reads"], response.json["writes"]) == (True, False)


def test_a_server_with_a_full_disk_is_not_ready_to_write(tmp_path: Path) -> None:
    with mount_small_disk(tmp_path / "disk", 6_000) as disk:
        url = f"sqlite:///{disk.path}/catalogue.db"
        with Server(url, "--workers", "2", LEXARIUM_INDEX=str(tmp_path / "index")) as server:
            server.wait_until_ready()
            token = server.create_token("curator")
            accepted, refusal = write_until_full(server, token)
            assert (refusal.status, "full" in refusal.json["detail"]) == (503, True)
            for _ in range(10):  # from any worker
                assert is_read_only(server.get("/readyz"))
            assert len(server.get("/api/v-alpha/concept").json) == len(accepted)
            disk.resize(30_000)
            assert server.is_ready()
            assert server.create_concept(token, "there is space again").status == 201


@pytest.mark.full
def test_a_server_is_not_ready_to_write_while_the_disk_of_postgresql_is_full(tmp_path: Path) -> None:
    settings = {"wal_keep_size": "0", "min_wal_size": "32MB", "max_wal_size": "32MB"}
    with (
        mount_small_disk(tmp_path / "disk", 150_000) as disk,
        PostgresServer(disk.path / "cluster").init_cluster() as postgres,
    ):
        postgres.start(**settings)
        url = postgres.create_database("catalogue")
        with Server(url, "--workers", "2") as server:
            server.wait_until_ready()
            token = server.create_token("curator")
            disk.fill()
            _, refusal = write_until_full(server, token)
            assert (refusal.status, "full" in refusal.json["detail"]) == (503, True)
            for _ in range(10):
                assert is_read_only(server.get("/readyz"))
            assert server.get("/api/v-alpha/concept?id=trm_none").status in (200, 404)
            disk.free_space()
            server.wait_until_ready()
            for number in range(10):
                assert server.create_concept(token, f"there is space again {number}", **LARGE_FIELDS).status == 201


@pytest.fixture(scope="module")
def backup(sample_url: DatabaseUrlFactory, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Backup of the sample catalogue."""
    file = tmp_path_factory.mktemp("backup") / "backup"
    assert run_cli("backup", file, "--database", sample_url("sqlite")).returncode == 0
    return file


@pytest.mark.parametrize(
    "target", ["missing", *(pytest.param(name, marks=pytest.mark.full) for name in ("empty file", "empty catalogue"))]
)
def test_a_restore_without_enough_disk_space_leaves_its_target_unchanged(
    backup: Path, tmp_path: Path, target: str
) -> None:
    size = backup.stat().st_size // 1024
    with mount_small_disk(tmp_path / "disk", size // 2) as disk:
        file = disk.path / "catalogue.db"
        if target == "empty file":
            file.touch()
        if target == "empty catalogue":
            database = open_database(f"sqlite:///{file}")
            database.close()
        before = {path.name: path.read_bytes() for path in disk.path.iterdir()}
        codes: list[int] = []
        while 0 not in codes and len(codes) < 20:
            result = run_cli("restore", backup, "--database", f"sqlite:///{file}")
            codes.append(result.returncode)
            if result.returncode:
                text = "".join(result.stderr.split())
                assert (result.returncode, text.count(".")) == (1, text.count(str(file)) + 1), result.stderr
                assert str(file) in text
                assert any(words in text for words in ("isfull", "maybefull", "Notenoughdiskspace", "Nospaceleft")), (
                    result.stderr
                )
                assert {path.name: path.read_bytes() for path in disk.path.iterdir()} == before
            disk.resize(size * (len(codes) + 1) // 2)
        assert len(codes) > 2
        assert 0 in codes


def test_a_restore_without_enough_space_for_its_temporary_copy_names_the_folder(backup: Path, tmp_path: Path) -> None:
    target = tmp_path / "restored.db"
    with mount_small_disk(tmp_path / "disk", backup.stat().st_size // 2048) as disk:
        result = run_cli("restore", backup, "--database", f"sqlite:///{target}", TMPDIR=str(disk.path))
        text = "".join(result.stderr.split())
        assert result.returncode == 1
        assert f"Notenoughdiskspacein{disk.path}" in text
        assert not target.exists()
        assert list(disk.path.iterdir()) == []
