"""Cache of complete responses, invalidated by tag."""

import asyncio
from collections import OrderedDict, defaultdict, deque
from collections.abc import Sequence, Set
from contextlib import AbstractAsyncContextManager, suppress

from starlette.concurrency import run_in_threadpool

from lexarium.domain.cache_tags import CATALOGUE_TAG, UNLOGGED_TAG, CacheTag
from lexarium.domain.errors import DatabaseUnavailable, StoreError
from lexarium.store.database import Database
from lexarium.store.position import Position, RevisionChange
from lexarium.web.http.conditional import build_etag, build_not_modified, etag_matches
from lexarium.web.http.encodings import Header, encoding_headers
from lexarium.web.http.limits import hold_slot
from lexarium.web.http.raw_response import RawResponse

# Of v-alpha: resource, parameter and its value.
RequestKey = tuple[str, str, str]
# Of others: path, query, scheme, host, and the values of the request headers that select the response.
SharedKey = tuple[str | bytes, ...]
# Path and query.
UrlKey = tuple[bytes, bytes]
# Request key and content encoding.
CacheKey = tuple[RequestKey | SharedKey, str]

# Rough memory cost of an entry beside its body, and of each of its cache tags.
_ENTRY_OVERHEAD_BYTES = 2_000
_TAG_BYTES = 300
# Headers that a 304 of an API other than v-alpha does not repeat.
_BODY_HEADERS = (b"content-type", b"content-encoding", b"content-disposition")
_MAX_URL_ALIASES = 10_000
_MAX_URL_BYTES = 500
_RENDER_TIMEOUT_SECONDS = 10
# Changes remembered to check responses that were read before them and are stored after.
_RECENT_CHANGES = 100
_POLL_SECONDS = 0.25


class CachedResponse:
    """A 200 response to GET, and its 304 form."""

    __slots__ = (
        "_encoding",
        "_given_etag",
        "_headers",
        "cache_tags",
        "etag",
        "full",
        "not_modified",
        "position",
        "route",
        "size",
    )

    def __init__(  # noqa: PLR0913, PLR0917 (all that makes a response)
        self,
        position: Position,
        body: bytes,
        headers: Sequence[Header],
        encoding: str,
        cache_tags: Set[CacheTag],
        etag: bytes | None = None,
        route: str | None = None,
    ) -> None:
        """Create a response that was read at a position, which is also its ETag if it has no other.

        `route` is the template of its path; by default the path is its own.
        """
        self._headers = headers
        self._encoding = encoding
        self._given_etag = etag
        self.position = position
        self.cache_tags = cache_tags
        self.route = route
        self.etag = etag or build_etag(position, encoding)
        self.size = len(body) + _ENTRY_OVERHEAD_BYTES + _TAG_BYTES * len(cache_tags)
        own_headers = [*headers, (b"etag", self.etag)]
        kept_headers = own_headers if etag is None else [item for item in own_headers if item[0] not in _BODY_HEADERS]
        self.not_modified = RawResponse.from_response(build_not_modified(kept_headers))
        content_length = (b"content-length", b"%d" % len(body))
        self.full = RawResponse(200, [*own_headers, *encoding_headers(encoding), content_length], body)

    def select_response(self, if_none_match: bytes | None) -> RawResponse:
        """Return the 304 form where `If-None-Match` names the ETag, else the full response."""
        return self.not_modified if etag_matches(self.etag, if_none_match) else self.full

    def at_position(self, position: Position) -> "CachedResponse":
        """Return the response as it is at another position at which it is valid."""
        if self._given_etag is not None:
            self.position = position
            return self
        return CachedResponse(position, self.full.body, self._headers, self._encoding, self.cache_tags)


