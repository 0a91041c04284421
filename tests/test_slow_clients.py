"""Clients who are slow, in every way, keep nobody else from being served, take no memory, and are dropped in time."""

import json
import resource
import select
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from tests.databases import NewUrl
from tests.lacking import skip
from tests.server import Server
from tests.test_watching import figures
from tests.waiting import wait_until
from torture.load import memory_of

SECONDS = 60
"""How long each of them has: long enough for all to be there at once, and others to be answered."""
EACH = 250
JSON = {"Content-Type": "application/json"}
TEXT = "much to read " * 3_500


@contextmanager
def many_files() -> Iterator[None]:
    """As many open files as the system allows."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    if before[1] < 4 * EACH + 500:
        skip(f"only {before[1]} files may be open here (ulimit -n)")
    resource.setrlimit(resource.RLIMIT_NOFILE, (before[1], before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


def connected(server: Server, sent: str) -> socket.socket:
    """A client who has sent this much, and reads hardly anything."""
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.connect(("127.0.0.1", server.port))
    client.sendall(sent.encode())
    return client


def is_dropped(client: socket.socket) -> bool:
    """Whether the server has closed the connection, without reading what it has sent."""
    watched = select.poll()
    watched.register(client, select.POLLRDHUP)
    return bool(watched.poll(0))


def is_answered(client: socket.socket) -> bool:
    """Whether there is something to be read."""
    watched = select.poll()
    watched.register(client, select.POLLIN)
    return bool(watched.poll(0))


@pytest.mark.full
def test_a_thousand_slow_clients_stop_nobody_and_are_dropped(new_url: NewUrl) -> None:
    with (
        many_files(),
        Server(new_url("sqlite"), LEXARIUM_BODY_SECONDS=str(SECONDS), LEXARIUM_WRITE_BURST="1000") as server,
        ExitStack() as open_still,
    ):
        token = server.token("curator")
        for number in range(150):  # more than what fits between the two ends of a connection
            made = {"name": f"concept {number}", "definition_text": TEXT}
            assert server.post_json("/api/v1/concept", made, token).status == 201
        assert len(server.get("/api/v-alpha/concept").json) == 150
        head = f"Host: x\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\n"
        ways = {
            "headers": f"POST /api/v1/concept HTTP/1.1\r\n{head}",
            "body": f"POST /api/v1/concept HTTP/1.1\r\n{head}Content-Length: 1000\r\n\r\n{{",
            "reading": f"GET /api/v-alpha/concept HTTP/1.1\r\n{head}\r\n",
            "idle": f"GET /healthz HTTP/1.1\r\n{head}\r\n",
        }
        clients = []
        for number in range(EACH):
            clients += [(way, open_still.enter_context(connected(server, sent))) for way, sent in ways.items()]
            if number % 10 == 0:  # None of them is work any more, once it is known how slow they are.
                wait_until(lambda: figures(server)["lexarium_requests_in_work"] == 0)
        assert server.get("/api/v-alpha/concept?id=none").status == 404
        assert server.post_json("/api/v1/concept", {"name": "among the slow"}, token).status == 201
        assert not any(is_dropped(client) for _, client in clients)  # so nobody has waited for them to be gone
        wait_until(lambda: server.get("/api/v1/search?q=among+the+slow").json["total"] == 1)
        slow = [client for way, client in clients if way != "idle"]
        wait_until(lambda: all(map(is_dropped, slow)))
        assert not any(is_dropped(client) for way, client in clients if way == "idle")  # those who wait cost nothing
        assert len(server.get("/api/v-alpha/concept").json) == 151
    assert "Traceback" not in server.log


def test_what_is_held_of_bodies_that_come_slowly_is_bounded(new_url: NewUrl) -> None:
    limits = {"LEXARIUM_BATCH_MB": "1", "LEXARIUM_BODIES_MB": "16", "LEXARIUM_WRITE_BURST": "1000"}
    with many_files(), Server(new_url("sqlite"), **limits) as server, ExitStack() as open_still:
        token = server.token("curator")
        assert server.post_json("/api/v1/concept", {"name": "before"}, token).status == 201
        before = memory_of(server.pid)
        head = f"Host: x\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\n"
        whole = json.dumps({"name": "large", "definition_text": "x"}).ljust(1 << 20)
        sent = f"POST /api/v1/concept HTTP/1.1\r\n{head}Content-Length: {len(whole)}\r\n\r\n{whole[:-1]}"
        clients = [open_still.enter_context(connected(server, sent)) for _ in range(EACH)]
        wait_until(lambda: sum(map(is_answered, clients)) >= EACH - 17)
        for client in filter(is_answered, clients):
            answer = client.recv(4096)
            assert answer.startswith(b"HTTP/1.1 503 ")
            assert b"\r\nretry-after: 1\r\n" in answer.lower()
        assert memory_of(server.pid) - before < 64 << 20
        assert 8 << 20 < figures(server)["lexarium_bodies_bytes"] <= 16 << 20
        assert server.post_json("/api/v1/concept", {"name": "among the slow"}, token).status == 201
        assert not any(map(is_dropped, clients))
        next(client for client in clients if not is_answered(client)).sendall(b" ")
        wait_until(lambda: len(server.get("/api/v-alpha/concept").json) == 3)
        open_still.close()
        wait_until(lambda: figures(server)["lexarium_bodies_bytes"] == 0)
        large = server.request("POST", "/api/v1/concept", {"Authorization": f"Bearer {token}", **JSON}, whole)
        assert large.status == 201
