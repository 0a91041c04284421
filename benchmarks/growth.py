"""Benchmark how figures grow with the number of records.

Run it from the repository's root as `python -m benchmarks.growth`. It prints tables and writes them to
`docs/benchmarks/growth.md`, and a plot beside it. It exits with 1 if a response was wrong.
"""

import json
import sys
import time
from collections.abc import Callable, Sequence
from http.client import HTTPConnection
from math import log10
from pathlib import Path
from random import Random
from statistics import median
from tempfile import TemporaryDirectory
from urllib.parse import quote

from rich.progress import track

from benchmarks.data.generated import CLASSES
from benchmarks.data.records import Record
from benchmarks.data.search_queries import take_prefix
from benchmarks.data.search_records import generate_search_records
from benchmarks.harness.command_line import create_parser
from benchmarks.harness.cpu_pinning import choose_cores, pin_to_core
from benchmarks.harness.errors import UnexpectedResponse
from benchmarks.harness.http_client import HOST
from benchmarks.harness.memory import get_memory_bytes
from benchmarks.harness.plot import draw_growth
from benchmarks.harness.report import ReportTable, build_page, format_percentiles, run_and_publish
from benchmarks.harness.server_process import run_server
from benchmarks.servers.lexarium import build_server, build_sqlite_url, create_token, import_records, run_cli

_SIZES = (10_000, 100_000, 1_000_000)
_FIRST_PATH = "/api/v1/search?q=memory"
_WARM_UP = 20

# A field of a random record replaces its name in braces; `start` is the start of its name.
_PATHS = {
    "v-alpha, one record": "/api/v-alpha/concept?id={id}",
    "v-alpha search, name": "/api/v-alpha/search?q={name}",
    "v1, one record": "/api/v1/records/{id}",
    "v1, history of a record": "/api/v1/concept/{id}/history",
    "v1 search, name": "/api/v1/search?q={name}",
    "v1 search, words in part": "/api/v1/search?q={name}%20zyzzyva",
    "suggest, start of a name": "/api/v1/suggest?prefix={start}",
    "term page": "/id/{id}",
    "list page, from a name on": "/browse/concept?from={name}",
    "search page": "/search?q={name}",
}
_WRITE = "write of one record"


def measure_size(count: int, times: int) -> tuple[dict[str, list[float]], dict[str, float]]:
    """Return the milliseconds of each kind of request to a catalogue with a number of records, and its other costs."""
    cores = choose_cores()
    with TemporaryDirectory(prefix="lexarium-benchmark-") as name:
        folder = Path(name)
        database = build_sqlite_url(folder)
        records = list(generate_search_records(count))
        import_seconds = _time(lambda: import_records(folder, database, CLASSES, records))
        token = create_token(database, "curator")
        index_seconds = _time(lambda: run_cli("reindex", "--database", database))
        index_bytes = sum(path.stat().st_size for path in (folder / "catalogue.db-search").rglob("*") if path.is_file())
        server = build_server(folder, database)
        with run_server(server, cores.server, _FIRST_PATH) as running_server, pin_to_core(cores.load):
            measured = _measure_requests(server.port, records, times)
            measured[_WRITE] = _measure_writes(server.port, token, times)
            memory = get_memory_bytes(running_server.pid)
        database_bytes = (folder / "catalogue.db").stat().st_size
    return measured, {
        "import, µs a record": import_seconds / count * 1e6,
        "index, µs a record": index_seconds / count * 1e6,
        "database, bytes a record": database_bytes / count,
        "index, bytes a record": index_bytes / count,
        "start to the first search, ms": running_server.start_seconds * 1e3,
        "memory of the worker, MB": memory / 1e6,
    }