class ResponseCache:
    """LRU cache of one worker, bounded in bytes. All entries are valid at one position."""

    def __init__(self, limit: int, database: Database) -> None:
        self.limit = limit
        self._database = database
        self._position: Position | None = None
        # The last position of the database that had no news, to be compared by identity.
        self._known_position: Position | None = None
        self._entries: OrderedDict[CacheKey, CachedResponse] = OrderedDict()
        self._keys_by_tag: defaultdict[CacheTag, set[CacheKey]] = defaultdict(set)
        self._size = 0
        self._recent_changes: deque[RevisionChange] = deque(maxlen=_RECENT_CHANGES)
        self._url_aliases: OrderedDict[UrlKey, RequestKey] = OrderedDict()
        # Names of the request headers that select among the responses of a URL.
        self._vary_by_url: OrderedDict[UrlKey, tuple[bytes, ...]] = OrderedDict()
        # Whether invalidations were applied in this round of the event loop.
        self._is_checked = False
        self._render_semaphore = asyncio.Semaphore(2)
        self.hits = 0
        self.misses = 0

    def render_slot(self) -> AbstractAsyncContextManager[None]:
        """Hold one of the few slots for rendering until the block ends; raise where none becomes free in time."""
        error = DatabaseUnavailable("Too many responses are being built; try again in a few seconds.")
        return hold_slot(self._render_semaphore, _RENDER_TIMEOUT_SECONDS, error)

    @property
    def usage(self) -> tuple[int, int]:
        """Return the number of entries, and the bytes of memory that they take."""
        return len(self._entries), self._size

    def can_store(self, size: int) -> bool:
        """Return whether a body of this size fits at all."""
        return size + _ENTRY_OVERHEAD_BYTES <= self.limit

    def find_alias(self, path: bytes, query: bytes) -> RequestKey | None:
        """Return the request key of a URL that was seen before, or None."""
        return self._url_aliases.get((path, query))

    def get(self, key: CacheKey) -> CachedResponse | None:
        """Return the cached response if it is known to be valid, else None."""
        return self._get_valid(key) if self._catch_up() else None

    def get_in_round(self, key: CacheKey) -> CachedResponse | None:
        """Return the same for a request that this round of the event loop has read.

        Changes are looked for once for all of them. A request that is sent after a commit is never in a round that
        began before it.
        """
        if not self._is_checked:
            if not self._catch_up():
                return None
            self._is_checked = True
            # Runs before anything else is read.
            asyncio.get_running_loop().call_soon(self._end_round)
        return self._get_valid(key)

    def _end_round(self) -> None:
        self._is_checked = False

    def _catch_up(self) -> bool:
        """Apply invalidations if that is a short query; return whether all are applied."""
        if self._position is None or not self._is_behind():
            return self._position is not None
        if not self._database.is_embedded:
            return False  # A query for the changes could take long, and would block the event loop.
        self._apply_change(self._database.get_revision_change(self._position))
        return self._catch_up()

    def _get_valid(self, key: CacheKey) -> CachedResponse | None:
        response = self._entries.get(key)
        if response is None or self._position is None:
            return None
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
        if key in self._entries or response.size > self.limit or self._is_invalidated(response):
            return
        self._entries[key] = response
        self._size += response.size
        for tag in response.cache_tags:
            self._keys_by_tag[tag].add(key)
        while self._size > self.limit:
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
        current = self._database.get_position()
        if current is self._known_position:
            return False
        if self._position is None or current.has_news_since(self._position):
            return True
        self._known_position = current
        return False

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
        elif change.after.has_news_since(cached_position):
            tags = set(change.invalidated_tags)
            if change.after.revision > cached_position.revision:
                tags.add(CATALOGUE_TAG)
            if change.after.accounts > cached_position.accounts:
                tags.add(UNLOGGED_TAG)
            for tag in tags & self._keys_by_tag.keys():
                for key in list(self._keys_by_tag[tag]):
                    self._evict(key)
            self._recent_changes.append(change._replace(invalidated_tags=tags))
            self._position = change.after

    def _is_invalidated(self, response: CachedResponse) -> bool:
        """Return whether a change since it was read may have invalidated a response."""
        position = response.position
        missed_changes = [change for change in self._recent_changes if change.after.has_news_since(position)]
        assert self._position is not None
        if not missed_changes:
            return self._position.has_news_since(position) or position.has_news_since(self._position)
        return missed_changes[0].before.has_news_since(position) or any(
            change.invalidated_tags & response.cache_tags for change in missed_changes if change.invalidated_tags
        )

    def _reset(self, position: Position) -> None:
        self._entries.clear()
        self._keys_by_tag.clear()
        self._recent_changes.clear()
        self._size = 0
        self._position = position
        self._known_position = None

    def _evict(self, key: CacheKey) -> None:
        response = self._entries.pop(key)
        self._size -= response.size
        for tag in response.cache_tags:
            self._keys_by_tag[tag].discard(key)
            if not self._keys_by_tag[tag]:
                del self._keys_by_tag[tag]

    def find_vary(self, url: UrlKey) -> tuple[bytes, ...] | None:
        """Return the names of the request headers that select among the responses of a URL; None if it has none."""
        return self._vary_by_url.get(url)

    def add_vary(self, url: UrlKey, names: Sequence[bytes]) -> tuple[bytes, ...]:
        """Add names to those of the request headers that select among the responses of a URL; return them all."""
        known = self._vary_by_url.get(url, ())
        vary = tuple(sorted({*known, *names} - {b"accept-encoding"}))
        if len(url[0]) + len(url[1]) <= _MAX_URL_BYTES:
            self._vary_by_url[url] = vary
            if len(self._vary_by_url) > _MAX_URL_ALIASES:
                self._vary_by_url.popitem(last=False)
        return vary

    def add_url_alias(self, path: bytes, query: bytes, request_key: RequestKey) -> None:
        """Remember the request key of a URL."""
        if len(path) + len(query) <= _MAX_URL_BYTES:
            self._url_aliases[path, query] = request_key
            if len(self._url_aliases) > _MAX_URL_ALIASES:
                self._url_aliases.popitem(last=False)
