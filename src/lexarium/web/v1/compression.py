"""Middleware of v1: compress JSON responses, add ETags and CORS headers, respond with 304."""

import hashlib
from collections.abc import Mapping
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lexarium.web.http.conditional import etag_matches, read_conditional_headers
from lexarium.web.http.encodings import IDENTITY, choose_encoding, encode_body

MIN_COMPRESSED_BYTES = 1024
EXPOSED_HEADERS = "Allow, ETag, Link, Location, RateLimit, RateLimit-Policy, Retry-After"
"""Headers that pages of other origins may read."""
_CORS_HEADERS = {"access-control-allow-origin": "*", "access-control-expose-headers": EXPOSED_HEADERS}
_SAFE_METHODS = ("GET", "HEAD", "OPTIONS")


class CompressionMiddleware:
    """Wraps the application, which sees HEAD as GET: the server sends no body then."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        method, state = scope["method"], scope.setdefault("state", {})
        # Pages of any origin may read, except what needs a token.
        allow_any_origin = method in _SAFE_METHODS and not any(name == b"authorization" for name, _ in scope["headers"])
        if method == "HEAD":
            scope = {**scope, "method": "GET"}
            state["head"] = True
        sender = _ResponseSender(scope, send)

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(raw=list(message["headers"]))
                headers.update({**state.get("rate", {}), **(_CORS_HEADERS if allow_any_origin else {})})
                message = {**message, "headers": headers.raw}
            await sender.handle(message)

        await self._app(scope, receive, send_with_headers)


class _ResponseSender:
    """Compresses a complete JSON response, adds its ETag, or replaces it by a 304."""

    def __init__(self, scope: Scope, send: Send) -> None:
        self._scope = scope
        self._send = send
        self._start: Message | None = None

    async def handle(self, message: Message) -> None:
        """Pass a message on; hold the start of a buffered response back until its body is there."""
        if message["type"] == "http.response.start" and self._is_buffered(message):
            self._start = message
        elif self._start is not None:
            start, body = await self._encode(self._start, message["body"])
            await self._send(start)
            await self._send({"type": "http.response.body", "body": body})
        else:
            await self._send(message)

    def _is_buffered(self, start: Message) -> bool:
        headers = MutableHeaders(raw=start["headers"])
        is_read = self._scope["method"] == "GET" and start["status"] == 200
        cacheable = self._scope["state"].get("cacheable", True)
        # A streamed response has no length.
        return (
            is_read and cacheable and headers.get("content-type") == "application/json" and "content-length" in headers
        )

    async def _encode(self, start: Message, body: bytes) -> tuple[Message, bytes]:
        accept, if_none_match, _ = read_conditional_headers(self._scope)
        encoding = choose_encoding(accept) if len(body) >= MIN_COMPRESSED_BYTES else IDENTITY
        headers = MutableHeaders(raw=start["headers"])
        headers.add_vary_header("Accept-Encoding")
        headers["etag"] = etag = _build_etag(headers, body, encoding)
        if if_none_match is not None and etag_matches(etag.encode(), if_none_match):
            del headers["content-length"], headers["content-type"]
            return {**start, "status": 304, "headers": headers.raw}, b""
        if encoding != IDENTITY:
            body = await run_in_threadpool(encode_body, encoding, body)
            headers.update({"content-encoding": encoding, "content-length": str(len(body))})
        return {**start, "headers": headers.raw}, body


def _build_etag(headers: Mapping[str, Any], body: bytes, encoding: str) -> str:
    """Return a strong ETag: the response's own or one by content, with the encoding, since its bytes differ."""
    own = headers.get("etag", "").strip('"') or hashlib.sha256(body).hexdigest()[:32]
    return f'"{own}"' if encoding == IDENTITY else f'"{own}-{encoding}"'
