"""Stream responses: live event streams, and bodies made chunk by chunk in threads."""

import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TypeVar

from starlette.concurrency import run_in_threadpool
from starlette.responses import StreamingResponse

from lexarium.web.http.limits import Limits
from lexarium.web.http.problems import HTTPProblem

T = TypeVar("T")

_MAX_SECONDS = 15 * 60


class EventStreams:
    """Count of the live streams of one worker, and whether they are to end."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self.count = 0
        self.is_closing = False

    def require_capacity(self) -> None:
        """Raise a 503 where the limit is reached."""
        if self.count >= self._limit:
            raise HTTPProblem(503, "Too many live streams; try again later, or poll.")

    @contextmanager
    def open_stream(self) -> Iterator[Callable[[], bool]]:
        """Count one more stream until the block ends; yield a function that returns whether it may go on.

        It has a maximum duration, so that none is kept for a client that left silently. Others reconnect.
        """
        deadline = time.monotonic() + _MAX_SECONDS
        self.count += 1
        try:
            yield lambda: not self.is_closing and time.monotonic() < deadline
        finally:
            self.count -= 1

    def close(self) -> None:
        """End all streams soon: the server stops."""
        self.is_closing = True


async def stream_chunks(
    chunks: Iterator[bytes], limits: Limits, media_type: str, headers: Mapping[str, str]
) -> StreamingResponse:
    """Return a response of chunks, once the first of them is made."""
    first_chunk = await read_first_chunk(chunks, limits)
    return StreamingResponse(iter_chunks(first_chunk, chunks, limits), headers=headers, media_type=media_type)


async def run_steps(steps: Iterator[T | None], limits: Limits) -> T:
    """Return the result that comes after steps, each of which yields None. Other heavy work runs between them."""
    async with limits.heavy_work.acquire_slot():
        result = await run_in_threadpool(next, steps)
    while result is None:
        async with limits.heavy_work.wait_for_slot():
            result = await run_in_threadpool(next, steps)
    return result


async def read_first_chunk(chunks: Iterator[bytes], limits: Limits) -> bytes | None:
    """Return the first chunk, made before the response starts: errors can still have a status."""
    async with limits.heavy_work.acquire_slot():
        return await run_in_threadpool(next, chunks, None)


async def iter_chunks(chunk: bytes | None, chunks: Iterator[bytes], limits: Limits) -> AsyncIterator[bytes]:
    """Yield the first chunk and those after it, each made once the client took the one before; skip empty ones."""
    while chunk is not None:
        if chunk:
            yield chunk
        async with limits.heavy_work.wait_for_slot():
            chunk = await run_in_threadpool(next, chunks, None)
