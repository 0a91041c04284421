"""Finished answers: bytes and headers, kept until a change touches what they rest on."""

import asyncio
from collections import OrderedDict, defaultdict, deque
from collections.abc import AsyncIterator, Sequence, Set
from contextlib import asynccontextmanager, suppress

from starlette.concurrency import run_in_threadpool

from lexarium.domain.cache_tags import CacheTag
from lexarium.domain.errors import DatabaseUnavailable, StoreError
from lexarium.store.database import Database
from lexarium.store.position import Position, RevisionChange
from lexarium.web.http.conditional import RawResponse, build_etag, etag_matches
from lexarium.web.http.encodings import Header, encoding_headers

RequestKey = tuple[str, str, str]
"""What a request asks for, however it is spelt: the resource, the parameter that counts, its value."""
CacheKey = tuple[RequestKey, str]
"""What is asked for, and the encoding."""

_ENTRY_OVERHEAD_BYTES = 2_000
"""What an answer costs in memory beside its body, roughly, in bytes."""
_MAX_URL_ALIASES = 10_000
"""How many spellings of requests are remembered."""
_MAX_URL_BYTES = 500
_RENDER_TIMEOUT_SECONDS = 10
"""How long the making of an answer waits for its turn."""
_RECENT_CHANGES = 100
"""How many moves of the catalogue are remembered, for answers that were read before them and come to be kept after."""
_POLL_SECONDS = 0.25
"""How long answers may be behind what other nodes have written, where nobody asks for any."""


class CachedResponse:
    """An answer to GET, with the reply a client gets instead that has it already."""

    __slots__ = ("_encoding", "_headers", "cache_tags", "etag", "full", "not_modified", "position", "size")

    def __init__(
        self,
        position: Position,
        body: bytes,
        headers: Sequence[Header],
        encoding: str,
        cache_tags: Set[CacheTag] = frozenset(),
    ) -> None:
        self._headers = headers
        self._encoding = encoding
        self.position = position
        self.cache_tags = cache_tags
        """What it rests on: it holds until a change shakes one of these."""
        self.etag = build_etag(position, encoding)
        self.size = len(body) + _ENTRY_OVERHEAD_BYTES
        own_headers = [*headers, (b"etag", self.etag)]
        self.not_modified = RawResponse(304, own_headers, b"")
        self.full = RawResponse(
            200, [*own_headers, *encoding_headers(encoding), (b"content-length", b"%d" % len(body))], body
        )

    def select_response(self, if_none_match: bytes | None) -> RawResponse:
        """What a client gets that sent this `If-None-Match`."""
        if if_none_match is not None and etag_matches(self.etag, if_none_match):
            return self.not_modified
        return self.full

    def at_position(self, position: Position) -> "CachedResponse":
        """The same answer for another position, at which it holds too."""
        return CachedResponse(position, self.full.body, self._headers, self._encoding, self.cache_tags)


