"""Print result tables and write the Markdown page, with date, versions and method."""

import os
import platform
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from importlib.metadata import version
from pathlib import Path

from rich.console import Console
from rich.table import Table as RichTable

from benchmarks.data.catalogue import BenchmarkCatalogue
from benchmarks.harness.errors import BenchmarkError, UnexpectedResponse
from benchmarks.harness.read_scenarios import ReadScenario
from benchmarks.harness.targets import ReadResults, TargetResult

_METHOD = """\
`make bench` repeats this. Every server has one worker and serves the same records without compression. The
servers are measured one after another in each round; the best round counts, because other programs on the
machine can only slow a server down. The server has one CPU core and the load has another: wrk with 16
connections, or one if a body is larger than 4 MB or a response takes longer than 0.1 s. Memory is the
proportional set size of all processes of a server right after the load, the maximum of the rounds.

Before the load, the responses of each server are compared with the catalogue record by record. Each load
begins with one second in which every response is compared byte by byte. In the timed part, every status and
the total size are checked. One wrong response ends the benchmark with an error.

nginx sends static files: the upper limit. Django REST framework works like the public Cognitive Atlas site: it
passes rows to `Response` without a serializer, on SQLite behind gunicorn; Django's middleware for conditional
requests is added. Datasette has its limits raised so that the whole table is one response; it has no 304 for
tables.
"""

# Catalogue size that the targets are meant for.
TARGET_RECORDS = 1_000_000


@dataclass(frozen=True)
class ReportTable:
    """Table with a title; every column but the first holds numbers."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


def build_read_tables(catalogue: BenchmarkCatalogue, results: ReadResults) -> list[ReportTable]:
    """Return a table per scenario, with the servers in the order of measurement."""
    return [_build_read_table(catalogue, results, scenario) for scenario in ReadScenario]


def build_target_table(target_results: Iterable[TargetResult]) -> ReportTable:
    """Return the table of targets."""
    words = {True: "met", False: "missed", None: "inconclusive"}
    rows = [
        (target_result.target, target_result.measured, words[target_result.is_met]) for target_result in target_results
    ]
    return ReportTable("Targets", ("target", "measured", "result"), rows)


def print_tables(tables: Iterable[ReportTable], console: Console) -> None:
    """Print tables to a terminal."""
    for table in tables:
        rich_table = RichTable(title=table.title, title_justify="left")
        for number, column in enumerate(table.columns):
            rich_table.add_column(column, justify="right" if number else "left")
        for row in table.rows:
            rich_table.add_row(*row)
        console.print(rich_table)


def build_read_page(
    tables: Iterable[ReportTable], catalogues: Iterable[BenchmarkCatalogue], versions: Mapping[str, str]
) -> str:
    """Return the Markdown page of the read benchmark."""
    version_text = ", ".join(f"{name} {version}" for name, version in versions.items())
    catalogue_list = "\n".join(
        f"- {catalogue.title}, {catalogue.body_bytes / 1e6:.2f} MB: {catalogue.description}" for catalogue in catalogues
    )
    page = [
        "# Reads",
        f"Measured on {date.today().isoformat()} on {platform.system()} with {os.cpu_count()} cores; {version_text}.",
        _METHOD.strip(),
        f"Catalogues:\n\n{catalogue_list}",
        *(format_table(table) for table in tables),
    ]
    return "\n\n".join(page) + "\n"


def run_and_publish(run: Callable[[], tuple[list[ReportTable], str]], output: Path) -> int:
    """Run a benchmark, print its tables and write its page. Return the exit code: 1 if a response was wrong."""
    console = Console()
    try:
        tables, page = run()
    except BenchmarkError as error:
        console.print(str(error), style="red", markup=False, highlight=False)
        return 1 if isinstance(error, UnexpectedResponse) else 2
    print_tables(tables, console)
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(page)
    console.print(f"Wrote {output}.", highlight=False)
    return 0


def build_page(topic: str, method: str, tables: Iterable[ReportTable], records: int = TARGET_RECORDS) -> str:
    """Return the Markdown page of a benchmark, with a warning if there were fewer records than the targets require."""
    heading = f"Measured on {date.today().isoformat()} on {platform.system()} with {os.cpu_count()} cores; Lexarium"
    warning = f" **This run is too small for the targets, which apply to {TARGET_RECORDS:,} records.**"
    page = [
        f"# {topic.capitalize()}",
        f"{heading} {version('lexarium')}, Python {platform.python_version()}.",
        f"`make bench` repeats this. {method}{warning if records < TARGET_RECORDS else ''}",
        *(format_table(table) for table in tables),
    ]
    return "\n\n".join(page) + "\n"


def _build_read_table(catalogue: BenchmarkCatalogue, results: ReadResults, scenario: ReadScenario) -> ReportTable:
    results_by_server = {server: result for (server, kind), result in results.items() if kind is scenario}
    rates = {server: result.speed.requests_per_second for server, result in results_by_server.items()}
    rows = [
        (
            server,
            _format_number(rates[server]),
            _format_ratio(rates[server], rates.get("nginx")),
            _format_ratio(rates[server], rates.get("Django REST framework")),
            _format_number(result.speed.p50_ms),
            _format_number(result.speed.p99_ms),
            f"{result.memory_bytes / 1e6:.0f}",
        )
        for server, result in results_by_server.items()
    ]
    columns = ("server", "requests/s", "ratio to nginx", "ratio to DRF", "p50, ms", "p99, ms", "memory, MB")
    return ReportTable(f"{catalogue.title}: {scenario.value}", columns, rows)


def _format_ratio(rate: float, base: float | None) -> str:
    return "" if base is None else _format_number(rate / base)


def _format_number(value: float) -> str:
    """Format with about three significant digits and no exponent."""
    if value < 0.001:
        return "<0.001"
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def format_table(table: ReportTable) -> str:
    """Return a table as Markdown, under a heading."""
    lines = [f"## {table.title}", "", _format_row(table.columns)]
    lines.append("|---|" + "---:|" * (len(table.columns) - 1))
    lines.extend(_format_row(row) for row in table.rows)
    return "\n".join(lines)


def compute_percentile(times: Sequence[float], percent: int) -> float:
    """Return a percentile."""
    return sorted(times)[min(len(times) - 1, len(times) * percent // 100)]


def format_percentiles(times: Sequence[float]) -> str:
    """Return the median and the 99th percentile, as shown in tables."""
    return f"{compute_percentile(times, 50):.1f} / {compute_percentile(times, 99):.1f}"


def _format_row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |"
