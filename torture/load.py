"""Offering a server more than it can do: all is answered or refused, memory is bounded, and then it is quick again.

Run it from the repository's root as `python -m torture.load`. It ends with 1 where something is not as it should be,
and says all that is not.
"""

import asyncio
import gc
import json
import random
import re
import resource
import sys
import time
from argparse import ArgumentParser
from array import array
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import uvloop

from lexarium.domain.accounts import Role
from lexarium.service.access import add_account, create_token
from lexarium.store.database import Database
from tests.server import Server
from torture.crowd import REFUSED, TAKEN, Crowd, Requests, Tally, p99

RECORDS = 2_000
TIMES = 4
"""How many times what it can do a server is offered."""
_CURATORS = 40
_CLIENTS = (8, 16, 32, 64)
"""How many ask at once, in turn, while it is found out what a server can do: the best of these is that."""
_IDLE = 0.05
"""Which part of what a server can do it is asked to do while it is idle."""
_SLOWER = 5
"""How many times as long as when idle those who are answered may wait, but for one in a hundred."""
_MORE_MEMORY = 128_000_000
"""How many bytes more than before a server may have while it is offered too much: finished answers and what is to be
indexed fill their rooms, of 32 and some 50 MB, in the meantime."""
_FULL_SPEED = 0.8
"""Which part of what it could do before a server must do again, to be as quick as before."""
_RECOVERY = 10
"""In seconds: how soon that must be."""
_KEPT_UP = 0.95
"""Which part of what they should have sent the clients must have sent, for the run to mean anything."""
_MADE = 0.2
"""Which part of the requests make a record."""
_UNDERESTIMATED = 1.5
"""How many times what it can do a server cannot have done."""


@dataclass
class Outcome:
    """What came of it all."""

    capacity: float
    """How many requests a second were answered when ever more waited."""
    clients: int
    """By how many clients at once."""
    idle: Tally
    overload: Tally
    seconds: float
    """For how long it was offered too much."""
    before: int
    """The memory that the server had before, in bytes, without what it has mapped of files."""
    memory: list[int]
    """And meanwhile, second by second."""
    recovered: float | None
    """In seconds: how long after the overload it was as quick as before; None: it was not, within half a minute."""

    @property
    def offered(self) -> float:
        """How many requests a second were to be sent."""
        return TIMES * self.capacity


class Lengths(NamedTuple):
    """How long each part takes, in seconds."""

    finding: float
    """Of finding out what the server can do, for each number of clients."""
    idle: float
    overload: float


def run(lengths: Lengths, seed: int = 1) -> Outcome:
    """Find what a server can do; then offer it hardly anything, and several times that."""
    _allow_many_files()
    chance = random.Random(seed)
    with _served() as (server, ids, tokens), asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_tried(server, Requests(ids, tokens, chance), chance, lengths))


async def _tried(server: Server, requests: Requests, chance: random.Random, lengths: Lengths) -> Outcome:
    crowd = Crowd(server.port, requests, chance)
    await crowd.in_turn(8, 1)  # so that what is loaded late is loaded
    gc.freeze()
    gc.disable()  # The crowd must not stop to look for garbage, of which it makes none.
    try:
        answered = {each: (await crowd.in_turn(each, lengths.finding)).answered for each in _CLIENTS}
        clients = max(answered, key=answered.__getitem__)
        capacity = answered[clients] / lengths.finding
        idle = await crowd.at_rate(_IDLE * capacity, lengths.idle)
        memory: list[int] = []
        before = memory_of(server.pid)
        watching = asyncio.create_task(_watch(server.pid, memory))
        overload = await crowd.at_rate(TIMES * capacity, lengths.overload)
        watching.cancel()
        recovered = await _recovery(crowd, capacity, clients)
        return Outcome(capacity, clients, idle, overload, lengths.overload, before, memory, recovered)
    finally:
        gc.enable()
        crowd.close()


async def _recovery(crowd: Crowd, capacity: float, clients: int) -> float | None:
    """How long it takes until as much as before is answered, for a second."""
    began = time.monotonic()
    while time.monotonic() < began + 3 * _RECOVERY:
        at = time.monotonic()
        tally = await crowd.in_turn(clients, 1)
        if tally.answered >= _FULL_SPEED * capacity:
            return at - began
    return None


async def _watch(pid: int, memory: list[int]) -> None:
    while True:
        memory.append(memory_of(pid))
        await asyncio.sleep(1)


