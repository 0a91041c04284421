"""When a node says that it is not ready, while it goes on answering what it can."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from lexarium.search.index import IndexFolder, OpenIndex
from lexarium.service.indexing import FAR_BEHIND
from tests.server import Server
from tests.test_watching import until

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
    until(lambda: is_ready(server))
    with upgrade_under_way(server.url):
        answer = server.get("/readyz")
        assert (answer.status, answer.json["detail"]) == (503, "The catalogue's database is being upgraded.")
        assert server.get("/healthz").status == 200
        assert server.get("/api/v-alpha/concept").json == []
    until(lambda: is_ready(server))
    token = server.token("curator")
    assert server.post_json("/api/v1/concept", {"name": "after"}, token).status == 201


def test_a_node_is_not_ready_while_its_index_is_far_behind(url: str, tmp_path: Path) -> None:
    with Server(url, LEXARIUM_INDEX=str(tmp_path / "index")) as server:
        until(lambda: is_ready(server))
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
        until(lambda: is_ready(server))
        assert server.get("/api/v1/search?q=one+of+many").json["total"] == FAR_BEHIND + 1
