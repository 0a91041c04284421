"""Limits on incomplete requests: request line, headers, trailers, connections."""

import json
import socket
from collections.abc import Iterator
from contextlib import ExitStack, suppress

import pytest

from tests.support.databases import DatabaseUrlFactory
from tests.support.metrics import read_metrics
from tests.support.polling import wait_until
from tests.support.server import Server
from tests.support.sockets import has_response, is_dropped, send_raw
from torture.overload import get_private_memory_bytes

MEBIBYTE = 1 << 20
HEAD = b"GET /healthz HTTP/1.1\r\nHost: x\r\n"
CHUNKED = (
    b"POST /api/v1/annotate HTTP/1.1\r\nHost: x\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"4\r\ntext\r\n0\r\n"
)


@pytest.fixture(scope="module")
def server(new_url: DatabaseUrlFactory) -> Iterator[Server]:
    with Server(new_url("sqlite"), LEXARIUM_BODY_SECONDS="30") as running:
        assert running.request("POST", "/api/v1/annotate", {"Content-Type": "text/plain"}, b"text").status == 200
        yield running


def build_headers(count: int, size: int) -> bytes:
    """Build headers of this total size, including separators and line ends."""
    header_size = size // count
    lines = [b"x-%04d: " % number for number in range(count)]
    fill = [header_size - len(line) - 2 for line in lines]
    fill[-1] += size - count * header_size
    return b"".join(line + b"y" * padding + b"\r\n" for line, padding in zip(lines, fill, strict=True))


def parse_status(response: bytes) -> int:
    """Return the status of a response; an error must be a problem document with the same status."""
    head, _, body = response.partition(b"\r\n\r\n")
    code = int(head.split()[1])
    if code >= 400:
        assert b"content-type: application/problem+json" in head
        assert b"connection: close" in head
        assert json.loads(body)["status"] == code
    return code


CLOSE = b"Connection: close\r\n"
HOST = b"Host: x\r\n"


@pytest.mark.parametrize("count", [1, 90])
def test_headers_have_at_most_64_kibibytes(server: Server, count: int) -> None:
    allowed = build_headers(count, 65_536 - len(HOST + CLOSE))
    assert parse_status(send_raw(server, HEAD + CLOSE + allowed + b"\r\n")) == 200
    assert parse_status(send_raw(server, HEAD + CLOSE + b"y" + allowed + b"\r\n")) == 431
    assert parse_status(send_raw(server, HEAD + CLOSE + build_headers(count, 200_000) + b"\r\n")) == 431


def test_there_are_at_most_100_headers(server: Server) -> None:
    assert parse_status(send_raw(server, HEAD + CLOSE + build_headers(98, 2_000) + b"\r\n")) == 200
    assert parse_status(send_raw(server, HEAD + CLOSE + build_headers(99, 2_000) + b"\r\n")) == 431
    assert parse_status(send_raw(server, HEAD + build_headers(9_000, 200_000))) == 431  # without their end


def test_the_length_of_the_url_does_not_count_towards_the_limit_of_headers(server: Server) -> None:
    target = b"GET /healthz?" + b"q" * (65_535 - len("/healthz?")) + b" HTTP/1.1\r\n"
    assert parse_status(send_raw(server, target + HOST + CLOSE + build_headers(50, 60_000) + b"\r\n")) == 200
    assert parse_status(send_raw(server, target.replace(b"?", b"?q") + HOST + CLOSE + b"\r\n")) == 414


def test_trailers_count_as_headers(server: Server) -> None:
    assert parse_status(send_raw(server, CHUNKED.replace(b"Host", CLOSE + b"Host") + b"X-A: b\r\n\r\n")) == 200
    assert parse_status(send_raw(server, CHUNKED + build_headers(98, 2_000) + b"\r\n")) == 431
    assert parse_status(send_raw(server, CHUNKED + build_headers(2, 70_000) + b"\r\n")) == 431
    assert parse_status(send_raw(server, CHUNKED + build_headers(1, 200_000)[:-2])) == 431


def test_each_pipelined_request_has_its_own_limits(server: Server) -> None:
    request = HEAD + build_headers(2, 40_000) + b"\r\n"
    response = send_raw(server, request * 4 + HEAD + CLOSE + b"\r\n")
    assert response.count(b"HTTP/1.1 200 OK") == 5


def test_the_number_of_pipelined_requests_is_limited(server: Server) -> None:
    stream = b"GET /api/v1/changes HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\n\r\n"
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as client:
        client.sendall(stream)
        assert client.recv(65_536).startswith(b"HTTP/1.1 200 ")
        client.sendall((HEAD + b"\r\n") * 1_000)
        wait_until(lambda: is_dropped(client))
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as client:
        client.sendall((HEAD + b"\r\n") * 99 + HEAD + CLOSE + b"\r\n")
        received = b""
        while data := client.recv(65_536):
            received += data
        assert received.count(b"HTTP/1.1 200 OK") == 100


def test_http_0_9_is_rejected(server: Server) -> None:
    for request in (b"GET /healthz\r\n\r\n", b"GET /healthz HTTP/0.9\r\nHost: x\r\n\r\n"):
        assert parse_status(send_raw(server, request)) == 400


