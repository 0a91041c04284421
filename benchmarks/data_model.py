"""Compare the CPU time of this source tree with that of an older one, and measure large records.

Run it from the repository's root as `python -m benchmarks.data_model --base TREE`. It prints tables. It exits with 1 if
a response was wrong.
"""

import json
import os
import sys
import time
from argparse import ArgumentParser
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from http.client import HTTPConnection
from itertools import count
from pathlib import Path
from random import Random
from shutil import rmtree
from statistics import median
from subprocess import DEVNULL, PIPE, Popen
from tempfile import TemporaryDirectory
from urllib.parse import quote

from rich.console import Console

from benchmarks.data.generated import CLASSES, generate_records
from benchmarks.data.obo_file import write_obo_file
from benchmarks.data.records import Record, write_array
from benchmarks.harness.command_line import ROOT
from benchmarks.harness.errors import BenchmarkError, SetupError, UnexpectedResponse
from benchmarks.harness.http_client import connect
from benchmarks.harness.report import ReportTable, compute_percentile, print_tables
from benchmarks.harness.server_process import run_server
from benchmarks.servers.lexarium import COMMAND, build_server

OBO_TERMS = 12_000
RELATIONS = 200
STATEMENTS = 1_000
_REQUESTS = 300
_SETTINGS = {"LEXARIUM_WRITE_BURST": "1000000", "LEXARIUM_WRITE_RATE": "1000000"}
_SEARCH_PATH = "/api/v1/search?q=memory"

_LARGE_PREFIXES = """\
@prefix skos: <http://www.w3.org/2004/02/skos/core#> .
@prefix ex: <https://example.org/t/> .
ex:s a skos:ConceptScheme .
"""


@dataclass(frozen=True)
class HttpRequest:
    """Request of a scenario."""

    method: str
    path: str
    body: str | None = None
    headers: Mapping[str, str] | None = None


# Requests of each scenario in a round.
Scenarios = Mapping[str, Callable[[int], list[HttpRequest]]]


@dataclass(frozen=True)
class SourceTree:
    """Source tree, with a folder for its databases."""

    root: Path
    folder: Path

    @property
    def environment(self) -> dict[str, str]:
        return {"PYTHONPATH": str(self.root / "src"), **_SETTINGS}

    def run(self, *arguments: str) -> tuple[float, str]:
        """Run a `lexarium` command; return its CPU time in seconds and its output."""
        command, environment = [*COMMAND, *arguments], {**os.environ, **self.environment}
        with Popen(command, cwd=self.folder, env=environment, stdout=PIPE, stderr=DEVNULL, text=True) as process:
            assert process.stdout is not None
            output = process.stdout.read()
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise SetupError(f"lexarium {' '.join(arguments)} failed in {self.root}: {output[-500:]}")
        return usage.ru_utime + usage.ru_stime, output

    def import_files(self, name: str, *arguments: str) -> float:
        """Import files into a new database, and index them; return the CPU time in seconds."""
        index = self.folder / f"{name}-search"
        (self.folder / name).unlink(missing_ok=True)
        rmtree(index, ignore_errors=True)
        seconds = self.run("import", *arguments, "--database", self.build_url(name))[0]
        # Older versions leave the index to the server.
        return seconds if index.exists() else seconds + self.run("reindex", "--database", self.build_url(name))[0]

    def create_token(self, name: str) -> str:
        self.run("user", "add", "bench", "--role", "curator", "--database", self.build_url(name))
        return self.run("token", "create", "bench", "--database", self.build_url(name))[1].strip()

    def build_url(self, name: str) -> str:
        return f"sqlite:///{self.folder / name}"

    @contextmanager
    def serve(self, name: str) -> Iterator["MeasuredServer"]:
        """Run a server of a database until the block ends."""
        self.run("reindex", "--database", self.build_url(name))
        server = replace(build_server(self.folder, self.build_url(name)), environment=self.environment)
        with run_server(server, None, _SEARCH_PATH) as running:
            connection = connect(server.port)
            yield MeasuredServer(running.pid, connection)
            connection.close()


