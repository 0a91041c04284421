"""Several nodes on one PostgreSQL, each with an index of its own: they agree."""

import json
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import quote

import psycopg
import pytest

from lexarium.store import migrations
from tests.databases import NewUrl
from tests.proxy import Proxy
from tests.server import Answer, Server
from tests.test_upgrade import old_file, with_rows_of
from tests.test_webhooks import HOOKS, Receiver
from tests.waiting import wait_until
from tests.writers import LIST, Client

pytestmark = pytest.mark.full

PRIVATE = {"LEXARIUM_WEBHOOKS_PRIVATE": "yes"}


@pytest.fixture(scope="module")
def url(new_url: NewUrl) -> str:
    return new_url("postgres")


@pytest.fixture(scope="module")
def nodes(url: str) -> Iterator[list[Server]]:
    """Three nodes, started at once on a database that is empty; no word of commits gets to the last of them."""
    with ExitStack() as ending, ThreadPoolExecutor(3) as pool:
        network = ending.enter_context(Proxy(url))
        network.deaf = True
        servers = [Server(each, **PRIVATE) for each in (url, url, network.url)]
        running = list(pool.map(Server.__enter__, servers))
        for each in running:
            ending.callback(each.stop)
        for each in running:
            wait_until(ready, each)
        yield running


@pytest.fixture
def clients(nodes: list[Server]) -> list[Client]:
    """One curator, at each of the nodes."""
    token = nodes[0].token("curator")
    return [Client(node, token) for node in nodes]


def ready(node: Server) -> bool:
    return node.get("/readyz").status == 200


def lists(node: Server, identifier: str) -> bool:
    return identifier in {each["id"] for each in node.get(LIST).json}


def finds(node: Server, name: str) -> bool:
    return bool(node.get(f"/api/v1/search?q={quote(name)}").json["total"] == 1)


def refused(client: Client) -> bool:
    return client.create("too late", uuid.uuid4().hex).status == 401


def everywhere(nodes: list[Server], path: str, **headers: str) -> list[Answer]:
    return [node.get(path, **headers) for node in nodes]


def test_nodes_that_start_at_once_make_the_database_once(nodes: list[Server], url: str) -> None:
    with psycopg.connect(url) as connection:
        assert connection.execute("SELECT count(*) FROM catalogue").fetchall() == [(1,)]
        assert connection.execute("SELECT version_num FROM alembic_version").fetchall() == [(migrations.HEAD,)]


@pytest.mark.parametrize("writer", range(3))
def test_a_write_on_one_is_served_by_all(nodes: list[Server], clients: list[Client], writer: int) -> None:
    everywhere(nodes, LIST)  # so that each has an answer that it must let go of
    name = f"written at {writer} {uuid.uuid4().hex}"
    made = clients[writer].create_at_last(name)
    for node in nodes:
        wait_until(lists, node, made)
        assert node.get(f"{LIST}?id={made}").json["name"] == name
        assert node.get(f"/api/v1/task/{made}").json["name"] == name
        wait_until(finds, node, name)


def test_a_write_is_served_by_all_within_a_second(nodes: list[Server], clients: list[Client]) -> None:
    """In one try of many: on a busy machine others may take longer. A node that looks seldom would fail in all."""

    def soon() -> bool:
        made = clients[0].create_at_last(f"soon {uuid.uuid4().hex}")
        written = time.monotonic()
        for node in nodes[1:]:
            wait_until(lists, node, made)
        return time.monotonic() - written < 1

    wait_until(soon)


@pytest.mark.parametrize("encoding", ["identity", "gzip", "zstd"])
def test_every_node_gives_the_same_etag_for_the_same_bytes(
    nodes: list[Server], clients: list[Client], encoding: str
) -> None:
    made = clients[0].create_at_last("the same everywhere")
    for path in (LIST, f"{LIST}?id={made}", "/api/v-alpha/search", f"/api/v1/task/{made}", "/api/v1/task?limit=3"):

        def same(path: str = path) -> bool:
            answers = everywhere(nodes, path, Accept_Encoding=encoding)
            return len({(answer.headers["etag"], answer.body) for answer in answers}) == 1

        wait_until(same)
        etag = nodes[0].get(path, Accept_Encoding=encoding).headers["etag"]
        again = everywhere(nodes, path, Accept_Encoding=encoding, If_None_Match=etag)
        assert [answer.status for answer in again] == [304, 304, 304]


