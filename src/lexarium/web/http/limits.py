"""How much a client may send: how large a body, how slowly, and how many writes a second."""

import asyncio
from collections.abc import AsyncGenerator, MutableMapping
from contextlib import asynccontextmanager
from typing import Any

from starlette.requests import Request

from lexarium.settings import Settings
from lexarium.web.http.problems import HTTPProblem
from lexarium.web.http.rate_limits import RateLimiter, SignInLimiter

_MEBIBYTE = 1 << 20
FREE_BODY_BYTES = 16_384
"""How many bytes of every body, and of the headers, count for nothing: however much others hold, an ordinary write is
taken."""
_RESERVED_KEY = "held"
"""Where a request says how much of its body is held."""


class BodyMemory:
    """The bodies and large headers that a worker holds, of requests that are not answered yet.

    They have a limit in bytes, all together. Else clients who send slowly could take all the memory there is.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self.reserved_bytes = 0
        """In bytes."""

    def reserve(self, state: MutableMapping[str, Any], size: int) -> None:
        """Hold a body of which so much is there by now. Raises a 503 where that is too much, with all others.

        The size is kept in `state`, for the next call and for `let_go`.
        """
        counted_bytes = max(0, size - FREE_BODY_BYTES)
        additional_bytes = counted_bytes - state.get(_RESERVED_KEY, 0)
        if additional_bytes > 0 and self.reserved_bytes + additional_bytes > self._max_bytes:
            raise HTTPProblem(503, "The server holds as much as it can of what others send. Try again in a moment.")
        self.reserved_bytes += additional_bytes
        state[_RESERVED_KEY] = counted_bytes

    def release(self, state: MutableMapping[str, Any]) -> None:
        """Hear that a request has been answered."""
        self.reserved_bytes -= state.pop(_RESERVED_KEY, 0)


class HeavyWorkLimiter:
    """Turns for work that keeps a thread busy for long: few at a time, so that however many ask, others find threads.

    Nobody holds a turn while a client is waited for.
    """

    def __init__(self, max_parallel: int, timeout_seconds: int) -> None:
        self._semaphore = asyncio.Semaphore(max_parallel)
        self._timeout_seconds = timeout_seconds

    @asynccontextmanager
    async def acquire_slot(self) -> AsyncGenerator[None, None]:
        """Hold a turn until the block ends. Raises a 503 where none comes in time."""
        try:
            async with asyncio.timeout(self._timeout_seconds):
                await self._semaphore.acquire()
        except TimeoutError:
            detail = "Too many requests to annotate, export or reconcile wait before this one. Try again later."
            raise HTTPProblem(503, detail, {"Retry-After": str(self._timeout_seconds)}) from None
        try:
            yield
        finally:
            self._semaphore.release()

    @asynccontextmanager
    async def wait_for_slot(self) -> AsyncGenerator[None, None]:
        """Hold a turn until the block ends, however long it takes to come: for an answer that has begun."""
        async with self._semaphore:
            yield


class Limits:
    """The limits of one worker."""

    def __init__(self, settings: Settings) -> None:
        self.body_bytes = settings.body_kb * 1024
        self.body_seconds = settings.body_seconds
        self.batch_bytes = settings.batch_mb * _MEBIBYTE
        self.batch_lines = settings.batch_lines
        self.upload_bytes = settings.upload_mb * _MEBIBYTE
        self.body_memory = BodyMemory(settings.bodies_mb * _MEBIBYTE)
        self.write_limiter = RateLimiter(settings.write_rate, settings.write_burst)
        self.sign_in_limiter = SignInLimiter(settings.sign_in_rate)
        self.batch_semaphore = asyncio.Semaphore(1)
        """To be held while a batch is written: only one can be, and those that wait take no thread from others."""
        self.heavy_work = HeavyWorkLimiter(settings.heavy_at_once, settings.heavy_seconds)

    async def read_body(self, request: Request) -> bytes:
        """The whole body; raises where it is too large or too slow. The request keeps it, so it may be asked again."""
        if not hasattr(request, "_body"):
            request._body = b"".join([chunk async for chunk in self.iter_body(request, self.body_bytes)])
        return request._body

    async def iter_body(
        self, request: Request, max_bytes: int, max_in_memory: int | None = None
    ) -> AsyncGenerator[bytes, None]:
        """A body of at most so many bytes as it comes; raises where it is too large or too slow.

        `kept` is how much of it stays in memory, where that is not all.
        """
        too_large = HTTPProblem(413, f"The body must have at most {max_bytes} bytes.")
        length = request.headers.get("content-length", "")
        if length.isdecimal() and int(length) > max_bytes:
            raise too_large
        start = asyncio.get_running_loop().time()
        size = 0
        more = True
        try:
            while more:
                # What is larger may take longer, in proportion.
                async with asyncio.timeout_at(start + self.body_seconds * max(1.0, size / _MEBIBYTE)):
                    message = await request.receive()
                if message["type"] == "http.disconnect":
                    raise HTTPProblem(400, "The body ended too early.")
                chunk, more = message.get("body", b""), message.get("more_body", False)
                size += len(chunk)
                if size > max_bytes:
                    raise too_large
                self.body_memory.reserve(
                    request.scope.setdefault("state", {}), size if max_in_memory is None else min(size, max_in_memory)
                )
                yield chunk
        except TimeoutError:
            raise HTTPProblem(408, "The body took too long.", {"Connection": "close"}) from None
