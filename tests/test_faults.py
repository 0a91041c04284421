"""What is under a server breaks, on purpose: a clear answer, nothing lost, and on it goes once that is mended."""

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

from lexarium.domain.webhooks import Webhook
from lexarium.search.index import IndexFolder
from lexarium.service.checking import check
from lexarium.store import leases, webhooks
from lexarium.store.database import Database
from lexarium.store.leases import Lease
from lexarium.store.migrate import open_database
from tests.clocks import Clock, Clocked
from tests.disks import Ordinary, held_to_permissions, small_disk
from tests.postgres import Postgres
from tests.server import Answer, Server, run
from tests.test_store import entry, save
from tests.waiting import DEADLINE, wait_until
from tests.writers import Client

LARGE = {"definition_text": " ".join(f"{number:x}" for number in range(9_000))}
"""What fills a disk before long, and cannot be packed much tighter."""
PAGE = 4096
DAY = 86_400_000


def create(server: Server, token: str, name: str, **fields: str) -> Answer:
    return server.post_json("/api/v1/concept", {"name": name, **fields}, token)


def fill(server: Server, token: str) -> tuple[list[str], Answer]:
    """Write until something is refused: what was taken, and the refusal."""
    taken: list[str] = []
    for number in range(5_000):
        answer = create(server, token, f"large {number}", **LARGE)
        if answer.status != 201:
            return taken, answer
        taken.append(answer.json["name"])
    raise AssertionError("the disk is never full")


def is_told_to_come_again(answer: Answer) -> bool:
    return (
        answer.status == 503
        and int(answer.headers["retry-after"]) > 0
        and answer.headers["content-type"] == "application/problem+json"
    )


def names(server: Server) -> list[str]:
    answer = server.get("/api/v-alpha/concept")
    assert answer.status == 200, answer.body
    return sorted(record["name"] for record in answer.json)


def found(server: Server, name: str) -> bool:
    answer = server.get(f"/api/v1/search?q={name.replace(' ', '+')}")
    assert answer.status in (200, 503), answer.body
    return answer.status == 200 and any(hit["name"] == name for hit in answer.json["hits"])


def agrees_with_itself(url: str) -> bool:
    database = Database(url)
    problems = check(database).problems
    database.close()
    return problems == []


def test_a_full_disk_refuses_what_does_not_fit_and_loses_nothing(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 6_000) as disk:
        url = f"sqlite:///{disk.path}/catalogue.db"
        with Server(url, LEXARIUM_INDEX=str(tmp_path / "index")) as server:
            token = server.token("curator")
            taken, refusal = fill(server, token)
            assert is_told_to_come_again(refusal)
            assert names(server) == sorted(taken)
            disk.resize(30_000)
            assert create(server, token, "there is room again").status == 201
            assert names(server) == sorted([*taken, "there is room again"])
        assert "full" in server.log or "disk I/O" in server.log
        assert "Traceback" not in server.log
        assert agrees_with_itself(url)


