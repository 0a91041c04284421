"""Slow clients and clients that do not speak HTTP."""

import json
import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.support.databases import DatabaseUrlFactory
from tests.support.server import HttpResponse, Server, SpawnedServer
from tests.support.sockets import send_raw
from tests.support.v1_client import V1Client


def test_incomplete_headers_time_out(short_timeout_server: Server) -> None:
    response = send_raw(short_timeout_server, b"GET / HTTP/1.1\r\nHost: x\r\nX-Slow: ")
    assert response.startswith(b"HTTP/1.1 408 ")
    assert b"application/problem+json" in response
    assert send_raw(short_timeout_server) == b""
    complete_request = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
    second_response = send_raw(short_timeout_server, complete_request + b"GET /healthz HTTP/1.1\r\nHos")
    assert second_response.startswith(b"HTTP/1.1 200 ")
    assert b"HTTP/1.1 408 " in second_response


def test_an_incomplete_body_times_out(short_timeout_server: Server) -> None:
    token = short_timeout_server.create_token("curator").encode()
    for path, kind in ((b"concept", b"application/json"), (b"batch", b"application/x-ndjson")):
        head = b"POST /api/v1/%b HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %b\r\n" % (path, token)
        head += b"Content-Type: %b\r\nContent-Length: 100\r\n\r\n" % kind
        assert send_raw(short_timeout_server, head, b"{").startswith(b"HTTP/1.1 408 ")


def test_a_too_long_url_gets_a_414(shared_server: Server) -> None:
    response = shared_server.get("/api/v1/concept?ids=" + "x" * 70_000)
    assert (response.status, response.headers["content-type"]) == (414, "application/problem+json")
    assert shared_server.get("/api/v1/concept?ids=" + "x" * 1_000_000).status == 414


def test_data_that_is_not_http_gets_a_problem_document(shared_server: Server) -> None:
    response = send_raw(shared_server, b"\x16\x03\x01\x02\x00\r\n\r\n")
    assert response.startswith(b"HTTP/1.1 400 ")
    assert b"application/problem+json" in response


def test_a_very_long_line_of_a_batch_is_read_without_delay(new_url: DatabaseUrlFactory) -> None:
    with Server(new_url("sqlite")) as server:
        curator = V1Client(server, "curator")
        headers = {"Content-Type": "application/x-ndjson", "Authorization": f"Bearer {curator.token}"}
        before = _get_cpu_seconds(server)
        response = server.request("POST", "/api/v1/batch", headers, b" " * 40_000_000 + b"x")
        assert (response.status, response.json["errors"][0]["pointer"]) == (422, "/1")
        # CPU time, which does not depend on other processes. It was six seconds when chunks were joined each time.
        assert _get_cpu_seconds(server) - before < 3


def _get_cpu_seconds(server: Server) -> float:
    user, system = Path(f"/proc/{server.pid}/stat").read_text().rsplit(") ", 1)[1].split()[11:13]
    return (int(user) + int(system)) / 100


@pytest.mark.full
def test_concurrent_sign_ins_use_limited_memory(new_url: DatabaseUrlFactory) -> None:
    with SpawnedServer(new_url("sqlite"), LEXARIUM_SIGN_IN_RATE="5") as server:

        def sign_in(name: str) -> HttpResponse:
            return server.post_json("/api/v1/sign-in", {"name": name, "password": "x"})

        before = _get_peak_mb(server)
        with ThreadPoolExecutor(16) as pool:
            assert {response.status for response in pool.map(sign_in, map(str, range(16)))} == {401}
        assert _get_peak_mb(server) - before < 400


def _get_peak_mb(server: Server) -> int:
    status = Path(f"/proc/{server.pid}/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) // 1024


def test_password_guesses_from_elsewhere_do_not_lock_out_the_owner_of_an_account(new_url: DatabaseUrlFactory) -> None:
    with Server(new_url("sqlite"), LEXARIUM_SIGN_IN_RATE="2") as server:

        def sign_in(address: str, name: str = "Ada") -> int:
            body = json.dumps({"name": name, "password": "x"}).encode()
            with socket.create_connection(("127.0.0.1", server.port), source_address=(address, 0)) as client:
                head = b"POST /api/v1/sign-in HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                client.sendall(head + b"Content-Length: %d\r\n\r\n" % len(body) + body)
                return int(client.recv(65_536).split()[1])

        assert [sign_in("127.0.0.2") for _ in range(3)] == [401, 401, 429]
        assert sign_in("127.0.0.3") == 401
        # Nor may one address try all names.
        assert 429 in [sign_in("127.0.0.4", str(number)) for number in range(40)]


def test_a_path_that_is_not_valid_unicode_can_be_logged(tmp_path: Path) -> None:
    with Server(f"sqlite:///{tmp_path}/caf\udce9.db", LEXARIUM_LOG="json") as server:
        assert server.get("/api/v-alpha/task").status == 200
    lines = [json.loads(line) for line in server.log.splitlines()]
    assert any("caf\\udce9.db" in line["message"] for line in lines)
