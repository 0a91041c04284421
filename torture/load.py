"""Offering a server more than it can do: all is answered or refused, memory is bounded, and then it is quick again.

Run it from the repository's root as `python -m torture.load`. It ends with 1 where something is not as it should be.
"""

import asyncio
import json
import random
import statistics
import sys
import time
import uuid
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import uvloop

from lexarium.domain.accounts import Role
from lexarium.service.access import add_account, create_token
from lexarium.store.database import Database
from tests.server import Server
from torture.ledger import definition

RECORDS = 2_000
TIMES = 4
"""How many times what it can do a server is offered."""
_CURATORS = 20
_HANGS = 30
"""In seconds: who has no answer by then has none."""
_BUSY = 0.25
"""In seconds: a rate is too high where more than one in a hundred waits as long as this."""
_TAKEN = (200, 201, 304)
_REFUSED = (429, 503)


@dataclass
class Tally:
    """What became of requests."""

    statuses: Counter[int] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)
    """Of those that were taken: how long each took."""
    unanswered: int = 0
    hasty: int = 0
    """Refusals that do not say when to come again."""

    @property
    def answered(self) -> int:
        """How many were taken."""
        return len(self.seconds)

    @property
    def refused(self) -> int:
        """How many were told to come again."""
        return sum(self.statuses[status] for status in _REFUSED)

    @property
    def p99(self) -> float:
        """What ninety-nine of a hundred that were taken did not exceed, in seconds."""
        return statistics.quantiles(self.seconds, n=100)[98] if len(self.seconds) > 1 else float("inf")


@dataclass
class Outcome:
    """What came of it all."""

    idle: Tally
    rate: float
    """How many requests a second could be served."""
    overload: Tally
    memory: list[int]
    """In bytes, second by second."""
    recovered: float | None
    """In seconds: how long after the overload it was as quick as before; None: it was not."""


class Client:
    """Asks one server, over as many connections as it takes."""

    def __init__(self, port: int, ids: list[str], tokens: list[str], chance: random.Random) -> None:
        self._port = port
        self._ids = ids
        self._tokens = tokens
        self._chance = chance
        self._idle: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []

    async def one_by_one(self, seconds: float) -> Tally:
        """Ask one request after another."""
        tally = Tally()
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            await self._ask(tally)
        return tally

    async def at_rate(self, rate: float, seconds: float) -> Tally:
        """Ask so many requests a second, whether those before are answered or not."""
        tally = Tally()
        asked: set[asyncio.Task[None]] = set()
        begin = time.monotonic()
        due = 0.0
        while due < seconds:
            due += self._chance.expovariate(rate)
            await asyncio.sleep(max(0.0, begin + due - time.monotonic()))
            task = asyncio.create_task(self._ask(tally))
            asked.add(task)
            task.add_done_callback(asked.discard)
        await asyncio.gather(*asked)
        return tally

    def close(self) -> None:
        """Close every connection."""
        for _, writer in self._idle:
            writer.close()

    async def _ask(self, tally: Tally) -> None:
        request = self._request()
        began = time.monotonic()
        try:
            async with asyncio.timeout(_HANGS):
                status, head = await self._answer(request)
        except (OSError, EOFError, TimeoutError):
            tally.unanswered += 1
            return
        tally.statuses[status] += 1
        if status in _TAKEN:
            tally.seconds.append(time.monotonic() - began)
        elif b"\r\nretry-after:" not in head.lower():
            tally.hasty += 1

    async def _answer(self, request: bytes) -> tuple[int, bytes]:
        if self._idle:
            reader, writer = self._idle.pop()
        else:
            reader, writer = await asyncio.open_connection("127.0.0.1", self._port, limit=1 << 22)
        writer.write(request)
        head = await reader.readuntil(b"\r\n\r\n")
        length = head.lower().partition(b"\r\ncontent-length:")[2].partition(b"\r\n")[0]
        await reader.readexactly(int(length))
        self._idle.append((reader, writer))
        return int(head.split(b" ", 2)[1]), head

    def _request(self) -> bytes:
        """Of ten: three records as v1 has them, two as v-alpha has them, two searches, a suggestion, two writes."""
        kind = self._chance.randrange(10)
        one = self._chance.choice(self._ids)
        if kind < 3:
            return _get(f"/api/v1/concept/{one}")
        if kind < 5:
            return _get(f"/api/v-alpha/concept?id={one}")
        if kind < 7:
            return _get(f"/api/v1/search?q=concept+{self._chance.randrange(RECORDS)}")
        if kind < 8:
            return _get(f"/api/v1/suggest?prefix=concept+{self._chance.randrange(100)}")
        name = uuid.uuid4().hex
        body = json.dumps({"name": name, "definition_text": definition(name)})
        token = self._chance.choice(self._tokens)
        head = f"Authorization: Bearer {token}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        return f"POST /api/v1/concept HTTP/1.1\r\nHost: x\r\n{head}\r\n{body}".encode()