class MeasuredServer:
    """Running server whose CPU time is measured."""

    def __init__(self, pid: int, connection: HTTPConnection) -> None:
        # Linux's clock of the CPU time of a process, with all its threads.
        self._clock = (~pid << 3) | 2
        self._connection = connection

    def send(self, requests: Sequence[HttpRequest]) -> float:
        """Send requests one after another; return the CPU time of the server for each in milliseconds."""
        start = self._get_cpu_ms()
        for item in requests:
            self._connection.request(item.method, item.path, item.body, dict(item.headers or {}))
            response = self._connection.getresponse()
            body = response.read()
            if response.status >= 300:
                raise UnexpectedResponse(f"{item.method} {item.path} returned {response.status}: {body[:200]!r}")
        return (self._get_cpu_ms() - start) / len(requests)

    def _get_cpu_ms(self) -> float:
        return time.clock_gettime(self._clock) * 1e3


def compare_imports(
    base: SourceTree, new: SourceTree, folder: Path, records: Sequence[Record], rounds: int
) -> ReportTable:
    """Import the same files with both trees in turn. The last database of the first file stays, as `records.db`."""
    classes, concepts, terms = (folder / name for name in ("concept_class.json", "concept.json", "disorder.obo"))
    write_array(CLASSES, classes)
    write_array(records, concepts)
    write_obo_file(terms, OBO_TERMS)
    files = [str(classes), str(concepts)]
    to_main = [str(terms), "--vocabulary", "main"]
    imports: list[tuple[str, int, Sequence[tuple[SourceTree, list[str]]]]] = [
        ("v-alpha JSON", len(records), [(base, files), (new, files)]),
        ("OBO into the main vocabulary", OBO_TERMS, [(base, [str(terms)]), (new, to_main)]),
        ("OBO, by statements into one of its own", OBO_TERMS, [(base, [str(terms)]), (new, [str(terms)])]),
    ]
    rows = []
    for label, size, commands in imports:
        name = "records.db" if size == len(records) else "terms.db"
        times = [[tree.import_files(name, *arguments) for tree, arguments in commands] for _ in range(rounds)]
        before, after = (median(column) for column in zip(*times, strict=True))
        rates = [f"{size / seconds:,.0f}" for seconds in (before, after)]
        rows.append((label, f"{size:,}", *rates, f"{before / after:.2f}"))
    return ReportTable(
        "Imports with the search index: records per second of CPU",
        ("file", "records", "base", "now", "now / base"),
        rows,
    )


def compare_requests(base: SourceTree, new: SourceTree, records: Sequence[Record], rounds: int) -> ReportTable:
    """Send the same requests to servers of both trees in turn."""
    tokens = [tree.create_token("records.db") for tree in (base, new)]
    with base.serve("records.db") as base_server, new.serve("records.db") as new_server:
        servers = list(
            zip((base_server, new_server), (build_scenarios(records, token) for token in tokens), strict=True)
        )
        times: dict[str, list[tuple[float, float]]] = {name: [] for name in servers[0][1]}
        for number in range(-1, rounds):  # The first one warms up.
            for name, pairs in times.items():
                pair = servers if number % 2 else servers[::-1]
                measured = {server: server.send(scenarios[name](number)) for server, scenarios in pair}
                if number >= 0:
                    pairs.append((measured[base_server], measured[new_server]))
    rows = []
    for name, pairs in times.items():
        before, after = (median(column) for column in zip(*pairs, strict=True))
        rows.append((name, f"{before:.3f}", f"{after:.3f}", f"{after / before:.3f}"))
    return ReportTable("CPU time of a request, ms", ("request", "base", "now", "now / base"), rows)


def build_scenarios(records: Sequence[Record], token: str) -> Scenarios:
    """Return the requests of each scenario."""
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}

    def pick(number: int, size: int) -> list[tuple[int, Record]]:
        # Numbers make paths unique, so that no response is cached.
        rng = Random(number)
        return [(number * 10_000 + index, rng.choice(records)) for index in range(size)]

    def get(template: str, size: int) -> Callable[[int], list[HttpRequest]]:
        return lambda number: [
            HttpRequest("GET", template.format(unique=unique, id=record["id"], name=quote(str(record["name"]))))
            for unique, record in pick(number, size)
        ]

    def create(path: str) -> Callable[[int], list[HttpRequest]]:
        return lambda number: [
            HttpRequest("POST", path, json.dumps({"name": f"new {unique}", "definition_text": "x"}), headers)
            for unique, _ in pick(number, 150)
        ]

    return {
        "v-alpha record, cached": lambda number: get("/api/v-alpha/concept?id={id}", 1)(number) * 6_000,
        "v-alpha record": get("/api/v-alpha/concept?id={id}&x={unique}", 400),
        "v-alpha list of all": get("/api/v-alpha/concept?x={unique}", 2),
        "v-alpha search": get("/api/v-alpha/search?q={name}&x={unique}", 300),
        "v-alpha write": create("/api/v-alpha/concept"),
        "v1 record": get("/api/v1/records/{id}", 800),
        "v1 list of 100": get("/api/v1/concept?limit=100", 25),
        "v1 search": get("/api/v1/search?q={name}", 800),
        "v1 write": create("/api/v1/concept"),
        "term page": get("/id/{id}", 150),
    }


