"""Benchmark text annotation: speed by number of labels, labels from a file, and texts that are made to be slow.

Run it from the repository's root as `python -m benchmarks.annotate`. It prints a table, and exits with 1 if the
mentions found are not those in the text.
"""

import gc
import os
import sys
from argparse import ArgumentParser
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter

import orjson
from rich.console import Console

from benchmarks.data.generated import TextGenerator, generate_names
from benchmarks.harness.errors import BenchmarkError, UnexpectedResponse
from benchmarks.harness.memory import get_memory_bytes
from benchmarks.harness.report import ReportTable, print_tables
from lexarium.search.annotator import Annotator, DictionaryTerm
from lexarium.search.annotator_file import AnnotatorFile, AnnotatorState
from lexarium.web.v1.operations.annotate import MAX_TEXT_BYTES, render_annotations

SIZES = (2_000, 1_000_000)
# As in texts about the topic of the catalogue, and denser than any real text.
CHARS_PER_MENTION = (100, 15)
MIN_MB_PER_SECOND = 5.0
MAX_LOAD_SECONDS = 2.0
MAX_TEXT_SECONDS = 5.0
# Units that a text of the largest size repeats. The names contain "memory".
REPEATED_UNITS = {"apostrophes": "'", "hyphens": "-", "letters and hyphens": "a-", "one term": "memory "}
CHARACTERS = 1_000_000
_ROUNDS = 7
# As in a server.
_GC_THRESHOLD = 10_000


def build_tables(sizes: Sequence[int] = SIZES) -> list[ReportTable]:
    """Measure each number of labels; return the tables."""
    rows = [row for count in sizes for row in _measure_rows(count)]
    columns = (
        "names",
        "build time, s",
        "memory, MB",
        "mention every",
        "first text, MB/s",
        "later texts, MB/s",
        "5 MB/s",
    )
    return [
        ReportTable("Annotation of a text of 1 MB, to JSON", columns, rows),
        ReportTable(
            "Names from a file", ("names", "written, s", "MB", "loaded, s", "2 s"), [_measure_file(max(sizes))]
        ),
        ReportTable("Annotation of a text of 10 MiB, to JSON", ("text", "s", "5 s"), list(_measure_repeated())),
    ]


def _measure_rows(count: int) -> Iterator[Sequence[str]]:
    names = generate_names(count)
    before = get_memory_bytes(os.getpid())
    start = perf_counter()
    annotator = _build_annotator(names)
    build_seconds = perf_counter() - start
    gc.collect()
    memory = get_memory_bytes(os.getpid()) - before
    for chars_per_mention in CHARS_PER_MENTION:
        annotator.fragment_tokens.clear()
        texts = TextGenerator(names)
        speeds = [_measure_speed(annotator, texts.generate(CHARACTERS, chars_per_mention)) for _ in range(_ROUNDS)]
        status = "met" if min(speeds[0], median(speeds[1:])) >= MIN_MB_PER_SECOND else "missed"
        yield (
            f"{count:,}", f"{build_seconds:.1f}", f"{memory / 1e6:,.0f}", f"{chars_per_mention} characters",
            f"{speeds[0]:.1f}", f"{median(speeds[1:]):.1f}", status,
        )  # fmt: skip


def _measure_file(count: int) -> Sequence[str]:
    annotator = _build_annotator(generate_names(count))
    with TemporaryDirectory() as folder:
        path = Path(folder) / "annotator"
        start = perf_counter()
        annotator.save(path, AnnotatorState("", 0, 0, {}))
        written = perf_counter()
        Annotator(AnnotatorFile(path))
        seconds = perf_counter() - written
        megabytes = path.stat().st_size / 1e6
    status = "met" if seconds <= MAX_LOAD_SECONDS else "missed"
    return f"{count:,}", f"{written - start:.1f}", f"{megabytes:.0f}", f"{seconds:.2f}", status


def _measure_repeated() -> Iterator[Sequence[str]]:
    annotator = _build_annotator(generate_names(min(SIZES)))
    for title, unit in REPEATED_UNITS.items():
        text = unit * (MAX_TEXT_BYTES // len(unit))
        start = perf_counter()
        for _ in render_annotations(annotator.find_mentions([text], ("concept",))):
            pass
        seconds = perf_counter() - start
        yield title, f"{seconds:.1f}", "met" if seconds <= MAX_TEXT_SECONDS else "missed"


def _build_annotator(names: Sequence[str]) -> Annotator:
    annotator = Annotator()
    for number, name in enumerate(names):
        annotator.add(DictionaryTerm(f"trm_{number:012x}", name, "concept"), [name])
    return annotator


def _measure_speed(annotator: Annotator, text: str) -> float:
    start = perf_counter()
    body = b"".join(render_annotations(annotator.find_mentions([text], ("concept",))))
    seconds = perf_counter() - start
    for mention in orjson.loads(body)["annotations"]:
        if text[mention["start"] : mention["end"]] != mention["text"]:
            raise UnexpectedResponse(f"The text at {mention['start']} is not {mention['text']!r}.")
    return len(text.encode()) / 1e6 / seconds


def main() -> int:
    """Parse the command line, run and return the exit code."""
    gc.set_threshold(_GC_THRESHOLD)
    parser = ArgumentParser(prog="python -m benchmarks.annotate", description=__doc__)
    parser.add_argument("--names", type=int, nargs="*", default=SIZES, help="numbers of names")
    try:
        print_tables(build_tables(parser.parse_args().names), Console())
    except BenchmarkError as error:
        print(f"Error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
