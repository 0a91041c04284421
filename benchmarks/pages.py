"""Benchmark time to first byte of pages, with a large catalogue.

Run it from the repository's root as `python -m benchmarks.pages`. It prints tables and writes them to
`docs/benchmarks/pages.md`. It exits with 1 if a page was missing.
"""

import sys
import time
from collections.abc import Sequence
from http.client import HTTPConnection
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from urllib.parse import quote

from benchmarks.data.records import Record
from benchmarks.harness.command_line import add_records_option, create_parser
from benchmarks.harness.cpu_pinning import choose_cores, pin_to_core
from benchmarks.harness.errors import SetupError, UnexpectedResponse
from benchmarks.harness.http_client import HOST, connect, request
from benchmarks.harness.report import (
    ReportTable,
    build_page,
    build_target_table,
    compute_percentile,
    format_percentiles,
    run_and_publish,
)
from benchmarks.harness.server_process import run_server
from benchmarks.harness.targets import TargetResult
from benchmarks.servers.lexarium import build_server, build_sqlite_url, import_generated, run_cli
from lexarium.web.http.session import COOKIE
from lexarium.web.http.static_files import STATIC

MAX_MS = 50
MAX_KB = 60
_STATISTICS_PATH = "/statistics"
# Text of the statistics page once they are computed.
_STATISTICS_READY = b"As of revision"
_STATISTICS_TIMEOUT_SECONDS = 600
_POLL_SECONDS = 0.1

# A field of a random record replaces its name in braces.
PAGE_PATHS = {
    "home": "/",
    "collection": "/browse/concept",
    "collection, from a name on": "/browse/concept?from={name}",
    "collection, one class": "/browse/concept?class={id_concept_class}",
    "hierarchy": "/browse/concept/tree",
    "record": "/id/{id}",
    "history of a record": "/id/{id}/history",
    "search results": "/search?q={name}",
    "search results, one collection": "/search?q={name}&collection=concept",
    "search results, one class": "/search?q={name}&class={id_concept_class}",
    "annotate": "/annotate",
    "statistics": "/statistics",
    "records without a definition": "/statistics/gaps/undefined",
    "changes": "/changes",
    "guide": "/guide",
    "API reference": "/docs",
    "propose": "/propose/concept",
    "edit": "/edit/{id}",
    "edit relations": "/edit/{id}/relations",
    "merge": "/merge/{id}",
    "retire": "/retire/{id}",
    "review": "/review",
    "import": "/import",
    "administration": "/admin",
    "accounts": "/admin/people",
    "tokens": "/admin/tokens",
    "webhooks": "/admin/webhooks",
}


def wait_for_statistics(port: int) -> None:
    """Wait until statistics are computed: that happens once, after the first page, and takes a core."""
    connection = connect(port)
    deadline = time.monotonic() + _STATISTICS_TIMEOUT_SECONDS
    while _STATISTICS_READY not in request(connection, _STATISTICS_PATH).read():
        if time.monotonic() > deadline:
            raise SetupError(f"The statistics were not computed within {_STATISTICS_TIMEOUT_SECONDS} s.")
        time.sleep(_POLL_SECONDS)
    connection.close()


def measure(port: int, token: str, records: Sequence[Record], times: int) -> dict[str, list[float]]:
    """Return the milliseconds to the first byte of each page, several times each, warm."""
    connection = HTTPConnection(HOST, port, timeout=60)
    rng = Random(1)
    measured = {}
    for name, template in PAGE_PATHS.items():
        paths = [_fill_path(template, rng.choice(records)) for _ in range(times + 10)]
        durations = [_measure_first_byte(connection, path, token) for path in paths]
        measured[name] = durations[10:]
    connection.close()
    return measured


def _fill_path(template: str, record: Record) -> str:
    return template.format_map({name: quote(str(value)) for name, value in record.items()})


def _measure_first_byte(connection: HTTPConnection, path: str, token: str) -> float:
    headers = {"Accept": "text/html", "Cookie": f"{COOKIE}={token}"}
    start = time.perf_counter()
    connection.request("GET", path, headers=headers)
    response = connection.getresponse()
    milliseconds = (time.perf_counter() - start) * 1e3
    body = response.read()
    if response.status != 200:
        raise UnexpectedResponse(f"{path} returned {response.status}: {body[:200]!r}")
    return milliseconds


def main() -> int:
    """Parse the command line, run and return the exit code."""
    parser = create_parser("pages", "Measure the time to the first byte of pages.", "pages.md")
    add_records_option(parser)
    parser.add_argument("--times", type=int, default=100, help="requests for each page (100)")
    options = parser.parse_args()
    return run_and_publish(lambda: _run(options.records, options.times), options.output)


def _run(count: int, times: int) -> tuple[list[ReportTable], str]:
    cores = choose_cores()
    with TemporaryDirectory(prefix="lexarium-benchmark-") as name:
        folder = Path(name)
        database = build_sqlite_url(folder)
        records, token = import_generated(folder, database, count, "admin")
        run_cli("reindex", "--database", database)
        server = build_server(folder, database)
        with run_server(server, cores.server, _STATISTICS_PATH), pin_to_core(cores.load):
            wait_for_statistics(server.port)
            measured = measure(server.port, token, records, times)
    slowest = max(measured, key=lambda page: compute_percentile(measured[page], 99))
    p99 = compute_percentile(measured[slowest], 99)
    kilobytes = sum(path.stat().st_size for path in STATIC.iterdir() if path.suffix in (".css", ".js")) / 1e3
    target_results = [
        TargetResult(
            f"p99 to the first byte of every page, at most {MAX_MS} ms", f"{p99:.1f} ms ({slowest})", p99 <= MAX_MS
        ),
        TargetResult(f"CSS and JavaScript together, at most {MAX_KB} KB", f"{kilobytes:.0f} KB", kilobytes <= MAX_KB),
    ]
    rows = [(page, format_percentiles(durations)) for page, durations in measured.items()]
    tables = [
        build_target_table(target_results),
        ReportTable("Time to the first byte, p50 / p99", ("page", "ms"), rows),
    ]
    return tables, _build_page(tables, count, times)


def _build_page(tables: list[ReportTable], count: int, times: int) -> str:
    method = (
        f"{count:,} generated records on SQLite. One worker runs on one core, warmed up and with its statistics"
        " computed, and one client, signed in as an admin, on another. The client requests each page"
        f" {times} times, one after another, for a different record each time."
    )
    return build_page("pages", method, tables, count)


if __name__ == "__main__":
    sys.exit(main())