def measure_large_records(tree: SourceTree, folder: Path) -> ReportTable:
    """Measure the page of a record with many relations, and requests for one with many statements."""
    file = folder / "large.ttl"
    file.write_text(_LARGE_PREFIXES + "\n".join(_iter_large_resources()), encoding="utf-8")
    tree.import_files("large.db", str(file), "--vocabulary", "t")
    token = tree.create_token("large.db")
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json", "If-Match": "*"}
    path, numbers = "/api/v1/vocabularies/t/records/t:large", count(1)
    page = {"Accept": "text/html"}
    requests: dict[str, Callable[[], HttpRequest]] = {
        f"page of a term with {RELATIONS} relations": lambda: HttpRequest("GET", "/id/t:hub?vocabulary=t", None, page),
        f"read {STATEMENTS:,} statements": lambda: HttpRequest("GET", path),
        "edit one of them": lambda: HttpRequest("PATCH", path, json.dumps({"name": f"a {next(numbers)}"}), headers),
        "diff of two versions": lambda: HttpRequest("GET", f"{path}/diff?from=2&to=3"),
    }
    rows = []
    with tree.serve("large.db") as server:
        for name, build in requests.items():
            server.send([build() for _ in range(20)])
            cpu_times, times = [], []
            for _ in range(_REQUESTS):
                start = time.perf_counter()
                cpu_times.append(server.send([build()]))
                times.append((time.perf_counter() - start) * 1e3)
            figures = [compute_percentile(values, percent) for values in (cpu_times, times) for percent in (50, 99)]
            rows.append((name, *(f"{value:.1f}" for value in figures)))
    columns = ("request", "CPU time, p50", "p99", "time, p50", "p99")
    return ReportTable("Large records, ms", columns, rows)


def _iter_large_resources() -> Iterator[str]:
    """Yield Turtle of a concept related to many others, these others, and a concept with many texts."""
    others = range(RELATIONS // 2)
    related = " , ".join(f"ex:r{number}" for number in others)
    yield f'ex:hub a skos:Concept ; skos:prefLabel "hub"@en ; skos:inScheme ex:s ; skos:related {related} .'
    for number in others:
        yield f'ex:r{number} a skos:Concept ; skos:prefLabel "related {number}"@en ; skos:inScheme ex:s .'
        yield f'ex:c{number} a skos:Concept ; skos:prefLabel "child {number}"@en ; skos:broader ex:hub .'
    yield 'ex:large a skos:Concept ; skos:prefLabel "large"@en ; skos:inScheme ex:s'
    for number in range(STATEMENTS - 3):
        yield f'; skos:altLabel "alias {number}"@en' if number % 2 else f'; ex:p{number % 40} "value {number}"'
    yield "."


def main() -> int:
    """Parse the command line, run and return the exit code."""
    parser = ArgumentParser(prog="python -m benchmarks.data_model", description="Compare with an older source tree.")
    parser.add_argument("--base", type=Path, help="the older source tree; without it, large records are measured alone")
    parser.add_argument("--records", type=int, default=100_000, help="number of generated records (100,000)")
    parser.add_argument("--rounds", type=int, default=7, help="rounds of requests (7); half as many of imports")
    options = parser.parse_args()
    console = Console()
    try:
        print_tables(_run(options.base, options.records, options.rounds), console)
    except BenchmarkError as error:
        console.print(str(error), style="red", markup=False, highlight=False)
        return 1 if isinstance(error, UnexpectedResponse) else 2
    return 0


def _run(base_root: Path | None, record_count: int, rounds: int) -> Iterator[ReportTable]:
    with TemporaryDirectory(prefix="lexarium-benchmark-") as name:
        folder = Path(name)
        for kind in ("base", "new"):
            (folder / kind).mkdir()
        new = SourceTree(ROOT, folder / "new")
        yield measure_large_records(new, folder)
        if base_root is not None:
            base = SourceTree(base_root.resolve(), folder / "base")
            records = list(generate_records(record_count))
            yield compare_imports(base, new, folder, records, (rounds + 1) // 2)
            yield compare_requests(base, new, records, rounds)


if __name__ == "__main__":
    sys.exit(main())
