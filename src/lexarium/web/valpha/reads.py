"""GET and HEAD of v-alpha: from the response cache where they fit, else streamed from the store."""

import asyncio
from collections.abc import Iterator
from urllib.parse import parse_qsl

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.types import ASGIApp

from lexarium.domain.errors import IndexNotReady, NotFound
from lexarium.domain.schema.collections import Collection
from lexarium.services.records import valpha_queries
from lexarium.services.records.valpha_queries import ValphaReader, open_valpha_reader
from lexarium.store.position import Position
from lexarium.web.http.conditional import build_etag, build_not_modified, etag_matches, read_conditional_headers
from lexarium.web.http.encodings import IDENTITY, choose_encoding, encode_body, encode_chunks, encoding_headers
from lexarium.web.http.problems import HTTPProblem
from lexarium.web.http.raw_response import RawResponse
from lexarium.web.http.response_cache import CachedResponse, RequestKey
from lexarium.web.site import Site
from lexarium.web.valpha.resources import FORMATS, WHOLE_COLLECTION, ResourceSpec


class ValphaReads:
    """Reads of one resource."""

    def __init__(self, resource: ResourceSpec, site: Site) -> None:
        self._resource = resource
        self._record_search = site.record_search
        self._database = site.database
        self._response_cache = site.response_cache
        self._renders: dict[tuple[Position, tuple[RequestKey, str]], asyncio.Task[CachedResponse | None]] = {}
        # Size of the whole collection when it was last read.
        self._collection_bytes: int | None = None
        headers = {"content-type": "application/json", **resource.build_headers("GET")}
        self._headers = [(name.encode(), value.encode()) for name, value in headers.items()]

    async def get(self, request: Request) -> ASGIApp:
        """Return the response to GET or HEAD."""
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
                return response.select_response(if_none_match)
        return self._stream(request.method, key[1], if_none_match)

    def _parse_request_key(self, parameters: dict[str, str]) -> RequestKey:
        """Return the first parameter of the resource that has a value; without one, the whole collection."""
        for name in self._resource.parameters:
            if parameters.get(name, "").strip(" "):
                return self._resource.name, name, parameters[name]
        return self._resource.name, WHOLE_COLLECTION, ""

    async def _get_cached(self, key: tuple[RequestKey, str]) -> CachedResponse | None:
        """Return the response, rendered once for concurrent requests; None where the collection does not fit."""
        render_key = (self._database.get_position(), key)
        task = self._renders.get(render_key)
        if task is None:
            task = asyncio.create_task(self._render(key))
            self._renders[render_key] = task
            task.add_done_callback(lambda _: self._renders.pop(render_key))
        # A client that disconnects must not cancel it for the others.
        return await asyncio.shield(task)

    async def _render(self, key: tuple[RequestKey, str]) -> CachedResponse | None:
        request_key, encoding = key
        async with self._response_cache.render_slot():
            await self._response_cache.apply_invalidations()
            identity_response = self._response_cache.get((request_key, IDENTITY))
            if identity_response is None:
                self._response_cache.misses += 1
                rendered = await self._read_current(request_key)
                if rendered is None:
                    return None
                identity_response = rendered
                await self._response_cache.put((request_key, IDENTITY), identity_response)
            if encoding == IDENTITY:
                return identity_response
            body = await run_in_threadpool(encode_body, encoding, identity_response.full.body)
            response = CachedResponse(
                identity_response.position, body, self._headers, encoding, identity_response.cache_tags
            )
            await self._response_cache.put(key, response)
            return response

    async def _read_current(self, request_key: RequestKey) -> CachedResponse | None:
        """Return the response by the vocabularies of its position: with those before, it might be of a private one."""
        while True:
            known = self._database.get_position().vocabularies
            response = await run_in_threadpool(self._read_response, request_key)
            if response is None or response.position.vocabularies <= known:
                return response

    def _read_response(self, request_key: RequestKey) -> CachedResponse | None:
        """Read the current response, not encoded; None where the collection does not fit."""
        _, parameter, value = request_key
        if parameter == "q":
            return self._search(value)
        collection = self._find_collection()
        if parameter == "id":
            if collection is None:
                raise NotFound(f"There is no {self._resource.name} with the id {value!r}.")
            record = valpha_queries.read_record(self._database, collection, value)
            return CachedResponse(record.position, record.body, self._headers, IDENTITY, frozenset(record.cache_tags))
        chunks: list[bytes] = []
        size = 0
        with open_valpha_reader(self._database) as reader:
            for chunk in self._iter_chunks(reader, collection, parameter, value):
                chunks.append(chunk)
                size += len(chunk)
                if parameter == WHOLE_COLLECTION and not self._response_cache.can_store(size):
                    self._collection_bytes = size
                    return None
            if parameter == WHOLE_COLLECTION:
                self._collection_bytes = size
            body = b"".join(chunks)
            return CachedResponse(reader.position, body, self._headers, IDENTITY, frozenset(reader.cache_tags))

    def _search(self, query: str) -> CachedResponse:
        collections = [collection.name for collection in valpha_queries.list_searched_collections()]
        index_position, record_ids = self._record_search.search_ids(query, collections)
        # Opened after the search, so that all hits exist; read as of the index position, which the ETag names.
        with open_valpha_reader(self._database) as reader:
            if reader.position.epoch != index_position.epoch:
                raise IndexNotReady("The search index is being built. Try again in a moment.")
            body = b"".join(reader.iter_hits_for(record_ids, index_position.revision))
            position = reader.position._replace(revision=index_position.revision)
            return CachedResponse(position, body, self._headers, IDENTITY, frozenset(reader.cache_tags))

    def _find_collection(self) -> Collection | None:
        """Return the collection of the resource; None for the search, and where no vocabulary has it."""
        return valpha_queries.find_valpha_collection(self._resource.name) if self._resource.collection else None

    def _iter_chunks(
        self, reader: ValphaReader, collection: Collection | None, parameter: str, value: str
    ) -> Iterator[bytes]:
        if self._resource.collection is None:
            return reader.iter_search_hits()
        if collection is None:
            if parameter == "name":
                raise NotFound(f"There is no {self._resource.name} with the name {value!r}.")
            return iter([b"[]"])
        if parameter == "name":
            return iter([reader.render_by_name(collection, value)])
        if parameter == "contrast_id":
            return reader.iter_measured_concepts(value)
        return reader.iter_collection(collection)

    def _stream(self, method: str, encoding: str, if_none_match: bytes | None) -> ASGIApp:
        """Return the whole collection, streamed from the store."""
        position = self._database.get_position()
        etag = build_etag(position, encoding)
        headers = [*self._headers, (b"etag", etag)]
        if etag_matches(etag, if_none_match):
            return build_not_modified(headers)
        headers += encoding_headers(encoding)
        if method == "HEAD":
            return RawResponse(200, headers, b"")
        collection = self._find_collection()
        if self._resource.collection is None:
            chunks = valpha_queries.stream_search_hits(self._database, position)
        elif collection is None:
            chunks = iter([b"[]"])
        else:
            chunks = valpha_queries.stream_collection(self._database, collection, position)
        response = StreamingResponse(filter(None, encode_chunks(encoding, self._count_bytes(chunks))))
        response.raw_headers = headers
        return response

    def _count_bytes(self, chunks: Iterator[bytes]) -> Iterator[bytes]:
        """Yield the chunks, and note their total size: it decides whether they fit next time."""
        size = 0
        for chunk in chunks:
            size += len(chunk)
            yield chunk
        self._collection_bytes = size
