"""Benchmark the relevance of search against SQLite FTS5 and PostgreSQL full text, with the same records.

Run it from the repository's root as `python -m benchmarks.relevance`. It prints tables and writes them to
`docs/benchmarks/relevance.md`. A missed target is reported and is not an error.
"""

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass

import psycopg
from rich.console import Console

from benchmarks.harness.command_line import create_parser
from benchmarks.harness.report import ReportTable, build_page, build_target_table, print_tables, run_and_publish
from benchmarks.harness.targets import TargetResult
from benchmarks.relevance.catalogues import SAMPLE, CatalogueRecord, list_catalogues, open_catalogue
from benchmarks.relevance.engines import Fts5Search, LexariumSearch, PostgresSearch, SearchEngine, run_postgres
from benchmarks.relevance.measure import ALL_KINDS, QueryResult, RelevanceFigures, run_queries, summarize
from benchmarks.relevance.queries import generate_queries, load_sample_queries
from lexarium.domain.identifiers import split_id

_MIN_MRR = 0.9
_MIN_KIND_MRR = 0.75
_LEXARIUM, _POSTGRES = "Lexarium", "PostgreSQL"
_METHOD = (
    "Each query has one or more records that are right as the first hit. MRR is the mean of 1 / rank of the first right"
    " record among the first 10 hits, or 0; recall@5 is the share of the right records, of at most five, among the"
    " first 5 hits. The 300 queries of the sample were written one by one (`benchmarks/relevance/queries.tsv`), before"
    " they were measured; each can be answered from the texts of the sample. Those of real catalogues are generated"
    " from names and aliases by rules, always the same ones. All engines have the same names, aliases and definitions."
    " FTS5 has porter stemming and bm25 with weights 10, 5 and 1; PostgreSQL has `websearch_to_tsquery` and"
    " `ts_rank_cd` with English stemming and the weights A, B and D, and of equal ranks the shorter name first. Both"
    " look for all words, and for any if no record has all. `python -m benchmarks.relevance --misses` lists the queries"
    " whose first hit is wrong; with `--json` figures and misses are printed as JSON."
)


@dataclass(frozen=True)
class CatalogueReport:
    """Figures of every engine on one catalogue."""

    catalogue: str
    record_count: int
    figures: dict[str, dict[str, RelevanceFigures]]
    targets: list[TargetResult]
    # Queries of which the first hit of Lexarium is wrong.
    misses: list[dict[str, str]]


def measure_catalogue(name: str, postgres: psycopg.Connection | None) -> CatalogueReport:
    """Run the queries of a catalogue on every engine."""
    with open_catalogue(name) as catalogue:
        queries = load_sample_queries() if name == SAMPLE else generate_queries(catalogue.records)
        engines: dict[str, SearchEngine] = {
            _LEXARIUM: LexariumSearch(catalogue),
            "FTS5": Fts5Search(catalogue.records),
        }
        if postgres is not None:
            engines[_POSTGRES] = PostgresSearch(postgres, catalogue.records)
        results = {engine_name: run_queries(engine, queries) for engine_name, engine in engines.items()}
        figures = {engine_name: summarize(engine_results) for engine_name, engine_results in results.items()}
        misses = list(_iter_misses(results[_LEXARIUM], catalogue.records))
    targets = _check_targets(name, figures[_LEXARIUM])
    return CatalogueReport(name, len(catalogue.records), figures, targets, misses)


def _check_targets(catalogue: str, figures: dict[str, RelevanceFigures]) -> list[TargetResult]:
    overall = figures[ALL_KINDS].mrr
    worst = min(figures, key=lambda kind: figures[kind].mrr)
    return [
        TargetResult(f"{catalogue}: MRR at least {_MIN_MRR:g}", f"{overall:.3f}", overall >= _MIN_MRR),
        TargetResult(
            f"{catalogue}: MRR of each kind at least {_MIN_KIND_MRR:g}",
            f"{figures[worst].mrr:.3f} ({worst})",
            figures[worst].mrr >= _MIN_KIND_MRR,
        ),
    ]


def _iter_misses(results: Iterable[QueryResult], records: Iterable[CatalogueRecord]) -> Iterator[dict[str, str]]:
    names = {record.id: record.names[0] for record in records}

    def describe(record_id: str) -> str:
        vocabulary, local_id = split_id(record_id)
        return f"{names.get(record_id, '')} ({vocabulary} {local_id})"

    for result in results:
        if result.reciprocal_rank < 1:
            yield {
                "kind": result.query.kind,
                "query": result.query.text,
                "expected": ", ".join(map(describe, sorted(result.query.expected))),
                "rank": f"{1 / result.reciprocal_rank:.0f}" if result.reciprocal_rank else "",
                "first": describe(result.hits[0]) if result.hits else "",
            }


def _build_figure_table(report: CatalogueReport) -> ReportTable:
    columns = ["kind", "queries"]
    for engine in report.figures:
        columns += [f"{engine} MRR", "recall@5"]
    rows = []
    for kind, figures in report.figures[_LEXARIUM].items():
        row = [kind, f"{figures.queries}"]
        for engine_figures in report.figures.values():
            row += [f"{engine_figures[kind].mrr:.3f}", f"{engine_figures[kind].recall:.3f}"]
        rows.append(row)
    note = "" if _POSTGRES in report.figures else f" ({_POSTGRES} is not installed)"
    return ReportTable(f"{report.catalogue}, {report.record_count:,} records{note}", columns, rows)


def _print_misses(report: CatalogueReport) -> None:
    print(f"# {report.catalogue}: queries whose first hit is wrong")
    for miss in report.misses:
        found = (
            f"rank {miss['rank']}, first is {miss['first']}"
            if miss["rank"]
            else f"first is {miss['first'] or 'nothing'}"
        )
        print(f"{miss['kind']}: {miss['query']!r} should find {miss['expected']}; {found}")


def _run(catalogues: Iterable[str]) -> list[CatalogueReport]:
    with run_postgres() as postgres:
        return [measure_catalogue(name, postgres) for name in catalogues]


def _build_tables(reports: Sequence[CatalogueReport]) -> list[ReportTable]:
    targets = [target for report in reports for target in report.targets]
    return [*map(_build_figure_table, reports), build_target_table(targets)]


def _build_report(catalogues: Iterable[str]) -> tuple[list[ReportTable], str]:
    tables = _build_tables(_run(catalogues))
    return tables, build_page("relevance of search", _METHOD, tables)


def main() -> int:
    """Parse the command line, run and return the exit code."""
    parser = create_parser("relevance", "Measure how often the right records come first.", "relevance.md")
    present = list_catalogues()
    parser.add_argument(
        "--catalogues", nargs="+", choices=present, default=present, help="catalogues to search (all that are present)"
    )
    parser.add_argument("--json", action="store_true", help="print figures and misses as JSON, and write no page")
    parser.add_argument("--misses", action="store_true", help="list wrong first hits too, and write no page")
    options = parser.parse_args()
    if options.json:
        reports = _run(options.catalogues)
        print(json.dumps([asdict(report) for report in reports], ensure_ascii=False, indent=2))
        return 0
    if options.misses:
        reports = _run(options.catalogues)
        for report in reports:
            _print_misses(report)
        print_tables(_build_tables(reports), Console())
        return 0
    return run_and_publish(lambda: _build_report(options.catalogues), options.output)


if __name__ == "__main__":
    sys.exit(main())
