"""Many clients of one server in one process: quick enough to ask for more than it can do, on a core of their own."""

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
_TIMEOUT_SECONDS = 30
"""In seconds: who has no answer by then has none."""
_END_OF_HEAD = b"\r\n\r\n"
_CONTENT_LENGTH = b"\r\ncontent-length:"


@dataclass
class LoadStats:
    """What became of requests."""

    sent: int = 0
    statuses: Counter[int] = field(default_factory=Counter)
    seconds: "array[float]" = field(default_factory=lambda: array("d"))
    """Of each that was taken: how long after it was due it was answered."""
    rejected_seconds: "array[float]" = field(default_factory=lambda: array("d"))
    """Likewise of each that was refused."""
    send_delays: "array[float]" = field(default_factory=lambda: array("d"))
    """How long after it was due each was sent: the crowd's own fault, and counted as the server's."""
    unanswered: int = 0
    missing_retry_after: int = 0
    """Refusals that do not say when to come again."""

    @property
    def success_count(self) -> int:
        """How many were taken."""
        return len(self.seconds)

    @property
    def rejected_count(self) -> int:
        """How many were told to come again."""
        return len(self.rejected_seconds)


def compute_p99(seconds: "array[float]") -> float:
    """What ninety-nine of a hundred did not exceed."""
    return statistics.quantiles(seconds, n=100)[98] if len(seconds) > 1 else float("inf")


class RequestMix:
    """What is asked.

    Of ten: three records as v1 has them, two as v-alpha has them, two searches, a suggestion, two writes.
    """

    def __init__(self, ids: list[str], tokens: list[str], rng: random.Random) -> None:
        self._ids = ids
        self._tokens = tokens
        self._rng = rng

    def build_next(self) -> bytes:
        """One of them."""
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
    """Clients of one server. To be used within an event loop, for one thing at a time."""

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
        """So many clients, each of whom asks again as soon as it is answered or refused."""
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
        """So many requests a second on average, at random moments, whether those before are answered or not.

        Those that are due are sent together, once a millisecond: the clock of an event loop is no finer.
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
        """Close every connection."""
        for connection in [*self._idle, *self._busy]:
            connection.transport.abort()

    def _start(self, on_done: Callable[[], None]) -> LoadStats:
        self._stats, self._on_done = LoadStats(), on_done
        return self._stats

    async def _finish(self) -> None:
        """Wait for those that are still asked for, but not for ever."""
        end = self._loop.time() + _TIMEOUT_SECONDS
        while (self._busy or self._connecting) and self._loop.time() < end:
            await asyncio.sleep(0.01)
        for connection in list(self._busy):
            connection.transport.abort()  # which counts it as lost, at the loop's next round
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
        """Hear that a client has its answer."""
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
        """Hear that a connection has ended."""
        if connection in self._busy:
            self._busy.discard(connection)
            self._stats.unanswered += 1
            self._on_done()
        elif connection in self._idle:
            self._idle.remove(connection)


def _do_nothing() -> None:
    """What a client does next who asks once."""


class _Connection(asyncio.Protocol):
    """One client's connection, on which it asks one thing at a time."""

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
