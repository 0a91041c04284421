"""uvicorn protocol that writes prebuilt responses directly, and enforces limits and timeouts.

For a prebuilt response, uvicorn's task, coroutine and header checks cost more than everything else (measured: twice the
requests a second without them). Other servers send the same responses through ASGI.

Further differences from uvicorn's own protocol:

- Timeouts for request headers, and for clients that stop reading the response.
- Invalid HTTP is answered with a problem document instead of plain text.
- The application sees a disconnect even if the client had pipelined another request.
- At shutdown idle connections stay open for a moment, since a request may be on its way.
- Limits for the size of headers and the number of connections; a Host header is required.
- If a body was not read, the connection is closed in two steps: the response is sent, then what the client still sends
  is discarded, up to a number of bytes and seconds. Otherwise the client could not read the response.
"""

import asyncio
import math
import socket
import struct
from functools import lru_cache
from typing import Any, NoReturn, cast

from uvicorn._types import ASGI3Application
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from lexarium.web.http.limits import FREE_BODY_BYTES, BodyMemory
from lexarium.web.http.problems import HTTPProblem, problem_response
from lexarium.web.http.streaming import EventStreams
from lexarium.web.middleware.fast_path import FastPath

_SHUTDOWN_GRACE_SECONDS = 0.5
# The URL parser accepts no more.
_MAX_URL_BYTES = 65_535
# Trailers count as headers in both limits.
_MAX_HEADERS = 100
_MAX_HEADER_BYTES = 65_536
# Each pipelined request takes about a kibibyte.
_MAX_PIPELINED = 100
_MAX_DISCARDED_BYTES = 512 << 20
# Value of SO_LINGER that closes a socket at once.
_LINGER_ZERO = struct.pack("ii", 1, 0)