def test_requests_with_a_missing_or_repeated_host_are_rejected(server: Server) -> None:
    assert parse_status(send_raw(server, b"GET /healthz HTTP/1.1\r\n\r\n")) == 400
    assert parse_status(send_raw(server, HEAD + b"host: y\r\n\r\n")) == 400
    assert parse_status(send_raw(server, b"GET /healthz HTTP/1.0\r\nHost: x\r\nHost: x\r\n\r\n")) == 400
    assert parse_status(send_raw(server, b"GET /healthz HTTP/1.0\r\n\r\n")) == 200
    assert parse_status(send_raw(server, HEAD + CLOSE + b"\r\n")) == 200


def test_an_invalid_chunked_body_gets_a_400(server: Server) -> None:
    assert parse_status(send_raw(server, CHUNKED.partition(b"\r\n0\r\n")[0] + b"\r\nnot a length\r\n")) == 400


def receive(client: socket.socket) -> bytes:
    """Receive one response with a JSON object and keep the connection open."""
    received = b""
    while not received.endswith(b"}"):
        data = client.recv(65_536)
        assert data, received
        received += data
    return received


def attack(server: Server, start: bytes, size: int) -> socket.socket:
    """Send endless headers while the server reads them."""
    client = socket.create_connection(("127.0.0.1", server.port), timeout=60)
    with suppress(ConnectionError):
        client.sendall(start)
        for _ in range(size // MEBIBYTE):
            client.sendall(build_headers(1_000, MEBIBYTE))
    return client


@pytest.mark.parametrize("start", [HEAD, CHUNKED, HEAD + b"X-Long: "], ids=["headers", "trailers", "line"])
def test_endless_headers_do_not_use_up_memory(server: Server, start: bytes) -> None:
    before = get_private_memory_bytes(server.pid)
    with ExitStack() as stack:
        clients = [stack.enter_context(attack(server, start, 10 * MEBIBYTE)) for _ in range(20)]
        assert get_private_memory_bytes(server.pid) - before < 32 * MEBIBYTE
        assert all(has_response(client) for client in clients)
        assert server.get("/healthz").status == 200
    wait_until(lambda: get_private_memory_bytes(server.pid) - before < 16 * MEBIBYTE)


def test_the_total_size_of_incomplete_headers_is_limited(new_url: DatabaseUrlFactory) -> None:
    limits = {"LEXARIUM_BATCH_MB": "1", "LEXARIUM_BODIES_MB": "1"}
    with Server(new_url("sqlite"), **limits) as server, ExitStack() as stack:
        clients = []
        for _ in range(50):
            client = stack.enter_context(socket.create_connection(("127.0.0.1", server.port), timeout=30))
            client.sendall(HEAD + build_headers(20, 60_000))
            clients.append(client)
        wait_until(lambda: sum(map(has_response, clients)) >= 25)
        assert 0 < read_metrics(server)["lexarium_bodies_bytes"] <= MEBIBYTE
        assert parse_status(send_raw(server, HEAD + CLOSE + build_headers(20, 10_000) + b"\r\n")) == 200
        responses = []
        for client in clients:
            with suppress(ConnectionError):
                client.sendall(b"\r\n")
            responses.append(receive(client))
        assert {parse_status(response) for response in responses} == {200, 503}
        assert all(b"\r\nretry-after: 1\r\n" in response for response in responses if parse_status(response) == 503)
        stack.close()
        wait_until(lambda: read_metrics(server)["lexarium_bodies_bytes"] == 0)


def test_the_number_of_connections_is_limited(new_url: DatabaseUrlFactory) -> None:
    with Server(new_url("sqlite"), LEXARIUM_CONNECTIONS="5") as server, ExitStack() as stack:

        def connect() -> socket.socket:
            return stack.enter_context(socket.create_connection(("127.0.0.1", server.port), timeout=30))

        clients = [connect() for _ in range(5)]
        for client in clients:
            client.sendall(HEAD + b"\r\n")
            assert parse_status(receive(client)) == 200
        response = receive(connect())
        assert parse_status(response) == 503
        assert b"\r\nretry-after: 1\r\n" in response
        clients[0].sendall(HEAD + b"\r\n")
        assert parse_status(receive(clients[0])) == 200
        clients[0].close()
        clients[1].sendall(HEAD + CLOSE + b"\r\n")
        while clients[1].recv(65_536):
            pass
        assert server.get("/healthz").status == 200


def test_a_connection_that_sends_only_line_breaks_is_closed(short_timeout_server: Server) -> None:
    with socket.create_connection(("127.0.0.1", short_timeout_server.port), timeout=30) as client:
        client.sendall(HEAD + b"\r\n")
        assert parse_status(receive(client)) == 200
        client.sendall(b"\r\n")
        wait_until(lambda: is_dropped(client))


@pytest.mark.parametrize("target", [b"/healthz", b"/api/v-alpha/concept"])
@pytest.mark.parametrize("connection", [b"", CLOSE])
def test_a_connection_that_keeps_sending_a_body_after_the_response_is_closed(
    short_timeout_server: Server, target: bytes, connection: bytes
) -> None:
    assert short_timeout_server.get(target.decode()).status == 200  # so that its response is cached
    with socket.create_connection(("127.0.0.1", short_timeout_server.port), timeout=30) as client:
        client.sendall(b"GET %b HTTP/1.1\r\nHost: x\r\n%bContent-Length: 1000000000\r\n\r\n" % (target, connection))
        assert client.recv(65_536).startswith(b"HTTP/1.1 200 ")

        def is_broken_off() -> bool:
            try:
                client.sendall(b"x")
            except ConnectionError:
                return True
            return False

        wait_until(is_broken_off)
