"""Pages: how soon the first byte of each comes, of a large catalogue.

Run it from the repository's root as `python -m benchmarks.pages`. It prints tables and writes them to
`docs/benchmarks-pages.md`. It ends with 1 where a page was not there.
"""

import sys
import time
from argparse import ArgumentParser
from collections.abc import Callable, Sequence
from http.client import HTTPConnection
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from urllib.parse import quote

from benchmarks.data.large_catalogue import (
    build_server,
    compute_percentile,
    format_percentiles,
    import_generated,
    run_cli,
)
from benchmarks.data.records import Record
from benchmarks.harness.cpu_pinning import choose_cores, pin_to_core
from benchmarks.harness.errors import SetupError, UnexpectedResponse
from benchmarks.harness.http_client import HOST, connect, request
from benchmarks.harness.report import TARGET_RECORDS, ReportTable, build_page, build_target_table, run_and_publish
from benchmarks.harness.server_process import run_server
from benchmarks.harness.targets import TargetResult
from lexarium.web.http.static_files import STATIC
from lexarium.web.pages.session import COOKIE

ROOT = Path(__file__).parents[1]
MAX_MS = 50
MAX_KB = 60
_STATISTICS_PATH = "/statistics"
_STATISTICS_READY = b"As of revision"
"""What the page of the figures says once there are any."""
_STATISTICS_TIMEOUT_SECONDS = 600
_POLL_SECONDS = 0.1

PathGenerator = Callable[[Random, Sequence[Record]], str]
"""The address of a page, drawn at random."""


def _with_record_id(template: str) -> PathGenerator:
    return lambda rng, records: template.format(id=rng.choice(records)["id"])


def _with_name(template: str) -> PathGenerator:
    return lambda rng, records: template.format(name=quote(str(rng.choice(records)["name"])))


def _with_class(template: str) -> PathGenerator:
    return lambda rng, records: template.format(id=rng.choice(records)["id_concept_class"])


def _with_name_and_class(template: str) -> PathGenerator:
    def draw(rng: Random, records: Sequence[Record]) -> str:
        record = rng.choice(records)
        return template.format(name=quote(str(record["name"])), id=record["id_concept_class"])

    return draw


def _fixed_path(path: str) -> PathGenerator:
    return lambda rng, records: path


PAGE_PATHS: dict[str, PathGenerator] = {
    "home": _fixed_path("/"),
    "a collection": _fixed_path("/browse/concept"),
    "a collection, from some name on": _with_name("/browse/concept?from={name}"),
    "a collection, one class": _with_class("/browse/concept?class={id}"),
    "a hierarchy": _fixed_path("/browse/concept/tree"),
    "a term": _with_record_id("/id/{id}"),
    "its history": _with_record_id("/id/{id}/history"),
    "results": _with_name("/search?q={name}"),
    "results, one collection": _with_name("/search?q={name}&collection=concept"),
    "results, one class": _with_name_and_class("/search?q={name}&class={id}"),
    "annotate": _fixed_path("/annotate"),
    "statistics": _fixed_path("/statistics"),
    "records without a definition": _fixed_path("/statistics/gaps/undefined"),
    "changes": _fixed_path("/changes"),
    "guide": _fixed_path("/guide"),
    "reference": _fixed_path("/docs"),
    "propose": _fixed_path("/propose/concept"),
    "edit": _with_record_id("/edit/{id}"),
    "relate": _with_record_id("/edit/{id}/relations"),
    "merge": _with_record_id("/merge/{id}"),
    "retire": _with_record_id("/retire/{id}"),
    "review": _fixed_path("/review"),
    "import": _fixed_path("/import"),
    "administration": _fixed_path("/admin"),
    "people": _fixed_path("/admin/people"),
    "tokens": _fixed_path("/admin/tokens"),
    "webhooks": _fixed_path("/admin/webhooks"),
}