class FastPathProtocol(HttpToolsProtocol):
    """Write the prebuilt response of a request as soon as it is read; pass other requests to the application."""

    url = b""
    # The request that is being answered; uvicorn's `cycle` is the last that was received.
    _active_cycle: RequestResponseCycle | None = None
    _is_reading_headers = False
    # Until the body and its trailers are received completely.
    _is_reading_body = False
    # Size of headers or trailers received so far, without the first chunk of data.
    _received_header_bytes = 0
    _discarded_bytes = 0
    # Reason to refuse the request that is being parsed.
    _problem: HTTPProblem | None = None
    # All is answered; what still arrives is discarded until the client closes the connection.
    _is_lingering = False
    _is_shutting_down = False
    # Whether the next request may have arrived after this round of the event loop began, since it is not the first that
    # was read from the connection.
    _may_be_later = False
    # Whether this round has read so much that it may read once more.
    _has_read_much = False
    _header_timer: asyncio.TimerHandle | None = None
    _read_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._reservation: dict[str, Any] = {}
        if len(self.connections) > self.app_state.get("connections", math.inf):
            self._send_problem(HTTPProblem(503, "Too many open connections; try again in a few seconds."))
            self.transport.close()
        else:
            self._start_header_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        self._release_headers()
        self._cancel_header_timer()
        self._cancel_read_timer()
        if self._active_cycle is not None and not self._active_cycle.response_complete:
            self._active_cycle.disconnected = True
            self._active_cycle.message_event.set()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        # A line break before a request may have arrived long before it.
        self._may_be_later = self._has_read_much or data[0] in b"\r\n"
        if len(data) <= FREE_BODY_BYTES:
            self._receive(data)
            return
        if not self._has_read_much:
            self._has_read_much = self._may_be_later = True
            self.loop.call_soon(self._end_round)
        for start in range(0, len(data), FREE_BODY_BYTES):
            self._receive(data[start : start + FREE_BODY_BYTES])
            if self.transport.is_closing():
                break

    def _end_round(self) -> None:
        self._has_read_much = False

    def _receive(self, data: bytes) -> None:
        if self._is_lingering:
            self._discard(len(data))
            return
        self._received_header_bytes += len(data)
        super().data_received(data)
        if self._received_header_bytes:
            self._check_partial_headers()
        if len(self.pipeline) > _MAX_PIPELINED:
            self.transport.close()
        if self._header_timer is None and (
            # Otherwise a client could stay forever by sending line breaks, or the rest of a body already answered.
            self._is_reading_headers or (self.timeout_keep_alive_task is None and self._is_idle())
        ):
            self._start_header_timer()

    def _check_partial_headers(self) -> None:
        """Refuse a request whose incomplete headers or trailers are already too large."""
        if self._is_lingering or not (self._is_reading_headers or self._is_reading_body):
            return
        try:
            if self._received_header_bytes - len(self.url) > _MAX_HEADER_BYTES or len(self.headers) > _MAX_HEADERS:
                raise _build_header_limit_problem()
            body_memory: BodyMemory | None = self.app_state.get("bodies")
            if body_memory is not None:
                body_memory.reserve(self._reservation, self._received_header_bytes + FREE_BODY_BYTES)
        except HTTPProblem as problem:
            self._reject(problem)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._start_read_timer()

    def resume_writing(self) -> None:
        self._cancel_read_timer()
        super().resume_writing()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._is_reading_headers = True
        self._received_header_bytes = 0

    def on_url(self, url: bytes) -> None:
        super().on_url(url)
        if len(self.url) > _MAX_URL_BYTES:
            self._abort_parsing(HTTPProblem(414, f"URL exceeds {_MAX_URL_BYTES} bytes."))

    def on_headers_complete(self) -> None:
        if self._received_header_bytes or len(self.headers) > _MAX_HEADERS:
            self._check_header_size()
        self._is_reading_headers = False
        self._cancel_header_timer()
        super().on_headers_complete()
        self._is_reading_body = True
        self.headers = self.headers.copy()  # Trailers must not become headers of the request.

    def on_body(self, body: bytes) -> None:
        self._received_header_bytes = 0
        if self.cycle.response_complete:
            self._discard(len(body))
        else:
            super().on_body(body)

    def on_message_complete(self) -> None:
        if self._received_header_bytes or len(self.headers) > _MAX_HEADERS:
            self._check_header_size()
        self._is_reading_body = False
        self._may_be_later = True
        if self._discarded_bytes:
            self._discarded_bytes = 0
            self._cancel_header_timer()
            self._unset_keepalive_if_required()
            self.timeout_keep_alive_task = self.loop.call_later(
                self.timeout_keep_alive, self.timeout_keep_alive_handler
            )
        if not self.cycle.response_complete:
            super().on_message_complete()

    def on_response_complete(self) -> None:
        self._release_headers()
        if not self._is_lingering:
            super().on_response_complete()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        cycle.keep_alive = cycle.keep_alive and not self._is_shutting_down
        version = cycle.scope["http_version"]
        host_count = [name for name, _ in cycle.scope["headers"]].count(b"host")
        if version not in ("1.1", "1.0") or (host_count != 1 and (host_count or version == "1.1")):
            detail = "An HTTP/1.1 request needs exactly one Host header, and an HTTP/1.0 request at most one."
            app = cast("ASGI3Application", problem_response(HTTPProblem(400, detail), {"connection": "close"}))
        # A slow reader or pipelined requests need the flow control of a task.
        if isinstance(app, FastPath) and cycle.keep_alive and not self.flow.write_paused and not self.pipeline:
            # To end a round costs more than to look for changes, so there must be others to share that with.
            in_round = len(self.connections) > 1 and not self._may_be_later
            response = app.find_response(cycle.scope, in_round=in_round)
            if response is not None:
                default_headers = _join_headers(tuple(cycle.default_headers))
                head = STATUS_LINE[response.status] + default_headers + response.header_bytes
                has_body = response.body and cycle.scope["method"] != "HEAD"
                # One system call for both. An empty part would keep the transport of asyncio busy for ever.
                self.transport.writelines((head, response.body) if has_body else (head,))
                cycle.response_started = cycle.response_complete = True
                if self._reservation:
                    self._release_headers()
                super().on_response_complete()
                return
        self._active_cycle = cycle
        cycle.transport = _LingeringTransport(self)  # type: ignore[assignment]
        super()._start_asgi_task(cycle, app)

    def shutdown(self) -> None:
        """Shut down gracefully: end event streams at once, and idle connections with their next response.

        A request may be on its way on an idle connection, and would be lost if it were closed at once.
        """
        event_streams: EventStreams | None = self.app_state.get("streams")
        if event_streams is not None:
            event_streams.close()
        if self.cycle is None or self.cycle.response_complete:
            self._is_shutting_down = True
            self.loop.call_later(_SHUTDOWN_GRACE_SECONDS, super().shutdown)
        else:
            super().shutdown()

    def send_400_response(self, msg: str) -> None:
        """Refuse a request that could not be parsed."""
        self._reject(self._problem or HTTPProblem(400, "Malformed HTTP/1.1 request."))

    def close(self) -> None:
        """Close the connection after the client had the chance to read the response."""
        if self._is_reading_body and not self.transport.is_closing():
            self._linger()
        else:
            self.transport.close()

    def _check_header_size(self) -> None:
        size = sum(len(name) + len(value) + 4 for name, value in self.headers)
        if size > _MAX_HEADER_BYTES or len(self.headers) > _MAX_HEADERS:
            self._abort_parsing(_build_header_limit_problem())

    def _abort_parsing(self, problem: HTTPProblem) -> NoReturn:
        """Stop the parser, which then calls `send_400_response`."""
        self._problem = problem
        raise problem

    def _release_headers(self) -> None:
        if self._reservation:
            self.app_state["bodies"].release(self._reservation)

    def _linger(self) -> None:
        self._is_lingering = True
        self._cancel_header_timer()
        self._unset_keepalive_if_required()
        self.flow.resume_reading()
        self.transport.write_eof()
        self._header_timer = self.loop.call_later(self.app_state.get("body_seconds", 0), self.transport.abort)

    def _discard(self, size: int) -> None:
        self._discarded_bytes += size
        if self._discarded_bytes > _MAX_DISCARDED_BYTES:
            self.transport.abort()

    def _start_header_timer(self) -> None:
        seconds = self.app_state.get("body_seconds")
        if seconds is not None:
            self._header_timer = self.loop.call_later(seconds, self._on_header_timeout)

    def _cancel_header_timer(self) -> None:
        if self._header_timer is not None:
            self._header_timer.cancel()
            self._header_timer = None

    def _on_header_timeout(self) -> None:
        self._header_timer = None
        if not self._is_idle():
            self._start_header_timer()  # A pipelined request has to wait.
        else:
            if self._is_reading_headers:
                self._send_problem(HTTPProblem(408, "Request headers timed out."))
            self.transport.close()

    def _start_read_timer(self) -> None:
        """Give a slow reader some time, and more as long as it has read something by then."""
        seconds = self.app_state.get("body_seconds")
        if seconds is not None:
            self._read_timer = self.loop.call_later(
                seconds, self._on_read_timeout, self.transport.get_write_buffer_size()
            )

    def _cancel_read_timer(self) -> None:
        if self._read_timer is not None:
            self._read_timer.cancel()
            self._read_timer = None

    def _on_read_timeout(self, unsent_before: int) -> None:
        if self.transport.get_write_buffer_size() < unsent_before:
            self._start_read_timer()
        else:
            # Otherwise the kernel would keep offering its buffer to a client that takes nothing.
            connection: socket.socket = self.transport.get_extra_info("socket")
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_ZERO)
            self.transport.abort()

    def _reject(self, problem: HTTPProblem) -> None:
        """Respond with a problem, unless another response is being sent, and close the connection."""
        cycle = self._active_cycle
        if cycle is not None and cycle is self.cycle and self._is_reading_body and not cycle.response_started:
            # The application waits for the rest of this body: simulate a disconnect.
            cycle.disconnected = cycle.response_complete = True
            cycle.message_event.set()
        if self._is_idle():
            self._send_problem(problem)
            self._linger()
        else:
            self.transport.close()

    def _send_problem(self, problem: HTTPProblem) -> None:
        response = problem_response(problem, {"connection": "close"})
        header_block = _join_headers((*self.server_state.default_headers, *response.raw_headers))
        self.transport.write(STATUS_LINE[problem.status] + header_block + b"\r\n" + bytes(response.body))

    def _is_idle(self) -> bool:
        """Return whether no response is being sent, so that another may be written."""
        return self._active_cycle is None or self._active_cycle.response_complete


class _LingeringTransport:
    """Transport for the cycle of one request: closing it leaves the client time to read the response."""

    def __init__(self, protocol: FastPathProtocol) -> None:
        self.write = protocol.transport.write
        self.is_closing = protocol.transport.is_closing
        self.close = protocol.close


@lru_cache(maxsize=2)
def _join_headers(headers: tuple[tuple[bytes, bytes], ...]) -> bytes:
    # Cached, because the default headers change only once a second.
    return b"".join(b"%b: %b\r\n" % header for header in headers)


def _build_header_limit_problem() -> HTTPProblem:
    limit = f"{_MAX_HEADERS} headers with {_MAX_HEADER_BYTES} bytes"
    return HTTPProblem(431, f"Request exceeds {limit}, including trailers.")
