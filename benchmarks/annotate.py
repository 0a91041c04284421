"""Annotating: how fast terms are found in text, by how many names are looked for.

Run it from the repository's root as `python -m benchmarks.annotate`. It prints a table, and ends with 1 where what was
found is not what the text has there.
"""

import gc
import os
import sys
from argparse import ArgumentParser
from collections.abc import Iterator, Sequence
from statistics import median
from time import perf_counter

import orjson
from rich.console import Console

from benchmarks.errors import BenchmarkError, WrongAnswer
from benchmarks.made import MadeText, made_names
from benchmarks.memory import used_bytes
from benchmarks.report import Table, show
from lexarium.search.annotator import Annotator, Term
from lexarium.web.v1.annotate import rendered

SIZES = (2_000, 1_000_000)
MENTION_EVERY = (100, 15)
"""In characters: as in texts about what the catalogue is of, and denser than any."""
LEAST_MB_PER_SECOND = 5.0
CHARACTERS = 1_000_000
_ROUNDS = 7


def annotating_tables(sizes: Sequence[int] = SIZES) -> list[Table]:
    """The target, and what was measured with each number of names."""
    rows = [row for count in sizes for row in _rows(count)]
    columns = ("names", "built in s", "memory MB", "a mention every", "first text, MB/s", "later texts, MB/s", "5 MB/s")
    return [Table("Annotating a text of 1 MB, to JSON", columns, rows)]


def _rows(count: int) -> Iterator[Sequence[str]]:
    names = made_names(count)
    before = used_bytes(os.getpid())
    began = perf_counter()
    annotator = Annotator()
    for number, name in enumerate(names):
        annotator.put(Term(f"trm_{number:012x}", name, "concept"), [name])
    built = perf_counter() - began
    gc.collect()
    memory = used_bytes(os.getpid()) - before
    for every in MENTION_EVERY:
        annotator.runs.clear()
        texts = MadeText(names)
        speeds = [_megabytes_a_second(annotator, texts.text(CHARACTERS, every)) for _ in range(_ROUNDS)]
        reached = "reached" if min(speeds[0], median(speeds[1:])) >= LEAST_MB_PER_SECOND else "missed"
        yield (
            f"{count:,}", f"{built:.1f}", f"{memory / 1e6:,.0f}", f"{every} characters",
            f"{speeds[0]:.1f}", f"{median(speeds[1:]):.1f}", reached,
        )  # fmt: skip


def _megabytes_a_second(annotator: Annotator, text: str) -> float:
    began = perf_counter()
    answer = b"".join(rendered(annotator.mentions([text], ("concept",))))
    seconds = perf_counter() - began
    for each in orjson.loads(answer)["annotations"]:
        if text[each["start"] : each["end"]] != each["text"]:
            raise WrongAnswer(f"At {each['start']} the text does not say {each['text']!r}.")
    return len(text.encode()) / 1e6 / seconds


def main() -> int:
    """Measure and print."""
    parser = ArgumentParser(prog="python -m benchmarks.annotate", description=__doc__)
    parser.add_argument("--names", type=int, nargs="*", default=SIZES, help="how many names to look for")
    try:
        show(annotating_tables(parser.parse_args().names), Console())
    except BenchmarkError as error:
        print(f"Error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
