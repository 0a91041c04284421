"""The live streams of one worker: how many there are, and when they end."""

import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager

from starlette.concurrency import run_in_threadpool

from lexarium.web.http.limits import Limits
from lexarium.web.http.problems import HTTPProblem

_MAX_SECONDS = 15 * 60


class EventStreams:
    """Counts the live streams. They are asked now and then whether they may go on."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._count = 0
        self._is_closing = False

    def require_capacity(self) -> None:
        """Raise a 503 where there are as many as there may be."""
        if self._count >= self._limit:
            raise HTTPProblem(503, "There are too many live streams here. Try again, or ask without a stream.")

    @contextmanager
    def open_stream(self) -> Iterator["EventStream"]:
        """One more, until the block ends."""
        self._count += 1
        try:
            yield EventStream(self)
        finally:
            self._count -= 1

    @property
    def count(self) -> int:
        """How many there are."""
        return self._count

    @property
    def is_closing(self) -> bool:
        """Whether all are to end."""
        return self._is_closing

    def close(self) -> None:
        """Have all of them end soon: the server stops."""
        self._is_closing = True


class EventStream:
    """One live stream. It ends in time, so that none is kept for a client that has left without a word."""

    def __init__(self, streams: EventStreams) -> None:
        self._streams = streams
        self._deadline = time.monotonic() + _MAX_SECONDS

    @property
    def is_alive(self) -> bool:
        """Whether it may; its client comes back where it may not."""
        return not self._streams.is_closing and time.monotonic() < self._deadline


async def read_first_chunk(chunks: Iterator[bytes], limits: Limits) -> bytes | None:
    """The first piece, to be made before the answer begins: what can go wrong does so here, and has a status."""
    async with limits.heavy_work.acquire_slot():
        return await run_in_threadpool(next, chunks, None)


async def iter_chunks(chunk: bytes | None, chunks: Iterator[bytes], limits: Limits) -> AsyncIterator[bytes]:
    """The first piece and those after it, each made once the client has taken the one before; empty ones left out."""
    while chunk is not None:
        if chunk:
            yield chunk
        async with limits.heavy_work.wait_for_slot():
            chunk = await run_in_threadpool(next, chunks, None)
