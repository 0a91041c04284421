"""A server between a client and a real one, or in place of it: it counts what is asked, and misbehaves when told to."""

import socket
import threading
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, NamedTuple, Self

from tests.waiting import DEADLINE


class Asked(NamedTuple):
    method: str
    target: str
    headers: Mapping[str, str]
    status: int | None
    """What was answered; None: nothing."""


class GoBetween:
    """Passes requests on to a port of this machine. Each fault in `faults` is what one request gets instead.

    None there is what `every` says, as for all requests after them.
    """

    def __init__(self, port: int | None = None) -> None:
        self.port_behind = port
        self.faults: deque[Fault | None] = deque()
        self.every: Fault | None = None
        self.asked: list[Asked] = []

    def __enter__(self) -> Self:
        between = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def handle_one_request(self) -> None:
                with suppress(ConnectionError):
                    super().handle_one_request()

            def log_message(self, format: str, *args: Any) -> None:
                pass

            def _answer(self) -> None:
                fault = between.faults.popleft() if between.faults else None
                (fault or between.every or passed_on)(between, self)

            do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _answer  # noqa: N815

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._server.block_on_close = False
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, args=[0.01], daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def targets(self) -> list[str]:
        return [each.target for each in self.asked]

    def note(self, handler: BaseHTTPRequestHandler, status: int | None) -> None:
        headers = {name.lower(): value for name, value in handler.headers.items()}
        self.asked.append(Asked(handler.command, handler.path, headers, status))

    def forward(self, handler: BaseHTTPRequestHandler) -> tuple[int, list[tuple[str, str]], bytes]:
        assert self.port_behind is not None
        connection = HTTPConnection("127.0.0.1", self.port_behind, timeout=DEADLINE)
        try:
            length = int(handler.headers.get("Content-Length") or 0)
            connection.request(handler.command, handler.path, handler.rfile.read(length), dict(handler.headers))
            answer = connection.getresponse()
            return answer.status, answer.getheaders(), answer.read()
        finally:
            connection.close()


Fault = Callable[[GoBetween, BaseHTTPRequestHandler], None]


def passed_on(between: GoBetween, handler: BaseHTTPRequestHandler) -> None:
    _reply(between, handler, *between.forward(handler))


def dropped(between: GoBetween, handler: BaseHTTPRequestHandler) -> None:
    """The connection ends before anything is done."""
    between.note(handler, None)
    _hang_up(handler)


def done_and_dropped(between: GoBetween, handler: BaseHTTPRequestHandler) -> None:
    """What was asked is done, but the answer never comes."""
    between.forward(handler)
    between.note(handler, None)
    _hang_up(handler)


def halved(between: GoBetween, handler: BaseHTTPRequestHandler) -> None:
    """The connection ends in the middle of the answer."""
    status, headers, body = between.forward(handler)
    between.note(handler, status)
    handler.send_response(status)
    for name, value in headers:
        if name.lower() not in ("transfer-encoding", "content-length"):
            handler.send_header(name, value)
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body[: len(body) // 2])
    _hang_up(handler)


def answering(status: int, body: bytes = b"", **headers: str) -> Fault:
    """An answer that comes from here."""

    def answer(between: GoBetween, handler: BaseHTTPRequestHandler) -> None:
        handler.rfile.read(int(handler.headers.get("Content-Length") or 0))
        _reply(between, handler, status, [(name.replace("_", "-"), value) for name, value in headers.items()], body)

    return answer


def endless(between: GoBetween, handler: BaseHTTPRequestHandler) -> None:
    """A body without an end."""
    between.note(handler, 200)
    handler.send_response(200)
    handler.send_header("Content-Type", "application/json")
    handler.end_headers()
    handler.close_connection = True
    with suppress(ConnectionError):
        handler.wfile.write(b"[")
        while True:
            handler.wfile.write(b" " * (1 << 20))


def _reply(
    between: GoBetween, handler: BaseHTTPRequestHandler, status: int, headers: list[tuple[str, str]], body: bytes
) -> None:
    between.note(handler, status)
    handler.send_response_only(status)
    for name, value in headers:
        if name.lower() not in ("transfer-encoding", "content-length", "connection"):
            handler.send_header(name, value)
    if status != 304:
        handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body)


def _hang_up(handler: BaseHTTPRequestHandler) -> None:
    handler.close_connection = True
    handler.wfile.flush()
    with suppress(OSError):
        handler.connection.shutdown(socket.SHUT_RDWR)
