"""The report: tables that go to the terminal and, with date, versions and method, to a Markdown file."""

import os
import platform
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from importlib.metadata import version
from pathlib import Path

from rich.console import Console
from rich.table import Table as RichTable

from benchmarks.catalogue import Catalogue
from benchmarks.errors import BenchmarkError, WrongAnswer
from benchmarks.reads import Read
from benchmarks.targets import Readings, Verdict

_METHOD = """\
`make bench` repeats this. Every server has one worker and serves the same records without compression, one
server after another in every round; the best round counts, because other work on a machine only slows one
down. The server has one processor core and the load, wrk with 16 connections (one where a body is larger than
4 MB or an answer takes longer than 0.1 s), another. Memory is the proportional set size of all of a server's
processes right after the load, the highest of the rounds.

Before the load each server's answers are compared with the catalogue record by record. Each load begins with
a second in which every answer is compared byte by byte; in the timed rest every status and the sum of all
sizes are. One wrong answer ends the benchmark with an error.

nginx sends static files: the limit. Django REST framework answers the way the public Cognitive Atlas site
does, rows given to `Response` with no serializer, over SQLite and behind gunicorn; Django's middleware for
conditional requests is added to it. Datasette has its limits raised so that the whole table comes at once; it
knows no 304 for a table.
"""

TARGETED = 1_000_000
"""How many records the targets of a large catalogue are meant for."""


@dataclass(frozen=True)
class Table:
    """A titled table of text; every column but the first holds figures."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


def reading_tables(catalogue: Catalogue, readings: Readings) -> list[Table]:
    """One table a kind of read, with the servers in the order they were measured in."""
    return [_reading_table(catalogue, readings, read) for read in Read]


def verdict_table(verdicts: Iterable[Verdict]) -> Table:
    """The targets."""
    words = {True: "reached", False: "missed", None: "cannot tell"}
    rows = [(verdict.target, verdict.measured, words[verdict.reached]) for verdict in verdicts]
    return Table("Targets", ("target", "measured", ""), rows)


def show(tables: Iterable[Table], console: Console) -> None:
    """Print the tables to a terminal."""
    for table in tables:
        drawn = RichTable(title=table.title, title_justify="left")
        for number, column in enumerate(table.columns):
            drawn.add_column(column, justify="right" if number else "left")
        for row in table.rows:
            drawn.add_row(*row)
        console.print(drawn)


def markdown(tables: Iterable[Table], catalogues: Iterable[Catalogue], versions: Mapping[str, str]) -> str:
    """The whole Markdown page."""
    told = ", ".join(f"{name} {version}" for name, version in versions.items())
    served = "\n".join(
        f"- {catalogue.title}, {catalogue.body_bytes / 1e6:.2f} MB: {catalogue.origin}" for catalogue in catalogues
    )
    page = [
        "# Benchmarks: reading",
        f"Measured on {date.today().isoformat()} on {platform.system()} with {os.cpu_count()} cores; {told}.",
        _METHOD.strip(),
        f"The catalogues:\n\n{served}",
        *(table_markdown(table) for table in tables),
    ]
    return "\n\n".join(page) + "\n"


def published(measure: Callable[[], list[Table]], page: Callable[[list[Table]], str], output: Path) -> int:
    """Measure, print the tables and write the page they make. Returns the exit code: 1 where an answer was wrong."""
    console = Console()
    try:
        tables = measure()
    except BenchmarkError as error:
        console.print(str(error), style="red", markup=False, highlight=False)
        return 1 if isinstance(error, WrongAnswer) else 2
    show(tables, console)
    output.write_text(page(tables))
    console.print(f"Written to {output}.", highlight=False)
    return 0


def page_of(topic: str, method: str, tables: Iterable[Table], records: int = TARGETED) -> str:
    """The Markdown page of a benchmark; it warns where there were fewer records than the targets are meant for."""
    measured = f"Measured on {date.today().isoformat()} on {platform.system()} with {os.cpu_count()} cores; Lexarium"
    small = f" **A small run: the targets are meant for {TARGETED:,} records, and this page does not show those.**"
    page = [
        f"# Benchmarks: {topic}",
        f"{measured} {version('lexarium')}, Python {platform.python_version()}.",
        f"`make bench` repeats this. {method}{small if records < TARGETED else ''}",
        *(table_markdown(table) for table in tables),
    ]
    return "\n\n".join(page) + "\n"


def _reading_table(catalogue: Catalogue, readings: Readings, read: Read) -> Table:
    measured = {server: reading for (server, kind), reading in readings.items() if kind is read}
    rates = {server: reading.speed.requests_per_second for server, reading in measured.items()}
    rows = [
        (
            server,
            _figure(rates[server]),
            _share(rates[server], rates.get("nginx")),
            _share(rates[server], rates.get("Django REST framework")),
            _figure(reading.speed.p50_ms),
            _figure(reading.speed.p99_ms),
            f"{reading.memory_bytes / 1e6:.0f}",
        )
        for server, reading in measured.items()
    ]
    columns = ("server", "requests/s", "of nginx", "times DRF", "p50 ms", "p99 ms", "memory MB")
    return Table(f"{catalogue.title}: {read.value}", columns, rows)


def _share(rate: float, base: float | None) -> str:
    return "" if base is None else _figure(rate / base)


def _figure(value: float) -> str:
    """About three significant digits, with no exponent."""
    if value < 0.001:
        return "<0.001"
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def table_markdown(table: Table) -> str:
    """A table as Markdown, under a heading."""
    lines = [f"## {table.title}", "", _markdown_row(table.columns)]
    lines.append("|---|" + "---:|" * (len(table.columns) - 1))
    lines.extend(_markdown_row(row) for row in table.rows)
    return "\n".join(lines)


def _markdown_row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |"