def test_a_full_disk_under_the_index_holds_up_nobody_who_writes(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/catalogue.db"
    with (
        small_disk(tmp_path / "disk", 500) as disk,
        Server(url, LEXARIUM_INDEX=str(disk.path / "index"), LEXARIUM_WRITE_BURST="10000") as server,
    ):
        token = server.token("curator")
        create(server, token, "before it is full")
        wait_until(found, server, "before it is full")
        disk.fill()
        for number in range(5):
            assert create(server, token, f"large {number}", **LARGE).status == 201
        assert create(server, token, "when it is full").status == 201
        assert server.get("/api/v1/search?q=full").status in (200, 503)
        disk.make_room()
        disk.resize(50_000)
        wait_until(found, server, "when it is full")
        wait_until(found, server, "large 4")
    assert agrees_with_itself(url)


@pytest.mark.full
def test_a_full_disk_under_postgresql_refuses_what_does_not_fit_and_loses_nothing(tmp_path: Path) -> None:
    settings = {"wal_keep_size": "0", "min_wal_size": "32MB", "max_wal_size": "32MB"}
    with small_disk(tmp_path / "disk", 150_000) as disk, Postgres(disk.path / "cluster").make() as postgres:
        postgres.start(**settings)
        url = postgres.new_database("catalogue")
        with Server(url) as server:
            client = Client(server)
            taken, number = [client.create_at_last("before it is full")], 0
            disk.fill()
            while True:
                answer = create(server, client.token, f"large {number}", **LARGE)
                assert answer.status in (201, 503), answer.body
                if answer.status == 503:
                    break
                taken.append(answer.json["id"])
                number += 1
            assert is_told_to_come_again(answer)
            disk.make_room()
            client.create_at_last("when there is room again")
            there = {record["id"] for record in server.get("/api/v-alpha/concept").json}
            assert {each for each in taken if "before" not in each} - {taken[0]} <= there
        assert "Traceback" not in server.log
        assert agrees_with_itself(url)


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Path]:
    """The file of a catalogue with a record, in a folder of its own; permissions are given back in the end."""
    folder = tmp_path / "held"
    folder.mkdir()
    database = open_database(f"sqlite:///{folder}/catalogue.db")
    with database.write() as transaction:
        save(transaction, entry("one"))
    database.close()
    yield folder / "catalogue.db"
    for path in [folder, *folder.rglob("*")]:
        path.chmod(0o700)


def test_a_folder_that_may_not_be_written_ends_the_start_with_a_sentence(made: Path) -> None:
    made.parent.chmod(0o555)
    command = [*held_to_permissions(), sys.executable, "-m", "lexarium", "serve", "--port", "0"]
    done = subprocess.run(
        [*command, "--database", f"sqlite:///{made}"], capture_output=True, text=True, timeout=DEADLINE, check=False
    )
    assert done.returncode == 1
    assert str(made) in done.stderr
    assert "Traceback" not in done.stderr


def test_a_file_that_may_not_be_written_is_read_and_written_by_the_next_server_once_it_may_be(made: Path) -> None:
    made.chmod(0o444)
    with Ordinary(f"sqlite:///{made}") as server:
        token = server.token("curator")
        assert names(server) == ["one"]
        assert is_told_to_come_again(create(server, token, "two"))
    assert "readonly" in server.log
    assert "Traceback" not in server.log
    for path in filter(Path.is_file, made.parent.glob("catalogue.db*")):
        path.chmod(0o644)
    with Ordinary(f"sqlite:///{made}") as server:
        assert create(server, token, "three").status == 201


def test_permissions_that_are_lost_while_it_runs_lose_nothing(made: Path) -> None:
    with Ordinary(f"sqlite:///{made}") as server:
        token = server.token("curator")
        assert create(server, token, "two").status == 201
        wait_until(found, server, "two")
        held = [made.parent, *made.parent.rglob("*")]
        before = {path: path.stat().st_mode for path in held}
        for path in reversed(held):
            path.chmod(0)
        lost = [create(server, token, f"lost {number}") for number in range(5)]
        assert {answer.status for answer in lost} <= {201, 503}
        assert server.get("/api/v-alpha/concept").status in (200, 503)
        assert server.get("/api/v1/search?q=two").status in (200, 503)
        assert server.get("/healthz").status == 200
        for path in held:
            path.chmod(before[path])
        assert create(server, token, "three").status == 201
        taken = [f"lost {number}" for number, answer in enumerate(lost) if answer.status == 201]
        assert names(server) == sorted(["one", "two", "three", *taken])
        wait_until(found, server, "three")
    assert "Traceback" not in server.log
    assert agrees_with_itself(f"sqlite:///{made}")


@pytest.fixture
def many(tmp_path: Path) -> Path:
    """The file of a catalogue whose records lie on many pages."""
    database = open_database(f"sqlite:///{tmp_path}/many.db")
    with database.write() as transaction:
        save(transaction, *(entry(f"{number:04} {'x' * 400}", suffix=f"{number:04}") for number in range(300)))
    database.close()
    with sqlite3.connect(tmp_path / "many.db") as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return tmp_path / "many.db"