def _time(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def _measure_requests(port: int, records: Sequence[Record], times: int) -> dict[str, list[float]]:
    """Return the response times of each kind of request, each for another record so that few are cached."""
    connection = HTTPConnection(HOST, port, timeout=60)
    measured = {}
    for name, template in _PATHS.items():
        chosen = Random(name).sample(records, times + _WARM_UP)
        measured[name] = [_send(connection, _fill_path(template, record)) for record in chosen][_WARM_UP:]
    connection.close()
    return measured


def _measure_writes(port: int, token: str, times: int) -> list[float]:
    connection = HTTPConnection(HOST, port, timeout=60)
    bodies = [json.dumps({"name": f"written {number} zyzzyva"}) for number in range(times)]
    measured = [_send(connection, "/api/v1/concept", body, token) for body in bodies]
    connection.close()
    return measured


def _fill_path(template: str, record: Record) -> str:
    fields = {"id": record["id"], "name": record["name"], "start": take_prefix(str(record["name"]))}
    return template.format_map({name: quote(str(value)) for name, value in fields.items()})


def _send(connection: HTTPConnection, path: str, body: str | None = None, token: str = "") -> float:
    """Send a request, which must succeed, and return the milliseconds until its response was read."""
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"} if token else {}
    start = time.perf_counter()
    connection.request("POST" if body else "GET", path, body, headers)
    response = connection.getresponse()
    content = response.read()
    milliseconds = (time.perf_counter() - start) * 1e3
    if response.status not in (200, 201):
        raise UnexpectedResponse(f"{path} returned {response.status}: {content[:200]!r}")
    return milliseconds


def main() -> int:
    """Parse the command line, run and return the exit code."""
    parser = create_parser("growth", "Measure how figures grow with the number of records.", "growth.md")
    parser.add_argument(
        "--sizes", type=int, nargs="+", default=list(_SIZES), help="numbers of records (10,000, 100,000 and 1,000,000)"
    )
    parser.add_argument("--times", type=int, default=200, help="requests of each kind (200)")
    options = parser.parse_args()
    return run_and_publish(lambda: _run(sorted(options.sizes), options.times, options.output), options.output)


def _run(sizes: Sequence[int], times: int, output: Path) -> tuple[list[ReportTable], str]:
    measured = [measure_size(size, times) for size in track(sizes, "Measuring")]
    requests = {name: [result[name] for result, _ in measured] for name in measured[0][0]}
    medians = {name: [median(durations) for durations in lines] for name, lines in requests.items()}
    costs = {name: [result[name] for _, result in measured] for name in measured[0][1]}
    columns = [f"{size:,} records" for size in sizes]
    growth_column = "growth per tenfold"
    tables = [
        ReportTable(
            "Response times, p50 / p99 in ms",
            ("request", *columns, f"{growth_column} of p50"),
            [
                (name, *map(format_percentiles, lines), _format_growth(sizes, medians[name]))
                for name, lines in requests.items()
            ],
        ),
        ReportTable(
            "Other costs",
            ("cost", *columns, growth_column),
            [(name, *(f"{value:,.0f}" for value in line), _format_growth(sizes, line)) for name, line in costs.items()],
        ),
    ]
    plot = output.with_suffix(".svg")
    output.parent.mkdir(parents=True, exist_ok=True)
    plot.write_text(draw_growth(sizes, medians, "ms"))
    return tables, _build_page(tables, sizes, times, plot.name)


def _format_growth(sizes: Sequence[int], line: Sequence[float]) -> str:
    """Return the factor by which a figure grows when the number of records grows tenfold: 1 if it does not depend."""
    if len(sizes) < 2:
        return ""
    return f"{(line[-1] / line[0]) ** (1 / log10(sizes[-1] / sizes[0])):.2f}"


def _build_page(tables: list[ReportTable], sizes: Sequence[int], times: int, plot: str) -> str:
    method = (
        "Generated records (names of one to four words that follow Zipf's law, 40 % with aliases, most with a"
        " definition) on SQLite. One worker runs on one core, and one client on another. The client sends"
        f" {times} requests of each kind over HTTP, one after another, each for another record, so that few responses"
        " come from the cache. Figures with one value were measured once. Growth is the factor per tenfold number of"
        f" records: 1 means that a figure does not depend on it.\n\n![Median response times]({plot})"
    )
    return build_page("growth", method, tables, max(sizes))


if __name__ == "__main__":
    sys.exit(main())
