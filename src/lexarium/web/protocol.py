"""uvicorn's HTTP protocol, with a shorter way for finished replies, and with more patience and less.

A task, a coroutine and a header-by-header check cost uvicorn more than everything else about a finished reply
(measured: twice the requests a second without them). Under another server the same replies go the usual way, through
ASGI.

uvicorn waits without end for the headers of a request and for a client that reads nothing of its answer, answers what
is no HTTP in plain text, does not tell the application that a client has left which had sent another request meanwhile,
and when it ends closes connections on which a request may just be coming. All five are mended here.

uvicorn also limits neither the size of headers nor the number of connections, accepts requests without a Host header,
and closes a connection before its client can read the answer to a body that was not read. Here all of these have a
limit, and a connection is closed in two steps: the answer is sent, then what the client still sends is discarded, up to
a number of bytes and seconds.
"""

import asyncio
import math
import socket
import struct
from functools import lru_cache
from typing import Any, NoReturn, cast

from uvicorn._types import ASGI3Application
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from lexarium.web.fastpath import FastPath
from lexarium.web.limits import UNCOUNTED_BYTES, Bodies
from lexarium.web.problems import HttpProblem, respond
from lexarium.web.streams import Streams

_LAST_WORD_SECONDS = 0.5
"""How long a connection that is idle stays open when the server ends."""
_LONGEST_ADDRESS = 65_535
"""In bytes; the parser of addresses takes no more."""
_MOST_HEADERS = 100
_MOST_HEADER_BYTES = 65_536
"""Trailers count as headers, in both limits."""
_MOST_PIPELINED = 100
"""How many requests of a connection may wait for the one before them. Each takes about a kibibyte."""
_MOST_DISCARDED_BYTES = 512 << 20
"""How much of a body is discarded after its request was answered, before the connection is broken off."""
_AT_ONCE = struct.pack("ii", 1, 0)
"""How a socket is told to be closed without waiting for anything."""


