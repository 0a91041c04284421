"""How much a client may send: how large a body, how slowly, and how many writes a second."""

import asyncio
import time
from collections import OrderedDict
from collections.abc import AsyncIterator
from dataclasses import dataclass

from starlette.requests import ClientDisconnect, Request

from lexarium.settings import Settings
from lexarium.web.problems import HttpProblem

_SLOWEST_BODY_SECONDS = 60
_CLIENTS = 100_000
"""How many clients' rates are kept; one that has not been heard of longest is forgotten, and so begins anew."""


@dataclass
class _Bucket:
    tokens: float
    at: float


class Rate:
    """So many a second for each client, saved up to so many at once. A node's own: others count for themselves."""

    def __init__(self, per_second: float, burst: int) -> None:
        self._per_second = per_second
        self._burst = burst
        self._buckets: OrderedDict[str, _Bucket] = OrderedDict()

    def take(self, client: str) -> dict[str, str]:
        """Take one, and return what to tell the client in headers. Raises a 429 where there is none left."""
        now = time.monotonic()
        bucket = self._buckets.pop(client, None) or _Bucket(self._burst, now)
        bucket.tokens = min(self._burst, bucket.tokens + (now - bucket.at) * self._per_second)
        bucket.at = now
        self._buckets[client] = bucket
        if len(self._buckets) > _CLIENTS:
            self._buckets.popitem(last=False)
        if bucket.tokens < 1:
            wait = max(1, round((1 - bucket.tokens) / self._per_second))
            headers = {"Retry-After": str(wait), **self._told(0, wait)}
            raise HttpProblem(429, f"Too many requests. Try again in {wait} s.", headers)
        bucket.tokens -= 1
        return self._told(int(bucket.tokens), 1)

    def _told(self, remaining: int, reset: int) -> dict[str, str]:
        window = max(1, round(self._burst / self._per_second))
        return {
            "RateLimit-Policy": f'"default";q={self._burst};w={window}',
            "RateLimit": f'"default";r={remaining};t={reset}',
        }


class Limits:
    """The limits of one worker."""

    def __init__(self, settings: Settings) -> None:
        self.body_bytes = settings.body_kb * 1024
        self.writes = Rate(settings.write_rate, settings.write_burst)
        self.sign_ins = Rate(settings.sign_in_rate / 60, settings.sign_in_rate)
        self.long_work = asyncio.Semaphore(2)
        """To be held while a piece of long work is done in a thread: however many ask, others find threads too."""

    async def body(self, request: Request) -> bytes:
        """The whole body; raises where it is too large or too slow. The request keeps it, so it may be asked again."""
        if not hasattr(request, "_body"):
            request._body = b"".join([piece async for piece in pieces(request, self.body_bytes)])
        return request._body


async def pieces(request: Request, most: int, seconds: float = _SLOWEST_BODY_SECONDS) -> AsyncIterator[bytes]:
    """A body as it comes; raises where it has more bytes than `most`, or takes longer."""
    too_large = HttpProblem(413, f"The body must have at most {most} bytes.")
    length = request.headers.get("content-length", "")
    if length.isdecimal() and int(length) > most:
        raise too_large
    until = asyncio.get_running_loop().time() + seconds
    stream = request.stream()
    size = 0
    try:
        while True:
            # Only while the body is waited for: whatever is done with a piece takes its own time.
            async with asyncio.timeout_at(until):
                piece = await anext(stream, None)
            if piece is None:
                return
            size += len(piece)
            if size > most:
                raise too_large
            yield piece
    except ClientDisconnect:
        raise HttpProblem(400, "The body ended too early.") from None
    except TimeoutError:
        raise HttpProblem(408, "The body took too long.", {"Connection": "close"}) from None
