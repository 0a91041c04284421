"""How much a client may send: how large a body, how slowly, and how many writes a second."""

import asyncio
import hashlib
import ipaddress
import math
import threading
import time
from collections import OrderedDict
from collections.abc import AsyncGenerator, MutableMapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request

from lexarium.settings import Settings
from lexarium.web.problems import HttpProblem

_MEBIBYTE = 1 << 20
_CLIENTS = 100_000
"""How many clients' rates are kept; one that has not been heard of longest is forgotten, and so begins anew."""
_ACCOUNTS_OF_AN_ADDRESS = 10
"""How many times the rate of one account an address may try to sign in, to whichever accounts."""
_ADDRESSES_OF_AN_ACCOUNT = 20
"""How many times that rate an account may be tried, from whichever addresses it has not signed in from of late."""
UNCOUNTED_BYTES = 16_384
"""How many bytes of every body, and of the headers, count for nothing: however much others hold, an ordinary write is
taken."""
_HELD = "held"
"""Where a request says how much of its body is held."""
_HASHED_AT_ONCE = 2
"""How many passwords are looked at at a time: each takes 64 MiB while it is."""


@dataclass
class _Bucket:
    tokens: float
    at: float


class Rate:
    """So many a second for each client, saved up to so many at once. A worker's own: others count for themselves."""

    def __init__(self, per_second: float, burst: int) -> None:
        self._per_second = per_second
        self._burst = burst
        self._buckets: OrderedDict[str, _Bucket] = OrderedDict()
        self._taking = threading.Lock()

    def take(self, client: str) -> dict[str, str]:
        """Take one, and return what to tell the client in headers. Raises a 429 where there is none left."""
        with self._taking:
            left = self._left(client)
        if left < 0:
            wait = max(1, math.ceil(-left / self._per_second))
            headers = {"Retry-After": str(wait), **self._told(0, wait)}
            raise HttpProblem(429, f"Too many requests. Try again in {wait} s.", headers)
        return self._told(int(left), 1)

    def _left(self, client: str) -> float:
        """What is left after one was taken; less than nothing where there was none, and none was taken."""
        now = time.monotonic()
        bucket = self._buckets.pop(client, None) or _Bucket(self._burst, now)
        bucket.tokens = min(self._burst, bucket.tokens + (now - bucket.at) * self._per_second)
        bucket.at = now
        self._buckets[client] = bucket
        if len(self._buckets) > _CLIENTS:
            self._buckets.popitem(last=False)
        left = bucket.tokens - 1
        if left >= 0:
            bucket.tokens = left
        return left

    def _told(self, remaining: int, reset: int) -> dict[str, str]:
        window = max(1, round(self._burst / self._per_second))
        return {
            "RateLimit-Policy": f'"default";q={self._burst};w={window}',
            "RateLimit": f'"default";r={remaining};t={reset}',
        }


def address_of(request: Request) -> str:
    """The address that a request comes from; a proxy's own, where there is one in front that is not trusted."""
    return request.client.host if request.client else ""


def network_of(address: str) -> str:
    """What counts as one address: of IPv6 the 64 bits in front, since one line has all that begin with them."""
    try:
        known = ipaddress.ip_address(address)
    except ValueError:
        return address
    if isinstance(known, ipaddress.IPv4Address):
        return address
    return str(known.ipv4_mapped or ipaddress.IPv6Network((known.packed[:8] + bytes(8), 64)))


class SignIns:
    """How often, and how many at a time, people may try to sign in."""

    def __init__(self, a_minute: int) -> None:
        self._pairs = _a_minute(a_minute)
        self._addresses = _a_minute(_ACCOUNTS_OF_AN_ADDRESS * a_minute)
        self._accounts = _a_minute(_ADDRESSES_OF_AN_ACCOUNT * a_minute)
        self._known: OrderedDict[str, None] = OrderedDict()
        self.hashing = asyncio.Semaphore(_HASHED_AT_ONCE)
        """To be held while a password is looked at."""

    def take(self, account: str, address: str) -> None:
        """Count one try. Raises a 429 past a rate: of an address, of it with an account, or of an account.

        Where an account has signed in from an address, only those of that address count: who tries someone else's
        account does not lock them out.
        """
        network = network_of(address)
        pair = _key(account, network)
        self._addresses.take(network)
        self._pairs.take(pair)
        if pair not in self._known:
            self._accounts.take(_key(account))

    def succeeded(self, account: str, address: str) -> None:
        """Remember that an account has signed in from an address."""
        pair = _key(account, network_of(address))
        self._known[pair] = None
        self._known.move_to_end(pair)
        if len(self._known) > _CLIENTS:
            self._known.popitem(last=False)


