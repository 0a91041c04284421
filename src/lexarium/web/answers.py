"""Finished answers: bytes and headers, kept for as long as the catalogue stands where it stood."""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from starlette.types import Send

from lexarium.domain import rendering
from lexarium.store.backend import Position
from lexarium.web.encodings import IDENTITY

Header = tuple[bytes, bytes]
Asked = tuple[str, str, str]
"""What a request asks for, however it is spelt: the resource, the parameter that counts, its value."""
Key = tuple[Asked, str]
"""What is asked for, and the encoding."""

_OVERHEAD = 2_000
"""What an answer costs in memory beside its body, roughly, in bytes."""
_SPELLINGS = 10_000
"""How many spellings of requests are remembered."""
_LONGEST_SPELLING = 500


class Reply:
    """A whole response: as messages for an ASGI server, and as the bytes that go on the wire."""

    __slots__ = ("body", "end", "head", "start", "status")

    def __init__(self, status: int, headers: Sequence[Header], body: bytes) -> None:
        self.status = status
        self.body = body
        self.start: dict[str, Any] = {"type": "http.response.start", "status": status, "headers": headers}
        self.end: dict[str, Any] = {"type": "http.response.body", "body": body}
        self.head = b"".join(b"%b: %b\r\n" % header for header in headers) + b"\r\n"
        """Its headers as they go on the wire, and the empty line after them."""

    async def deliver(self, send: Send) -> None:
        """Send it as ASGI messages."""
        await send(self.start)
        await send(self.end)


class Answer:
    """An answer to GET, with the reply a client gets instead that has it already."""

    __slots__ = ("etag", "not_modified", "position", "size", "whole")

    def __init__(self, position: Position, body: bytes, headers: Sequence[Header], encoding: str) -> None:
        self.position = position
        self.etag = etag_of(position, encoding)
        self.size = len(body) + _OVERHEAD
        own = [*headers, (b"etag", self.etag)]
        self.not_modified = Reply(304, own, b"")
        self.whole = Reply(200, [*own, *encoding_headers(encoding), (b"content-length", b"%d" % len(body))], body)

    def reply(self, if_none_match: bytes | None) -> Reply:
        """What a client gets that sent this `If-None-Match`."""
        if if_none_match is not None and matches(self.etag, if_none_match):
            return self.not_modified
        return self.whole


def etag_of(position: Position, encoding: str) -> bytes:
    """The strong validator of every answer read at a position and sent in an encoding."""
    return b'"%b-%d-%d-%b"' % (
        position.epoch.encode(),
        position.revision,
        rendering.VERSION,
        encoding.encode(),
    )


def matches(etag: bytes, if_none_match: bytes) -> bool:
    """Whether `If-None-Match` names this validator (or any)."""
    if if_none_match == etag:
        return True
    named = [part.strip() for part in if_none_match.split(b",")]
    return named == [b"*"] or any(part.removeprefix(b"W/") == etag for part in named)


def conditions(scope: Mapping[str, Any]) -> tuple[bytes, bytes | None]:
    """A request's `Accept-Encoding`, and its `If-None-Match` if it has one."""
    accept, if_none_match = b"", None
    for name, value in scope["headers"]:
        if name == b"accept-encoding":
            accept = value if not accept else accept + b"," + value
        elif name == b"if-none-match":
            if_none_match = value if if_none_match is None else if_none_match + b"," + value
    return accept, if_none_match


def encoding_headers(encoding: str) -> list[Header]:
    """What tells the encoding of a body; nothing where it has none."""
    return [] if encoding == IDENTITY else [(b"content-encoding", encoding.encode())]


class Answers:
    """The answers of one worker, up to a size, all read at one position."""

    def __init__(self, limit: int, position: Callable[[], Position]) -> None:
        self._limit = limit
        self._position = position
        self._read_at: Position | None = None
        self._kept: OrderedDict[Key, Answer] = OrderedDict()
        self._size = 0
        self._spelt: OrderedDict[tuple[bytes, bytes], Asked] = OrderedDict()
        self.making = asyncio.Semaphore(2)
        """To be held while a body is made: however many ask, few are in the making at a time."""

    def fits(self, size: int) -> bool:
        """Whether a body of so many bytes can be kept at all."""
        return size + _OVERHEAD <= self._limit

    def find(self, path: bytes, query: bytes, encoding: str) -> Answer | None:
        """The answer to a request spelt like this, if that is known and it is finished."""
        asked = self._spelt.get((path, query))
        return None if asked is None else self.get((asked, encoding))

    def get(self, key: Key) -> Answer | None:
        """The answer, if it is kept and the catalogue has not moved since it was read."""
        answer = self._kept.get(key)
        if answer is None or self._read_at != self._position():
            return None
        self._kept.move_to_end(key)
        return answer

    def keep(self, key: Key, answer: Answer) -> None:
        """Keep an answer, unless newer ones are kept, or it is too large."""
        position = answer.position
        if position != self._read_at:
            if self._read_at and position.epoch == self._read_at.epoch and position.revision < self._read_at.revision:
                return
            self._kept.clear()
            self._size = 0
            self._read_at = position
        if key in self._kept or answer.size > self._limit:
            return
        self._kept[key] = answer
        self._size += answer.size
        while self._size > self._limit:
            _, oldest = self._kept.popitem(last=False)
            self._size -= oldest.size

    def remember(self, path: bytes, query: bytes, asked: Asked) -> None:
        """Remember what a request spelt like this asks for."""
        if len(path) + len(query) <= _LONGEST_SPELLING:
            self._spelt[path, query] = asked
            if len(self._spelt) > _SPELLINGS:
                self._spelt.popitem(last=False)