def test_a_key_that_is_sent_to_every_node_at_once_makes_one_record(clients: list[Client]) -> None:
    with ThreadPoolExecutor(12) as pool:
        answers = list(pool.map(lambda client: client.create("once everywhere", "one key"), clients * 4))
    assert {answer.status for answer in answers} == {201}
    assert len({answer.body for answer in answers}) == 1
    other = clients[1].create("something else", "one key")
    assert other.status == 409


def test_every_change_is_delivered_once_however_many_nodes_there_are(
    nodes: list[Server], clients: list[Client]
) -> None:
    admin = nodes[0].token("admin")
    with Receiver() as receiver:
        hook = nodes[1].post_json(HOOKS, {"url": receiver.url, "collections": ["task"]}, admin).json
        names = [f"told of {number}" for number in range(12)]
        for number, name in enumerate(names):
            clients[number % 3].create_at_last(name)
        wait_until(lambda: len(receiver.got) >= len(names))
        assert receiver.names(hook["secret"]) == names
        identifiers = {headers["webhook-id"] for headers, _ in receiver.got}
        headers = {"Authorization": f"Bearer {admin}"}
        nodes[2].request("DELETE", f"{HOOKS}/{hook['id']}", headers)
    assert len(receiver.got) == len(identifiers) == len(names)


def test_an_edit_on_one_node_makes_a_version_on_another_stale(nodes: list[Server], clients: list[Client]) -> None:
    made = clients[0].create_at_last("edited in two places")
    edit = json.dumps({"name": "edited"})
    first = clients[1].send("PATCH", f"/api/v1/task/{made}", edit, If_Match='"1"')
    second = clients[2].send("PATCH", f"/api/v1/task/{made}", edit, If_Match='"1"')
    assert [first.status, second.status] == [200, 412]


def test_a_token_that_is_revoked_on_one_node_is_good_on_none(nodes: list[Server], clients: list[Client]) -> None:
    token = nodes[0].token("curator")
    those = [Client(node, token) for node in nodes]
    own = those[0].send("GET", "/api/v1/tokens").json["items"]
    assert those[0].send("DELETE", f"/api/v1/tokens/{own[-1]['id']}").status == 204
    for each in those:
        wait_until(refused, each)


def test_a_node_that_joins_makes_its_index_from_the_log_and_is_ready_then(
    nodes: list[Server], clients: list[Client], url: str
) -> None:
    name = f"there before {uuid.uuid4().hex}"
    clients[0].create_at_last(name)
    with Server(url, **PRIVATE) as joining:
        wait_until(ready, joining)
        found = joining.get(f"/api/v1/search?q={quote(name)}")
        assert found.status == 200
        assert [hit["name"] for hit in found.json["hits"][:1]] == [name]


def test_nodes_that_start_at_once_upgrade_the_database_once(blank_url: NewUrl, tmp_path: Path) -> None:
    url = blank_url("postgres")
    with_rows_of(old_file("0005", tmp_path / "old.db"), "0005", url)
    with psycopg.connect(url) as connection:
        before = connection.execute("SELECT revision FROM catalogue").fetchone()
    with ExitStack() as ending, ThreadPoolExecutor(3) as pool:
        for each in pool.map(Server.__enter__, [Server(url) for _ in range(3)]):
            ending.callback(each.stop)
            wait_until(ready, each)
            assert each.get("/api/v1/concept").json["items"]
        with psycopg.connect(url) as connection:
            assert connection.execute("SELECT revision, writes FROM catalogue").fetchall() == [(*(before or ()), 1)]
            assert connection.execute("SELECT version_num FROM alembic_version").fetchall() == [(migrations.HEAD,)]
