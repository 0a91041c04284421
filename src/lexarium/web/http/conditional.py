"""Conditional requests: ETags, If-None-Match, prebuilt responses."""

from collections.abc import Mapping, Sequence
from typing import Any

from starlette.types import Send

from lexarium.domain import rendering
from lexarium.store.position import Position
from lexarium.web.http.encodings import Header


class RawResponse:
    """A whole response: as messages for an ASGI server, and as the bytes that go on the wire."""

    __slots__ = ("body", "body_message", "header_bytes", "headers", "start_message", "status")

    def __init__(self, status: int, headers: Sequence[Header], body: bytes) -> None:
        self.status = status
        self.body = body
        self.headers = headers
        self.start_message: dict[str, Any] = {"type": "http.response.start", "status": status, "headers": headers}
        self.body_message: dict[str, Any] = {"type": "http.response.body", "body": body}
        self.header_bytes = b"".join(b"%b: %b\r\n" % header for header in headers) + b"\r\n"
        """Its headers as they go on the wire, and the empty line after them."""

    async def send_to(self, send: Send) -> None:
        """Send it as ASGI messages."""
        await send(self.start_message)
        await send(self.body_message)

    def with_header(self, header: Header) -> "RawResponse":
        """The same with one more header."""
        return RawResponse(self.status, [*self.headers, header], self.body)


def build_etag(position: Position, encoding: str) -> bytes:
    """The strong validator of every answer read at a position and sent in an encoding."""
    return b'"%b-%d-%d-%b"' % (
        position.epoch.encode(),
        position.revision,
        rendering.RENDERING_VERSION,
        encoding.encode(),
    )


def etag_matches(etag: bytes, if_none_match: bytes) -> bool:
    """Whether `If-None-Match` names this validator (or any)."""
    if if_none_match == etag:
        return True
    etags = [part.strip() for part in if_none_match.split(b",")]
    return etags == [b"*"] or any(part.removeprefix(b"W/") == etag for part in etags)


def read_conditional_headers(scope: Mapping[str, Any]) -> tuple[bytes, bytes | None, bytes | None]:
    """A request's `Accept-Encoding`, and its `If-None-Match` and its `X-Request-ID` if it has them."""
    accept_encoding, if_none_match, request_id = b"", None, None
    for name, value in scope["headers"]:
        if name == b"accept-encoding":
            accept_encoding = value if not accept_encoding else accept_encoding + b"," + value
        elif name == b"if-none-match":
            if_none_match = value if if_none_match is None else if_none_match + b"," + value
        elif name == b"x-request-id":
            request_id = value
    return accept_encoding, if_none_match, request_id
