"""Benchmark Turtle that consists of nested lists and blank nodes.

Run it from the repository's root as `python -m benchmarks.nesting`. It prints tables and writes them to
`docs/benchmarks/nesting.md`. It exits with 1 if a document is accepted that should be rejected, or vice versa.
"""

import io
import sys
import time
from contextlib import closing

from benchmarks.harness.command_line import create_parser
from benchmarks.harness.errors import UnexpectedResponse
from benchmarks.harness.report import ReportTable, build_page, build_target_table, run_and_publish
from benchmarks.harness.targets import TargetResult
from lexarium.domain.vocabulary import Vocabulary
from lexarium.formats.parsed import ParseError
from lexarium.formats.rdf.resources import open_document
from lexarium.formats.resources import ResourceOptions

ROUNDS = 3
MEGABYTES = (1, 4)
ALLOWED_DEPTH = 1_000
_MAX_SECONDS_PER_MB = 1.0
_HEAD = b"""@prefix a: <http://a.example/> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix skos: <http://www.w3.org/2004/02/skos/core#> .
a:dog a skos:Concept ; skos:prefLabel "dog" .
"""
_KINDS = {
    "lists": (b"(", b")"),
    "OWL restrictions": (b"[ a owl:Restriction ; owl:onProperty a:part ; owl:someValuesFrom ", b" ]"),
    "blank nodes of one statement": (b"[a:p ", b"]"),
}


def build_document(kind: str, megabytes: int, depth: int) -> bytes:
    """Build a document with one concept, then as many statements of this depth as fit."""
    opening, closing = _KINDS[kind]
    statement = b"a:s a:p " + opening * depth + b"a:o" + closing * depth + b" .\n"
    return _HEAD + statement * (megabytes * 1_000_000 // len(statement))


def compute_max_depth(kind: str, megabytes: int) -> int:
    """Return the depth of a single statement of this size."""
    return megabytes * 1_000_000 // len(b"".join(_KINDS[kind])) - 10


def measure_read_seconds(data: bytes, *, expect_rejection: bool) -> float:
    """Return the CPU time of the best round; raise UnexpectedResponse at a wrong outcome."""
    return min(_read_once(data, expect_rejection) for _ in range(ROUNDS))


def _read_once(data: bytes, expect_rejection: bool) -> float:
    stream: io.BufferedReader = io.BufferedReader(io.BytesIO(data))
    start = time.process_time()
    try:
        with closing(open_document(stream, ResourceOptions())) as document:
            ids = [resource.id for resource in document.iter_resources(Vocabulary()) if resource.class_uri]
    except ParseError:
        ids = None
    if ids != (None if expect_rejection else ["http://a.example/dog"]):
        raise UnexpectedResponse(f"A document was not {'rejected' if expect_rejection else 'read'}.")
    return time.process_time() - start


def measure() -> list[ReportTable]:
    """Measure every kind of nesting, at the maximum depth and far beyond."""
    target_results, rows = [], []
    for kind in _KINDS:
        for expect_rejection in (False, True):
            name = f"{kind}, {'one statement: rejected' if expect_rejection else f'{ALLOWED_DEPTH:,} levels'}"
            rates = []
            for size in MEGABYTES:
                data = build_document(kind, size, compute_max_depth(kind, size) if expect_rejection else ALLOWED_DEPTH)
                rates.append(measure_read_seconds(data, expect_rejection=expect_rejection) / size)
            target = f"{name}, at most {_MAX_SECONDS_PER_MB:.0f} s/MB"
            target_results.append(TargetResult(target, f"{rates[-1]:.2f} s/MB", rates[-1] <= _MAX_SECONDS_PER_MB))
            rows.append((name, *(f"{rate:.2f}" for rate in rates)))
    columns = ("nesting", *(f"{size} MB" for size in MEGABYTES))
    return [build_target_table(target_results), ReportTable("Seconds per megabyte, by size of the file", columns, rows)]


def main() -> int:
    """Parse the command line, run and return the exit code."""
    parser = create_parser("nesting", "Measure reading nested Turtle.", "nesting.md")
    return run_and_publish(_run, parser.parse_args().output)


def _run() -> tuple[list[ReportTable], str]:
    tables = measure()
    return tables, _build_page(tables)


def _build_page(tables: list[ReportTable]) -> str:
    method = (
        "Turtle that consists only of nested terms is parsed as SKOS, in one process, and the records are discarded;"
        f" the CPU time of the best of {ROUNDS} rounds counts. Nested `[a:p ` makes one statement every six bytes."
    )
    return build_page("nesting", method, tables)


if __name__ == "__main__":
    sys.exit(main())
