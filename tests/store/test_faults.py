"""Injected faults: a clear response, no data loss, and recovery without a restart."""

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from lexarium.domain.webhook import Webhook
from lexarium.search.index import IndexDirectory
from lexarium.services.maintenance.database_check import check_database
from lexarium.store import leases, webhooks
from lexarium.store.database import Database
from lexarium.store.leases import Lease
from lexarium.store.maintenance.upgrade import open_database
from tests.support.damage import corrupt_pages
from tests.support.fake_clock import FakeClock, FakeClockServer
from tests.support.full_disk import (
    LARGE_FIELDS,
    UnprivilegedServer,
    build_unprivileged_prefix,
    mount_small_disk,
    write_until_full,
)
from tests.support.imports import build_log_entry, save_entries
from tests.support.polling import DEADLINE_SECONDS, wait_until
from tests.support.postgres import PostgresServer
from tests.support.server import HttpResponse, Server, SpawnedServer, run_cli
from tests.support.write_load import RetryingClient

DAY_MS = 86_400_000


def is_retry_later(response: HttpResponse) -> bool:
    return (
        response.status == 503
        and int(response.headers["retry-after"]) > 0
        and response.headers["content-type"] == "application/problem+json"
    )


def list_names(server: Server) -> list[str]:
    response = server.get("/api/v-alpha/concept")
    assert response.status == 200, response.body
    return sorted(record["name"] for record in response.json)


def is_consistent(url: str) -> bool:
    database = Database(url)
    problems = check_database(database).problems
    database.close()
    return problems == []


def test_a_full_disk_rejects_writes_and_loses_nothing(tmp_path: Path) -> None:
    with mount_small_disk(tmp_path / "disk", 6_000) as disk:
        url = f"sqlite:///{disk.path}/catalogue.db"
        with Server(url, LEXARIUM_INDEX=str(tmp_path / "index")) as server:
            token = server.create_token("curator")
            accepted, refusal = write_until_full(server, token)
            assert is_retry_later(refusal)
            assert list_names(server) == sorted(accepted)
            disk.resize(30_000)
            assert server.create_concept(token, "there is space again").status == 201
            assert list_names(server) == sorted([*accepted, "there is space again"])
        assert "full" in server.log or "disk I/O" in server.log
        assert "Traceback" not in server.log
        assert is_consistent(url)


