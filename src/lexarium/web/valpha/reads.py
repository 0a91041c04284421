"""GET and HEAD: finished answers where they fit, else streamed from the store."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack
from urllib.parse import parse_qsl

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from lexarium.domain.collections import CONCEPT
from lexarium.service.reading import Reading, reading
from lexarium.store.backend import Position
from lexarium.store.database import Database
from lexarium.web.answers import Answer, Answers, Header, Key, Reply, conditions, encoding_headers, etag_of, matches
from lexarium.web.encodings import IDENTITY, chosen, encoded, encoded_pieces
from lexarium.web.problems import HttpProblem
from lexarium.web.valpha.resources import FORMATS, Resource

Read = Callable[[Reading], Iterator[bytes]]
"""Reads a JSON document, in pieces, from a view of the catalogue."""


class Reads:
    """Answers the reads of one resource."""

    def __init__(self, resource: Resource, database: Database, answers: Answers) -> None:
        self._resource = resource
        self._database = database
        self._answers = answers
        self._making: dict[tuple[Position, Key], asyncio.Task[Answer | None]] = {}
        self._past_limit = False
        """Whether the whole collection, when last read, was too large to be kept."""

    async def get(self, request: Request) -> Response:
        """Answer GET or HEAD."""
        parameters = _parameters(request.scope["query_string"])
        if parameters.get("format", "json") not in FORMATS:
            raise HttpProblem(406, f"The format {parameters['format']!r} is not one of {', '.join(FORMATS)}.")
        accept, if_none_match = conditions(request.scope)
        encoding = chosen(accept)
        read, whole = self._reader(parameters)
        if not (whole and self._past_limit):
            key = (request.scope["raw_path"], request.scope["query_string"], encoding)
            answer = await self._finished(key, read)
            if answer is not None:
                return _Finished(answer.reply(if_none_match))
            self._past_limit = whole
        return await self._streamed(request.method, read, encoding, if_none_match)

    def _reader(self, parameters: dict[str, str]) -> tuple[Read, bool]:
        """How to read what is asked for, in pieces; and whether that is the whole collection."""
        collection = self._resource.collection
        if collection is None:
            query = parameters.get("q", "")
            return lambda now: now.hits(query), not query
        if "id" in parameters:
            return lambda now: iter([now.one(collection, parameters["id"])]), False
        if "name" in parameters:
            return lambda now: iter([now.one_named(collection, parameters["name"])]), False
        if collection is CONCEPT and "contrast_id" in parameters:
            return lambda now: now.measured_by(parameters["contrast_id"]), False
        return lambda now: now.whole(collection), True

    async def _finished(self, key: Key, read: Read) -> Answer | None:
        """The finished answer, made once however many ask; None where it is too large to be kept."""
        making = (self._database.position(), key)
        task = self._making.get(making)
        if task is None:
            task = asyncio.create_task(self._make(key, read))
            self._making[making] = task
            task.add_done_callback(lambda _: self._making.pop(making))
        # One client that leaves must not take the answer from the others.
        return await asyncio.shield(task)

    async def _make(self, key: Key, read: Read) -> Answer | None:
        path, query, encoding = key
        plain_key = (path, query, IDENTITY)
        plain = self._answers.get(plain_key)
        if plain is None:
            made = await run_in_threadpool(self._make_body, read)
            if made is None:
                return None
            plain = Answer(*made, self._read_headers(), IDENTITY)
            self._answers.keep(plain_key, plain)
        if encoding == IDENTITY:
            return plain
        body = await run_in_threadpool(encoded, encoding, plain.whole.body)
        answer = Answer(plain.position, body, self._read_headers(), encoding)
        self._answers.keep(key, answer)
        return answer

    def _make_body(self, read: Read) -> tuple[Position, bytes] | None:
        pieces: list[bytes] = []
        size = 0
        with reading(self._database) as now:
            for piece in read(now):
                pieces.append(piece)
                size += len(piece)
                if size > self._answers.limit:
                    return None
            return now.position, b"".join(pieces)

    def _read_headers(self) -> list[Header]:
        named = {"content-type": "application/json", **self._resource.headers("GET"), "cache-control": "no-cache"}
        return [(name.encode(), value.encode()) for name, value in named.items()]

    async def _streamed(self, method: str, read: Read, encoding: str, if_none_match: bytes | None) -> Response:
        """A body too large to be kept, straight from the store."""
        closing = ExitStack()
        now = await run_in_threadpool(closing.enter_context, reading(self._database))
        etag = etag_of(now.position, encoding)
        headers = [*self._read_headers(), (b"etag", etag)]
        if if_none_match is not None and matches(etag, if_none_match):
            await run_in_threadpool(closing.close)
            return _bare(304, headers)
        headers += encoding_headers(encoding)
        if method == "HEAD":
            await run_in_threadpool(closing.close)
            return _bare(200, headers)
        return _Streamed(encoded_pieces(encoding, self._measured(read(now))), headers, closing)

    def _measured(self, pieces: Iterator[bytes]) -> Iterator[bytes]:
        """The same pieces; once they have ended it is known whether they would fit."""
        size = 0
        for piece in pieces:
            size += len(piece)
            yield piece
        self._past_limit = self._past_limit and size > self._answers.limit


class _Finished(Response):
    """A finished reply as a response."""

    def __init__(self, reply: Reply) -> None:
        self._reply = reply

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._reply.deliver(send)


class _Streamed(StreamingResponse):
    """Pieces made in threads; what they are read from is closed at the end, whether all are taken or not."""

    def __init__(self, pieces: Iterator[bytes], headers: list[Header], closing: ExitStack) -> None:
        super().__init__(_in_threads(pieces))
        self.raw_headers = headers
        self._closing = closing

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._closing:
            await super().__call__(scope, receive, send)


async def _in_threads(pieces: Iterator[bytes]) -> AsyncIterator[bytes]:
    while (piece := await run_in_threadpool(next, pieces, None)) is not None:
        yield piece


def _bare(status: int, headers: list[Header]) -> Response:
    response = Response(status_code=status)
    response.raw_headers = headers
    return response


def _parameters(query: bytes) -> dict[str, str]:
    """The parameters that have a value; of one that is repeated, the last."""
    return dict(parse_qsl(query.decode("utf-8", "replace"), errors="replace"))
