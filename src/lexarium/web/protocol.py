"""uvicorn's HTTP protocol, with a shorter way for finished replies, and with more patience and less.

A task, a coroutine and a header-by-header check cost uvicorn more than everything else about a finished reply
(measured: twice the requests a second without them). Under another server the same replies go the usual way, through
ASGI.

uvicorn waits without end for the headers of a request and for a client that reads nothing of its answer, answers what
is no HTTP in plain text, does not tell the application that a client has left which had sent another request meanwhile,
and when it ends closes connections on which a request may just be coming. All five are mended here.
"""

import asyncio
import socket
import struct

from uvicorn._types import ASGI3Application
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from lexarium.web.fastpath import FastPath
from lexarium.web.problems import HttpProblem, respond
from lexarium.web.streams import Streams

_LAST_WORD_SECONDS = 0.5
"""How long a connection that is idle stays open when the server ends."""
_LONGEST_ADDRESS = 65_535
"""In bytes; the parser of addresses takes no more."""
_AT_ONCE = struct.pack("ii", 1, 0)
"""How a socket is told to be closed without waiting for anything."""


class FinishedReplies(HttpToolsProtocol):
    """Writes a finished reply to the connection as soon as its request is read."""

    url = b""
    _running: RequestResponseCycle | None = None
    """The request that is being answered; uvicorn itself knows only the last that came."""
    _reading_headers = False
    _ending = False
    _headers_due: asyncio.TimerHandle | None = None
    _reader_due: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._await_headers()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_awaiting()
        self._stop_awaiting_reader()
        if self._running is not None and not self._running.response_complete:
            self._running.disconnected = True
            self._running.message_event.set()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._reading_headers and self._headers_due is None:
            self._await_headers()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._await_reader()

    def resume_writing(self) -> None:
        self._stop_awaiting_reader()
        super().resume_writing()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._reading_headers = True

    def on_url(self, url: bytes) -> None:
        super().on_url(url)
        if len(self.url) > _LONGEST_ADDRESS:
            raise ValueError("The address is too long.")  # ends the parsing: `send_400_response` answers

    def on_headers_complete(self) -> None:
        self._reading_headers = False
        self._stop_awaiting()
        super().on_headers_complete()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        cycle.keep_alive = cycle.keep_alive and not self._ending
        # Not to a reader that is slow, nor before requests that wait: those need the task's patience.
        if isinstance(app, FastPath) and cycle.keep_alive and not self.flow.write_paused and not self.pipeline:
            reply = app.finished(cycle.scope)
            if reply is not None:
                dated = b"".join(b"%b: %b\r\n" % header for header in cycle.default_headers)
                self.transport.write(STATUS_LINE[reply.status] + dated + reply.head)
                if reply.body and cycle.scope["method"] != "HEAD":
                    self.transport.write(reply.body)
                cycle.response_started = cycle.response_complete = True
                cycle.on_response()
                return
        self._running = cycle
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
        """Refuse what is no HTTP, or too long an address."""
        if len(self.url) > _LONGEST_ADDRESS:
            self._refuse(414, f"The address must have at most {_LONGEST_ADDRESS} bytes.")
        else:
            self._refuse(400, "This is not a request of HTTP/1.1 that can be read.")

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
            self._refuse(408, "The headers took too long.")
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

    def _refuse(self, status: int, detail: str) -> None:
        if self._idle():
            reply = respond(HttpProblem(status, detail, {"connection": "close"}))
            headers = [*self.server_state.default_headers, *reply.raw_headers]
            head = b"".join(b"%b: %b\r\n" % header for header in headers)
            self.transport.write(STATUS_LINE[status] + head + b"\r\n" + bytes(reply.body))
        self.transport.close()

    def _idle(self) -> bool:
        """Whether no answer is being sent, into the midst of which another must not be written."""
        return self._running is None or self._running.response_complete
