"""Complete responses, prebuilt for the fast path."""

from collections.abc import Sequence
from typing import Any

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from lexarium.web.http.encodings import Header


class RawResponse:
    """A complete response, prebuilt as ASGI messages and as bytes on the wire. An ASGI application."""

    __slots__ = ("body", "body_message", "header_bytes", "headers", "start_message", "status")

    def __init__(self, status: int, headers: Sequence[Header], body: bytes) -> None:
        self.status = status
        self.body = body
        self.headers = headers
        self.start_message: dict[str, Any] = {"type": "http.response.start", "status": status, "headers": headers}
        self.body_message: dict[str, Any] = {"type": "http.response.body", "body": body}
        self.header_bytes = b"".join(b"%b: %b\r\n" % header for header in headers) + b"\r\n"

    @classmethod
    def from_response(cls, response: Response) -> "RawResponse":
        """Prebuild a response of the framework."""
        return cls(response.status_code, response.raw_headers, bytes(response.body))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send(self.start_message)
        await send(self.body_message)

    def with_header(self, header: Header) -> "RawResponse":
        """Return a copy with one more header."""
        return RawResponse(self.status, [*self.headers, header], self.body)
