"""Overload a server; verify that all requests are answered or rejected, that memory is bounded, and that it recovers.

Run it from the repository's root as `python -m torture.overload`. It prints all failures and exits with 1 if there
are any.
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
# Offered load as a multiple of capacity.
OVERLOAD_FACTOR = 4
_CURATORS = 40
# Numbers of concurrent clients to try; the best result is the capacity.
_CLIENT_COUNTS = (8, 16, 32, 64)
# Load while idle as a share of capacity.
_IDLE_SHARE = 0.05
# Largest ratio of p99 under overload to p99 when idle.
_MAX_SLOWDOWN = 5
# In bytes. Cached responses (32 MB) and documents to be indexed (about 50 MB) fill up meanwhile.
_MAX_MEMORY_GROWTH = 128_000_000
# Share of the capacity that must be reached again.
_MIN_RECOVERED_SHARE = 0.8
_MAX_RECOVERY_SECONDS = 10
# Share of the load that must have been sent for the run to be valid.
_MIN_SENT_SHARE = 0.95
# Share of requests that create a record.
_CREATE_SHARE = 0.2
# Ratio of throughput to capacity that would prove the capacity wrong.
_MAX_UNDERESTIMATE = 1.5


@dataclass
class OverloadOutcome:
    """Measurements of a run."""

    # Requests answered per second in a closed loop.
    capacity: float
    # Number of clients at that rate.
    clients: int
    idle: LoadStats
    overload: LoadStats
    # Duration of the overload.
    seconds: float
    # Private memory in bytes before the overload.
    memory_before: int
    # Private memory each second during the overload.
    memory: list[int]
    # Time until the capacity was reached again; None if not within 30 seconds.
    recovery_seconds: float | None

    @property
    def offered_rate(self) -> float:
        """Requests per second during the overload."""
        return OVERLOAD_FACTOR * self.capacity


class PhaseDurations(NamedTuple):
    """Duration of each phase in seconds."""

    # For each number of clients.
    capacity: float
    idle: float
    overload: float


def run(durations: PhaseDurations, seed: int = 1) -> OverloadOutcome:
    """Measure the capacity, then response times when idle and under overload."""
    _allow_many_files()
    rng = random.Random(seed)
    with _run_server() as (server, ids, tokens), asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_run_phases(server, RequestMix(ids, tokens, rng), rng, durations))


async def _run_phases(
    server: Server, requests: RequestMix, rng: random.Random, durations: PhaseDurations
) -> OverloadOutcome:
    generator = LoadGenerator(server.port, requests, rng)
    await generator.run_closed_loop(8, 1)  # load what is loaded late
    gc.freeze()
    gc.disable()  # the generator must not pause for garbage, of which it makes none
    try:
        success_counts = {
            client_count: (await generator.run_closed_loop(client_count, durations.capacity)).success_count
            for client_count in _CLIENT_COUNTS
        }
        clients = max(success_counts, key=success_counts.__getitem__)
        capacity = max(success_counts[clients] / durations.capacity, 1)
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
    """Return the seconds until a second passes at the former rate."""
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
    """Return the memory of a process without mapped files, which the system may reclaim."""
    match = re.search(r"^RssAnon:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    assert match
    return int(match[1]) * 1024


def _allow_many_files() -> None:
    _, hard_limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard_limit, hard_limit))


@contextmanager
def _run_server() -> Iterator[tuple[Server, list[str], list[str]]]:
    """Run a server; yield it, the ids of its records and the tokens of its curators."""
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
    """Return all failures and doubts."""
    return [*find_failures(outcome), *_find_slowness(outcome), *_find_invalid_measurements(outcome)]


def find_failures(outcome: OverloadOutcome) -> list[str]:
    """Return failures that do not depend on the speed of the machine."""
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
            (f"{overload.unanswered:,} had no response.", overload.unanswered),
            (f"Unexpected statuses: {unexpected_statuses}.", unexpected_statuses),
            (
                f"{overload.missing_retry_after:,} rejections had no Retry-After.",
                overload.missing_retry_after,
            ),
            (f"No request was rejected at {OVERLOAD_FACTOR} times the capacity.", not overload.rejected_count),
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
                f"The p99 of successful requests was {slowdown:.1f} times that of an idle server.",
                slowdown > _MAX_SLOWDOWN,
            ),
            ("The capacity was not reached again within half a minute.", outcome.recovery_seconds is None),
            (f"The capacity was reached again only after {outcome.recovery_seconds} s.", is_late),
        )
        if is_wrong
    ]


def _find_invalid_measurements(outcome: OverloadOutcome) -> list[str]:
    """Return reasons to doubt the measurements."""
    overload = outcome.overload
    # Count creates only: other responses may be cached, which are never rejected and cost little.
    sent_rate, created_rate = overload.sent / outcome.seconds, overload.statuses[201] / outcome.seconds
    return [
        sentence
        for sentence, is_wrong in (
            (f"Only {sent_rate:,.0f} requests/s were sent.", sent_rate < _MIN_SENT_SHARE * outcome.offered_rate),
            (
                f"The capacity is underestimated: {created_rate:,.0f} records/s were created.",
                created_rate > _MAX_UNDERESTIMATE * _CREATE_SHARE * outcome.capacity,
            ),
        )
        if is_wrong
    ]


def format_outcome(outcome: OverloadOutcome) -> str:
    """Return the measurements as readable text."""
    idle, overload = outcome.idle, outcome.overload
    return "\n".join(
        [
            f"capacity: {outcome.capacity:,.0f} requests/s with {outcome.clients} clients",
            f"idle: {idle.success_count:,} responses at {_IDLE_SHARE * outcome.capacity:,.0f} requests/s, p99"
            f" {_format_p99(idle.seconds)},"
            f" of which the load generator delayed at most {1000 * max(idle.send_delays):.1f} ms",
            f"offered for {outcome.seconds:,.0f} s: {outcome.offered_rate:,.0f} requests/s; {overload.sent:,} sent,"
            f" with a delay of {_format_p99(overload.send_delays)} at p99 and at most"
            f" {1000 * max(overload.send_delays):.0f} ms",
            f"successful: {overload.success_count:,}, {overload.success_count / outcome.seconds:,.0f} per second,"
            f" p99 {_format_p99(overload.seconds)},"
            f" {compute_p99(overload.seconds) / compute_p99(idle.seconds):.1f} times that of an idle server",
            f"rejected: {overload.rejected_count:,}, p99 {_format_p99(overload.rejected_seconds)};"
            f" {overload.missing_retry_after} without Retry-After;"
            f" {overload.unanswered} without a response; by status {dict(overload.statuses)}",
            f"memory: {outcome.memory_before / 1e6:.0f} MB before, at most"
            f" {max(outcome.memory) / 1e6:.0f} MB during the overload",
            f"capacity reached again after: {outcome.recovery_seconds} s",
        ]
    )


def _format_p99(seconds: "array[float]") -> str:
    return f"{1000 * compute_p99(seconds):.1f} ms"


def main() -> int:
    """Parse the command line, run and return the exit code."""
    parser = ArgumentParser(prog="python -m torture.overload", description=__doc__)
    parser.add_argument(
        "--minutes", type=float, default=5, help=f"duration of {OVERLOAD_FACTOR} times the capacity (5)"
    )
    parser.add_argument(
        "--seed", type=int, default=random.randrange(10**9), help="seed of the random requests and times"
    )
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    outcome = run(PhaseDurations(capacity=5, idle=30, overload=60 * options.minutes), options.seed)
    print(format_outcome(outcome))
    found_problems = find_problems(outcome)
    print("\n".join(["", "Problems:", *found_problems]) if found_problems else "No problems.")
    return int(bool(found_problems))


if __name__ == "__main__":
    sys.exit(main())
