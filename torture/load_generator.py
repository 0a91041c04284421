"""Asynchronous HTTP load generator, fast enough to overload a server from one core."""

import asyncio
import json
import random
import statistics
import uuid
from array import array
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from torture.expected_state import build_definition

SUCCESS_STATUSES = (200, 201, 304)
REJECTED_STATUSES = (429, 503)
# A request without a response by then is lost.
_TIMEOUT_SECONDS = 30
_END_OF_HEAD = b"\r\n\r\n"
_CONTENT_LENGTH = b"\r\ncontent-length:"


@dataclass
class LoadStats:
    """Outcome of requests."""

    sent: int = 0
    statuses: Counter[int] = field(default_factory=Counter)
    # Time from the scheduled moment of each successful request to its response.
    seconds: "array[float]" = field(default_factory=lambda: array("d"))
    # The same for rejected requests.
    rejected_seconds: "array[float]" = field(default_factory=lambda: array("d"))
    # Delay of the generator itself, which is counted as the server's.
    send_delays: "array[float]" = field(default_factory=lambda: array("d"))
    unanswered: int = 0
    # Rejections without Retry-After.
    missing_retry_after: int = 0

    @property
    def success_count(self) -> int:
        return len(self.seconds)

    @property
    def rejected_count(self) -> int:
        return len(self.rejected_seconds)


def compute_p99(seconds: "array[float]") -> float:
    """Return the 99th percentile."""
    return statistics.quantiles(seconds, n=100)[98] if len(seconds) > 1 else float("inf")


class RequestMix:
    """Random requests.

    Of ten: three v1 records, two v-alpha records, two searches, one suggestion, two writes.
    """

    def __init__(self, ids: list[str], tokens: list[str], rng: random.Random) -> None:
        self._ids = ids
        self._tokens = tokens
        self._rng = rng

    def build_next(self) -> bytes:
        kind = int(10 * self._rng.random())
        number = int(len(self._ids) * self._rng.random())
        if kind < 3:
            return _build_get(f"/api/v1/concept/{self._ids[number]}")
        if kind < 5:
            return _build_get(f"/api/v-alpha/concept?id={self._ids[number]}")
        if kind < 7:
            return _build_get(f"/api/v1/search?q=concept+{number}")
        if kind < 8:
            return _build_get(f"/api/v1/suggest?prefix=concept+{number % 100}")
        name = uuid.UUID(int=self._rng.getrandbits(128)).hex
        body = json.dumps({"name": name, "definition_text": build_definition(name)})
        head = f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        token = self._rng.choice(self._tokens)
        return f"POST /api/v1/concept HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n{head}\r\n{body}".encode()


def _build_get(target: str) -> bytes:
    return f"GET {target} HTTP/1.1\r\nHost: x\r\n\r\n".encode()


class LoadGenerator:
    """Clients of one server. Use it inside an event loop, one run at a time."""

    def __init__(self, port: int, requests: RequestMix, rng: random.Random) -> None:
        self._port = port
        self._requests = requests
        self._rng = rng
        self._loop = asyncio.get_running_loop()
        self._idle: list[_Connection] = []
        self._busy: set[_Connection] = set()
        self._connecting: set[asyncio.Task[None]] = set()
        self._stats = LoadStats()
        self._on_done: Callable[[], None] = _do_nothing

    async def run_closed_loop(self, clients: int, seconds: float) -> LoadStats:
        """Run clients that send a request as soon as the last one is answered or rejected."""
        end = self._loop.time() + seconds

        def send_next() -> None:
            if self._loop.time() < end:
                self._send(self._loop.time())

        stats = self._start(send_next)
        for _ in range(clients):
            send_next()
        await asyncio.sleep(seconds)
        await self._finish()
        return stats

    async def run_open_loop(self, rate: float, seconds: float) -> LoadStats:
        """Send requests at random moments, at an average rate, without waiting for responses.

        Requests are sent once a millisecond, the resolution of an event loop's clock.
        """
        stats = self._start(_do_nothing)
        due = self._loop.time()
        end = due + seconds
        while due < end:
            now = self._loop.time()
            while due <= now and due < end:
                self._send(due)
                due += self._rng.expovariate(rate)
            await asyncio.sleep(max(0.0, due - self._loop.time()))
        await self._finish()
        return stats

    def close(self) -> None:
        for connection in [*self._idle, *self._busy]:
            connection.transport.abort()

    def _start(self, on_done: Callable[[], None]) -> LoadStats:
        self._stats, self._on_done = LoadStats(), on_done
        return self._stats

    async def _finish(self) -> None:
        """Wait for outstanding responses, up to the timeout."""
        end = self._loop.time() + _TIMEOUT_SECONDS
        while (self._busy or self._connecting) and self._loop.time() < end:
            await asyncio.sleep(0.01)
        for connection in list(self._busy):
            connection.transport.abort()  # counted as lost in the loop's next iteration
        await asyncio.sleep(0.01)

    def _send(self, due: float) -> None:
        self._stats.sent += 1
        request = self._requests.build_next()
        if self._idle:
            self._send_on(self._idle.pop(), request, due)
        else:
            task = self._loop.create_task(self._connect(request, due))
            self._connecting.add(task)
            task.add_done_callback(self._connecting.discard)

    async def _connect(self, request: bytes, due: float) -> None:
        try:
            _, connection = await self._loop.create_connection(lambda: _Connection(self), "127.0.0.1", self._port)
        except OSError:
            self._stats.unanswered += 1
        else:
            self._send_on(connection, request, due)

    def _send_on(self, connection: "_Connection", request: bytes, due: float) -> None:
        self._busy.add(connection)
        connection.due = due
        connection.transport.write(request)
        self._stats.send_delays.append(self._loop.time() - due)

    def on_response(self, connection: "_Connection", head: bytes) -> None:
        """Record the response to a client."""
        self._busy.discard(connection)
        self._idle.append(connection)
        elapsed = self._loop.time() - connection.due
        status = int(head[9:12])
        self._stats.statuses[status] += 1
        if status in SUCCESS_STATUSES:
            self._stats.seconds.append(elapsed)
        elif status in REJECTED_STATUSES:
            self._stats.rejected_seconds.append(elapsed)
            self._stats.missing_retry_after += b"\r\nretry-after:" not in head
        self._on_done()

    def on_disconnect(self, connection: "_Connection") -> None:
        """Record the end of a connection."""
        if connection in self._busy:
            self._busy.discard(connection)
            self._stats.unanswered += 1
            self._on_done()
        elif connection in self._idle:
            self._idle.remove(connection)


def _do_nothing() -> None:
    """Do nothing."""


class _Connection(asyncio.Protocol):
    """Connection of one client, with one request at a time."""

    transport: asyncio.Transport
    due = 0.0

    def __init__(self, generator: LoadGenerator) -> None:
        self._generator = generator
        self._received = b""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        received = self._received = self._received + data
        end = received.find(_END_OF_HEAD)
        if end >= 0:
            head = received[:end].lower()
            length = head.partition(_CONTENT_LENGTH)[2].partition(b"\r\n")[0]
            if len(received) >= end + len(_END_OF_HEAD) + int(length):
                self._received = b""
                self._generator.on_response(self, head)

    def connection_lost(self, error: Exception | None) -> None:
        self._generator.on_disconnect(self)
