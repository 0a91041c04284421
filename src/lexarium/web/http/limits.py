"""Limits of one worker: size and speed of request bodies, rates, and heavy work."""

import asyncio
import math
from collections import Counter
from collections.abc import AsyncGenerator, MutableMapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

from starlette.requests import Request

from lexarium.settings import Settings
from lexarium.web.http.problems import HTTPProblem
from lexarium.web.http.rate_limits import RateLimiter, SignInLimiter, client_address, normalize_network

_MEBIBYTE = 1 << 20
# Bytes of every body and of its headers that are not counted: an ordinary write is accepted whatever others hold.
FREE_BODY_BYTES = 16_384
# Keys in the state of a request: how many bytes of its body are reserved; its network and the bytes of its text.
_RESERVED_KEY, _TEXT_KEY = "held", "annotated"


class BodyMemory:
    """Memory for bodies and large headers of unanswered requests, with one limit in bytes.

    Without it, clients that send slowly could exhaust the memory.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self.reserved_bytes = 0

    def reserve(self, state: MutableMapping[str, Any], size: int) -> None:
        """Reserve memory for the part of a body received so far; raise a 503 where the limit is exceeded.

        The size is kept in `state`, for the next call and for `release`.
        """
        counted_bytes = max(0, size - FREE_BODY_BYTES)
        additional_bytes = counted_bytes - state.get(_RESERVED_KEY, 0)
        if additional_bytes > 0 and self.reserved_bytes + additional_bytes > self._max_bytes:
            raise HTTPProblem(503, "Too many request bodies in progress; try again in a few seconds.")
        self.reserved_bytes += additional_bytes
        state[_RESERVED_KEY] = counted_bytes

    def release(self, state: MutableMapping[str, Any]) -> None:
        """Release the memory of a request that was answered."""
        self.reserved_bytes -= state.pop(_RESERVED_KEY, 0)


class TextLimit:
    """Limit of the bytes of text that one client has annotated at once, from the start of a request to its end."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._bytes_by_client: Counter[str] = Counter()

    def reserve(self, request: Request, size: int) -> None:
        """Count the text of a request, as far as its size is known; raise a 429 where the limit is exceeded."""
        state = request.scope.setdefault("state", {})
        client, counted_bytes = state.get(_TEXT_KEY) or (normalize_network(client_address(request)), 0)
        additional_bytes = max(0, size - counted_bytes)
        if additional_bytes and self._bytes_by_client[client] + additional_bytes > self._max_bytes:
            raise HTTPProblem(
                429,
                f"One client can have at most {self._max_bytes // _MEBIBYTE} MiB of text annotated at the same time."
                " Retry when other requests are done.",
                {"Retry-After": "1"},
            )
        self._bytes_by_client[client] += additional_bytes
        state[_TEXT_KEY] = client, counted_bytes + additional_bytes

    def release(self, state: MutableMapping[str, Any]) -> None:
        """Release the text of a request that was answered."""
        client, size = state.pop(_TEXT_KEY, ("", 0))
        self._bytes_by_client[client] -= size
        if not self._bytes_by_client[client]:
            del self._bytes_by_client[client]


@asynccontextmanager
async def hold_slot(semaphore: asyncio.Semaphore, timeout: float, error: Exception) -> AsyncGenerator[None, None]:
    """Hold a semaphore until the block ends; raise the error where it is not free in time."""
    try:
        async with asyncio.timeout(timeout):
            await semaphore.acquire()
    except TimeoutError:
        raise error from None
    try:
        yield
    finally:
        semaphore.release()


class HeavyWorkLimiter:
    """Slots for work that keeps a thread busy for long, so that other requests find threads.

    No slot is held while waiting for a client.
    """

    def __init__(self, max_parallel: int, timeout_seconds: int) -> None:
        self._semaphore = asyncio.Semaphore(max_parallel)
        self._timeout_seconds = timeout_seconds

    def acquire_slot(self) -> AbstractAsyncContextManager[None]:
        """Hold a slot until the block ends; raise a 503 where none becomes free in time."""
        detail = "Too many annotate, export and reconcile requests are waiting; try again later."
        problem = HTTPProblem(503, detail, {"Retry-After": str(self._timeout_seconds)})
        return hold_slot(self._semaphore, self._timeout_seconds, problem)

    def wait_for_slot(self) -> AbstractAsyncContextManager[None]:
        """Hold a slot until the block ends, waiting without limit: for a response that has started."""
        return self._semaphore


class Limits:
    """Limits of one worker."""

    def __init__(self, settings: Settings) -> None:
        self.body_bytes = settings.body_kb * 1024
        self.body_seconds = settings.body_seconds
        self.batch_bytes = settings.batch_mb * _MEBIBYTE
        self.batch_lines = settings.batch_lines
        self.upload_bytes = settings.upload_mb * _MEBIBYTE
        self.body_memory = BodyMemory(settings.bodies_mb * _MEBIBYTE)
        self.write_limiter = RateLimiter(settings.write_rate, settings.write_burst)
        self.comment_limiter = RateLimiter(settings.comment_rate / 60, settings.comment_rate)
        self.sign_in_limiter = SignInLimiter(settings.sign_in_rate)
        # One batch is written at a time, and those that wait occupy no thread.
        self.batch_semaphore = asyncio.Semaphore(1)
        self.heavy_work = HeavyWorkLimiter(settings.heavy_at_once, settings.heavy_seconds)
        self.texts = TextLimit(settings.annotate_mb * _MEBIBYTE)

    def release(self, state: MutableMapping[str, Any]) -> None:
        """Release what the state of a request that was answered has reserved."""
        self.body_memory.release(state)
        self.texts.release(state)

    async def read_body(self, request: Request) -> bytes:
        """Return the whole body, which the request caches; raise where it is too large or too slow."""
        if not hasattr(request, "_body"):
            request._body = b"".join([chunk async for chunk in self.iter_body(request, self.body_bytes)])
        return request._body

    async def iter_body(
        self, request: Request, max_bytes: int, max_in_memory: float = math.inf
    ) -> AsyncGenerator[bytes, None]:
        """Yield a body as it arrives; raise where it is too large or too slow.

        At most `max_in_memory` bytes of it are counted as held in memory.
        """
        too_large = HTTPProblem(413, f"Request body exceeds {max_bytes} bytes.")
        length = request.headers.get("content-length", "")
        if length.isdecimal() and int(length) > max_bytes:
            raise too_large
        start = asyncio.get_running_loop().time()
        state = request.scope.setdefault("state", {})
        size, more = 0, True
        try:
            while more:
                # A larger body may take longer, in proportion.
                async with asyncio.timeout_at(start + self.body_seconds * max(1.0, size / _MEBIBYTE)):
                    message = await request.receive()
                if message["type"] == "http.disconnect":
                    raise HTTPProblem(400, "Request body is incomplete.")
                chunk, more = message.get("body", b""), message.get("more_body", False)
                size += len(chunk)
                if size > max_bytes:
                    raise too_large
                self.body_memory.reserve(state, int(min(size, max_in_memory)))
                yield chunk
        except TimeoutError:
            raise HTTPProblem(408, "Request body timed out.", {"Connection": "close"}) from None
