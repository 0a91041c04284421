"""Conditional requests: ETags, `If-None-Match` and 304 responses."""

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from lexarium.domain import rendering
from lexarium.store.position import Position
from lexarium.web.http.encodings import IDENTITY, Header, choose_encoding, encode_body

# To compress a shorter body takes less time than to hand it to a thread.
_MAX_INLINE_BYTES = 4_096


def build_etag(position: Position, encoding: str) -> bytes:
    """Return the strong ETag of every response read at a position and sent in an encoding."""
    parts = (position.epoch.encode(), position.revision, rendering.RENDERING_VERSION, encoding.encode())
    return b'"%b-%d-%d-%b"' % parts


def hash_etag(body: bytes | memoryview) -> str:
    """Return the strong ETag of a body by its content."""
    return f'"{hashlib.sha256(body).hexdigest()[:32]}"'


def etag_matches(etag: bytes, if_none_match: bytes | None) -> bool:
    """Return whether an `If-None-Match` header, if there is one, names an ETag (or any)."""
    if if_none_match is None or if_none_match == etag:
        return if_none_match is not None
    etags = [part.strip() for part in if_none_match.split(b",")]
    return etags == [b"*"] or any(part.removeprefix(b"W/") == etag for part in etags)


def find_not_modified(scope: Mapping[str, Any], headers: Mapping[str, str]) -> Response | None:
    """Return a 304 with these headers if the client has the response with their ETag, else None."""
    if not etag_matches(headers["etag"].encode(), read_conditional_headers(scope)[1]):
        return None
    return build_not_modified((name.encode(), value.encode()) for name, value in headers.items())


def build_not_modified(headers: Iterable[Header]) -> Response:
    """Return a 304 with these headers."""
    response = Response(status_code=304)
    response.raw_headers = list(headers)
    return response


async def encode_response(scope: Mapping[str, Any], response: Response, min_bytes: int = 0) -> Response:
    """Encode a complete response as the client prefers, and add its ETag; return a 304 where the client has it.

    The ETag is the response's own, else one by content, with the encoding, since the bytes differ. A body of less than
    `min_bytes` is not compressed.
    """
    accept_encoding, if_none_match, _ = read_conditional_headers(scope)
    encoding = choose_encoding(accept_encoding) if len(response.body) >= min_bytes else IDENTITY
    headers = response.headers
    headers.add_vary_header("Accept-Encoding")
    etag = headers.get("etag") or hash_etag(response.body)
    headers["etag"] = etag = etag if encoding == IDENTITY else f'{etag[:-1]}-{encoding}"'
    if etag_matches(etag.encode(), if_none_match):
        del headers["content-length"], headers["content-type"]
        return build_not_modified(response.raw_headers)
    if encoding != IDENTITY:
        body = bytes(response.body)
        is_short = len(body) <= _MAX_INLINE_BYTES
        response.body = (
            encode_body(encoding, body) if is_short else await run_in_threadpool(encode_body, encoding, body)
        )
        headers["content-encoding"] = encoding
        headers["content-length"] = str(len(response.body))
    return response


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
