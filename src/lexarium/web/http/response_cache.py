"""Cache of complete responses, invalidated by tag."""

import asyncio
from collections import OrderedDict, defaultdict, deque
from collections.abc import Sequence, Set
from contextlib import AbstractAsyncContextManager, suppress

from starlette.concurrency import run_in_threadpool

from lexarium.domain.cache_tags import CacheTag
from lexarium.domain.errors import DatabaseUnavailable, StoreError
from lexarium.store.database import Database
from lexarium.store.position import Position, RevisionChange
from lexarium.web.http.conditional import build_etag, build_not_modified, etag_matches
from lexarium.web.http.encodings import Header, encoding_headers
from lexarium.web.http.limits import hold_slot
from lexarium.web.http.raw_response import RawResponse

# Resource, parameter and its value.
RequestKey = tuple[str, str, str]
# Request key and content encoding.
CacheKey = tuple[RequestKey, str]

# Rough memory cost of an entry beside its body.
_ENTRY_OVERHEAD_BYTES = 2_000
_MAX_URL_ALIASES = 10_000
_MAX_URL_BYTES = 500
_RENDER_TIMEOUT_SECONDS = 10
# Changes remembered to check responses that were read before them and are stored after.
_RECENT_CHANGES = 100
_POLL_SECONDS = 0.25


class CachedResponse:
    """A 200 response to GET, and its 304 form."""

    __slots__ = ("_encoding", "_headers", "cache_tags", "etag", "full", "not_modified", "position", "size")

    def __init__(
        self, position: Position, body: bytes, headers: Sequence[Header], encoding: str, cache_tags: Set[CacheTag]
    ) -> None:
        self._headers = headers
        self._encoding = encoding
        self.position = position
        self.cache_tags = cache_tags
        self.etag = build_etag(position, encoding)
        self.size = len(body) + _ENTRY_OVERHEAD_BYTES
        own_headers = [*headers, (b"etag", self.etag)]
        self.not_modified = RawResponse.from_response(build_not_modified(own_headers))
        content_length = (b"content-length", b"%d" % len(body))
        self.full = RawResponse(200, [*own_headers, *encoding_headers(encoding), content_length], body)

    def select_response(self, if_none_match: bytes | None) -> RawResponse:
        """Return the 304 form where `If-None-Match` names the ETag, else the full response."""
        return self.not_modified if etag_matches(self.etag, if_none_match) else self.full

    def at_position(self, position: Position) -> "CachedResponse":
        """Return a copy that is valid at another position."""
        return CachedResponse(position, self.full.body, self._headers, self._encoding, self.cache_tags)


