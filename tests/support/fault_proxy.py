"""HTTP proxy that records requests and injects faults."""

import socket
import threading
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, NamedTuple, Self

from tests.support.polling import DEADLINE_SECONDS


class RecordedRequest(NamedTuple):
    method: str
    target: str
    headers: Mapping[str, str]
    # None if no response was sent.
    status: int | None


class FaultProxy:
    """Forward requests to a local port.

    Each request takes the next entry of `faults`; None, or an empty queue, means `default_fault`.
    """

    def __init__(self, port: int | None = None) -> None:
        self.upstream_port = port
        self.faults: deque[Fault | None] = deque()
        self.default_fault: Fault | None = None
        self.requests: list[RecordedRequest] = []

    def __enter__(self) -> Self:
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def handle_one_request(self) -> None:
                with suppress(ConnectionError):
                    super().handle_one_request()

            def log_message(self, format: str, *args: Any) -> None:
                pass

            def _answer(self) -> None:
                fault = proxy.faults.popleft() if proxy.faults else None
                (fault or proxy.default_fault or forward_request)(proxy, self)

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
        return [request.target for request in self.requests]

    def record_request(self, handler: BaseHTTPRequestHandler, status: int | None) -> None:
        headers = {name.lower(): value for name, value in handler.headers.items()}
        self.requests.append(RecordedRequest(handler.command, handler.path, headers, status))

    def forward(self, handler: BaseHTTPRequestHandler) -> tuple[int, list[tuple[str, str]], bytes]:
        assert self.upstream_port is not None
        connection = HTTPConnection("127.0.0.1", self.upstream_port, timeout=DEADLINE_SECONDS)
        try:
            length = int(handler.headers.get("Content-Length") or 0)
            connection.request(handler.command, handler.path, handler.rfile.read(length), dict(handler.headers))
            response = connection.getresponse()
            return response.status, response.getheaders(), response.read()
        finally:
            connection.close()


Fault = Callable[[FaultProxy, BaseHTTPRequestHandler], None]


def forward_request(proxy: FaultProxy, handler: BaseHTTPRequestHandler) -> None:
    _reply(proxy, handler, *proxy.forward(handler))


def drop_connection(proxy: FaultProxy, handler: BaseHTTPRequestHandler) -> None:
    """Close the connection without forwarding the request."""
    proxy.record_request(handler, None)
    _close_connection(handler)


def forward_then_drop(proxy: FaultProxy, handler: BaseHTTPRequestHandler) -> None:
    """Forward the request, then close the connection without a reply."""
    proxy.forward(handler)
    proxy.record_request(handler, None)
    _close_connection(handler)


def truncate_body(proxy: FaultProxy, handler: BaseHTTPRequestHandler) -> None:
    """Close the connection in the middle of the response."""
    status, headers, body = proxy.forward(handler)
    proxy.record_request(handler, status)
    handler.send_response(status)
    for name, value in headers:
        if name.lower() not in ("transfer-encoding", "content-length"):
            handler.send_header(name, value)
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body[: len(body) // 2])
    _close_connection(handler)


def reply_with(status: int, body: bytes = b"", **headers: str) -> Fault:
    """Return a fault that replies without forwarding."""

    def reply(proxy: FaultProxy, handler: BaseHTTPRequestHandler) -> None:
        handler.rfile.read(int(handler.headers.get("Content-Length") or 0))
        _reply(proxy, handler, status, [(name.replace("_", "-"), value) for name, value in headers.items()], body)

    return reply


def send_endless_body(proxy: FaultProxy, handler: BaseHTTPRequestHandler) -> None:
    """Send a body that never ends."""
    proxy.record_request(handler, 200)
    handler.send_response(200)
    handler.send_header("Content-Type", "application/json")
    handler.end_headers()
    handler.close_connection = True
    with suppress(ConnectionError):
        handler.wfile.write(b"[")
        while True:
            handler.wfile.write(b" " * (1 << 20))


def _reply(
    proxy: FaultProxy, handler: BaseHTTPRequestHandler, status: int, headers: list[tuple[str, str]], body: bytes
) -> None:
    proxy.record_request(handler, status)
    handler.send_response_only(status)
    for name, value in headers:
        if name.lower() not in ("transfer-encoding", "content-length", "connection"):
            handler.send_header(name, value)
    if status != 304:
        handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body)


def _close_connection(handler: BaseHTTPRequestHandler) -> None:
    handler.close_connection = True
    handler.wfile.flush()
    with suppress(OSError):
        handler.connection.shutdown(socket.SHUT_RDWR)