def test_a_full_disk_of_the_index_does_not_block_writes(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/catalogue.db"
    with (
        mount_small_disk(tmp_path / "disk", 500) as disk,
        # Its searches wait for the index for two seconds, those of other servers under test much longer.
        SpawnedServer(url, LEXARIUM_INDEX=str(disk.path / "index"), LEXARIUM_WRITE_BURST="10000") as server,
    ):
        token = server.create_token("curator")
        server.create_concept(token, "before it is full")
        wait_until(server.finds, "before it is full")
        disk.fill()
        for number in range(5):
            assert server.create_concept(token, f"large {number}", **LARGE_FIELDS).status == 201
        assert server.create_concept(token, "when it is full").status == 201
        assert server.get("/api/v1/search?q=full").status in (200, 503)
        disk.free_space()
        disk.resize(50_000)
        wait_until(server.finds, "when it is full")
        wait_until(server.finds, "large 4")
    # Not at each retry: a log that nobody reads would fill its pipe and block the indexer.
    assert server.log.count("rebuilding it: ") <= 2
    assert is_consistent(url)


@pytest.mark.full
def test_a_full_disk_of_postgresql_rejects_writes_and_loses_nothing(tmp_path: Path) -> None:
    settings = {"wal_keep_size": "0", "min_wal_size": "32MB", "max_wal_size": "32MB"}
    with (
        mount_small_disk(tmp_path / "disk", 150_000) as disk,
        PostgresServer(disk.path / "cluster").init_cluster() as postgres,
    ):
        postgres.start(**settings)
        url = postgres.create_database("catalogue")
        with Server(url) as server:
            client = RetryingClient(server)
            accepted, number = [client.create_with_retry("before it is full")], 0
            disk.fill()
            while True:
                response = server.create_concept(client.token, f"large {number}", **LARGE_FIELDS)
                assert response.status in (201, 503), response.body
                if response.status == 503:
                    break
                accepted.append(response.json["id"])
                number += 1
            assert is_retry_later(response)
            disk.free_space()
            client.create_with_retry("when there is space again")
            record_ids = {record["id"] for record in server.get("/api/v-alpha/concept").json}
            assert {record_id for record_id in accepted if "before" not in record_id} - {accepted[0]} <= record_ids
        assert "Traceback" not in server.log
        assert is_consistent(url)


@pytest.fixture
def catalogue_file(tmp_path: Path) -> Iterator[Path]:
    """File of a catalogue with a record, in its own folder; permissions are restored at the end."""
    folder = tmp_path / "held"
    folder.mkdir()
    database = open_database(f"sqlite:///{folder}/catalogue.db")
    with database.write() as transaction:
        save_entries(transaction, build_log_entry("one"))
    database.close()
    yield folder / "catalogue.db"
    for path in [folder, *folder.rglob("*")]:
        path.chmod(0o700)


def test_an_unwritable_folder_stops_the_start_with_a_clear_message(catalogue_file: Path) -> None:
    catalogue_file.parent.chmod(0o555)
    command = [*build_unprivileged_prefix(), sys.executable, "-m", "lexarium", "serve", "--port", "0"]
    result = subprocess.run(
        [*command, "--database", f"sqlite:///{catalogue_file}"],
        capture_output=True,
        text=True,
        timeout=DEADLINE_SECONDS,
        check=False,
    )
    assert result.returncode == 1
    assert str(catalogue_file) in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.full
def test_a_read_only_file_is_served_and_becomes_writable_after_a_restart_with_permissions(
    catalogue_file: Path,
) -> None:
    catalogue_file.chmod(0o444)
    with UnprivilegedServer(f"sqlite:///{catalogue_file}") as server:
        token = server.create_token("curator")
        assert list_names(server) == ["one"]
        assert is_retry_later(server.create_concept(token, "two"))
    assert "readonly" in server.log
    assert "Traceback" not in server.log
    for path in filter(Path.is_file, catalogue_file.parent.glob("catalogue.db*")):
        path.chmod(0o644)
    with UnprivilegedServer(f"sqlite:///{catalogue_file}") as server:
        assert server.create_concept(token, "three").status == 201


def test_permissions_lost_at_runtime_lose_no_data(catalogue_file: Path) -> None:
    with UnprivilegedServer(f"sqlite:///{catalogue_file}") as server:
        token = server.create_token("curator")
        assert server.create_concept(token, "two").status == 201
        wait_until(server.finds, "two")
        paths = [catalogue_file.parent, *catalogue_file.parent.rglob("*")]
        before = {path: path.stat().st_mode for path in paths}
        for path in reversed(paths):
            path.chmod(0)
        responses = [server.create_concept(token, f"lost {number}") for number in range(5)]
        assert {response.status for response in responses} <= {201, 503}
        assert server.get("/api/v-alpha/concept").status in (200, 503)
        assert server.get("/api/v1/search?q=two").status in (200, 503)
        assert server.get("/healthz").status == 200
        for path in paths:
            path.chmod(before[path])
        assert server.create_concept(token, "three").status == 201
        accepted = [f"lost {number}" for number, response in enumerate(responses) if response.status == 201]
        assert list_names(server) == sorted(["one", "two", "three", *accepted])
        wait_until(server.finds, "three")
    assert "Traceback" not in server.log
    assert is_consistent(f"sqlite:///{catalogue_file}")


def test_an_inaccessible_folder_is_not_reported_as_damage(catalogue_file: Path) -> None:
    script = (
        "import sys; from lexarium.store.database import Database\n"
        "try: print(Database(sys.argv[1]).backend.find_damage())\n"
        "except Exception as error: print(type(error).__name__)"
    )
    command = [*build_unprivileged_prefix(), sys.executable, "-c", script, f"sqlite:///{catalogue_file}"]
    catalogue_file.parent.chmod(0)
    try:
        forbidden = subprocess.run(command, capture_output=True, text=True, check=True)
    finally:
        catalogue_file.parent.chmod(0o755)
    assert forbidden.stdout == "DatabaseUnavailable\n"
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "None\n"


@pytest.fixture
def large_catalogue_file(tmp_path: Path) -> Path:
    """File of a catalogue whose records are on many pages."""
    database = open_database(f"sqlite:///{tmp_path}/many.db")
    with database.write() as transaction:
        save_entries(
            transaction, *(build_log_entry(f"{number:04} {'x' * 400}", suffix=f"{number:04}") for number in range(300))
        )
    database.close()
    with sqlite3.connect(tmp_path / "many.db") as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return tmp_path / "many.db"


def test_a_damaged_page_is_reported_and_never_served(large_catalogue_file: Path) -> None:
    corrupt_pages(large_catalogue_file, b"trm_0150")
    checked = run_cli("check", "--database", f"sqlite:///{large_catalogue_file}")
    assert checked.returncode == 1
    assert "damaged" in checked.stderr
    assert "Traceback" not in checked.stderr
    with Server(
        f"sqlite:///{large_catalogue_file}", LEXARIUM_INDEX=str(large_catalogue_file.parent / "index")
    ) as server:
        assert server.get("/healthz").status == 200
        for damaged in ("/api/v-alpha/concept", "/api/v-alpha/concept?id=trm_0150", "/api/v1/changes?limit=1000"):
            response = server.get(damaged)
            assert is_retry_later(response), damaged
            assert str(large_catalogue_file) not in response.body.decode()
        assert server.get("/api/v1/search?q=0001").status in (200, 503)
    assert "damaged" in server.log
    assert "Traceback" not in server.log


def test_a_page_damaged_at_runtime_is_served_unchanged_or_not_at_all(large_catalogue_file: Path) -> None:
    with Server(
        f"sqlite:///{large_catalogue_file}", LEXARIUM_INDEX=str(large_catalogue_file.parent / "index")
    ) as server:
        token = server.create_token("curator")
        before = server.get("/api/v1/concept/trm_0150").body
        corrupt_pages(large_catalogue_file, b"trm_0150")
        for _ in range(20):
            response = server.get("/api/v1/concept/trm_0150")
            assert response.body == before or is_retry_later(response)
            list_response = server.get("/api/v-alpha/concept?format=json")
            assert is_retry_later(list_response) or len(list_response.json) >= 300
            assert server.create_concept(token, "another").status in (201, 503)
    assert "Traceback" not in server.log


@contextmanager
def run_indexed_server(tmp_path: Path) -> Iterator[tuple[Server, str, Path]]:
    """Run a server with one indexed record; yield it, a token and the index folder."""
    folder = tmp_path / "index"
    with Server(f"sqlite:///{tmp_path}/catalogue.db", LEXARIUM_INDEX=str(folder)) as server:
        token = server.create_token("curator")
        assert server.create_concept(token, "before").status == 201
        wait_until(server.finds, "before")
        yield server, token, folder
        # Old and new records must be found in any case.
        wait_until(server.finds, "before")
        assert server.create_concept(token, "after").status == 201
        wait_until(server.finds, "after")
    assert "Traceback" not in server.log


def test_an_index_removed_at_runtime_is_rebuilt(tmp_path: Path) -> None:
    with run_indexed_server(tmp_path) as (server, _, folder):
        server.drain_log()
        server.wait_until_ready()
        before = server.log.count("Search index rebuilt")
        shutil.rmtree(folder.rename(folder.with_name("removed")), ignore_errors=True)  # in one step
        wait_until(lambda: server.log.count("Search index rebuilt") > before)


def test_an_index_overwritten_at_runtime_is_rebuilt(tmp_path: Path) -> None:
    with run_indexed_server(tmp_path) as (server, token, folder):
        for path in filter(Path.is_file, folder.rglob("*")):
            with path.open("r+b") as file:  # not truncated: that would kill processes that have it mapped
                file.write(b"\xff" * path.stat().st_size)
        server.create_concept(token, "meanwhile")
        assert server.get("/api/v1/search?q=before").status in (200, 503)
        wait_until(server.finds, "meanwhile")


@pytest.mark.parametrize("damage", ["a file", "rubbish"])
def test_an_invalid_index_is_rebuilt_at_start(tmp_path: Path, damage: str) -> None:
    folder = tmp_path / "index"
    with run_indexed_server(tmp_path):
        pass
    for path in filter(Path.is_file, folder.rglob("*")):
        path.write_bytes(os.urandom(100) if damage == "rubbish" else b"")
    with Server(f"sqlite:///{tmp_path}/catalogue.db", LEXARIUM_INDEX=str(folder)) as server:
        wait_until(server.finds, "before")
        wait_until(server.finds, "after")


@pytest.mark.parametrize("mode", [0o000, pytest.param(0o555, marks=pytest.mark.full)])
def test_an_inaccessible_index_is_reported_once_and_used_as_soon_as_possible(tmp_path: Path, mode: int) -> None:
    with run_indexed_server(tmp_path) as (_, _, folder):
        pass
    current = IndexDirectory(folder).current_path()
    assert current is not None
    # As if root had created the files: the folder is readable or not, its files are not.
    current.chmod(0)
    folder.chmod(mode)
    with UnprivilegedServer(f"sqlite:///{tmp_path}/catalogue.db", LEXARIUM_INDEX=str(folder)) as server:
        server.drain_log()
        wait_until(lambda: "Cannot read or write" in server.get("/readyz").json.get("detail", ""))
        for target in ["/readyz", *["/api/v1/search?q=before"] * 20]:
            response = server.get(target)
            assert (response.status, "Cannot read or write the search index folder" in response.json["detail"]) == (
                503,
                True,
            )
        wait_until(lambda: "Cannot read or write" in server.log)
        assert server.log.count("Cannot read or write the search index folder") == 1
        assert server.log.count("Search index rebuilt") <= 1
        folder.chmod(0o755)
        current.chmod(0o755)
        wait_until(server.finds, "after")
        server.wait_until_ready()


@pytest.mark.parametrize("arguments", [["search", "before"], pytest.param(["reindex"], marks=pytest.mark.full)])
def test_a_command_without_access_to_the_index_says_so(tmp_path: Path, arguments: list[str]) -> None:
    with run_indexed_server(tmp_path) as (_, _, folder):
        pass
    folder.chmod(0)
    command = [*build_unprivileged_prefix(), sys.executable, "-m", "lexarium", *arguments]
    options = ["--database", f"sqlite:///{tmp_path}/catalogue.db"]
    environment = {**os.environ, "LEXARIUM_INDEX": str(folder)}
    result = subprocess.run([*command, *options], env=environment, capture_output=True, text=True, check=False)
    folder.chmod(0o755)
    assert result.returncode == 1
    text = result.stderr.replace("\n", "")
    assert f"Cannot write the search index in {folder}" in text
    assert "Internal error" not in text


@pytest.mark.full
def test_setting_the_clock_back_changes_no_order_and_loses_nothing(tmp_path: Path) -> None:
    clock, url = FakeClock(tmp_path / "clock"), f"sqlite:///{tmp_path}/catalogue.db"
    with FakeClockServer(url, clock) as server:
        token = server.create_token("curator")
        first = server.create_concept(token, "first").json
        etag = server.get("/api/v-alpha/concept").headers["etag"]
        clock.set_offset(days=-2)
        second = server.create_concept(token, "second").json
        assert second["event_stamp"] < first["event_stamp"]
        assert server.get("/api/v-alpha/concept").headers["etag"] != etag
        headers = {"Authorization": f"Bearer {token}", "If-Match": '"1"', "Content-Type": "application/json"}
        path = f"/api/v1/concept/{first['id']}"
        edited = server.request("PATCH", path, headers, json.dumps({"definition_text": "now"}))
        assert edited.status == 200
        assert edited.json["creation_time"] == first["creation_time"]
        feed = server.get("/api/v1/changes").json["items"]
        assert [(item["seq"], item["id"], item["version"]) for item in feed] == [
            (1, first["id"], 1),
            (2, second["id"], 1),
            (3, first["id"], 2),
        ]
        history = server.get(f"{path}/history").json["items"]
        assert [item["version"] for item in history] == [2, 1]
        wait_until(server.finds, "second")
    assert is_consistent(url)


@pytest.mark.full
def test_a_token_expires_by_the_current_clock(tmp_path: Path) -> None:
    clock, url = FakeClock(tmp_path / "clock"), f"sqlite:///{tmp_path}/catalogue.db"
    with FakeClockServer(url, clock) as server:
        admin = server.create_token("admin")
        short = server.post_json("/api/v1/tokens", {"days": 1}, admin)
        assert short.status == 201, short.body
        token = short.json["token"]
        assert server.create_concept(token, "in time").status == 201
        clock.set_offset(days=2)
        assert server.create_concept(token, "too late").status == 401
        clock.set_offset(days=-2)
        assert server.create_concept(admin, "long before").status == 201
    assert is_consistent(url)


def test_delays_scheduled_before_the_clock_was_set_back_are_shortened(database: Database) -> None:
    at = 1_700_000_000_000
    hook = Webhook("whk_1", "https://example.org", ("whsec_x",), (), (), seq=0, created=at, due=at + 30 * DAY_MS)
    with database.write() as transaction:
        save_entries(transaction, build_log_entry("one"))
        webhooks.add(transaction, hook)
        assert leases.acquire(transaction, Lease("x", "one", at + 30 * DAY_MS), at=at + 30 * DAY_MS - 15_000)
        assert leases.acquire(transaction, Lease("x", "other", at + 15_000), at=at)
        assert not leases.acquire(transaction, Lease("x", "third", at + 16_000), at=at + 1_000)
    with database.read() as connection:
        assert [webhook.id for webhook in webhooks.list_due(connection, at=at)] == ["whk_1"]
        assert webhooks.list_due(connection, at=at + 30 * DAY_MS - 1_000) == []