def _a_minute(number: int) -> Rate:
    return Rate(number / 60, number)


def _key(account: str, network: str = "") -> str:
    """A hash, to count by: what someone types as a name may be long, and is kept."""
    return hashlib.sha256(f"{network} {account}".encode(errors="replace")).hexdigest()


class Bodies:
    """The bodies and large headers that a worker holds, of requests that are not answered yet.

    They have a limit in bytes, all together. Else clients who send slowly could take all the memory there is.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self.held = 0
        """In bytes."""

    def hold(self, state: MutableMapping[str, Any], size: int) -> None:
        """Hold a body of which so much is there by now. Raises a 503 where that is too much, with all others.

        The size is kept in `state`, for the next call and for `let_go`.
        """
        counted = max(0, size - UNCOUNTED_BYTES)
        more = counted - state.get(_HELD, 0)
        if more > 0 and self.held + more > self._most:
            raise HttpProblem(503, "The server holds as much as it can of what others send. Try again in a moment.")
        self.held += more
        state[_HELD] = counted

    def let_go(self, state: MutableMapping[str, Any]) -> None:
        """Hear that a request has been answered."""
        self.held -= state.pop(_HELD, 0)


class HeavyTurns:
    """Turns for work that keeps a thread busy for long: few at a time, so that however many ask, others find threads.

    Nobody holds a turn while a client is waited for.
    """

    def __init__(self, at_once: int, seconds: int) -> None:
        self._free = asyncio.Semaphore(at_once)
        self._seconds = seconds

    @asynccontextmanager
    async def turn(self) -> AsyncGenerator[None, None]:
        """Hold a turn until the block ends. Raises a 503 where none comes in time."""
        try:
            async with asyncio.timeout(self._seconds):
                await self._free.acquire()
        except TimeoutError:
            detail = "Too many requests to annotate, export or reconcile wait before this one. Try again later."
            raise HttpProblem(503, detail, {"Retry-After": str(self._seconds)}) from None
        try:
            yield
        finally:
            self._free.release()

    @asynccontextmanager
    async def next_turn(self) -> AsyncGenerator[None, None]:
        """Hold a turn until the block ends, however long it takes to come: for an answer that has begun."""
        async with self._free:
            yield


class Limits:
    """The limits of one worker."""

    def __init__(self, settings: Settings) -> None:
        self.body_bytes = settings.body_kb * 1024
        self.body_seconds = settings.body_seconds
        self.batch_bytes = settings.batch_mb * _MEBIBYTE
        self.batch_lines = settings.batch_lines
        self.upload_bytes = settings.upload_mb * _MEBIBYTE
        self.bodies = Bodies(settings.bodies_mb * _MEBIBYTE)
        self.writes = Rate(settings.write_rate, settings.write_burst)
        self.sign_ins = SignIns(settings.sign_in_rate)
        self.batches = asyncio.Semaphore(1)
        """To be held while a batch is written: only one can be, and those that wait take no thread from others."""
        self.heavy = HeavyTurns(settings.heavy_at_once, settings.heavy_seconds)

    async def body(self, request: Request) -> bytes:
        """The whole body; raises where it is too large or too slow. The request keeps it, so it may be asked again."""
        if not hasattr(request, "_body"):
            request._body = b"".join([piece async for piece in self.pieces(request, self.body_bytes)])
        return request._body

    async def pieces(self, request: Request, most: int, kept: int | None = None) -> AsyncGenerator[bytes, None]:
        """A body of at most so many bytes as it comes; raises where it is too large or too slow.

        `kept` is how much of it stays in memory, where that is not all.
        """
        too_large = HttpProblem(413, f"The body must have at most {most} bytes.")
        length = request.headers.get("content-length", "")
        if length.isdecimal() and int(length) > most:
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
                    raise HttpProblem(400, "The body ended too early.")
                piece, more = message.get("body", b""), message.get("more_body", False)
                size += len(piece)
                if size > most:
                    raise too_large
                self.bodies.hold(request.scope.setdefault("state", {}), size if kept is None else min(size, kept))
                yield piece
        except TimeoutError:
            raise HttpProblem(408, "The body took too long.", {"Connection": "close"}) from None
