"""Clients that are slow, or that speak no HTTP; and what the server is spared by them."""

import json
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.databases import NewUrl
from tests.server import Answer, Server, SpawnedServer
from tests.test_v1 import Client
from tests.waiting import DEADLINE


def exchanged(server: Server, *pieces: bytes) -> bytes:
    """All that the server answers until it closes the connection."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=DEADLINE) as client:
        for piece in pieces:
            client.sendall(piece)
        received = b""
        while more := client.recv(65_536):
            received += more
        return received


@pytest.fixture(scope="module")
def impatient(new_url: NewUrl) -> Iterator[Server]:
    with Server(new_url("sqlite"), LEXARIUM_BODY_SECONDS="1") as running:
        yield running


def test_headers_that_do_not_end_are_not_waited_for(impatient: Server) -> None:
    answer = exchanged(impatient, b"GET / HTTP/1.1\r\nHost: x\r\nX-Slow: ")
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert b"application/problem+json" in answer
    assert exchanged(impatient) == b""
    whole = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
    again = exchanged(impatient, whole + b"GET /healthz HTTP/1.1\r\nHos")
    assert again.startswith(b"HTTP/1.1 200 ")
    assert b"HTTP/1.1 408 " in again


def test_a_body_that_does_not_end_is_not_waited_for(impatient: Server) -> None:
    token = impatient.token("curator").encode()
    for path, kind in ((b"concept", b"application/json"), (b"batch", b"application/x-ndjson")):
        head = b"POST /api/v1/%b HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %b\r\n" % (path, token)
        head += b"Content-Type: %b\r\nContent-Length: 100\r\n\r\n" % kind
        assert exchanged(impatient, head, b"{").startswith(b"HTTP/1.1 408 ")


def test_an_address_that_is_too_long_is_a_414(shared_server: Server) -> None:
    answer = shared_server.get("/api/v1/concept?ids=" + "x" * 70_000)
    assert (answer.status, answer.headers["content-type"]) == (414, "application/problem+json")
    assert shared_server.get("/api/v1/concept?ids=" + "x" * 1_000_000).status == 414


def test_what_is_no_http_is_a_problem_too(shared_server: Server) -> None:
    answer = exchanged(shared_server, b"\x16\x03\x01\x02\x00\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b"application/problem+json" in answer


def test_a_very_long_line_of_a_batch_is_read_without_delay(new_url: NewUrl) -> None:
    with Server(new_url("sqlite")) as server:
        curator = Client(server, "curator")
        headers = {"Content-Type": "application/x-ndjson", "Authorization": f"Bearer {curator.token}"}
        before = _processor_seconds(server)
        answer = server.request("POST", "/api/v1/batch", headers, b" " * 40_000_000 + b"x")
        assert (answer.status, answer.json["errors"][0]["pointer"]) == (422, "/1")
        # Of the processor's own time, which nobody else takes; it was six seconds when each piece was joined anew.
        assert _processor_seconds(server) - before < 3


def _processor_seconds(server: Server) -> float:
    user, system = Path(f"/proc/{server.pid}/stat").read_text().rsplit(") ", 1)[1].split()[11:13]
    return (int(user) + int(system)) / 100


@pytest.mark.full
def test_many_who_sign_in_at_once_do_not_take_the_memory(new_url: NewUrl) -> None:
    with SpawnedServer(new_url("sqlite"), LEXARIUM_SIGN_IN_RATE="5") as server:

        def sign_in(name: str) -> Answer:
            return server.post_json("/api/v1/sign-in", {"name": name, "password": "x"})

        before = _peak_mb(server)
        with ThreadPoolExecutor(16) as pool:
            assert {answer.status for answer in pool.map(sign_in, map(str, range(16)))} == {401}
        assert _peak_mb(server) - before < 400


def _peak_mb(server: Server) -> int:
    status = Path(f"/proc/{server.pid}/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) // 1024


def test_whoever_guesses_at_an_account_does_not_lock_its_owner_out(new_url: NewUrl) -> None:
    with Server(new_url("sqlite"), LEXARIUM_SIGN_IN_RATE="2") as server:

        def sign_in(address: str, name: str = "Ada") -> int:
            body = json.dumps({"name": name, "password": "x"}).encode()
            with socket.create_connection(("127.0.0.1", server.port), source_address=(address, 0)) as client:
                head = b"POST /api/v1/sign-in HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                client.sendall(head + b"Content-Length: %d\r\n\r\n" % len(body) + body)
                return int(client.recv(65_536).split()[1])

        assert [sign_in("127.0.0.2") for _ in range(3)] == [401, 401, 429]
        assert sign_in("127.0.0.3") == 401
        # Nor may one address go through all names.
        assert 429 in [sign_in("127.0.0.4", str(number)) for number in range(40)]


def test_a_name_that_no_encoding_can_hold_is_logged(tmp_path: Path) -> None:
    with Server(f"sqlite:///{tmp_path}/caf\udce9.db", LEXARIUM_LOG="json") as server:
        assert server.get("/api/v-alpha/task").status == 200
    lines = [json.loads(line) for line in server.log.splitlines()]
    assert any("caf\\udce9.db" in line["message"] for line in lines)
