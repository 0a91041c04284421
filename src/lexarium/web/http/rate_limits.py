"""Token-bucket rate limits for writes and sign-ins."""

import asyncio
import hashlib
import ipaddress
import math
import threading
import time
from collections import OrderedDict
from dataclasses import dataclass

from starlette.requests import Request

from lexarium.web.http.problems import HTTPProblem

_MAX_CLIENTS = 100_000
"""How many clients' rates are kept; one that has not been heard of longest is forgotten, and so begins anew."""


_NETWORK_FACTOR = 10
"""How many times the rate of one account an address may try to sign in, to whichever accounts."""


_ACCOUNT_FACTOR = 20
"""How many times that rate an account may be tried, from whichever addresses it has not signed in from of late."""


_MAX_PARALLEL_HASHES = 2
"""How many passwords are looked at at a time: each takes 64 MiB while it is."""


@dataclass
class _Bucket:
    tokens: float
    updated: float


class RateLimiter:
    """So many a second for each client, saved up to so many at once. A worker's own: others count for themselves."""

    def __init__(self, per_second: float, burst: int) -> None:
        self._per_second = per_second
        self._burst = burst
        self._buckets: OrderedDict[str, _Bucket] = OrderedDict()
        self._lock = threading.Lock()

    def acquire(self, client: str) -> dict[str, str]:
        """Take one, and return what to tell the client in headers. Raises a 429 where there is none left."""
        with self._lock:
            left = self._take_token(client)
        if left < 0:
            wait = max(1, math.ceil(-left / self._per_second))
            headers = {"Retry-After": str(wait), **self._build_headers(0, wait)}
            raise HTTPProblem(429, f"Too many requests. Try again in {wait} s.", headers)
        return self._build_headers(int(left), 1)

    def _take_token(self, client: str) -> float:
        """What is left after one was taken; less than nothing where there was none, and none was taken."""
        now = time.monotonic()
        bucket = self._buckets.pop(client, None) or _Bucket(self._burst, now)
        bucket.tokens = min(self._burst, bucket.tokens + (now - bucket.updated) * self._per_second)
        bucket.updated = now
        self._buckets[client] = bucket
        if len(self._buckets) > _MAX_CLIENTS:
            self._buckets.popitem(last=False)
        left = bucket.tokens - 1
        if left >= 0:
            bucket.tokens = left
        return left

    def _build_headers(self, remaining: int, reset: int) -> dict[str, str]:
        window = max(1, round(self._burst / self._per_second))
        return {
            "RateLimit-Policy": f'"default";q={self._burst};w={window}',
            "RateLimit": f'"default";r={remaining};t={reset}',
        }


def client_address(request: Request) -> str:
    """The address that a request comes from; a proxy's own, where there is one in front that is not trusted."""
    return request.client.host if request.client else ""


def normalize_network(address: str) -> str:
    """What counts as one address: of IPv6 the 64 bits in front, since one line has all that begin with them."""
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:
        return address
    if isinstance(ip, ipaddress.IPv4Address):
        return address
    return str(ip.ipv4_mapped or ipaddress.IPv6Network((ip.packed[:8] + bytes(8), 64)))


class SignInLimiter:
    """How often, and how many at a time, people may try to sign in."""

    def __init__(self, per_minute: int) -> None:
        self._by_account_and_network = _per_minute(per_minute)
        self._by_network = _per_minute(_NETWORK_FACTOR * per_minute)
        self._by_account = _per_minute(_ACCOUNT_FACTOR * per_minute)
        self._trusted_pairs: OrderedDict[str, None] = OrderedDict()
        self.hash_semaphore = asyncio.Semaphore(_MAX_PARALLEL_HASHES)
        """To be held while a password is looked at."""

    def acquire(self, account: str, address: str) -> None:
        """Count one try. Raises a 429 past a rate: of an address, of it with an account, or of an account.

        Where an account has signed in from an address, only those of that address count: who tries someone else's
        account does not lock them out.
        """
        network = normalize_network(address)
        pair = _hash_key(account, network)
        self._by_network.acquire(network)
        self._by_account_and_network.acquire(pair)
        if pair not in self._trusted_pairs:
            self._by_account.acquire(_hash_key(account))

    def record_success(self, account: str, address: str) -> None:
        """Remember that an account has signed in from an address."""
        pair = _hash_key(account, normalize_network(address))
        self._trusted_pairs[pair] = None
        self._trusted_pairs.move_to_end(pair)
        if len(self._trusted_pairs) > _MAX_CLIENTS:
            self._trusted_pairs.popitem(last=False)


def _per_minute(number: int) -> RateLimiter:
    return RateLimiter(number / 60, number)


def _hash_key(account: str, network: str = "") -> str:
    """A hash, to count by: what someone types as a name may be long, and is kept."""
    return hashlib.sha256(f"{network} {account}".encode(errors="replace")).hexdigest()
