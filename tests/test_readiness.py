"""When a node says that it is not ready, while it goes on answering what it can."""

import json
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path

from sqlalchemy import text

from lexarium.search.index import IndexFolder, OpenIndex
from lexarium.service.indexing import FAR_BEHIND
from lexarium.store.database import Database
from lexarium.store.migrations import HEAD
from tests.server import Server, run
from tests.test_watching import figures
from tests.waiting import wait_until

UPGRADES = """
import sys
from lexarium.store.database import Database

with Database(sys.argv[1]).backend.upgrading():
    print("begun", flush=True)
    sys.stdin.read()
"""


@contextmanager
def upgrade_under_way(url: str) -> Iterator[None]:
    """Another process is about to change the tables; in the end it is killed."""
    command = [sys.executable, "-c", UPGRADES, url]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        yield
        process.kill()


def is_ready(server: Server) -> bool:
    return server.get("/readyz").status == 200


def test_a_node_is_not_ready_while_another_process_upgrades_its_database(server: Server) -> None:
    wait_until(lambda: is_ready(server))
    with upgrade_under_way(server.url):
        answer = server.get("/readyz")
        assert (answer.status, answer.json["detail"]) == (503, "The catalogue's database is being upgraded.")
        assert server.get("/healthz").status == 200
        assert server.get("/api/v-alpha/concept").json == []
    wait_until(lambda: is_ready(server))
    token = server.token("curator")
    assert server.post_json("/api/v1/concept", {"name": "after"}, token).status == 201


def test_a_node_whose_database_a_newer_one_has_upgraded_reads_on_and_writes_nothing(server: Server) -> None:
    wait_until(lambda: is_ready(server))
    token = server.token("curator")
    assert server.post_json("/api/v1/concept", {"name": "before"}, token).status == 201
    database = Database(server.url)
    for schema, created in (("9999", 503), (HEAD, 201)):
        with database.backend.upgrading() as connection:
            connection.execute(text("UPDATE alembic_version SET version_num = :schema"), {"schema": schema})
        answer = server.post_json("/api/v1/concept", {"name": "after"}, token)
        assert answer.status == created
        if created == 503:
            assert int(answer.headers["retry-after"]) > 0
            assert [record["name"] for record in server.get("/api/v-alpha/concept").json] == ["before"]
            assert server.get("/readyz").status == 503
    database.close()
    wait_until(lambda: is_ready(server))
    assert f"is 9999 now, and this process knows {HEAD}" in server.stop()


def test_an_older_program_that_starts_beside_a_write_is_refused_at_once_and_disturbs_nobody(server: Server) -> None:
    wait_until(lambda: is_ready(server))
    database = Database(server.url)
    with database.backend.upgrading() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    # On SQLite one writer at a time keeps everyone else waiting, an upgrade too: there is nothing to hold beside it.
    with database.backend.writing() if not database.embedded else nullcontext() as writing:
        if writing is not None:
            writing.execute(text("SELECT * FROM catalogue FOR UPDATE"))
        refused = run("check", "--database", server.url)
    assert refused.returncode == 1
    assert "was written by a newer Lexarium" in " ".join(refused.stderr.split())
    with database.backend.upgrading() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = :head"), {"head": HEAD})
    database.close()
    wait_until(lambda: is_ready(server))


def test_a_write_that_waits_for_an_upgrade_sees_what_became_of_it(server: Server) -> None:
    token = server.token("curator")
    database = Database(server.url)
    with ThreadPoolExecutor() as threads:
        with database.backend.upgrading() as connection:
            database.backend.keep_writers_out(connection)
            connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
            record = {"name": "too late"}
            late = [threads.submit(server.post_json, "/api/v1/concept", record, token) for _ in range(2)]
            # One is about to write, and the other, or what the server itself has to write, waits for its turn.
            wait_until(lambda: figures(server)["lexarium_writes_waiting"] >= 1)
        assert [each.result().status for each in late] == [503, 503]
    database.close()


def test_a_node_is_not_ready_while_its_index_is_far_behind(url: str, tmp_path: Path) -> None:
    with Server(url, LEXARIUM_INDEX=str(tmp_path / "index")) as server:
        wait_until(lambda: is_ready(server))
        headers = {"Authorization": f"Bearer {server.token('curator')}", "Content-Type": "application/x-ndjson"}
        line = json.dumps({"op": "create", "collection": "concept", "record": {"name": "one of many"}})
        current = IndexFolder(tmp_path / "index").current()
        assert current is not None
        with closing(OpenIndex(current).write()):  # so that the server cannot
            made = server.request("POST", "/api/v1/batch", headers, "\n".join([line] * (FAR_BEHIND + 1)))
            assert made.status == 200
            answer = server.get("/readyz")
            assert (answer.status, "far behind" in answer.json["detail"]) == (503, True)
            assert server.get("/api/v1/search?q=one+of+many").json["hits"] == []
        wait_until(lambda: is_ready(server))
        assert server.get("/api/v1/search?q=one+of+many").json["total"] == FAR_BEHIND + 1
