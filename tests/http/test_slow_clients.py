"""Slow clients block no other requests, use little memory and are disconnected in time."""

import json
import resource
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from tests.support.databases import DatabaseUrlFactory
from tests.support.metrics import read_metrics
from tests.support.polling import wait_until
from tests.support.requirements import skip_or_fail
from tests.support.server import Server
from tests.support.sockets import has_response, is_dropped
from torture.overload import get_private_memory_bytes

# Timeout of each client: long enough for all to be connected at once while others are served.
SECONDS = 60
CLIENTS_PER_KIND = 250
JSON = {"Content-Type": "application/json"}
TEXT = "much to read " * 3_500


@contextmanager
def raise_file_limit() -> Iterator[None]:
    """Raise the limit of open files to the maximum."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    if before[1] < 4 * CLIENTS_PER_KIND + 500:
        skip_or_fail(f"only {before[1]} files may be open here (ulimit -n)")
    resource.setrlimit(resource.RLIMIT_NOFILE, (before[1], before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


def connect_slowly(server: Server, data: str) -> socket.socket:
    """Connect with a small receive buffer, send data and do not read."""
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.connect(("127.0.0.1", server.port))
    client.sendall(data.encode())
    return client


@pytest.mark.full
def test_a_thousand_slow_clients_block_no_other_requests_and_are_disconnected(new_url: DatabaseUrlFactory) -> None:
    with (
        raise_file_limit(),
        Server(new_url("sqlite"), LEXARIUM_BODY_SECONDS=str(SECONDS), LEXARIUM_WRITE_BURST="1000") as server,
        ExitStack() as open_still,
    ):
        token = server.create_token("curator")
        for number in range(150):  # more than the socket buffers hold
            draft = {"name": f"concept {number}", "definition_text": TEXT}
            assert server.post_json("/api/v1/concept", draft, token).status == 201
        assert len(server.get("/api/v-alpha/concept").json) == 150
        head = f"Host: x\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\n"
        requests_by_kind = {
            "headers": f"POST /api/v1/concept HTTP/1.1\r\n{head}",
            "body": f"POST /api/v1/concept HTTP/1.1\r\n{head}Content-Length: 1000\r\n\r\n{{",
            "reading": f"GET /api/v-alpha/concept HTTP/1.1\r\n{head}\r\n",
            "idle": f"GET /healthz HTTP/1.1\r\n{head}\r\n",
        }
        clients = []
        started = time.monotonic()
        for number in range(CLIENTS_PER_KIND):
            clients += [
                (kind, open_still.enter_context(connect_slowly(server, request_text)))
                for kind, request_text in requests_by_kind.items()
            ]
            if number % 10 == 0:  # slow clients must not count as running requests
                wait_until(lambda: read_metrics(server)["lexarium_requests_in_progress"] == 0)
        assert server.get("/api/v-alpha/concept?id=none").status == 404
        assert server.post_json("/api/v1/concept", {"name": "among the slow"}, token).status == 201
        dropped = [client for _, client in clients if is_dropped(client)]
        if time.monotonic() - started < SECONDS:
            assert dropped == []  # so no request waited for a timeout
        wait_until(server.finds, "among the slow")
        slow = [client for kind, client in clients if kind != "idle"]
        wait_until(lambda: all(map(is_dropped, slow)))
        assert len(server.get("/api/v-alpha/concept").json) == 151
    assert "Traceback" not in server.log


def test_the_memory_for_slowly_sent_bodies_is_limited(new_url: DatabaseUrlFactory) -> None:
    limits = {
        "LEXARIUM_BATCH_MB": "1",
        "LEXARIUM_BODIES_MB": "16",
        "LEXARIUM_BODY_SECONDS": "3600",
        "LEXARIUM_WRITE_BURST": "1000",
    }
    with raise_file_limit(), Server(new_url("sqlite"), **limits) as server, ExitStack() as open_still:
        token = server.create_token("curator")
        assert server.post_json("/api/v1/concept", {"name": "before"}, token).status == 201
        wait_until(server.finds, "before")  # so that the memory of the index writer does not count
        before = get_private_memory_bytes(server.pid)
        head = f"Host: x\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\n"
        body = json.dumps({"name": "large", "definition_text": "x"}).ljust(1 << 20)
        request_text = f"POST /api/v1/concept HTTP/1.1\r\n{head}Content-Length: {len(body)}\r\n\r\n{body[:-1]}"
        clients = [open_still.enter_context(connect_slowly(server, request_text)) for _ in range(CLIENTS_PER_KIND)]
        wait_until(lambda: sum(map(has_response, clients)) >= CLIENTS_PER_KIND - 17)
        for client in filter(has_response, clients):
            response = client.recv(4096)
            assert response.startswith(b"HTTP/1.1 503 ")
            assert b"\r\nretry-after: 1\r\n" in response.lower()
        assert get_private_memory_bytes(server.pid) - before < 64 << 20
        assert 8 << 20 < read_metrics(server)["lexarium_bodies_bytes"] <= 16 << 20
        assert server.post_json("/api/v1/concept", {"name": "among the slow"}, token).status == 201
        assert not any(map(is_dropped, clients))
        next(client for client in clients if not has_response(client)).sendall(b" ")
        wait_until(lambda: len(server.get("/api/v-alpha/concept").json) == 3)
        open_still.close()
        wait_until(lambda: read_metrics(server)["lexarium_bodies_bytes"] == 0)
        large_response = server.request("POST", "/api/v1/concept", {"Authorization": f"Bearer {token}", **JSON}, body)
        assert large_response.status == 201