def memory_of(pid: int) -> int:
    """The memory that a process has, in bytes; not what it has mapped of files, which the system may take back."""
    found = re.search(r"^RssAnon:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    assert found
    return int(found[1]) * 1024


def _allow_many_files() -> None:
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


@contextmanager
def _served() -> Iterator[tuple[Server, list[str], list[str]]]:
    """A server of a catalogue, the ids of its records, and the tokens of its curators."""
    with TemporaryDirectory(prefix="lexarium-torture-") as folder:
        url = f"sqlite:///{folder}/catalogue.db"
        with Server(url) as server:
            server.listen()
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


def problems(outcome: Outcome) -> list[str]:
    """All that is not as it should be."""
    return [*harm(outcome), *_slowness(outcome), *_doubts(outcome)]


def harm(outcome: Outcome) -> list[str]:
    """What is wrong however quick a machine is."""
    over = outcome.overload
    strange = {status: count for status, count in over.statuses.items() if status not in (*TAKEN, *REFUSED)}
    grown = max(outcome.memory) - outcome.before
    return [
        sentence
        for sentence, wrong in (
            (f"{over.unanswered:,} had no answer.", over.unanswered),
            (f"Others than answers and refusals came, by status: {strange}.", strange),
            (f"{over.hasty:,} refusals did not say when to come again.", over.hasty),
            (f"Nothing of {TIMES} times what can be done was refused.", not over.refused),
            (f"Memory grew by {grown / 1e6:.0f} MB, more than {_MORE_MEMORY / 1e6:.0f} MB.", grown > _MORE_MEMORY),
        )
        if wrong
    ]


def _slowness(outcome: Outcome) -> list[str]:
    times = p99(outcome.overload.seconds) / p99(outcome.idle.seconds)
    late = outcome.recovered is not None and outcome.recovered > _RECOVERY
    return [
        sentence
        for sentence, wrong in (
            (f"Those who were answered waited {times:.1f} times as long as when idle (p99).", times > _SLOWER),
            ("It was not as quick as before within half a minute.", outcome.recovered is None),
            (f"It was as quick as before only after {outcome.recovered} s.", late),
        )
        if wrong
    ]


def _doubts(outcome: Outcome) -> list[str]:
    """What makes the figures themselves doubtful."""
    over = outcome.overload
    # By what is made alone: of all else much is finished, is never refused, and costs next to nothing.
    sent, made = over.sent / outcome.seconds, over.statuses[201] / outcome.seconds
    return [
        sentence
        for sentence, wrong in (
            (f"Only {sent:,.0f} a second were sent.", sent < _KEPT_UP * outcome.offered),
            (
                f"It can do more: {made:,.0f} records a second were made.",
                made > _UNDERESTIMATED * _MADE * outcome.capacity,
            ),
        )
        if wrong
    ]


def told(outcome: Outcome) -> str:
    """The figures, as people read them."""
    idle, over = outcome.idle, outcome.overload
    return "\n".join(
        [
            f"can be done: {outcome.capacity:,.0f} requests a second, for {outcome.clients} clients at once",
            f"idle: {idle.answered:,} at {_IDLE * outcome.capacity:,.0f} a second, p99 {_ms(idle.seconds)},"
            f" of which late at most {1000 * max(idle.late):.1f} ms by the client's fault",
            f"offered for {outcome.seconds:,.0f} s: {outcome.offered:,.0f} a second; {over.sent:,} sent,"
            f" 99 of 100 within {_ms(over.late)} of when they were due, all within {1000 * max(over.late):.0f} ms",
            f"answered: {over.answered:,}, {over.answered / outcome.seconds:,.0f} a second, p99 {_ms(over.seconds)},"
            f" {p99(over.seconds) / p99(idle.seconds):.1f} times as long as when idle",
            f"refused: {over.refused:,}, p99 {_ms(over.refused_seconds)}; {over.hasty} without Retry-After;"
            f" {over.unanswered} without an answer; by status {dict(over.statuses)}",
            f"memory: {outcome.before / 1e6:.0f} MB before, at most {max(outcome.memory) / 1e6:.0f} MB meanwhile",
            f"as quick as before after: {outcome.recovered} s",
        ]
    )


def _ms(seconds: "array[float]") -> str:
    return f"{1000 * p99(seconds):.1f} ms"


def main() -> int:
    """Run it as the command line says, and return its exit code."""
    parser = ArgumentParser(prog="python -m torture.load", description=__doc__)
    parser.add_argument("--minutes", type=float, default=5, help=f"of {TIMES} times what the server can do (5)")
    parser.add_argument("--seed", type=int, default=random.randrange(10**9), help="of what is asked, and when")
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    outcome = run(Lengths(finding=5, idle=30, overload=60 * options.minutes), options.seed)
    print(told(outcome))
    found = problems(outcome)
    print("\n".join(["", "What is not as it should be:", *found]) if found else "All as it should be.")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
