"""Finished answers: bytes and headers, kept until a change touches what they rest on."""

import asyncio
from collections import OrderedDict, defaultdict, deque
from collections.abc import AsyncIterator, Mapping, Sequence, Set
from contextlib import asynccontextmanager, suppress
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.types import Send

from lexarium.domain import rendering
from lexarium.domain.errors import StoreError, Unavailable
from lexarium.domain.grounds import Ground
from lexarium.store.backend import Move, Position
from lexarium.store.database import Database
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
_TURN_SECONDS = 10
"""How long the making of an answer waits for its turn."""
_MOVES = 100
"""How many moves of the catalogue are remembered, for answers that were read before them and come to be kept after."""
_LOOK_SECONDS = 0.25
"""How long answers may be behind what other nodes have written, where nobody asks for any."""


class Reply:
    """A whole response: as messages for an ASGI server, and as the bytes that go on the wire."""

    __slots__ = ("body", "end", "head", "headers", "start", "status")

    def __init__(self, status: int, headers: Sequence[Header], body: bytes) -> None:
        self.status = status
        self.body = body
        self.headers = headers
        self.start: dict[str, Any] = {"type": "http.response.start", "status": status, "headers": headers}
        self.end: dict[str, Any] = {"type": "http.response.body", "body": body}
        self.head = b"".join(b"%b: %b\r\n" % header for header in headers) + b"\r\n"
        """Its headers as they go on the wire, and the empty line after them."""

    async def deliver(self, send: Send) -> None:
        """Send it as ASGI messages."""
        await send(self.start)
        await send(self.end)

    def told(self, header: Header) -> "Reply":
        """The same with one more header."""
        return Reply(self.status, [*self.headers, header], self.body)


class Answer:
    """An answer to GET, with the reply a client gets instead that has it already."""

    __slots__ = ("_encoding", "_headers", "etag", "grounds", "not_modified", "position", "size", "whole")

    def __init__(
        self,
        position: Position,
        body: bytes,
        headers: Sequence[Header],
        encoding: str,
        grounds: Set[Ground] = frozenset(),
    ) -> None:
        self._headers = headers
        self._encoding = encoding
        self.position = position
        self.grounds = grounds
        """What it rests on: it holds until a change shakes one of these."""
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

    def at(self, position: Position) -> "Answer":
        """The same answer for another position, at which it holds too."""
        return Answer(position, self.whole.body, self._headers, self._encoding, self.grounds)


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


def conditions(scope: Mapping[str, Any]) -> tuple[bytes, bytes | None, bytes | None]:
    """A request's `Accept-Encoding`, and its `If-None-Match` and its `X-Request-ID` if it has them."""
    accept, if_none_match, request = b"", None, None
    for name, value in scope["headers"]:
        if name == b"accept-encoding":
            accept = value if not accept else accept + b"," + value
        elif name == b"if-none-match":
            if_none_match = value if if_none_match is None else if_none_match + b"," + value
        elif name == b"x-request-id":
            request = value
    return accept, if_none_match, request


def encoding_headers(encoding: str) -> list[Header]:
    """What tells the encoding of a body; nothing where it has none."""
    return [] if encoding == IDENTITY else [(b"content-encoding", encoding.encode())]