def spoil(file: Path, text: bytes) -> None:
    """Overwrite the beginning of every page that holds a text: what says how the page is laid out."""
    with file.open("r+b") as opened:
        for start in range(0, file.stat().st_size, PAGE):
            opened.seek(start)
            if text in opened.read(PAGE):
                opened.seek(start)
                opened.write(b"\xff" * 64)


def test_a_damaged_page_is_told_of_and_never_served_as_if_it_were_whole(many: Path) -> None:
    spoil(many, b"trm_0150")
    checked = run("check", "--database", f"sqlite:///{many}")
    assert checked.returncode == 1
    assert "damaged" in checked.stderr
    assert "Traceback" not in checked.stderr
    with Server(f"sqlite:///{many}", LEXARIUM_INDEX=str(many.parent / "index")) as server:
        assert server.get("/healthz").status == 200
        for damaged in ("/api/v-alpha/concept", "/api/v-alpha/concept?id=trm_0150", "/api/v1/changes?limit=1000"):
            answer = server.get(damaged)
            assert is_told_to_come_again(answer), damaged
            assert str(many) not in answer.body.decode()
        assert server.get("/api/v1/search?q=0001").status in (200, 503)
    assert "damaged" in server.log
    assert "Traceback" not in server.log


def test_a_page_that_is_damaged_under_a_server_is_served_as_it_was_or_not_at_all(many: Path) -> None:
    with Server(f"sqlite:///{many}", LEXARIUM_INDEX=str(many.parent / "index")) as server:
        token = server.token("curator")
        before = server.get("/api/v1/concept/trm_0150").body
        spoil(many, b"trm_0150")
        for _ in range(20):
            answer = server.get("/api/v1/concept/trm_0150")
            assert answer.body == before or is_told_to_come_again(answer)
            listed = server.get("/api/v-alpha/concept?format=json")
            assert is_told_to_come_again(listed) or len(listed.json) >= 300
            assert create(server, token, "another").status in (201, 503)
    assert "Traceback" not in server.log


@contextmanager
def indexed(tmp_path: Path) -> Iterator[tuple[Server, str, Path]]:
    """A server that finds a record, its token and the folder of its index."""
    folder = tmp_path / "index"
    with Server(f"sqlite:///{tmp_path}/catalogue.db", LEXARIUM_INDEX=str(folder)) as server:
        token = server.token("curator")
        assert create(server, token, "before").status == 201
        wait_until(found, server, "before")
        yield server, token, folder
        # Whatever happened: what was there is found, and what comes is.
        wait_until(found, server, "before")
        assert create(server, token, "after").status == 201
        wait_until(found, server, "after")
    assert "Traceback" not in server.log


def test_an_index_that_is_removed_under_a_server_is_made_anew(tmp_path: Path) -> None:
    with indexed(tmp_path) as (server, _, folder):
        server.listen()
        wait_until(lambda: server.get("/readyz").status == 200)
        before = server.log.count("was made anew")
        shutil.rmtree(folder.rename(folder.with_name("removed")), ignore_errors=True)  # at one blow
        wait_until(lambda: server.log.count("was made anew") > before)


def test_an_index_that_is_overwritten_under_a_server_is_made_anew(tmp_path: Path) -> None:
    with indexed(tmp_path) as (server, token, folder):
        for path in filter(Path.is_file, folder.rglob("*")):
            with path.open("r+b") as file:  # not cut: a process that has it in its memory would be killed for that
                file.write(b"\xff" * path.stat().st_size)
        create(server, token, "meanwhile")
        assert server.get("/api/v1/search?q=before").status in (200, 503)
        wait_until(found, server, "meanwhile")


@pytest.mark.parametrize("what", ["a file", "rubbish"])
def test_an_index_that_is_none_when_a_server_starts_is_made_anew(tmp_path: Path, what: str) -> None:
    folder = tmp_path / "index"
    with indexed(tmp_path):
        pass
    for path in filter(Path.is_file, folder.rglob("*")):
        path.write_bytes(os.urandom(100) if what == "rubbish" else b"")
    with Server(f"sqlite:///{tmp_path}/catalogue.db", LEXARIUM_INDEX=str(folder)) as server:
        wait_until(found, server, "before")
        wait_until(found, server, "after")


