"""GET and HEAD: finished answers where they fit, else streamed from the store."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from urllib.parse import parse_qsl

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from lexarium.domain.errors import IndexNotReady
from lexarium.domain.schema.collections import COLLECTIONS
from lexarium.services.records.valpha_queries import (
    ValphaReader,
    open_valpha_reader,
    read_record,
    stream_collection,
    stream_search_hits,
)
from lexarium.services.search.record_search import RecordSearch
from lexarium.store.database import Database
from lexarium.store.position import Position
from lexarium.web.http.conditional import RawResponse, build_etag, etag_matches, read_conditional_headers
from lexarium.web.http.encodings import IDENTITY, Header, choose_encoding, encode_body, encode_chunks, encoding_headers
from lexarium.web.http.problems import HTTPProblem
from lexarium.web.http.response_cache import CachedResponse, CacheKey, RequestKey, ResponseCache
from lexarium.web.valpha.resources import FORMATS, WHOLE_COLLECTION, ValphaResource


class ValphaReads:
    """Answers the reads of one resource."""

    def __init__(
        self, resource: ValphaResource, database: Database, response_cache: ResponseCache, record_search: RecordSearch
    ) -> None:
        self._resource = resource
        self._record_search = record_search
        self._database = database
        self._response_cache = response_cache
        self._renders: dict[tuple[Position, CacheKey], asyncio.Task[CachedResponse | None]] = {}
        self._collection_bytes: int | None = None
        """How many bytes the whole collection had when it was last read."""

    async def get(self, request: Request) -> Response:
        """Answer GET or HEAD."""
        path, query = request.scope["raw_path"], request.scope["query_string"]
        parameters = dict(parse_qsl(query.decode("utf-8", "replace"), errors="replace"))
        if parameters.get("format", "json") not in FORMATS:
            raise HTTPProblem(406, f"The format {parameters['format']!r} is not one of {', '.join(FORMATS)}.")
        accept_encoding, if_none_match, _ = read_conditional_headers(request.scope)
        request_key = self._parse_request_key(parameters)
        key = (request_key, choose_encoding(accept_encoding))
        if (
            request_key[1] != WHOLE_COLLECTION
            or self._collection_bytes is None
            or self._response_cache.can_store(self._collection_bytes)
        ):
            response = await self._get_cached(key)
            if response is not None:
                if set(parameters) <= {request_key[1], "format"}:
                    self._response_cache.add_url_alias(path, query, request_key)
                return _PrebuiltResponse(response.select_response(if_none_match))
        return await self._stream(request.method, key[1], if_none_match)

    def _parse_request_key(self, parameters: dict[str, str]) -> RequestKey:
        """The one parameter that counts, the first of the resource's that has a value; else the whole is asked for."""
        for name in self._resource.parameters:
            if parameters.get(name, "").strip(" "):
                return self._resource.name, name, parameters[name]
        return self._resource.name, WHOLE_COLLECTION, ""

    async def _get_cached(self, key: CacheKey) -> CachedResponse | None:
        """The finished answer, made once however many ask; None where the collection is too large to be kept."""
        render_key = (self._database.get_position(), key)
        task = self._renders.get(render_key)
        if task is None:
            task = asyncio.create_task(self._render(key))
            self._renders[render_key] = task
            task.add_done_callback(lambda _: self._renders.pop(render_key))
        # One client that leaves must not take the answer from the others.
        return await asyncio.shield(task)

    async def _render(self, key: CacheKey) -> CachedResponse | None:
        request_key, encoding = key
        async with self._response_cache.render_slot():
            await self._response_cache.apply_invalidations()
            identity_response = self._response_cache.get((request_key, IDENTITY))
            if identity_response is None:
                self._response_cache.misses += 1
                rendered = await run_in_threadpool(self._read_response, request_key)
                if rendered is None:
                    return None
                identity_response = rendered
                await self._response_cache.put((request_key, IDENTITY), identity_response)
            if encoding == IDENTITY:
                return identity_response
            body = await run_in_threadpool(encode_body, encoding, identity_response.full.body)
            encoded_response = CachedResponse(
                identity_response.position, body, self._build_headers(), encoding, identity_response.cache_tags
            )
            await self._response_cache.put(key, encoded_response)
            return encoded_response

    def _read_response(self, request_key: RequestKey) -> CachedResponse | None:
        """What is asked for, as it is now; None where the whole is too large to be kept."""
        _, parameter, value = request_key
        if parameter == "q":
            return self._search(value)
        collection = self._resource.collection
        if parameter == "id" and collection is not None:
            record = read_record(self._database, collection, value)
            return CachedResponse(
                record.position, record.body, self._build_headers(), IDENTITY, frozenset(record.cache_tags)
            )
        chunks: list[bytes] = []
        size = 0
        with open_valpha_reader(self._database) as reader:
            for chunk in self._iter_chunks(reader, parameter, value):
                chunks.append(chunk)
                size += len(chunk)
                if parameter == WHOLE_COLLECTION and not self._response_cache.can_store(size):
                    self._collection_bytes = size
                    return None
            if parameter == WHOLE_COLLECTION:
                self._collection_bytes = size
            return CachedResponse(
                reader.position, b"".join(chunks), self._build_headers(), IDENTITY, frozenset(reader.cache_tags)
            )

    def _search(self, query: str) -> CachedResponse:
        collections = [name for name, collection in COLLECTIONS.items() if collection.search_hit_prefix]
        index_position, record_ids = self._record_search.search_ids(query, collections)
        # Opened after it, so that all is there that the index knows of; read as it was then, as the ETag says.
        with open_valpha_reader(self._database) as reader:
            if reader.position.epoch != index_position.epoch:
                raise IndexNotReady("The search index is being built. Try again in a moment.")
            body = b"".join(reader.iter_hits_for(record_ids, index_position.revision))
            position = reader.position._replace(revision=index_position.revision)
            return CachedResponse(position, body, self._build_headers(), IDENTITY, frozenset(reader.cache_tags))

    def _iter_chunks(self, reader: ValphaReader, parameter: str, value: str) -> Iterator[bytes]:
        collection = self._resource.collection
        if collection is None:
            return reader.iter_search_hits()
        if parameter == "name":
            return iter([reader.render_by_name(collection, value)])
        if parameter == "contrast_id":
            return reader.iter_measured_concepts(value)
        return reader.iter_collection(collection)

    def _build_headers(self) -> list[Header]:
        headers = {"content-type": "application/json", **self._resource.build_headers("GET")}
        return [(name.encode(), value.encode()) for name, value in headers.items()]

    async def _stream(self, method: str, encoding: str, if_none_match: bytes | None) -> Response:
        """The whole collection, straight from the store."""
        position = self._database.get_position()
        etag = build_etag(position, encoding)
        headers = [*self._build_headers(), (b"etag", etag)]
        if if_none_match is not None and etag_matches(etag, if_none_match):
            return _empty_response(304, headers)
        headers += encoding_headers(encoding)
        if method == "HEAD":
            return _empty_response(200, headers)
        collection = self._resource.collection
        if collection is None:
            chunks = stream_search_hits(self._database, position)
        else:
            chunks = stream_collection(self._database, collection, position)
        response = StreamingResponse(_iter_in_threads(encode_chunks(encoding, self._count_bytes(chunks))))
        response.raw_headers = headers
        return response

    def _count_bytes(self, chunks: Iterator[bytes]) -> Iterator[bytes]:
        """The same pieces; once they have ended it is known whether they would fit."""
        size = 0
        for chunk in chunks:
            size += len(chunk)
            yield chunk
        self._collection_bytes = size


class _PrebuiltResponse(Response):
    """A finished reply as a response."""

    def __init__(self, raw_response: RawResponse) -> None:
        self._raw_response = raw_response

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._raw_response.send_to(send)


async def _iter_in_threads(chunks: Iterator[bytes]) -> AsyncIterator[bytes]:
    while (chunk := await run_in_threadpool(next, chunks, None)) is not None:
        if chunk:
            yield chunk


def _empty_response(status: int, headers: list[Header]) -> Response:
    response = Response(status_code=status)
    response.raw_headers = headers
    return response
