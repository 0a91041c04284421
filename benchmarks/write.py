"""Benchmark durable writes over HTTP, and reads during writes.

Run it from the repository's root as `python -m benchmarks.write`. It prints tables and writes them to
`docs/benchmarks/write.md`. It exits with 1 if a response was wrong or an acknowledged write was lost.
"""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from http.client import HTTPConnection
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from benchmarks.data.catalogue import load_small_catalogue
from benchmarks.harness.command_line import ROOT, create_parser
from benchmarks.harness.cpu_pinning import choose_cores, pin_to_core
from benchmarks.harness.errors import BenchmarkError, UnexpectedResponse
from benchmarks.harness.http_client import HOST
from benchmarks.harness.report import ReportTable, build_page, build_target_table, run_and_publish
from benchmarks.harness.server_process import ServerSpec, run_server
from benchmarks.harness.targets import TargetResult
from benchmarks.harness.tools import find_tools
from benchmarks.harness.wrk import format_lua_table
from benchmarks.servers.lexarium import build_sqlite_url, create_token, prepare_lexarium

WRITERS = 32
READERS = 4
ROUNDS = 5
PATHS = ("/api/v-alpha/concept", "/api/v1/concept")
MIN_WRITES_PER_SECOND = 1_000
MAX_P99_RATIO = 2.0
# Numbers above this are printed without decimals.
_INTEGER_ABOVE = 100
_RESULT_PREFIX = "result:"
_BODY = json.dumps({"name": "a new concept", "definition_text": "What it is, in a sentence of some length."})
_SCRIPT = """
wrk.method = {method}
wrk.body = {body}
for name, value in pairs({headers}) do wrk.headers[name] = value end
local threads = {{}}
function setup(thread) threads[#threads + 1] = thread end
wrong = 0
function response(status) if status ~= {status} then wrong = wrong + 1 end end
function done(summary, latency)
  local errors = summary.errors
  io.write("{mark} ", string.format("%d %d %d %d %d\\n", summary.requests, summary.duration,
    latency:percentile(50), latency:percentile(99),
    threads[1]:get("wrong") + errors.connect + errors.read + errors.write + errors.timeout))
end
"""


@dataclass(frozen=True)
class WrkLoad:
    """Repeated request, and the status that every response must have."""

    path: str
    method: str
    status: int
    connections: int
    body: str = ""


@dataclass(frozen=True)
class WrkResult:
    """Result of a load."""

    requests: int
    per_second: float
    p50_ms: float
    p99_ms: float


@dataclass(frozen=True)
class WriteBenchmark:
    """Server, load generator and token."""

    server: ServerSpec
    wrk: str
    core: int | None
    headers: Mapping[str, str]
    folder: Path

    def start(self, load: WrkLoad, seconds: float) -> "subprocess.Popen[str]":
        """Start a load."""
        script = self.folder / f"{load.method}{load.path.replace('/', '_').replace('?', '_')}.lua"
        values = {"method": json.dumps(load.method), "body": json.dumps(load.body), "status": load.status}
        script.write_text(_SCRIPT.format(**values, headers=format_lua_table(self.headers), mark=_RESULT_PREFIX))
        command = [self.wrk, "-t1", f"-c{load.connections}", f"-d{seconds:g}s", "--latency", "-s", str(script)]
        with pin_to_core(self.core):
            return subprocess.Popen(
                [*command, f"http://{HOST}:{self.server.port}{load.path}"], stdout=subprocess.PIPE, text=True
            )

    def finish(self, process: "subprocess.Popen[str]", load: WrkLoad) -> WrkResult:
        """Wait for a load to end; raise UnexpectedResponse if a response was wrong."""
        output, _ = process.communicate()
        line = next((line for line in output.splitlines() if line.startswith(_RESULT_PREFIX)), None)
        if line is None:
            raise BenchmarkError(f"wrk printed no result: {output.strip()[-500:]}")
        requests, duration, p50, p99, wrong_count = map(int, line.removeprefix(_RESULT_PREFIX).split())
        if wrong_count or not requests:
            raise UnexpectedResponse(
                f"{wrong_count:,} of {requests:,} responses to {load.method} {load.path} were not {load.status}."
            )
        return WrkResult(requests, requests / duration * 1e6, p50 / 1e3, p99 / 1e3)

    def count_concepts(self) -> int:
        connection = HTTPConnection(HOST, self.server.port)
        connection.request("GET", "/api/v1")
        number: int = json.loads(connection.getresponse().read())["counts"]["concept"]
        connection.close()
        return number


@dataclass(frozen=True)
class WriteRound:
    """Writes with and without concurrent reads, and reads with and without concurrent writes."""

    writes_only: WrkResult
    writes_during_reads: WrkResult
    reads_only: WrkResult
    reads_during_writes: WrkResult

    @property
    def ratio(self) -> float:
        """Ratio of the p99 of reads during writes to that of reads alone."""
        return self.reads_during_writes.p99_ms / self.reads_only.p99_ms


