"""Store responses to anonymous readers in the response cache, and answer from it.

A response is stored if its `Cache-Control` is `no-cache`, and stays until one of its dependencies changes. Its `Vary`
header names the request headers that select it. Readers with a token or a session are always answered by the
application, so all entries are for the vocabularies that everyone may read; a change of those empties the cache.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lexarium.domain.cache_tags import CATALOGUE_TAG, UNLOGGED_TAG, CacheTag
from lexarium.domain.errors import StoreError
from lexarium.store.database import Database
from lexarium.store.dependencies import Dependencies, collect_dependencies
from lexarium.store.position import Position
from lexarium.web.http import session
from lexarium.web.http.conditional import hash_etag, read_conditional_headers
from lexarium.web.http.encodings import IDENTITY, choose_encoding
from lexarium.web.http.response_cache import CachedResponse, ResponseCache, SharedKey, UrlKey
from lexarium.web.middleware.request_log import route_template
from lexarium.web.valpha.resources import VALPHA_PATH

# Larger responses would leave little room for others.
_MAX_CACHE_SHARE = 16
_SESSION_COOKIE = session.COOKIE.encode()


def find_shared_key(cache: ResponseCache, scope: Mapping[str, Any], scheme: str) -> SharedKey | None:
    """Return the key of the response to an anonymous reader, or None if the URL has no responses for everyone."""
    url = scope["raw_path"], scope["query_string"]
    vary = cache.find_vary(url)
    return None if vary is None else _build_request_key(scope, url, scheme, vary)


def _build_request_key(scope: Mapping[str, Any], url: UrlKey, scheme: str, vary: Sequence[bytes]) -> SharedKey | None:
    """Return what selects a response, or None for a reader who is not anonymous."""
    selected = dict.fromkeys((b"host", *vary), b"")
    for name, value in scope["headers"]:
        if name == b"authorization" or (name == b"cookie" and _SESSION_COOKIE in value):
            return None
        if name in selected:
            selected[name] += value + b"\n"
    return *url, scheme, *selected.values()


class CachingMiddleware:
    """Answer GET and HEAD of anonymous readers from the cache, or else by the application, and store its responses.

    The v-alpha API stores its responses itself.
    """

    def __init__(self, app: ASGIApp, response_cache: ResponseCache, database: Database) -> None:
        self._app = app
        self._cache = response_cache
        self._max_bytes = response_cache.limit // _MAX_CACHE_SHARE
        self._database = database

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_read = scope["type"] == "http" and scope["method"] in ("GET", "HEAD")
        url = (scope["raw_path"], scope["query_string"]) if is_read else (b"", b"")
        if (
            not is_read
            or scope["path"].startswith(VALPHA_PATH)
            or _build_request_key(scope, url, scope["scheme"], ()) is None
        ):
            await self._app(scope, receive, send)
            return
        try:
            await self._cache.apply_invalidations()
            position = self._database.get_position()
        except StoreError:  # The application answers with the error.
            await self._app(scope, receive, send)
            return
        accept_encoding, if_none_match, _ = read_conditional_headers(scope)
        encoding = choose_encoding(accept_encoding)
        shared_key = find_shared_key(self._cache, scope, scope["scheme"])
        cached = None if shared_key is None else self._cache.get((shared_key, encoding))
        if cached is not None:
            await cached.select_response(if_none_match)(scope, receive, send)
            return
        with collect_dependencies() as dependencies:
            recorder = _Recorder(scope, receive, send, if_none_match, position, dependencies, self._max_bytes)
            await self._app(scope, receive, recorder.send)
        response = recorder.get_response(encoding)
        # A handler may answer HEAD without making the body.
        if response is not None and scope["method"] == "GET":
            self._cache.misses += 1
            vary = self._cache.add_vary(url, recorder.vary)
            request_key = _build_request_key(scope, url, scope["scheme"], vary)
            if request_key is not None:
                await self._cache.put((request_key, encoding), response)


class _Recorder:
    """Sends the response of the application, and keeps it.

    A response that is complete is sent with an ETag, or as a 304. The chunks of others are sent as they come.
    """

    def __init__(  # noqa: PLR0913, PLR0917 (a request, and what is known of its response)
        self,
        scope: Scope,
        receive: Receive,
        send: Send,
        if_none_match: bytes | None,
        position: Position,
        dependencies: Dependencies,
        limit: int,
    ) -> None:
        self._scope = scope
        self._receive = receive
        self._send = send
        self._if_none_match = if_none_match
        self._position = position
        self._dependencies = dependencies
        self._limit = limit
        self._start: Message | None = None
        self._chunks: list[bytes] = []
        self._size = 0
        self._is_streamed = False
        self._response: CachedResponse | None = None
        self._encoding = IDENTITY
        self.vary: list[bytes] = []

    async def send(self, message: Message) -> None:
        """Send a message of the application."""
        if message["type"] == "http.response.start" and _is_shared(message):
            self._start = message
            return
        if self._start is None or message["type"] != "http.response.body":
            await self._send(message)
            return
        has_more = message.get("more_body", False)
        if self._size <= self._limit:
            self._chunks.append(bytes(message.get("body", b"")))
            self._size += len(self._chunks[-1])
        if not has_more:
            self._response = self._build_response(self._start["headers"])
        if self._is_streamed or has_more:
            if not self._is_streamed:
                self._is_streamed = True
                await self._send(self._start)
            await self._send(message)
        elif self._response is not None:
            await self._response.select_response(self._if_none_match)(self._scope, self._receive, self._send)
        else:
            await self._send(self._start)
            await self._send(message)

    def get_response(self, encoding: str) -> CachedResponse | None:
        """Return the response, or None if it must not be stored."""
        is_storable = self._dependencies.is_cacheable and self._size <= self._limit
        return self._response if is_storable and self._encoding in (IDENTITY, encoding) else None

    def _build_response(self, raw_headers: Iterable[tuple[bytes, bytes]]) -> CachedResponse | None:
        headers = [(name.lower(), value) for name, value in raw_headers]
        given = dict(headers)
        etag = given.get(b"etag")
        if self._is_streamed and (etag is None or self._size > self._limit):
            return None
        body = b"".join(self._chunks)
        if int(given.get(b"content-length", len(body))) != len(body):
            return None  # A response to HEAD for which no body was made.
        own_headers = [header for header in headers if header[0] not in (b"etag", b"content-length")]
        self._encoding = given.get(b"content-encoding", b"identity").decode()
        self.vary = [name.strip().lower() for key, value in headers if key == b"vary" for name in value.split(b",")]
        route = route_template(self._scope)
        return CachedResponse(
            self._get_position(),
            body,
            own_headers,
            IDENTITY,
            self._list_cache_tags(),
            etag or hash_etag(body).encode(),
            route,
        )

    def _get_position(self) -> Position:
        """Return the position that the response is made of at least: the search index may be behind."""
        if self._dependencies.index_revision is None:
            return self._position
        return self._position._replace(revision=min(self._position.revision, self._dependencies.index_revision))

    def _list_cache_tags(self) -> frozenset[CacheTag]:
        tags = self._dependencies.cache_tags
        if self._is_streamed:
            return frozenset((CATALOGUE_TAG, UNLOGGED_TAG))
        # All changes of records invalidate the first, so the others are superfluous.
        return frozenset(tags & {CATALOGUE_TAG, UNLOGGED_TAG} if CATALOGUE_TAG in tags else tags)


def _is_shared(start: Message) -> bool:
    """Return whether a response is for everyone, and caches must ask each time whether it is still valid."""
    headers = {name.lower(): value for name, value in start["headers"]}
    return (
        start["status"] == 200
        and headers.get(b"cache-control") == b"no-cache"
        and b"set-cookie" not in headers
        and headers.get(b"vary") != b"*"
    )