class Answers:
    """The answers of one worker, up to a size, all of which hold at one position."""

    def __init__(self, limit: int, database: Database) -> None:
        self._limit = limit
        self._database = database
        self._holding: Position | None = None
        """Where the catalogue stood when the answers were last held against it."""
        self._kept: OrderedDict[Key, Answer] = OrderedDict()
        self._resting: defaultdict[Ground, set[Key]] = defaultdict(set)
        """Which answers rest on what; nothing stands here that has none."""
        self._size = 0
        self._moves: deque[Move] = deque(maxlen=_MOVES)
        """The last moves that were followed."""
        self._spelt: OrderedDict[tuple[bytes, bytes], Asked] = OrderedDict()
        self._making = asyncio.Semaphore(2)
        self.hits = 0
        """How often an answer that was asked for was there."""
        self.misses = 0
        """How often one had to be made."""

    @property
    def size(self) -> int:
        """How many bytes are kept."""
        return self._size

    @asynccontextmanager
    async def making(self) -> AsyncIterator[None]:
        """To be held while a body is made: however many ask, few are in the making at a time."""
        try:
            async with asyncio.timeout(_TURN_SECONDS):
                await self._making.acquire()
        except TimeoutError:
            raise Unavailable("Too many answers are waiting to be made.") from None
        try:
            yield
        finally:
            self._making.release()

    @property
    def kept(self) -> tuple[int, int]:
        """How many there are, and how many bytes of memory they take."""
        return len(self._kept), self._size

    def fits(self, size: int) -> bool:
        """Whether a body of so many bytes can be kept at all."""
        return size + _OVERHEAD <= self._limit

    def find(self, path: bytes, query: bytes, encoding: str) -> Answer | None:
        """The answer to a request spelt like this, if that is known and it is finished."""
        asked = self._spelt.get((path, query))
        return None if asked is None else self.get((asked, encoding))

    def get(self, key: Key) -> Answer | None:
        """The answer, if it is kept and known to hold still."""
        answer = self._kept.get(key)
        if answer is None or self._holding is None:
            return None
        if self._behind():
            if not self._database.embedded:
                return None  # To ask what has changed could take long, and every other request would wait.
            self._follow(self._database.moved_since(self._holding))
            return self.get(key)
        if answer.position != self._holding:
            answer = self._kept[key] = answer.at(self._holding)
        self._kept.move_to_end(key)
        self.hits += 1
        return answer

    async def keep(self, key: Key, answer: Answer) -> None:
        """Keep an answer, unless it may hold no longer, or is too large."""
        await self.catch_up()
        if self._holding is None or answer.position.epoch != self._holding.epoch:
            self._forget(answer.position)
        if key in self._kept or answer.size > self._limit or self._shaken_since(answer):
            return
        self._kept[key] = answer
        self._size += answer.size
        for ground in answer.grounds:
            self._resting[ground].add(key)
        while self._size > self._limit:
            self._drop(next(iter(self._kept)))

    async def catch_up(self) -> None:
        """Find out which answers still hold, where `get` leaves that to whoever can wait."""
        if self._holding is None or not self._behind():
            return
        if self._database.embedded:
            self._follow(self._database.moved_since(self._holding))
        else:
            self._follow(await run_in_threadpool(self._database.moved_since, self._holding))

    async def go_along(self) -> None:
        """Catch up whenever the catalogue moves, until cancelled, where `get` does not do so by itself.

        Else, should the database go before anyone has asked again, nothing of what still holds could be served.
        """
        while not self._database.embedded:
            await asyncio.sleep(_LOOK_SECONDS)
            with suppress(StoreError):
                await self.catch_up()

    def _behind(self) -> bool:
        now, then = self._database.position(), self._holding
        return then is None or now.epoch != then.epoch or now.revision > then.revision

    def _follow(self, move: Move) -> None:
        """Drop what holds no longer."""
        then = self._holding
        if then is None or move.shaken is None or move.to.epoch != then.epoch:
            self._forget(move.to)
        elif move.to.revision > then.revision:
            for ground in move.shaken & self._resting.keys():
                for key in list(self._resting[ground]):
                    self._drop(key)
            self._moves.append(move)
            self._holding = move.to

    def _shaken_since(self, answer: Answer) -> bool:
        """Whether a change since it was read may have shaken an answer."""
        revision = answer.position.revision
        missed = [move for move in self._moves if move.to.revision > revision]
        assert self._holding is not None
        if not missed:
            return revision != self._holding.revision
        return missed[0].start.revision > revision or any(
            move.shaken & answer.grounds for move in missed if move.shaken
        )

    def _forget(self, position: Position) -> None:
        """Begin anew at a position."""
        self._kept.clear()
        self._resting.clear()
        self._moves.clear()
        self._size = 0
        self._holding = position

    def _drop(self, key: Key) -> None:
        answer = self._kept.pop(key)
        self._size -= answer.size
        for ground in answer.grounds:
            self._resting[ground].discard(key)
            if not self._resting[ground]:
                del self._resting[ground]

    def remember(self, path: bytes, query: bytes, asked: Asked) -> None:
        """Remember what a request spelt like this asks for."""
        if len(path) + len(query) <= _LONGEST_SPELLING:
            self._spelt[path, query] = asked
            if len(self._spelt) > _SPELLINGS:
                self._spelt.popitem(last=False)