def _get(target: str) -> bytes:
    return f"GET {target} HTTP/1.1\r\nHost: x\r\n\r\n".encode()


def run(seconds: float, finding: float, seed: int = 1) -> Outcome:
    """Find what a server can do, trying each rate for so long; offer it several times that for so long."""
    with _served() as (server, ids, tokens), asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        client = Client(server.port, ids, tokens, random.Random(seed))
        outcome = runner.run(_tried(client, server.pid, seconds, finding))
        client.close()
        return outcome


async def _tried(client: Client, pid: int, seconds: float, finding: float) -> Outcome:
    await client.one_by_one(1)  # so that what is loaded late is loaded
    idle = await client.one_by_one(finding)
    rate = await _sustainable(client, finding)
    memory: list[int] = []
    watching = asyncio.create_task(_watch(pid, memory))
    overload = await client.at_rate(TIMES * rate, seconds)
    recovered = await _recovery(client, rate, idle)
    watching.cancel()
    return Outcome(idle, rate, overload, memory, recovered)


async def _sustainable(client: Client, seconds: float) -> float:
    """The highest of rates, each a quarter above the last, at which nothing is refused and nobody waits for long."""
    rate = 20.0
    while True:
        higher = await client.at_rate(rate * 1.25, seconds)
        if higher.refused or higher.unanswered or higher.p99 > _BUSY:
            return rate
        rate *= 1.25


async def _recovery(client: Client, rate: float, idle: Tally) -> float | None:
    """How long it takes until half of what can be served is served as quickly as ever, for a second."""
    began = time.monotonic()
    while time.monotonic() < began + _HANGS:
        at = time.monotonic()
        tally = await client.at_rate(rate / 2, 1)
        if not tally.refused and tally.p99 < max(2 * idle.p99, _BUSY):
            return at - began
    return None


async def _watch(pid: int, memory: list[int]) -> None:
    while True:
        memory.append(int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096)
        await asyncio.sleep(1)


@contextmanager
def _served() -> Iterator[tuple[Server, list[str], list[str]]]:
    """A server of a catalogue, the ids of its records, and the tokens of its curators."""
    with TemporaryDirectory(prefix="lexarium-torture-") as folder:
        url = f"sqlite:///{folder}/catalogue.db"
        with Server(url) as server:
            database = Database(url)
            tokens = []
            for number in range(_CURATORS):
                add_account(database, f"curator {number}", Role.CURATOR)
                tokens.append(create_token(database, f"curator {number}")[1])
            database.close()
            lines = [
                {
                    "op": "create",
                    "collection": "concept",
                    "record": {"name": f"concept {number}", "definition_text": f"What concept {number} is. " * 10},
                }
                for number in range(RECORDS)
            ]
            headers = {"Authorization": f"Bearer {tokens[0]}", "Content-Type": "application/x-ndjson"}
            made = server.request("POST", "/api/v1/batch", headers, "\n".join(map(json.dumps, lines)))
            yield server, [json.loads(line)["id"] for line in made.body.splitlines()], tokens


def main() -> int:
    """Run it as the command line says, and return its exit code."""
    parser = ArgumentParser(prog="python -m torture.load", description=__doc__)
    parser.add_argument("--minutes", type=float, default=5, help=f"of {TIMES} times what the server can do (5)")
    parser.add_argument("--seed", type=int, default=random.randrange(10**9), help="of what is asked, and when")
    options = parser.parse_args()
    print(f"seed {options.seed}")
    done = run(60 * options.minutes, 3, options.seed)
    over = done.overload
    grown = max(done.memory[len(done.memory) // 2 :]) / max(done.memory[: len(done.memory) // 2])
    print(f"one by one: {done.idle.answered:,} requests, p99 {1000 * done.idle.p99:.0f} ms")
    print(
        f"can be served: {done.rate:,.0f} a second; offered for {options.minutes:g} minutes: {TIMES * done.rate:,.0f}"
    )
    print(f"{over.answered:,} answered (p99 {1000 * over.p99:.0f} ms), {over.refused:,} refused, by status:")
    print(f"  {dict(over.statuses)}; {over.unanswered} without an answer; {over.hasty} refused without Retry-After")
    print(f"memory: at most {max(done.memory) / 1e6:.0f} MB, {grown:.2f} times as much in the second half as before")
    print(f"as quick as before after {done.recovered} s")
    wrong = (
        over.unanswered
        or over.hasty
        or set(over.statuses) - {*_TAKEN, *_REFUSED}
        or over.p99 > 5 * done.idle.p99
        or grown > 1.25
        or done.recovered is None
        or done.recovered > 10
    )
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
