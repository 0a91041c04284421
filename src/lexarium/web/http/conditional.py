"""Conditional requests: ETags, If-None-Match, prebuilt responses."""

from collections.abc import Mapping, Sequence
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from lexarium.domain import rendering
from lexarium.store.position import Position
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

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send(self.start_message)
        await send(self.body_message)

    def with_header(self, header: Header) -> "RawResponse":
        """Return a copy with one more header."""
        return RawResponse(self.status, [*self.headers, header], self.body)


def build_etag(position: Position, encoding: str) -> bytes:
    """Return the strong ETag of every response read at a position and sent in an encoding."""
    parts = (position.epoch.encode(), position.revision, rendering.RENDERING_VERSION, encoding.encode())
    return b'"%b-%d-%d-%b"' % parts


def etag_matches(etag: bytes, if_none_match: bytes | None) -> bool:
    """Return whether an `If-None-Match` header, if there is one, names an ETag (or any)."""
    if if_none_match is None or if_none_match == etag:
        return if_none_match is not None
    etags = [part.strip() for part in if_none_match.split(b",")]
    return etags == [b"*"] or any(part.removeprefix(b"W/") == etag for part in etags)


def build_not_modified(request: Request, headers: Mapping[str, str]) -> Response | None:
    """Return a 304 with these headers where the request names their ETag in `If-None-Match`, else None."""
    _, if_none_match, _ = read_conditional_headers(request.scope)
    return Response(None, 304, headers) if etag_matches(headers["etag"].encode(), if_none_match) else None


def read_conditional_headers(scope: Mapping[str, Any]) -> tuple[bytes, bytes | None, bytes | None]:
    """Return the `Accept-Encoding`, `If-None-Match` and `X-Request-ID` of a request, in one pass over its headers."""
    accept_encoding, if_none_match, request_id = b"", None, None
    for name, value in scope["headers"]:
        if name == b"accept-encoding":
            accept_encoding = value if not accept_encoding else accept_encoding + b"," + value
        elif name == b"if-none-match":
            if_none_match = value if if_none_match is None else if_none_match + b"," + value
        elif name == b"x-request-id":
            request_id = value
    return accept_encoding, if_none_match, request_id
