"""Writing: durable creates through HTTP, and what readers feel of them.

Run it from the repository's root as `python -m benchmarks.write`. It prints tables and writes them to
`docs/benchmarks-writing.md`. It ends with 1 where an answer was wrong, or an acknowledged write is not there.
"""

import json
import os
import subprocess
import sys
from argparse import ArgumentParser
from collections.abc import Mapping
from dataclasses import dataclass, replace
from http.client import HTTPConnection
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from benchmarks.answers import HOST
from benchmarks.catalogue import about_one_megabyte
from benchmarks.cores import choose_cores, pinned
from benchmarks.errors import BenchmarkError, ServerFailed, WrongAnswer
from benchmarks.processes import Server, running
from benchmarks.report import Table, page_of, published, verdict_table
from benchmarks.servers.lexarium import lexarium
from benchmarks.targets import Verdict
from benchmarks.tools import find_tools

ROOT = Path(__file__).parents[1]
WRITERS = 32
READERS = 4
ROUNDS = 5
PATHS = ("/api/v-alpha/concept", "/api/v1/concept")
LEAST_WRITES = 1_000
MOST_P99_RATIO = 2.0
_WHOLE = 100
"""Past this a figure is told without its fractions."""
_MARK = "result:"
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
class Load:
    """A request sent over and over, and the status that every answer must have."""

    path: str
    method: str
    status: int
    connections: int
    body: str = ""


@dataclass(frozen=True)
class Result:
    """What a load measured."""

    requests: int
    per_second: float
    p50_ms: float
    p99_ms: float


@dataclass(frozen=True)
class Bench:
    """Where the server is, what loads it, and as whom."""

    server: Server
    wrk: str
    core: int | None
    headers: Mapping[str, str]
    folder: Path

    def start(self, load: Load, seconds: float) -> "subprocess.Popen[str]":
        """Start a load."""
        script = self.folder / f"{load.method}{load.path.replace('/', '_').replace('?', '_')}.lua"
        headers = ", ".join(f"[{json.dumps(name)}] = {json.dumps(value)}" for name, value in self.headers.items())
        values = {"method": json.dumps(load.method), "body": json.dumps(load.body), "headers": "{" + headers + "}"}
        script.write_text(_SCRIPT.format(**values, status=load.status, mark=_MARK))
        command = [self.wrk, "-t1", f"-c{load.connections}", f"-d{seconds:g}s", "--latency", "-s", str(script)]
        with pinned(self.core):
            return subprocess.Popen(
                [*command, f"http://{HOST}:{self.server.port}{load.path}"], stdout=subprocess.PIPE, text=True
            )

    def finish(self, process: "subprocess.Popen[str]", load: Load) -> Result:
        """Wait for a load to end; raises `WrongAnswer` where one answer was not the right one."""
        output, _ = process.communicate()
        line = next((line for line in output.splitlines() if line.startswith(_MARK)), None)
        if line is None:
            raise BenchmarkError(f"wrk gave no result: {output.strip()[-500:]}")
        requests, duration, p50, p99, wrong = map(int, line.removeprefix(_MARK).split())
        if wrong or not requests:
            raise WrongAnswer(f"{wrong:,} of {requests:,} answers to {load.method} {load.path} were not {load.status}.")
        return Result(requests, requests / duration * 1e6, p50 / 1e3, p99 / 1e3)

    def count(self) -> int:
        """How many concepts the server has."""
        connection = HTTPConnection(HOST, self.server.port)
        connection.request("GET", "/api/v1")
        number: int = json.loads(connection.getresponse().read())["counts"]["concept"]
        connection.close()
        return number


@dataclass(frozen=True)
class Round:
    """Writes without and with others who read, and their reads of one record without and with writes."""

    alone: Result
    written: Result
    idle: Result
    meanwhile: Result

    @property
    def ratio(self) -> float:
        """How much longer the slowest reads take while others write."""
        return self.meanwhile.p99_ms / self.idle.p99_ms


def measure(bench: Bench, path: str, seconds: float) -> Round:
    """One round. Raises where a write was lost."""
    write = Load(path, "POST", 201, WRITERS, _BODY)
    read = Load(bench.server.record_path, "GET", 200, READERS)
    before = bench.count()
    alone = bench.finish(bench.start(write, seconds), write)
    idle = bench.finish(bench.start(read, seconds), read)
    writing = bench.start(write, seconds)
    meanwhile = bench.finish(bench.start(read, max(1, seconds - 1)), read)
    written = bench.finish(writing, write)
    there, acknowledged = bench.count() - before, alone.requests + written.requests
    # What wrk had not counted when it stopped: a reply and a request behind it, of each connection, both times.
    if not acknowledged <= there <= acknowledged + 4 * WRITERS:
        raise WrongAnswer(f"{acknowledged:,} writes were acknowledged, and {there:,} are there.")
    return Round(alone, written, idle, meanwhile)


