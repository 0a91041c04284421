"""Every response has `nosniff`, whichever layer sends it."""

from collections.abc import Iterator

import pytest

from tests.support.databases import DatabaseUrlFactory
from tests.support.server import Server
from tests.support.sockets import send_raw

NOSNIFF = b"\r\nx-content-type-options: nosniff\r\n"
POST = b"POST /api/v1/annotate HTTP/1.1\r\nHost: x\r\nContent-Type: text/plain\r\n"


@pytest.fixture(scope="module")
def server(sample_url: DatabaseUrlFactory) -> Iterator[Server]:
    with Server(sample_url("sqlite")) as running_server:
        yield running_server


@pytest.mark.parametrize(
    ("target", "status"),
    [
        ("/", 200), ("/healthz", 200), ("/metrics", 200), ("/docs", 200), ("/openapi.json", 200),
        ("/static/copy.js", 200),
        ("/api/v-alpha/concept", 200), ("/api/v-alpha/search", 200), ("/api/v-alpha/concept?id=none", 404),
        ("/api/v1", 200), ("/api/v1/concept", 200), ("/api/v1/concept/none", 404), ("/nowhere", 404),
        ("/reconcile", 200), ("/api/v1/me", 401), ("/api/v-alpha/concept/", 308),
    ],
)  # fmt: skip
def test_every_response_of_the_application_has_the_nosniff_header(server: Server, target: str, status: int) -> None:
    for _ in range(2):  # the second may come from the cache
        response = server.get(target)
        assert (response.status, response.headers["x-content-type-options"]) == (status, "nosniff")
    etag = response.headers.get("etag")
    if etag:
        second_response = server.get(target, If_None_Match=etag)
        assert (second_response.status, second_response.headers["x-content-type-options"]) == (304, "nosniff")


@pytest.mark.parametrize(
    ("request_sent", "status"),
    [
        (b"no HTTP\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\n\r\n", 400),
        (POST + b"Connection: close\r\nContent-Length: 99999999\r\n\r\n", 413),
        (b"GET /" + b"x" * 70_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n", 414),
        (b"GET / HTTP/1.1\r\nHost: x\r\nX-Long: " + b"x" * 70_000 + b"\r\n\r\n", 431),
    ],
    ids=lambda value: str(value) if isinstance(value, int) else "",
)  # fmt: skip
def test_every_rejected_request_gets_the_nosniff_header(server: Server, request_sent: bytes, status: int) -> None:
    response = send_raw(server, request_sent)
    assert response.startswith(b"HTTP/1.1 %d " % status)
    assert response.count(NOSNIFF) == 1


@pytest.mark.parametrize(
    "request_sent",
    [b"GET / HTTP/1.1\r\nHost: x\r\nX-Slow: ", POST + b"Content-Length: 1\r\n\r\n"],
    ids=["headers", "body"],
)
def test_an_incomplete_request_gets_the_nosniff_header(short_timeout_server: Server, request_sent: bytes) -> None:
    response = send_raw(short_timeout_server, request_sent)
    assert response.startswith(b"HTTP/1.1 408 ")
    assert response.count(NOSNIFF) == 1


def test_a_rejected_connection_gets_the_nosniff_header(new_url: DatabaseUrlFactory) -> None:
    with Server(new_url("sqlite"), LEXARIUM_CONNECTIONS="1") as server:
        connection = server.connect()
        connection.connect()
        response = send_raw(server)
        connection.close()
    assert response.startswith(b"HTTP/1.1 503 ")
    assert response.count(NOSNIFF) == 1