class ResponseCache:
    """The answers of one worker, up to a size, all of which hold at one position."""

    def __init__(self, limit: int, database: Database) -> None:
        self._limit = limit
        self._database = database
        self._position: Position | None = None
        """Where the catalogue stood when the answers were last held against it."""
        self._entries: OrderedDict[CacheKey, CachedResponse] = OrderedDict()
        self._keys_by_tag: defaultdict[CacheTag, set[CacheKey]] = defaultdict(set)
        """Which answers rest on what; nothing stands here that has none."""
        self._size = 0
        self._recent_changes: deque[RevisionChange] = deque(maxlen=_RECENT_CHANGES)
        """The last moves that were followed."""
        self._url_aliases: OrderedDict[tuple[bytes, bytes], RequestKey] = OrderedDict()
        self._render_semaphore = asyncio.Semaphore(2)
        self.hits = 0
        """How often an answer that was asked for was there."""
        self.misses = 0
        """How often one had to be made."""

    @property
    def size(self) -> int:
        """How many bytes are kept."""
        return self._size

    @asynccontextmanager
    async def render_slot(self) -> AsyncIterator[None]:
        """To be held while a body is made: however many ask, few are in the making at a time."""
        try:
            async with asyncio.timeout(_RENDER_TIMEOUT_SECONDS):
                await self._render_semaphore.acquire()
        except TimeoutError:
            raise DatabaseUnavailable("Too many answers are waiting to be made.") from None
        try:
            yield
        finally:
            self._render_semaphore.release()

    @property
    def usage(self) -> tuple[int, int]:
        """How many there are, and how many bytes of memory they take."""
        return len(self._entries), self._size

    def can_store(self, size: int) -> bool:
        """Whether a body of so many bytes can be kept at all."""
        return size + _ENTRY_OVERHEAD_BYTES <= self._limit

    def find_by_url(self, path: bytes, query: bytes, encoding: str) -> CachedResponse | None:
        """The answer to a request spelt like this, if that is known and it is finished."""
        request_key = self._url_aliases.get((path, query))
        return None if request_key is None else self.get((request_key, encoding))

    def get(self, key: CacheKey) -> CachedResponse | None:
        """The answer, if it is kept and known to hold still."""
        response = self._entries.get(key)
        if response is None or self._position is None:
            return None
        if self._is_behind():
            if not self._database.is_embedded:
                return None  # To ask what has changed could take long, and every other request would wait.
            self._apply_change(self._database.get_revision_change(self._position))
            return self.get(key)
        if response.position != self._position:
            response = self._entries[key] = response.at_position(self._position)
        self._entries.move_to_end(key)
        self.hits += 1
        return response

    async def put(self, key: CacheKey, response: CachedResponse) -> None:
        """Keep an answer, unless it may hold no longer, or is too large."""
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
        """Find out which answers still hold, where `get` leaves that to whoever can wait."""
        if self._position is None or not self._is_behind():
            return
        if self._database.is_embedded:
            self._apply_change(self._database.get_revision_change(self._position))
        else:
            self._apply_change(await run_in_threadpool(self._database.get_revision_change, self._position))

    async def run_invalidation_loop(self) -> None:
        """Catch up whenever the catalogue moves, until cancelled, where `get` does not do so by itself.

        Else, should the database go before anyone has asked again, nothing of what still holds could be served.
        """
        while not self._database.is_embedded:
            await asyncio.sleep(_POLL_SECONDS)
            with suppress(StoreError):
                await self.apply_invalidations()

    def _is_behind(self) -> bool:
        current_position, cached_position = self._database.get_position(), self._position
        return (
            cached_position is None
            or current_position.epoch != cached_position.epoch
            or current_position.revision > cached_position.revision
        )

    def _apply_change(self, change: RevisionChange) -> None:
        """Drop what holds no longer."""
        cached_position = self._position
        if cached_position is None or change.invalidated_tags is None or change.after.epoch != cached_position.epoch:
            self._reset(change.after)
        elif change.after.revision > cached_position.revision:
            for tag in change.invalidated_tags & self._keys_by_tag.keys():
                for key in list(self._keys_by_tag[tag]):
                    self._evict(key)
            self._recent_changes.append(change)
            self._position = change.after

    def _is_invalidated(self, response: CachedResponse) -> bool:
        """Whether a change since it was read may have shaken an answer."""
        revision = response.position.revision
        missed_changes = [change for change in self._recent_changes if change.after.revision > revision]
        assert self._position is not None
        if not missed_changes:
            return revision != self._position.revision
        return missed_changes[0].before.revision > revision or any(
            change.invalidated_tags & response.cache_tags for change in missed_changes if change.invalidated_tags
        )

    def _reset(self, position: Position) -> None:
        """Begin anew at a position."""
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
        """Remember what a request spelt like this asks for."""
        if len(path) + len(query) <= _MAX_URL_BYTES:
            self._url_aliases[path, query] = request_key
            if len(self._url_aliases) > _MAX_URL_ALIASES:
                self._url_aliases.popitem(last=False)