def main() -> int:
    """Run the benchmark as the command line says, and return its exit code."""
    parser = ArgumentParser(prog="python -m benchmarks.write", description="Measure durable writes through HTTP.")
    parser.add_argument("--seconds", type=float, default=4.0, help="of load for each figure of a round (4)")
    parser.add_argument("--output", type=Path, default=ROOT / "docs" / "benchmarks-writing.md")
    options = parser.parse_args()
    return published(lambda: _run(options.seconds), _page, options.output)


def _run(seconds: float) -> list[Table]:
    tools = find_tools(ROOT / ".bench")
    real = Path(os.environ.get("LEXARIUM_REAL_CATALOGUE", ROOT.parent / "shared" / "cognitive-atlas"))
    cores = choose_cores()
    with TemporaryDirectory(prefix="lexarium-benchmark-") as name:
        folder = Path(name)
        server = lexarium(about_one_megabyte(real, ROOT / "src" / "lexarium" / "sample"), folder, tools)
        unlimited = {"LEXARIUM_WRITE_RATE": "1000000", "LEXARIUM_WRITE_BURST": "1000000"}
        server = replace(server, environment={**server.environment, **unlimited})
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {_token(folder)}"}
        with running(server, cores.server, server.record_path):
            bench = Bench(server, tools.wrk, cores.load, headers, folder)
            measured = {path: [measure(bench, path, seconds) for _ in range(ROUNDS)] for path in PATHS}
    columns = (
        "write", "a second", "p50", "p99", "a second beside reads", "read p50 meanwhile", "read p99 idle",
        "read p99 meanwhile", "ratio",
    )  # fmt: skip
    tables = [Table("Writes", columns, [(f"POST {path}", *_told(rounds)) for path, rounds in measured.items()])]
    verdicts = []
    for path, rounds in measured.items():
        per_second, ratio = (median(values) for values in zip(*map(_targeted, rounds), strict=True))
        writes, reads = f"at least {LEAST_WRITES:,} a second", f"at most {MOST_P99_RATIO:g} times idle"
        verdicts += [
            Verdict(f"POST {path}: {writes}", f"{per_second:,.0f}", per_second >= LEAST_WRITES),
            Verdict(f"reads' p99 meanwhile: {reads}", f"{ratio:.1f}", ratio <= MOST_P99_RATIO),
        ]
    return [verdict_table(verdicts), *tables]


def _targeted(each: Round) -> tuple[float, float]:
    return each.alone.per_second, each.ratio


def _told(rounds: list[Round]) -> tuple[str, ...]:
    """The median of each figure."""
    figures = [
        (
            each.alone.per_second, each.alone.p50_ms, each.alone.p99_ms, each.written.per_second,
            each.meanwhile.p50_ms, each.idle.p99_ms, each.meanwhile.p99_ms, each.ratio,
        )
        for each in rounds
    ]  # fmt: skip
    medians = [median(values) for values in zip(*figures, strict=True)]
    return tuple(f"{value:,.0f}" if value > _WHOLE else f"{value:.2f}" for value in medians)


def _token(folder: Path) -> str:
    """A curator's token for the database that the server was loaded into."""
    database = f"sqlite:///{folder / 'catalogue.db'}"
    secret = ""
    for command in (["user", "add", "bench", "--role", "curator"], ["token", "create", "bench"]):
        done = subprocess.run(
            [sys.executable, "-m", "lexarium", *command, "--database", database],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise ServerFailed(f"No token could be made: {done.stderr.strip()[-300:]}")
        secret = done.stdout.strip()
    return secret


def _page(tables: list[Table]) -> str:
    method = (
        f"One worker on one core, SQLite with `synchronous=FULL`; wrk with {WRITERS}"
        f" connections posts new concepts from another core, alone and while {READERS} more read one record as fast"
        " as they can. Every answer must be a 201, and every acknowledged record must be there in the end."
        f" Medians of {ROUNDS} rounds, times in milliseconds."
    )
    return page_of("writing", method, tables)


if __name__ == "__main__":
    sys.exit(main())
