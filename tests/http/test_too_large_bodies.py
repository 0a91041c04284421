"""A client that sends too large a body can read the response, however it sends the body."""

import http.client
import json
import shutil
import socket
import subprocess
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import requests

from tests.support.browser import Browser
from tests.support.databases import DatabaseUrlFactory
from tests.support.requirements import skip_or_fail
from tests.support.server import Server

MEBIBYTE = 1 << 20
# In MiB. The limit is 1 for JSON, 10 for plain text.
SIZES = (1, *(pytest.param(size, marks=pytest.mark.full) for size in (11, 80)))
KINDS = {1: "application/json", 11: "text/plain", 80: "text/plain"}
Send = Callable[[str, Path, str], tuple[int, bytes]]


@pytest.fixture(scope="module")
def server(new_url: DatabaseUrlFactory) -> Iterator[Server]:
    with Server(new_url("sqlite")) as running:
        yield running


def read_chunks(file: Path) -> Iterator[bytes]:
    with file.open("rb") as stream:
        while chunk := stream.read(65_536):
            yield chunk


def send_by_urllib(url: str, file: Path, content_type: str) -> tuple[int, bytes]:
    with file.open("rb") as body:
        headers = {"Content-Type": content_type, "Content-Length": str(file.stat().st_size)}
        try:
            urllib.request.urlopen(urllib.request.Request(url, body, headers), timeout=60)
        except urllib.error.HTTPError as response:
            return response.code, response.read()
    raise AssertionError("the body was taken")


def send_chunks_by_urllib(url: str, file: Path, content_type: str) -> tuple[int, bytes]:
    headers = {"Content-Type": content_type, "Transfer-Encoding": "chunked"}
    try:
        urllib.request.urlopen(urllib.request.Request(url, read_chunks(file), headers), timeout=60)
    except urllib.error.HTTPError as response:
        return response.code, response.read()
    raise AssertionError("the body was taken")


def send_by_requests(url: str, file: Path, content_type: str) -> tuple[int, bytes]:
    with file.open("rb") as body:
        response = requests.post(url, body, headers={"Content-Type": content_type}, timeout=60)
    return response.status_code, response.content


def send_chunks_by_requests(url: str, file: Path, content_type: str) -> tuple[int, bytes]:
    headers = {"Content-Type": content_type, "Connection": "close"}
    response = requests.post(url, read_chunks(file), headers=headers, timeout=60)
    return response.status_code, response.content


def send_by_curl(url: str, file: Path, content_type: str, *options: str) -> tuple[int, bytes]:
    if shutil.which("curl") is None:
        skip_or_fail("there is no curl")
    command = [
        "curl",
        "-sS",
        "--data-binary",
        f"@{file}",
        "-H",
        f"Content-Type: {content_type}",
        "-w",
        "\n%{http_code}",
    ]
    completed = subprocess.run([*command, *options, url], capture_output=True, check=True, timeout=60)
    body, _, status = completed.stdout.rpartition(b"\n")
    return int(status), body


def send_at_once_by_curl(url: str, file: Path, content_type: str) -> tuple[int, bytes]:
    return send_by_curl(url, file, content_type, "-H", "Expect:", "-H", "Connection: close")


def send_chunks_by_curl(url: str, file: Path, content_type: str) -> tuple[int, bytes]:
    return send_by_curl(url, file, content_type, "-H", "Expect:", "-H", "Transfer-Encoding: chunked", "--http1.1")


@pytest.fixture(scope="module", params=SIZES, ids=lambda size: f"{size}MiB")
def large_file(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str]]:
    """A file that is too large, and its media type."""
    size: int = request.param
    file = tmp_path_factory.mktemp("body") / "body"
    file.write_bytes(b" " * (size * MEBIBYTE + 1))
    yield file, KINDS[size]
    file.unlink()


@pytest.mark.parametrize(
    "send",
    [
        send_by_urllib, send_chunks_by_urllib, send_by_requests, send_chunks_by_requests,
        send_by_curl, send_at_once_by_curl, send_chunks_by_curl,
    ],
)  # fmt: skip
def test_http_clients_receive_the_413(server: Server, large_file: tuple[Path, str], send: Send) -> None:
    status, body = send(f"http://127.0.0.1:{server.port}/api/v1/annotate", *large_file)
    assert status == 413
    assert json.loads(body)["status"] == 413


_FETCH = """
const [path, size, kind, done] = arguments;
fetch(path, {method: "POST", headers: {"Content-Type": kind}, body: new Uint8Array(size)})
  .then(async answer => done([answer.status, await answer.text()]), error => done([0, String(error)]));
"""


@pytest.mark.parametrize("size", SIZES)
def test_a_script_in_a_browser_receives_the_413(browser: Browser, size: int) -> None:
    browser.open("/")
    arguments = ("/api/v1/annotate", size * MEBIBYTE + 1, KINDS[size])
    status, body = browser.driver.execute_async_script(_FETCH, *arguments)
    assert (status, json.loads(body or "{}").get("status")) == (413, 413)
    assert all("413" in complaint for complaint in browser.console_errors())


def test_uploading_a_too_large_file_in_a_form_shows_an_error_page(
    browser: Browser, new_url: DatabaseUrlFactory, large_file: tuple[Path, str]
) -> None:
    with Server(new_url("sqlite"), LEXARIUM_UPLOAD_MB="1") as server:
        browser.base_url = f"http://127.0.0.1:{server.port}"
        browser.sign_in(server, "curator", "/import")
        browser.find("input[type=file]").send_keys(str(large_file[0]))
        browser.find("main form").submit()
        browser.wait(lambda: "exceeds 1048576 bytes" in browser.text)
        browser.console_errors()


def test_a_connection_is_reused_after_the_rest_of_a_body_was_discarded(server: Server) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    for _ in range(2):
        connection.request("POST", "/api/v1/annotate", b" " * (11 * MEBIBYTE), {"Content-Type": "text/plain"})
        response = connection.getresponse()
        assert response.status == 413
        response.read()
        original_socket = connection.sock
        connection.request("GET", "/healthz")
        assert (connection.getresponse().read(), connection.sock) == (b'{"status":"ok"}', original_socket)
    connection.close()


@pytest.mark.parametrize("connection", ["close", "keep-alive"])
def test_an_endless_body_is_cut_off(new_url: DatabaseUrlFactory, connection: str) -> None:
    with Server(new_url("sqlite"), LEXARIUM_BODY_SECONDS="3600") as server:
        head = f"POST /api/v1/annotate HTTP/1.1\r\nHost: x\r\nConnection: {connection}\r\nContent-Type: text/plain\r\n"
        with socket.create_connection(("127.0.0.1", server.port), timeout=60) as client:
            client.sendall(f"{head}Content-Length: {1 << 50}\r\n\r\n".encode())
            assert client.recv(65_536).startswith(b"HTTP/1.1 413 ")
            block, max_blocks = b" " * MEBIBYTE, 2_000
            with pytest.raises(ConnectionError):
                for _ in range(max_blocks):
                    client.sendall(block)
