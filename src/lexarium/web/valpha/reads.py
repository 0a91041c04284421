"""GET and HEAD: finished answers where they fit, else streamed from the store."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from urllib.parse import parse_qsl

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from lexarium.domain.collections import COLLECTIONS
from lexarium.domain.errors import Unready
from lexarium.service.finding import Finder
from lexarium.service.reading import Reading, read_one, reading, stream_hits, stream_whole
from lexarium.store.backend import Position
from lexarium.store.database import Database
from lexarium.web.answers import (
    Answer,
    Answers,
    Asked,
    Header,
    Key,
    Reply,
    conditions,
    encoding_headers,
    etag_of,
    matches,
)
from lexarium.web.encodings import IDENTITY, chosen, encoded, encoded_pieces
from lexarium.web.problems import HttpProblem
from lexarium.web.valpha.resources import FORMATS, WHOLE, Resource


class Reads:
    """Answers the reads of one resource."""

    def __init__(self, resource: Resource, database: Database, answers: Answers, finder: Finder) -> None:
        self._resource = resource
        self._finder = finder
        self._database = database
        self._answers = answers
        self._making: dict[tuple[Position, Key], asyncio.Task[Answer | None]] = {}
        self._whole_size: int | None = None
        """How many bytes the whole collection had when it was last read."""

    async def get(self, request: Request) -> Response:
        """Answer GET or HEAD."""
        path, query = request.scope["raw_path"], request.scope["query_string"]
        parameters = dict(parse_qsl(query.decode("utf-8", "replace"), errors="replace"))
        if parameters.get("format", "json") not in FORMATS:
            raise HttpProblem(406, f"The format {parameters['format']!r} is not one of {', '.join(FORMATS)}.")
        accept, if_none_match, _ = conditions(request.scope)
        asked = self._asked(parameters)
        key = (asked, chosen(accept))
        if asked[1] != WHOLE or self._whole_size is None or self._answers.fits(self._whole_size):
            answer = await self._finished(key)
            if answer is not None:
                if set(parameters) <= {asked[1], "format"}:
                    self._answers.remember(path, query, asked)
                return _Finished(answer.reply(if_none_match))
        return await self._streamed(request.method, key[1], if_none_match)

    def _asked(self, parameters: dict[str, str]) -> Asked:
        """The one parameter that counts, the first of the resource's that has a value; else the whole is asked for."""
        for name in self._resource.parameters:
            if parameters.get(name, "").strip(" "):
                return self._resource.name, name, parameters[name]
        return self._resource.name, WHOLE, ""

    async def _finished(self, key: Key) -> Answer | None:
        """The finished answer, made once however many ask; None where the collection is too large to be kept."""
        making = (self._database.position(), key)
        task = self._making.get(making)
        if task is None:
            task = asyncio.create_task(self._make(key))
            self._making[making] = task
            task.add_done_callback(lambda _: self._making.pop(making))
        # One client that leaves must not take the answer from the others.
        return await asyncio.shield(task)

    async def _make(self, key: Key) -> Answer | None:
        asked, encoding = key
        async with self._answers.making():
            await self._answers.catch_up()
            plain = self._answers.get((asked, IDENTITY))
            if plain is None:
                self._answers.misses += 1
                made = await run_in_threadpool(self._read, asked)
                if made is None:
                    return None
                plain = made
                await self._answers.keep((asked, IDENTITY), plain)
            if encoding == IDENTITY:
                return plain
            body = await run_in_threadpool(encoded, encoding, plain.whole.body)
            answer = Answer(plain.position, body, self._headers(), encoding, plain.grounds)
            await self._answers.keep(key, answer)
            return answer

    def _read(self, asked: Asked) -> Answer | None:
        """What is asked for, as it is now; None where the whole is too large to be kept."""
        _, parameter, value = asked
        if parameter == "q":
            return self._search(value)
        collection = self._resource.collection
        if parameter == "id" and collection is not None:
            one = read_one(self._database, collection, value)
            return Answer(one.position, one.body, self._headers(), IDENTITY, frozenset(one.grounds))
        pieces: list[bytes] = []
        size = 0
        with reading(self._database) as now:
            for piece in self._pieces(now, parameter, value):
                pieces.append(piece)
                size += len(piece)
                if parameter == WHOLE and not self._answers.fits(size):
                    self._whole_size = size
                    return None
            if parameter == WHOLE:
                self._whole_size = size
            return Answer(now.position, b"".join(pieces), self._headers(), IDENTITY, frozenset(now.grounds))

    def _search(self, query: str) -> Answer:
        collections = [name for name, each in COLLECTIONS.items() if each.searched_prefix]
        then, found = self._finder.every(query, collections)
        # Opened after it, so that all is there that the index knows of; read as it was then, as the ETag says.
        with reading(self._database) as now:
            if now.position.epoch != then.epoch:
                raise Unready("The search index is being built. Try again in a moment.")
            body = b"".join(now.hits_of(found, then.revision))
            position = now.position._replace(revision=then.revision)
            return Answer(position, body, self._headers(), IDENTITY, frozenset(now.grounds))

    def _pieces(self, now: Reading, parameter: str, value: str) -> Iterator[bytes]:
        collection = self._resource.collection
        if collection is None:
            return now.hits()
        if parameter == "name":
            return iter([now.one_named(collection, value)])
        if parameter == "contrast_id":
            return now.measured_by(value)
        return now.whole(collection)

    def _headers(self) -> list[Header]:
        named = {"content-type": "application/json", **self._resource.headers("GET")}
        return [(name.encode(), value.encode()) for name, value in named.items()]

    async def _streamed(self, method: str, encoding: str, if_none_match: bytes | None) -> Response:
        """The whole collection, straight from the store."""
        position = self._database.position()
        etag = etag_of(position, encoding)
        headers = [*self._headers(), (b"etag", etag)]
        if if_none_match is not None and matches(etag, if_none_match):
            return _bare(304, headers)
        headers += encoding_headers(encoding)
        if method == "HEAD":
            return _bare(200, headers)
        collection = self._resource.collection
        if collection is None:
            pieces = stream_hits(self._database, position)
        else:
            pieces = stream_whole(self._database, collection, position)
        response = StreamingResponse(_in_threads(encoded_pieces(encoding, self._measured(pieces))))
        response.raw_headers = headers
        return response

    def _measured(self, pieces: Iterator[bytes]) -> Iterator[bytes]:
        """The same pieces; once they have ended it is known whether they would fit."""
        size = 0
        for piece in pieces:
            size += len(piece)
            yield piece
        self._whole_size = size


class _Finished(Response):
    """A finished reply as a response."""

    def __init__(self, reply: Reply) -> None:
        self._reply = reply

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._reply.deliver(send)


async def _in_threads(pieces: Iterator[bytes]) -> AsyncIterator[bytes]:
    while (piece := await run_in_threadpool(next, pieces, None)) is not None:
        if piece:
            yield piece


def _bare(status: int, headers: list[Header]) -> Response:
    response = Response(status_code=status)
    response.raw_headers = headers
    return response