class FinishedReplies(HttpToolsProtocol):
    """Writes a finished reply to the connection as soon as its request is read."""

    url = b""
    _running: RequestResponseCycle | None = None
    """The request that is being answered; uvicorn itself knows only the last that came."""
    _reading_headers = False
    _reading_body = False
    """Whether a body, or the trailers after it, has not been received completely."""
    _head_bytes = 0
    """How much of headers or trailers has been received, not counting the first piece of data."""
    _discarded_bytes = 0
    _problem: HttpProblem | None = None
    """Why the request that is being parsed is refused."""
    _is_lingering = False
    """Whether all has been answered, and what still comes is discarded until the client closes the connection."""
    _ending = False
    _headers_due: asyncio.TimerHandle | None = None
    _reader_due: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._held: dict[str, Any] = {}
        if len(self.connections) > self.app_state.get("connections", math.inf):
            self._answer(HttpProblem(503, "The server has too many open connections. Try again in a moment."))
            self.transport.close()
        else:
            self._await_headers()

    def connection_lost(self, exc: Exception | None) -> None:
        self._release_headers()
        self._stop_awaiting()
        self._stop_awaiting_reader()
        if self._running is not None and not self._running.response_complete:
            self._running.disconnected = True
            self._running.message_event.set()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._is_lingering:
            self._discard(len(data))
            return
        if len(data) <= UNCOUNTED_BYTES:
            self._head_bytes += len(data)
            super().data_received(data)
            if self._head_bytes:
                self._check_incomplete()
            if len(self.pipeline) > _MOST_PIPELINED:
                self.transport.close()
        else:
            for start in range(0, len(data), UNCOUNTED_BYTES):
                self.data_received(data[start : start + UNCOUNTED_BYTES])
                if self.transport.is_closing():
                    break
            return
        if self._headers_due is None and (
            # Else whoever sends line breaks, or the rest of a body that was answered already, could stay for ever.
            self._reading_headers or (self.timeout_keep_alive_task is None and self._idle())
        ):
            self._await_headers()

    def _check_incomplete(self) -> None:
        """Refuse a request whose headers, or trailers, are not complete and already too large."""
        if self._is_lingering or not (self._reading_headers or self._reading_body):
            return
        try:
            if self._head_bytes - len(self.url) > _MOST_HEADER_BYTES or len(self.headers) > _MOST_HEADERS:
                raise _too_large_headers()
            bodies: Bodies | None = self.app_state.get("bodies")
            if bodies is not None:
                bodies.hold(self._held, self._head_bytes + UNCOUNTED_BYTES)
        except HttpProblem as problem:
            self._refuse(problem)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._await_reader()

    def resume_writing(self) -> None:
        self._stop_awaiting_reader()
        super().resume_writing()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._reading_headers = True
        self._head_bytes = 0

    def on_url(self, url: bytes) -> None:
        super().on_url(url)
        if len(self.url) > _LONGEST_ADDRESS:
            self._fail(HttpProblem(414, f"The address must have at most {_LONGEST_ADDRESS} bytes."))

    def on_headers_complete(self) -> None:
        if self._head_bytes or len(self.headers) > _MOST_HEADERS:
            self._check_header_size()
        self._reading_headers = False
        self._stop_awaiting()
        super().on_headers_complete()
        self._reading_body = True
        self.headers = self.headers.copy()  # for trailers, which must not become headers of the request

    def on_body(self, body: bytes) -> None:
        self._head_bytes = 0
        if self.cycle.response_complete:
            self._discard(len(body))
        else:
            super().on_body(body)

    def on_message_complete(self) -> None:
        if self._head_bytes or len(self.headers) > _MOST_HEADERS:
            self._check_header_size()
        self._reading_body = False
        if self._discarded_bytes:
            self._discarded_bytes = 0
            self._stop_awaiting()
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
        cycle.keep_alive = cycle.keep_alive and not self._ending
        version = cycle.scope["http_version"]
        hosts = [name for name, _ in cycle.scope["headers"]].count(b"host")
        if version not in ("1.1", "1.0") or (hosts != 1 and (hosts or version == "1.1")):
            detail = "An HTTP/1.1 request needs exactly one Host header, and an HTTP/1.0 request at most one."
            app = cast("ASGI3Application", respond(HttpProblem(400, detail), {"connection": "close"}))
        # Not to a reader that is slow, nor before requests that wait: those need the task's patience.
        if isinstance(app, FastPath) and cycle.keep_alive and not self.flow.write_paused and not self.pipeline:
            reply = app.finished(cycle.scope)
            if reply is not None:
                self.transport.write(STATUS_LINE[reply.status] + _join(tuple(cycle.default_headers)) + reply.head)
                if reply.body and cycle.scope["method"] != "HEAD":
                    self.transport.write(reply.body)
                cycle.response_started = cycle.response_complete = True
                if self._held:
                    self._release_headers()
                super().on_response_complete()
                return
        self._running = cycle
        cycle.transport = _LingeringTransport(self)  # type: ignore[assignment]
        super()._start_asgi_task(cycle, app)

    def shutdown(self) -> None:
        """End gracefully: at once what would go on for ever, and what is idle with the next answer.

        A request may be on its way on a connection that is idle, and would be lost if that were closed at once.
        """
        streams: Streams | None = self.app_state.get("streams")
        if streams is not None:
            streams.end()
        if self.cycle is None or self.cycle.response_complete:
            self._ending = True
            self.loop.call_later(_LAST_WORD_SECONDS, super().shutdown)
        else:
            super().shutdown()

    def send_400_response(self, msg: str) -> None:
        """Answer a request whose parsing has failed."""
        self._refuse(self._problem or HttpProblem(400, "The request is not valid HTTP/1.1."))

    def close(self) -> None:
        """Close the connection once the client has had the chance to read what was answered."""
        if self._reading_body and not self.transport.is_closing():
            self._linger()
        else:
            self.transport.close()

    def _check_header_size(self) -> None:
        size = sum(len(name) + len(value) + 4 for name, value in self.headers)
        if size > _MOST_HEADER_BYTES or len(self.headers) > _MOST_HEADERS:
            self._fail(_too_large_headers())

    def _fail(self, problem: HttpProblem) -> NoReturn:
        """Stop the parser, which then calls `send_400_response`."""
        self._problem = problem
        raise problem

    def _release_headers(self) -> None:
        if self._held:
            self.app_state["bodies"].let_go(self._held)

    def _linger(self) -> None:
        self._is_lingering = True
        self._stop_awaiting()
        self._unset_keepalive_if_required()
        self.flow.resume_reading()
        self.transport.write_eof()
        self._headers_due = self.loop.call_later(self.app_state.get("body_seconds", 0), self.transport.abort)

    def _discard(self, size: int) -> None:
        self._discarded_bytes += size
        if self._discarded_bytes > _MOST_DISCARDED_BYTES:
            self.transport.abort()

    def _await_headers(self) -> None:
        seconds = self.app_state.get("body_seconds")
        if seconds is not None:
            self._headers_due = self.loop.call_later(seconds, self._headers_late)

    def _stop_awaiting(self) -> None:
        if self._headers_due is not None:
            self._headers_due.cancel()
            self._headers_due = None

    def _headers_late(self) -> None:
        self._headers_due = None
        if not self._idle():
            self._await_headers()  # a request that was sent ahead: its turn has not come
        elif self._reading_headers:
            self._answer(HttpProblem(408, "The headers took too long."))
            self.transport.close()
        else:
            self.transport.close()

    def _await_reader(self) -> None:
        """Give a client who is slow to read some time; more, as long as it has read something by then."""
        seconds = self.app_state.get("body_seconds")
        if seconds is not None:
            self._reader_due = self.loop.call_later(seconds, self._reader_late, self._unread())

    def _stop_awaiting_reader(self) -> None:
        if self._reader_due is not None:
            self._reader_due.cancel()
            self._reader_due = None

    def _reader_late(self, before: int) -> None:
        if self._unread() < before:
            self._await_reader()
        else:
            # Otherwise the system would go on offering what it has already, to a client who takes nothing.
            connection: socket.socket = self.transport.get_extra_info("socket")
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _AT_ONCE)
            self.transport.abort()

    def _unread(self) -> int:
        return self.transport.get_write_buffer_size()

    def _refuse(self, problem: HttpProblem) -> None:
        """Answer with a problem, if no other answer is being sent, and close the connection."""
        cycle = self._running
        if cycle is not None and cycle is self.cycle and self._reading_body and not cycle.response_started:
            # The application waits for the rest of this body. It is told that there is no client any more.
            cycle.disconnected = cycle.response_complete = True
            cycle.message_event.set()
        if self._idle():
            self._answer(problem)
            self._linger()
        else:
            self.transport.close()

    def _answer(self, problem: HttpProblem) -> None:
        reply = respond(problem, {"connection": "close"})
        head = _join((*self.server_state.default_headers, *reply.raw_headers))
        self.transport.write(STATUS_LINE[problem.status] + head + b"\r\n" + bytes(reply.body))

    def _idle(self) -> bool:
        """Whether no answer is being sent, into the midst of which another must not be written."""
        return self._running is None or self._running.response_complete


class _LingeringTransport:
    """The transport as the cycle of one request sees it: closing it leaves the client time to read the answer."""

    def __init__(self, protocol: FinishedReplies) -> None:
        self.write = protocol.transport.write
        self.is_closing = protocol.transport.is_closing
        self.close = protocol.close


@lru_cache(maxsize=2)
def _join(headers: tuple[tuple[bytes, bytes], ...]) -> bytes:
    """Write headers as bytes; those of every answer change only once a second."""
    return b"".join(b"%b: %b\r\n" % header for header in headers)


def _too_large_headers() -> HttpProblem:
    limit = f"{_MOST_HEADERS} headers with {_MOST_HEADER_BYTES} bytes"
    return HttpProblem(431, f"The request must have at most {limit}, trailers included.")