def wait_for_statistics(port: int) -> None:
    """Wait until the catalogue is counted: that is done once, after the first page, and takes a core meanwhile."""
    connection = connect(port)
    deadline = time.monotonic() + _STATISTICS_TIMEOUT_SECONDS
    while _STATISTICS_READY not in request(connection, _STATISTICS_PATH).read():
        if time.monotonic() > deadline:
            raise SetupError(f"The catalogue was not counted within {_STATISTICS_TIMEOUT_SECONDS} s.")
        time.sleep(_POLL_SECONDS)
    connection.close()


def measure(port: int, token: str, records: Sequence[Record], times: int) -> dict[str, list[float]]:
    """How many milliseconds the first byte of each page took to come, each so many times, warm."""
    connection = HTTPConnection(HOST, port, timeout=60)
    rng = Random(1)
    measured = {}
    for name, generate_path in PAGE_PATHS.items():
        durations = [_measure_first_byte(connection, generate_path(rng, records), token) for _ in range(times + 10)]
        measured[name] = durations[10:]
    connection.close()
    return measured


def _measure_first_byte(connection: HTTPConnection, path: str, token: str) -> float:
    headers = {"Accept": "text/html", "Cookie": f"{COOKIE}={token}"}
    start = time.perf_counter()
    connection.request("GET", path, headers=headers)
    response = connection.getresponse()
    milliseconds = (time.perf_counter() - start) * 1e3
    body = response.read()
    if response.status != 200:
        raise UnexpectedResponse(f"{path} answered {response.status}: {body[:200]!r}")
    return milliseconds


def main() -> int:
    """Run the benchmark as the command line says, and return its exit code."""
    parser = ArgumentParser(prog="python -m benchmarks.pages", description="Measure pages.")
    parser.add_argument("--records", type=int, default=TARGET_RECORDS, help="how many there are (1,000,000)")
    parser.add_argument("--times", type=int, default=100, help="that each page is asked for (100)")
    parser.add_argument("--output", type=Path, default=ROOT / "docs" / "benchmarks-pages.md")
    options = parser.parse_args()
    return run_and_publish(
        lambda: _run(options.records, options.times),
        lambda tables: _build_page(tables, options.records, options.times),
        options.output,
    )


def _run(count: int, times: int) -> list[ReportTable]:
    cores = choose_cores()
    with TemporaryDirectory(prefix="lexarium-benchmark-") as name:
        folder = Path(name)
        database = f"sqlite:///{folder / 'catalogue.db'}"
        records, token = import_generated(folder, database, count, "admin")
        run_cli(database, "reindex")
        server = build_server(folder, database)
        with run_server(server, cores.server, _STATISTICS_PATH), pin_to_core(cores.load):
            wait_for_statistics(server.port)
            measured = measure(server.port, token, records, times)
    slowest = max(measured, key=lambda page: compute_percentile(measured[page], 99))
    p99 = compute_percentile(measured[slowest], 99)
    kilobytes = sum(path.stat().st_size for path in STATIC.iterdir() if path.suffix in (".css", ".js")) / 1e3
    target_results = [
        TargetResult(f"first byte of each page, p99, at most {MAX_MS} ms", f"{p99:.1f} ms ({slowest})", p99 <= MAX_MS),
        TargetResult(f"CSS and JavaScript together, at most {MAX_KB} KB", f"{kilobytes:.0f} KB", kilobytes <= MAX_KB),
    ]
    rows = [(page, format_percentiles(durations)) for page, durations in measured.items()]
    return [
        build_target_table(target_results),
        ReportTable("Milliseconds to the first byte, p50 and p99", ("page", ""), rows),
    ]


def _build_page(tables: list[ReportTable], count: int, times: int) -> str:
    method = (
        f"{count:,} made records on SQLite; one worker on one core, warm and with its figures counted, and one client"
        f" on another, signed in as an admin, that asks for each page {times} times, of other records each time, one"
        " after another."
    )
    return build_page("pages", method, tables, count)


if __name__ == "__main__":
    sys.exit(main())
