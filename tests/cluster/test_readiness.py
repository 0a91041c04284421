"""Readiness of a node that still serves some requests."""

import json
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path

from sqlalchemy import text

from lexarium.search.index import IndexDirectory, SearchIndex
from lexarium.services.search.indexer import MAX_WAIT_LAG
from lexarium.store.database import Database
from lexarium.store.migrations import SCHEMA_VERSION
from tests.support.metrics import read_metrics
from tests.support.polling import wait_until
from tests.support.server import Server, run_cli

UPGRADE_SCRIPT = """
import sys
from lexarium.store.database import Database

with Database(sys.argv[1]).backend.begin_upgrade():
    print("begun", flush=True)
    sys.stdin.read()
"""


@contextmanager
def hold_upgrade(url: str) -> Iterator[None]:
    """Hold the lock of an upgrade in another process; kill it at the end."""
    command = [sys.executable, "-c", UPGRADE_SCRIPT, url]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        yield
        process.kill()


def test_a_node_is_not_ready_while_another_process_upgrades_its_database(server: Server) -> None:
    server.wait_until_ready()
    with hold_upgrade(server.url):
        response = server.get("/readyz")
        assert (response.status, response.json["detail"]) == (503, "Database is being upgraded.")
        assert server.get("/healthz").status == 200
        assert server.get("/api/v-alpha/concept").json == []
    server.wait_until_ready()
    token = server.create_token("curator")
    assert server.post_json("/api/v1/concept", {"name": "after"}, token).status == 201


def test_a_node_serves_reads_and_rejects_writes_after_a_newer_version_upgraded_its_database(server: Server) -> None:
    server.wait_until_ready()
    token = server.create_token("curator")
    assert server.post_json("/api/v1/concept", {"name": "before"}, token).status == 201
    database = Database(server.url)
    for schema, created in (("9999", 503), (SCHEMA_VERSION, 201)):
        with database.backend.begin_upgrade() as connection:
            connection.execute(text("UPDATE alembic_version SET version_num = :schema"), {"schema": schema})
        response = server.post_json("/api/v1/concept", {"name": "after"}, token)
        assert response.status == created
        if created == 503:
            assert int(response.headers["retry-after"]) > 0
            assert [record["name"] for record in server.get("/api/v-alpha/concept").json] == ["before"]
            assert server.get("/readyz").status == 503
    database.close()
    server.wait_until_ready()
    assert f"is now 9999, but this process supports {SCHEMA_VERSION}" in server.stop()


def test_an_older_version_starting_during_a_write_is_rejected_at_once_without_blocking_the_writer(
    server: Server,
) -> None:
    server.wait_until_ready()
    database = Database(server.url)
    with database.backend.begin_upgrade() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    # SQLite has one writer at a time, which an upgrade waits for too.
    with database.backend.connect_write() if not database.is_embedded else nullcontext() as writing:
        if writing is not None:
            writing.execute(text("SELECT * FROM catalogue FOR UPDATE"))
        result = run_cli("check", "--database", server.url)
    assert result.returncode == 1
    assert "was written by a newer Lexarium" in " ".join(result.stderr.split())
    with database.backend.begin_upgrade() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = :head"), {"head": SCHEMA_VERSION})
    database.close()
    server.wait_until_ready()


def test_a_write_that_waited_for_an_upgrade_checks_the_schema_version_again(server: Server) -> None:
    token = server.create_token("curator")
    database = Database(server.url)
    with ThreadPoolExecutor() as threads:
        with database.backend.begin_upgrade() as connection:
            database.backend.lock_out_writers(connection)
            connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
            record = {"name": "too late"}
            futures = [threads.submit(server.post_json, "/api/v1/concept", record, token) for _ in range(2)]
            # One transaction is about to write; another one, or the server's own, waits for it.
            wait_until(lambda: read_metrics(server)["lexarium_writes_waiting"] >= 1)
        assert [future.result().status for future in futures] == [503, 503]
    database.close()


def test_a_node_is_not_ready_while_its_index_lags_far_behind(url: str, tmp_path: Path) -> None:
    with Server(url, LEXARIUM_INDEX=str(tmp_path / "index")) as server:
        server.wait_until_ready()
        headers = {"Authorization": f"Bearer {server.create_token('curator')}", "Content-Type": "application/x-ndjson"}
        line = json.dumps({"op": "create", "collection": "concept", "record": {"name": "one of many"}})
        current = IndexDirectory(tmp_path / "index").current_path()
        assert current is not None
        with closing(SearchIndex(current).open_writer()):  # so that the server cannot write
            batch_response = server.request("POST", "/api/v1/batch", headers, "\n".join([line] * (MAX_WAIT_LAG + 1)))
            assert batch_response.status == 200
            response = server.get("/readyz")
            assert (response.status, "catching up" in response.json["detail"]) == (503, True)
            assert server.get("/api/v1/search?q=one+of+many").json["hits"] == []
        server.wait_until_ready()
        assert server.get("/api/v1/search?q=one+of+many").json["total"] == MAX_WAIT_LAG + 1
