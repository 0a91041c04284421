"""Nesting: how long Turtle takes that is nothing but nested lists and blank nodes.

Run it from the repository's root as `python -m benchmarks.nesting`. It prints tables and writes them to
`docs/benchmarks-nesting.md`. It ends with 1 where a document is read that should be refused, or the other way round.
"""

import io
import sys
import time
from argparse import ArgumentParser
from pathlib import Path

from benchmarks.errors import WrongAnswer
from benchmarks.report import Table, page_of, published, verdict_table
from benchmarks.targets import Verdict
from lexarium.domain.collections import CONCEPT
from lexarium.exchange import skos
from lexarium.exchange.formats import FORMATS
from lexarium.exchange.incoming import Malformed, Reading

ROOT = Path(__file__).parents[1]
ROUNDS = 3
MEGABYTES = (1, 4)
ALLOWED = 1_000
_MOST_SECONDS = 1.0
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


def document(kind: str, megabytes: int, depth: int) -> bytes:
    """Build a document with one concept, then as many statements of this depth as fit."""
    opening, closing = _KINDS[kind]
    statement = b"a:s a:p " + opening * depth + b"a:o" + closing * depth + b" .\n"
    return _HEAD + statement * (megabytes * 1_000_000 // len(statement))


def deepest(kind: str, megabytes: int) -> int:
    """Return how deep a single statement of this size is."""
    return megabytes * 1_000_000 // len(b"".join(_KINDS[kind])) - 10


def seconds_to_read(given: bytes, *, refused: bool) -> float:
    """Return the processor time of the best round. Raises `WrongAnswer` where the document is not treated as told."""
    return min(_read_once(given, refused) for _ in range(ROUNDS))


def _read_once(given: bytes, refused: bool) -> float:
    began = time.process_time()
    try:
        names = [each.fields["name"] for each in skos.read(io.BytesIO(given), _READING) if each.collection]
    except Malformed:
        names = None
    if names != (None if refused else ["dog"]):
        raise WrongAnswer(f"A document that was to be {'refused' if refused else 'read'} was not.")
    return time.process_time() - began


_READING = Reading(FORMATS["skos"], fallback=CONCEPT)


def measure() -> list[Table]:
    """Measure every kind of nesting, at the greatest depth that is allowed and far beyond it."""
    verdicts, rows = [], []
    for kind in _KINDS:
        for refused in (False, True):
            name = f"{kind}, {'as deep as the file is long: refused' if refused else f'{ALLOWED:,} deep'}"
            rates = []
            for size in MEGABYTES:
                given = document(kind, size, deepest(kind, size) if refused else ALLOWED)
                rates.append(seconds_to_read(given, refused=refused) / size)
            target = f"{name}, at most {_MOST_SECONDS:.0f} s/MB"
            verdicts.append(Verdict(target, f"{rates[-1]:.2f} s/MB", rates[-1] <= _MOST_SECONDS))
            rows.append((name, *(f"{rate:.2f}" for rate in rates)))
    columns = ("nested", *(f"s/MB of {size} MB" for size in MEGABYTES))
    return [verdict_table(verdicts), Table("Seconds for each megabyte", columns, rows)]


def main() -> int:
    """Run the benchmark as the command line says, and return its exit code."""
    parser = ArgumentParser(prog="python -m benchmarks.nesting", description="Measure reading nested Turtle.")
    parser.add_argument("--output", type=Path, default=ROOT / "docs" / "benchmarks-nesting.md")
    return published(measure, _page, parser.parse_args().output)


def _page(tables: list[Table]) -> str:
    method = (
        "Turtle that is nothing but nesting is read as SKOS, in one process, into records that are thrown away; the"
        f" processor time of the best of {ROUNDS} rounds counts. `[a:p ` nested in itself makes a statement of every"
        " six bytes."
    )
    return page_of("nesting", method, tables)


if __name__ == "__main__":
    sys.exit(main())