@pytest.mark.parametrize("mode", [0o000, 0o555])
def test_an_index_that_may_not_be_used_is_told_once_and_at_once_and_used_when_it_may_be(
    tmp_path: Path, mode: int
) -> None:
    with indexed(tmp_path) as (_, _, folder):
        pass
    current = IndexFolder(folder).current()
    assert current is not None
    # What root made by a command, say: the folder can be looked into or not, what is in it cannot be read.
    current.chmod(0)
    folder.chmod(mode)
    with Ordinary(f"sqlite:///{tmp_path}/catalogue.db", LEXARIUM_INDEX=str(folder)) as server:
        server.listen()
        for target in ["/readyz", *["/api/v1/search?q=before"] * 20]:
            answer = server.get(target)
            assert (answer.status, "may not read or write its folder" in answer.json["detail"]) == (503, True)
        assert server.log.count("may not read or write its folder") == 1
        assert server.log.count("made anew") <= 1
        folder.chmod(0o755)
        current.chmod(0o755)
        wait_until(found, server, "after")
        wait_until(lambda: server.get("/readyz").status == 200)


@pytest.mark.parametrize("arguments", [["search", "before"], ["reindex"]])
def test_a_command_that_may_not_use_the_index_says_so(tmp_path: Path, arguments: list[str]) -> None:
    with indexed(tmp_path) as (_, _, folder):
        pass
    folder.chmod(0)
    command = [*held_to_permissions(), sys.executable, "-m", "lexarium", *arguments]
    at = ["--database", f"sqlite:///{tmp_path}/catalogue.db"]
    environment = {**os.environ, "LEXARIUM_INDEX": str(folder)}
    refused = subprocess.run([*command, *at], env=environment, capture_output=True, text=True, check=False)
    folder.chmod(0o755)
    assert refused.returncode == 1
    told = refused.stderr.replace("\n", "")
    assert f"The search index in {folder} cannot be kept" in told
    assert "made a mistake" not in told


@pytest.mark.full
def test_a_clock_that_is_set_back_changes_no_order_and_loses_nothing(tmp_path: Path) -> None:
    clock, url = Clock(tmp_path / "clock"), f"sqlite:///{tmp_path}/catalogue.db"
    with Clocked(url, clock) as server:
        token = server.token("curator")
        first = create(server, token, "first").json
        etag = server.get("/api/v-alpha/concept").headers["etag"]
        clock.set(days=-2)
        second = create(server, token, "second").json
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
        wait_until(found, server, "second")
    assert agrees_with_itself(url)


def test_a_token_expires_by_the_clock_that_there_is(tmp_path: Path) -> None:
    clock, url = Clock(tmp_path / "clock"), f"sqlite:///{tmp_path}/catalogue.db"
    with Clocked(url, clock) as server:
        admin = server.token("admin")
        short = server.post_json("/api/v1/tokens", {"days": 1}, admin)
        assert short.status == 201, short.body
        token = short.json["token"]
        assert create(server, token, "in time").status == 201
        clock.set(days=2)
        assert create(server, token, "too late").status == 401
        clock.set(days=-2)
        assert create(server, admin, "long before").status == 201
    assert agrees_with_itself(url)


def test_what_was_put_off_by_a_clock_that_is_set_back_since_is_not_put_off_for_as_long(database: Database) -> None:
    at = 1_700_000_000_000
    hook = Webhook("whk_1", "https://example.org", ("whsec_x",), (), (), seq=0, created=at, due=at + 30 * DAY)
    with database.write() as transaction:
        save(transaction, entry("one"))
        webhooks.add(transaction, hook)
        assert leases.take(transaction, Lease("x", "one", at + 30 * DAY), at=at + 30 * DAY - 15_000)
        assert leases.take(transaction, Lease("x", "other", at + 15_000), at=at)
        assert not leases.take(transaction, Lease("x", "third", at + 16_000), at=at + 1_000)
    with database.read() as connection:
        assert [each.id for each in webhooks.due(connection, at=at)] == ["whk_1"]
        assert webhooks.due(connection, at=at + 30 * DAY - 1_000) == []
