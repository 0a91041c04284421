"""Token-bucket rate limits for writes and sign-ins."""

import asyncio
import hashlib
import ipaddress
import math
import threading
import time
from collections import OrderedDict

from starlette.requests import Request

from lexarium.web.http.problems import HTTPProblem

# Buckets kept; the least recently used is dropped, and its client starts with a full one.
_MAX_CLIENTS = 100_000
# Sign-in attempts of one network to any accounts, as a multiple of the rate of one account from one network.
_NETWORK_FACTOR = 10
# Attempts on one account from networks that it has not signed in from, likewise.
_ACCOUNT_FACTOR = 20
# Each password hash takes 64 MiB while it is computed.
_MAX_PARALLEL_HASHES = 2


class RateLimiter:
    """Token bucket per client. Each worker process counts for itself."""

    def __init__(self, per_second: float, burst: int) -> None:
        self._per_second = per_second
        self._burst = burst
        # Tokens left, and when that was.
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self._lock = threading.Lock()

    def acquire(self, client: str) -> dict[str, str]:
        """Take a token and return the rate limit headers; raise a 429 where none is left."""
        with self._lock:
            left = self._take_token(client)
        if left < 0:
            wait = max(1, math.ceil(-left / self._per_second))
            headers = {"Retry-After": str(wait), **self._build_headers(0, wait)}
            raise HTTPProblem(429, f"Too many requests. Try again in {wait} s.", headers)
        return self._build_headers(int(left), 1)

    def _take_token(self, client: str) -> float:
        """Take a token and return how many are left; below 0 where there was none to take."""
        now = time.monotonic()
        tokens, updated = self._buckets.pop(client, (self._burst, now))
        tokens = min(self._burst, tokens + (now - updated) * self._per_second)
        self._buckets[client] = (tokens - 1 if tokens >= 1 else tokens, now)
        if len(self._buckets) > _MAX_CLIENTS:
            self._buckets.popitem(last=False)
        return tokens - 1

    def _build_headers(self, remaining: int, reset: int) -> dict[str, str]:
        window = max(1, round(self._burst / self._per_second))
        return {
            "RateLimit-Policy": f'"default";q={self._burst};w={window}',
            "RateLimit": f'"default";r={remaining};t={reset}',
        }


def client_address(request: Request) -> str:
    """Return the address that a request comes from: that of the proxy, where one in front is not trusted."""
    return request.client.host if request.client else ""


def normalize_network(address: str) -> str:
    """Return the network that is limited as one: an IPv4 address, or the /64 of an IPv6 address."""
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:
        return address
    if isinstance(ip, ipaddress.IPv4Address):
        return address
    return str(ip.ipv4_mapped or ipaddress.IPv6Network((ip.packed[:8] + bytes(8), 64)))


class SignInLimiter:
    """Limit sign-in attempts by account and network, and how many passwords are hashed at a time."""

    def __init__(self, per_minute: int) -> None:
        self._by_account_and_network = _per_minute(per_minute)
        self._by_network = _per_minute(_NETWORK_FACTOR * per_minute)
        self._by_account = _per_minute(_ACCOUNT_FACTOR * per_minute)
        self._trusted_pairs: OrderedDict[str, None] = OrderedDict()
        self.hash_semaphore = asyncio.Semaphore(_MAX_PARALLEL_HASHES)

    def acquire(self, account: str, address: str) -> None:
        """Count an attempt; raise a 429 past the rate of a network, of an account, or of both together.

        The rate of an account does not apply to networks it has signed in from: others cannot lock its owner out.
        """
        network = normalize_network(address)
        pair = _hash_key(account, network)
        self._by_network.acquire(network)
        self._by_account_and_network.acquire(pair)
        if pair not in self._trusted_pairs:
            self._by_account.acquire(_hash_key(account))

    def record_success(self, account: str, address: str) -> None:
        """Remember that an account has signed in from a network."""
        pair = _hash_key(account, normalize_network(address))
        self._trusted_pairs[pair] = None
        self._trusted_pairs.move_to_end(pair)
        if len(self._trusted_pairs) > _MAX_CLIENTS:
            self._trusted_pairs.popitem(last=False)


def _per_minute(number: int) -> RateLimiter:
    return RateLimiter(number / 60, number)


def _hash_key(account: str, network: str = "") -> str:
    # Hashed, because the name that a client sends may be long, and is kept.
    return hashlib.sha256(f"{network} {account}".encode(errors="replace")).hexdigest()
