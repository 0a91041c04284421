"""Finished answers: bytes and headers, kept for as long as the catalogue stands where it stood."""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

from starlette.types import Scope, Send

from lexarium.domain import rendering
from lexarium.store.backend import Position
from lexarium.web.encodings import IDENTITY

Header = tuple[bytes, bytes]
Key = tuple[bytes, bytes, str]
"""Path and query as they came, and the encoding."""

_OVERHEAD = 2_000
"""What an answer costs in memory beside its body, roughly, in bytes."""


class Answer:
    """An answer to GET, with the one a client gets instead that has it already."""

    __slots__ = ("body", "etag", "not_modified", "position", "size", "start")

    def __init__(self, position: Position, body: bytes, headers: Sequence[Header], encoding: str) -> None:
        self.position = position
        self.etag = etag_of(position, encoding)
        own = [*headers, (b"etag", self.etag)]
        self.size = len(body) + _OVERHEAD
        self.not_modified = _start(304, own)
        self.start = _start(200, [*own, *encoding_headers(encoding), (b"content-length", b"%d" % len(body))])
        self.body: dict[str, Any] = {"type": "http.response.body", "body": body}

    async def deliver(self, send: Send, if_none_match: bytes | None) -> None:
        """Send it; or, to a client whose `If-None-Match` says that it has it, only that it still holds."""
        if if_none_match is not None and matches(self.etag, if_none_match):
            await send(self.not_modified)
            await send({"type": "http.response.body"})
        else:
            await send(self.start)
            await send(self.body)


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


def conditions(scope: Scope) -> tuple[bytes, bytes | None]:
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
        self.limit = limit
        self._position = position
        self._read_at: Position | None = None
        self._kept: OrderedDict[Key, Answer] = OrderedDict()
        self._size = 0

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
        if key in self._kept or answer.size > self.limit:
            return
        self._kept[key] = answer
        self._size += answer.size
        while self._size > self.limit:
            _, oldest = self._kept.popitem(last=False)
            self._size -= oldest.size


def _start(status: int, headers: list[Header]) -> dict[str, Any]:
    return {"type": "http.response.start", "status": status, "headers": headers}