class ResponseCache:
    """LRU cache of one worker, bounded in bytes. All entries are valid at one position."""

    def __init__(self, limit: int, database: Database) -> None:
        self._limit = limit
        self._database = database
        self._position: Position | None = None
        self._entries: OrderedDict[CacheKey, CachedResponse] = OrderedDict()
        self._keys_by_tag: defaultdict[CacheTag, set[CacheKey]] = defaultdict(set)
        self._size = 0
        self._recent_changes: deque[RevisionChange] = deque(maxlen=_RECENT_CHANGES)
        self._url_aliases: OrderedDict[tuple[bytes, bytes], RequestKey] = OrderedDict()
        self._render_semaphore = asyncio.Semaphore(2)
        self.hits = 0
        self.misses = 0

    def render_slot(self) -> AbstractAsyncContextManager[None]:
        """Hold one of the few slots for rendering until the block ends; raise where none becomes free in time."""
        error = DatabaseUnavailable("Too many answers are waiting to be made.")
        return hold_slot(self._render_semaphore, _RENDER_TIMEOUT_SECONDS, error)

    @property
    def usage(self) -> tuple[int, int]:
        """Return the number of entries, and the bytes of memory that they take."""
        return len(self._entries), self._size

    def can_store(self, size: int) -> bool:
        """Return whether a body of this size fits at all."""
        return size + _ENTRY_OVERHEAD_BYTES <= self._limit

    def find_by_url(self, path: bytes, query: bytes, encoding: str) -> CachedResponse | None:
        """Return the cached response for a URL that was seen before, or None."""
        request_key = self._url_aliases.get((path, query))
        return None if request_key is None else self.get((request_key, encoding))

    def get(self, key: CacheKey) -> CachedResponse | None:
        """Return the cached response if it is known to be valid, else None."""
        response = self._entries.get(key)
        if response is None or self._position is None:
            return None
        if self._is_behind():
            if not self._database.is_embedded:
                return None  # A query for the changes could take long, and would block the event loop.
            self._apply_change(self._database.get_revision_change(self._position))
            return self.get(key)
        if response.position != self._position:
            response = self._entries[key] = response.at_position(self._position)
        self._entries.move_to_end(key)
        self.hits += 1
        return response

    async def put(self, key: CacheKey, response: CachedResponse) -> None:
        """Store a response, unless it is too large or may be outdated."""
        await self.apply_invalidations()
        if self._position is None or response.position.epoch != self._position.epoch:
            self._reset(response.position)
        if key in self._entries or response.size > self._limit or self._is_invalidated(response):
            return
        self._entries[key] = response
        self._size += response.size
        for tag in response.cache_tags:
            self._keys_by_tag[tag].add(key)
        while self._size > self._limit:
            self._evict(next(iter(self._entries)))

    async def apply_invalidations(self) -> None:
        """Evict what changes have invalidated since the last call."""
        if self._position is None or not self._is_behind():
            return
        read_change = self._database.get_revision_change
        if self._database.is_embedded:
            self._apply_change(read_change(self._position))
        else:
            self._apply_change(await run_in_threadpool(read_change, self._position))

    async def run_invalidation_loop(self) -> None:
        """Apply invalidations until cancelled, where `get` does not do so.

        Otherwise valid entries could not be served if the database failed before the next request.
        """
        while not self._database.is_embedded:
            await asyncio.sleep(_POLL_SECONDS)
            with suppress(StoreError):
                await self.apply_invalidations()

    def _is_behind(self) -> bool:
        current, cached = self._database.get_position(), self._position
        return cached is None or current.epoch != cached.epoch or current.revision > cached.revision

    def _apply_change(self, change: RevisionChange) -> None:
        cached_position = self._position
        if (
            cached_position is None
            or change.invalidated_tags is None
            or change.after.epoch != cached_position.epoch
            # Another vocabulary may be the one that is served, or everyone may no longer read it.
            or change.after.vocabularies != cached_position.vocabularies
        ):
            self._reset(change.after)
        elif change.after.revision > cached_position.revision:
            for tag in change.invalidated_tags & self._keys_by_tag.keys():
                for key in list(self._keys_by_tag[tag]):
                    self._evict(key)
            self._recent_changes.append(change)
            self._position = change.after

    def _is_invalidated(self, response: CachedResponse) -> bool:
        """Return whether a change since it was read may have invalidated a response."""
        revision = response.position.revision
        missed_changes = [change for change in self._recent_changes if change.after.revision > revision]
        assert self._position is not None
        if not missed_changes:
            return revision != self._position.revision
        return missed_changes[0].before.revision > revision or any(
            change.invalidated_tags & response.cache_tags for change in missed_changes if change.invalidated_tags
        )

    def _reset(self, position: Position) -> None:
        self._entries.clear()
        self._keys_by_tag.clear()
        self._recent_changes.clear()
        self._size = 0
        self._position = position

    def _evict(self, key: CacheKey) -> None:
        response = self._entries.pop(key)
        self._size -= response.size
        for tag in response.cache_tags:
            self._keys_by_tag[tag].discard(key)
            if not self._keys_by_tag[tag]:
                del self._keys_by_tag[tag]

    def add_url_alias(self, path: bytes, query: bytes, request_key: RequestKey) -> None:
        """Remember the request key of a URL."""
        if len(path) + len(query) <= _MAX_URL_BYTES:
            self._url_aliases[path, query] = request_key
            if len(self._url_aliases) > _MAX_URL_ALIASES:
                self._url_aliases.popitem(last=False)
