"""Offering a server more than it can do: all is answered or refused, memory is bounded, and then it is quick again.

Run it from the repository's root as `python -m torture.overload`. It ends with 1 where something is not as it should
be, and says all that is not.
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

from lexarium.domain.account import Role
from lexarium.services.access.accounts import add_account
from lexarium.services.access.tokens import create_token
from lexarium.store.database import Database
from tests.support.server import Server
from torture.load_generator import (
    REJECTED_STATUSES,
    SUCCESS_STATUSES,
    LoadGenerator,
    LoadStats,
    RequestMix,
    compute_p99,
)

RECORDS = 2_000
OVERLOAD_FACTOR = 4
"""How many times what it can do a server is offered."""
_CURATORS = 40
_CLIENT_COUNTS = (8, 16, 32, 64)
"""How many ask at once, in turn, while it is found out what a server can do: the best of these is that."""
_IDLE_SHARE = 0.05
"""Which part of what a server can do it is asked to do while it is idle."""
_MAX_SLOWDOWN = 5
"""How many times as long as when idle those who are answered may wait, but for one in a hundred."""
_MAX_MEMORY_GROWTH = 128_000_000
"""How many bytes more than before a server may have while it is offered too much: finished answers and what is to be
indexed fill their rooms, of 32 and some 50 MB, in the meantime."""
_MIN_RECOVERED_SHARE = 0.8
"""Which part of what it could do before a server must do again, to be as quick as before."""
_MAX_RECOVERY_SECONDS = 10
"""In seconds: how soon that must be."""
_MIN_SENT_SHARE = 0.95
"""Which part of what they should have sent the clients must have sent, for the run to mean anything."""
_CREATE_SHARE = 0.2
"""Which part of the requests make a record."""
_MAX_UNDERESTIMATE = 1.5
"""How many times what it can do a server cannot have done."""


@dataclass
class OverloadOutcome:
    """What came of it all."""

    capacity: float
    """How many requests a second were answered when ever more waited."""
    clients: int
    """By how many clients at once."""
    idle: LoadStats
    overload: LoadStats
    seconds: float
    """For how long it was offered too much."""
    memory_before: int
    """The memory that the server had before, in bytes, without what it has mapped of files."""
    memory: list[int]
    """And meanwhile, second by second."""
    recovery_seconds: float | None
    """In seconds: how long after the overload it was as quick as before; None: it was not, within half a minute."""

    @property
    def offered_rate(self) -> float:
        """How many requests a second were to be sent."""
        return OVERLOAD_FACTOR * self.capacity


class PhaseDurations(NamedTuple):
    """How long each part takes, in seconds."""

    capacity: float
    """Of finding out what the server can do, for each number of clients."""
    idle: float
    overload: float


def run(durations: PhaseDurations, seed: int = 1) -> OverloadOutcome:
    """Find what a server can do; then offer it hardly anything, and several times that."""
    _allow_many_files()
    rng = random.Random(seed)
    with _run_server() as (server, ids, tokens), asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_run_phases(server, RequestMix(ids, tokens, rng), rng, durations))


async def _run_phases(
    server: Server, requests: RequestMix, rng: random.Random, durations: PhaseDurations
) -> OverloadOutcome:
    generator = LoadGenerator(server.port, requests, rng)
    await generator.run_closed_loop(8, 1)  # so that what is loaded late is loaded
    gc.freeze()
    gc.disable()  # The crowd must not stop to look for garbage, of which it makes none.
    try:
        success_counts = {
            client_count: (await generator.run_closed_loop(client_count, durations.capacity)).success_count
            for client_count in _CLIENT_COUNTS
        }
        clients = max(success_counts, key=success_counts.__getitem__)
        capacity = success_counts[clients] / durations.capacity
        idle = await generator.run_open_loop(_IDLE_SHARE * capacity, durations.idle)
        memory: list[int] = []
        memory_before = get_private_memory_bytes(server.pid)
        watching = asyncio.create_task(_watch_memory(server.pid, memory))
        overload = await generator.run_open_loop(OVERLOAD_FACTOR * capacity, durations.overload)
        watching.cancel()
        recovery_seconds = await _measure_recovery(generator, capacity, clients)
        return OverloadOutcome(
            capacity, clients, idle, overload, durations.overload, memory_before, memory, recovery_seconds
        )
    finally:
        gc.enable()
        generator.close()


async def _measure_recovery(generator: LoadGenerator, capacity: float, clients: int) -> float | None:
    """How long it takes until as much as before is answered, for a second."""
    start = time.monotonic()
    while time.monotonic() < start + 3 * _MAX_RECOVERY_SECONDS:
        round_start = time.monotonic()
        stats = await generator.run_closed_loop(clients, 1)
        if stats.success_count >= _MIN_RECOVERED_SHARE * capacity:
            return round_start - start
    return None


async def _watch_memory(pid: int, memory: list[int]) -> None:
    while True:
        memory.append(get_private_memory_bytes(pid))
        await asyncio.sleep(1)


def get_private_memory_bytes(pid: int) -> int:
    """The memory that a process has, in bytes; not what it has mapped of files, which the system may take back."""
    match = re.search(r"^RssAnon:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    assert match
    return int(match[1]) * 1024


def _allow_many_files() -> None:
    _, hard_limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard_limit, hard_limit))


@contextmanager
def _run_server() -> Iterator[tuple[Server, list[str], list[str]]]:
    """A server of a catalogue, the ids of its records, and the tokens of its curators."""
    with TemporaryDirectory(prefix="lexarium-torture-") as folder:
        url = f"sqlite:///{folder}/catalogue.db"
        with Server(url) as server:
            server.drain_log()
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
            response = server.request("POST", "/api/v1/batch", headers, "\n".join(map(json.dumps, lines)))
            yield server, [json.loads(line)["id"] for line in response.body.splitlines()], tokens


def find_problems(outcome: OverloadOutcome) -> list[str]:
    """All that is not as it should be."""
    return [*find_failures(outcome), *_find_slowness(outcome), *_find_invalid_measurements(outcome)]


def find_failures(outcome: OverloadOutcome) -> list[str]:
    """What is wrong however quick a machine is."""
    overload = outcome.overload
    unexpected_statuses = {
        status: count
        for status, count in overload.statuses.items()
        if status not in (*SUCCESS_STATUSES, *REJECTED_STATUSES)
    }
    growth = max(outcome.memory) - outcome.memory_before
    return [
        sentence
        for sentence, is_wrong in (
            (f"{overload.unanswered:,} had no answer.", overload.unanswered),
            (f"Others than answers and refusals came, by status: {unexpected_statuses}.", unexpected_statuses),
            (
                f"{overload.missing_retry_after:,} refusals did not say when to come again.",
                overload.missing_retry_after,
            ),
            (f"Nothing of {OVERLOAD_FACTOR} times what can be done was refused.", not overload.rejected_count),
            (
                f"Memory grew by {growth / 1e6:.0f} MB, more than {_MAX_MEMORY_GROWTH / 1e6:.0f} MB.",
                growth > _MAX_MEMORY_GROWTH,
            ),
        )
        if is_wrong
    ]


def _find_slowness(outcome: OverloadOutcome) -> list[str]:
    slowdown = compute_p99(outcome.overload.seconds) / compute_p99(outcome.idle.seconds)
    is_late = outcome.recovery_seconds is not None and outcome.recovery_seconds > _MAX_RECOVERY_SECONDS
    return [
        sentence
        for sentence, is_wrong in (
            (
                f"Those who were answered waited {slowdown:.1f} times as long as when idle (p99).",
                slowdown > _MAX_SLOWDOWN,
            ),
            ("It was not as quick as before within half a minute.", outcome.recovery_seconds is None),
            (f"It was as quick as before only after {outcome.recovery_seconds} s.", is_late),
        )
        if is_wrong
    ]


def _find_invalid_measurements(outcome: OverloadOutcome) -> list[str]:
    """What makes the figures themselves doubtful."""
    overload = outcome.overload
    # By what is made alone: of all else much is finished, is never refused, and costs next to nothing.
    sent_rate, created_rate = overload.sent / outcome.seconds, overload.statuses[201] / outcome.seconds
    return [
        sentence
        for sentence, is_wrong in (
            (f"Only {sent_rate:,.0f} a second were sent.", sent_rate < _MIN_SENT_SHARE * outcome.offered_rate),
            (
                f"It can do more: {created_rate:,.0f} records a second were made.",
                created_rate > _MAX_UNDERESTIMATE * _CREATE_SHARE * outcome.capacity,
            ),
        )
        if is_wrong
    ]


def format_outcome(outcome: OverloadOutcome) -> str:
    """The figures, as people read them."""
    idle, overload = outcome.idle, outcome.overload
    return "\n".join(
        [
            f"can be done: {outcome.capacity:,.0f} requests a second, for {outcome.clients} clients at once",
            f"idle: {idle.success_count:,} at {_IDLE_SHARE * outcome.capacity:,.0f} a second, p99"
            f" {_format_p99(idle.seconds)},"
            f" of which late at most {1000 * max(idle.send_delays):.1f} ms by the client's fault",
            f"offered for {outcome.seconds:,.0f} s: {outcome.offered_rate:,.0f} a second; {overload.sent:,} sent,"
            f" 99 of 100 within {_format_p99(overload.send_delays)} of when they were due, all within"
            f" {1000 * max(overload.send_delays):.0f} ms",
            f"answered: {overload.success_count:,}, {overload.success_count / outcome.seconds:,.0f} a"
            f" second, p99 {_format_p99(overload.seconds)},"
            f" {compute_p99(overload.seconds) / compute_p99(idle.seconds):.1f} times as long as when idle",
            f"refused: {overload.rejected_count:,}, p99 {_format_p99(overload.rejected_seconds)};"
            f" {overload.missing_retry_after} without Retry-After;"
            f" {overload.unanswered} without an answer; by status {dict(overload.statuses)}",
            f"memory: {outcome.memory_before / 1e6:.0f} MB before, at most"
            f" {max(outcome.memory) / 1e6:.0f} MB meanwhile",
            f"as quick as before after: {outcome.recovery_seconds} s",
        ]
    )


def _format_p99(seconds: "array[float]") -> str:
    return f"{1000 * compute_p99(seconds):.1f} ms"


def main() -> int:
    """Run it as the command line says, and return its exit code."""
    parser = ArgumentParser(prog="python -m torture.overload", description=__doc__)
    parser.add_argument(
        "--minutes", type=float, default=5, help=f"of {OVERLOAD_FACTOR} times what the server can do (5)"
    )
    parser.add_argument("--seed", type=int, default=random.randrange(10**9), help="of what is asked, and when")
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    outcome = run(PhaseDurations(capacity=5, idle=30, overload=60 * options.minutes), options.seed)
    print(format_outcome(outcome))
    found_problems = find_problems(outcome)
    print(
        "\n".join(["", "What is not as it should be:", *found_problems]) if found_problems else "All as it should be."
    )
    return int(bool(found_problems))


if __name__ == "__main__":
    sys.exit(main())
