"""What every answer of v1 is sent in: who may read it, how it is compressed, by what it is known again."""

import hashlib
from collections.abc import Mapping
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lexarium.web.http.conditional import etag_matches, read_conditional_headers
from lexarium.web.http.encodings import IDENTITY, choose_encoding, encode_body

SHORTEST = 1024
"""In bytes: what is shorter is not compressed."""
EXPOSED = "Allow, ETag, Link, Location, RateLimit, RateLimit-Policy, Retry-After"
"""The headers that a page of another origin may see."""
_OPENED = {"access-control-allow-origin": "*", "access-control-expose-headers": EXPOSED}
_READS = ("GET", "HEAD", "OPTIONS")


class Envelope:
    """Stands around the application, which answers HEAD as GET: the server sends no body then."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        method, state = scope["method"], scope.setdefault("state", {})
        # Pages of any origin may read, but nothing that someone's token is needed for.
        opened = method in _READS and not any(name == b"authorization" for name, _ in scope["headers"])
        if method == "HEAD":
            scope = {**scope, "method": "GET"}
            state["head"] = True
        outgoing = _Outgoing(scope, send)

        async def told(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(raw=list(message["headers"]))
                headers.update({**state.get("rate", {}), **(_OPENED if opened else {})})
                message = {**message, "headers": headers.raw}
            await outgoing.take(message)

        await self._app(scope, receive, told)


class _Outgoing:
    """Compresses a whole JSON answer, gives it an ETag, or says that the client has it already."""

    def __init__(self, scope: Scope, send: Send) -> None:
        self._scope = scope
        self._send = send
        self._start: Message | None = None

    async def take(self, message: Message) -> None:
        """Send a message on; the start of what is to be looked at whole waits for its body."""
        if message["type"] == "http.response.start" and self._whole(message):
            self._start = message
        elif self._start is not None:
            start, body = await self._enclosed(self._start, message["body"])
            await self._send(start)
            await self._send({"type": "http.response.body", "body": body})
        else:
            await self._send(message)

    def _whole(self, start: Message) -> bool:
        headers = MutableHeaders(raw=start["headers"])
        read = self._scope["method"] == "GET" and start["status"] == 200
        # A stream has no length beforehand.
        return read and headers.get("content-type") == "application/json" and "content-length" in headers

    async def _enclosed(self, start: Message, body: bytes) -> tuple[Message, bytes]:
        accept, if_none_match, _ = read_conditional_headers(self._scope)
        encoding = choose_encoding(accept) if len(body) >= SHORTEST else IDENTITY
        headers = MutableHeaders(raw=start["headers"])
        headers.add_vary_header("Accept-Encoding")
        headers["etag"] = etag = _etag(headers, body, encoding)
        if if_none_match is not None and etag_matches(etag.encode(), if_none_match):
            del headers["content-length"], headers["content-type"]
            return {**start, "status": 304, "headers": headers.raw}, b""
        if encoding != IDENTITY:
            body = await run_in_threadpool(encode_body, encoding, body)
            headers.update({"content-encoding": encoding, "content-length": str(len(body))})
        return {**start, "headers": headers.raw}, body


def _etag(headers: Mapping[str, Any], body: bytes, encoding: str) -> str:
    """The strong validator of an answer: its own, else by its content; and, as other bytes, by its encoding."""
    own = headers.get("etag", "").strip('"') or hashlib.sha256(body).hexdigest()[:32]
    return f'"{own}"' if encoding == IDENTITY else f'"{own}-{encoding}"'