def measure(benchmark: WriteBenchmark, path: str, seconds: float) -> WriteRound:
    """Measure one round; raise if a write was lost."""
    write = WrkLoad(path, "POST", 201, WRITERS, _BODY)
    read = WrkLoad(benchmark.server.record_path, "GET", 200, READERS)
    before = benchmark.count_concepts()
    writes_only = benchmark.finish(benchmark.start(write, seconds), write)
    reads_only = benchmark.finish(benchmark.start(read, seconds), read)
    writing = benchmark.start(write, seconds)
    reads_during_writes = benchmark.finish(benchmark.start(read, max(1, seconds - 1)), read)
    writes_during_reads = benchmark.finish(writing, write)
    stored, acknowledged = benchmark.count_concepts() - before, writes_only.requests + writes_during_reads.requests
    # wrk may stop before counting a response and a request behind it, per connection, in both loads.
    if not acknowledged <= stored <= acknowledged + 4 * WRITERS:
        raise UnexpectedResponse(f"{acknowledged:,} writes were acknowledged, but {stored:,} records were stored.")
    return WriteRound(writes_only, writes_during_reads, reads_only, reads_during_writes)


def main() -> int:
    """Parse the command line, run and return the exit code."""
    parser = create_parser("write", "Measure durable writes over HTTP.", "write.md")
    parser.add_argument("--seconds", type=float, default=4.0, help="duration of each load (4)")
    options = parser.parse_args()
    return run_and_publish(lambda: _run(options.seconds), options.output)


def _run(seconds: float) -> tuple[list[ReportTable], str]:
    tools = find_tools(ROOT / ".bench")
    real = Path(os.environ.get("LEXARIUM_REAL_CATALOGUE", ROOT.parent / "shared" / "cognitive-atlas"))
    cores = choose_cores()
    with TemporaryDirectory(prefix="lexarium-benchmark-") as name:
        folder = Path(name)
        server = prepare_lexarium(load_small_catalogue(real, ROOT / "src" / "lexarium" / "sample"), folder, tools)
        unlimited = {"LEXARIUM_WRITE_RATE": "1000000", "LEXARIUM_WRITE_BURST": "1000000"}
        server = replace(server, environment={**server.environment, **unlimited})
        headers = {
            "Content-Type": "application/json",
            "Authorization": f"Bearer {create_token(build_sqlite_url(folder), 'curator')}",
        }
        with run_server(server, cores.server, server.record_path):
            benchmark = WriteBenchmark(server, tools.wrk, cores.load, headers, folder)
            measured = {path: [measure(benchmark, path, seconds) for _ in range(ROUNDS)] for path in PATHS}
    columns = (
        "write", "requests/s", "p50", "p99", "requests/s with reads", "read p50 with writes", "read p99 alone",
        "read p99 with writes", "ratio",
    )  # fmt: skip
    rows = [(f"POST {path}", *_format_medians(rounds)) for path, rounds in measured.items()]
    target_results = []
    for path, rounds in measured.items():
        per_second, ratio = (median(values) for values in zip(*map(_get_target_values, rounds), strict=True))
        writes, reads = f"at least {MIN_WRITES_PER_SECOND:,} requests/s", f"at most {MAX_P99_RATIO:g}"
        target_results += [
            TargetResult(f"POST {path}: {writes}", f"{per_second:,.0f}", per_second >= MIN_WRITES_PER_SECOND),
            TargetResult(
                f"ratio of the p99 of reads with and without writes: {reads}", f"{ratio:.1f}", ratio <= MAX_P99_RATIO
            ),
        ]
    tables = [build_target_table(target_results), ReportTable("Writes", columns, rows)]
    return tables, _build_page(tables)


def _get_target_values(write_round: WriteRound) -> tuple[float, float]:
    return write_round.writes_only.per_second, write_round.ratio


def _format_medians(rounds: list[WriteRound]) -> tuple[str, ...]:
    """Return the median of each measurement."""
    figures = [
        (
            write_round.writes_only.per_second, write_round.writes_only.p50_ms, write_round.writes_only.p99_ms,
            write_round.writes_during_reads.per_second,
            write_round.reads_during_writes.p50_ms, write_round.reads_only.p99_ms,
            write_round.reads_during_writes.p99_ms, write_round.ratio,
        )
        for write_round in rounds
    ]  # fmt: skip
    medians = [median(values) for values in zip(*figures, strict=True)]
    return tuple(f"{value:,.0f}" if value > _INTEGER_ABOVE else f"{value:.2f}" for value in medians)


def _build_page(tables: list[ReportTable]) -> str:
    method = (
        f"One worker on one core, with SQLite and `synchronous=FULL`. wrk posts new concepts with {WRITERS}"
        f" connections from another core, alone and while {READERS} more connections read one record without pause."
        " Every response must be a 201, and every acknowledged record must be stored at the end."
        f" Medians of {ROUNDS} rounds; times in milliseconds."
    )
    return build_page("writes", method, tables)


if __name__ == "__main__":
    sys.exit(main())
