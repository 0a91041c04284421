"""Annotating: how fast terms are found in text, by how many names are looked for.

Run it from the repository's root as `python -m benchmarks.annotate`. It prints a table, and ends with 1 where what was
found is not what the text has there.
"""

import gc
import os
import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from itertools import islice
from time import perf_counter

import orjson
from rich.console import Console

from benchmarks.errors import BenchmarkError, WrongAnswer
from benchmarks.made import made_names, made_records
from benchmarks.memory import used_bytes
from benchmarks.report import Table, show
from lexarium.search.annotator import Annotator, Term
from lexarium.web.v1.annotate import rendered

SIZES = (2_000, 1_000_000)
LEAST_MB_PER_SECOND = 5.0
_CHARACTERS = 1_000_000
_ROUNDS = 7


def annotating_tables(sizes: Sequence[int] = SIZES) -> list[Table]:
    """The target, and what was measured with each number of names."""
    text = _text()
    columns = ("names", "built in s", "memory MB", "mentions", "finding, MB/s", "finding and JSON, MB/s", "5 MB/s")
    return [Table("Annotating a text of 1 MB", columns, [_row(count, text) for count in sizes])]


def _text() -> str:
    """Prose with words as frequent as in the names, of which many are terms: harder than most texts."""
    sentences = (str(record["definition_text"]) for record in made_records(20_000, seed=2))
    return "\n".join(islice(sentences, 20_000))[:_CHARACTERS]


def _row(count: int, text: str) -> Sequence[str]:
    names = made_names(count)
    before = used_bytes(os.getpid())
    began = perf_counter()
    annotator = Annotator()
    for number, name in enumerate(names):
        annotator.put(Term(f"trm_{number:012x}", name, "concept"), [name])
    built = perf_counter() - began
    gc.collect()
    memory = used_bytes(os.getpid()) - before
    annotations = orjson.loads(b"".join(rendered(annotator.mentions([text], ("concept",)))))["annotations"]
    for each in annotations:
        if text[each["start"] : each["end"]] != each["text"]:
            raise WrongAnswer(f"At {each['start']} the text does not say {each['text']!r}.")
    found = min(_seconds_to_find(annotator, text) for _ in range(_ROUNDS))
    answered = min(_seconds_to_answer(annotator, text) for _ in range(_ROUNDS))
    size = len(text.encode()) / 1e6
    reached = "reached" if size / answered >= LEAST_MB_PER_SECOND else "missed"
    return (
        f"{count:,}", f"{built:.1f}", f"{memory / 1e6:,.0f}", f"{len(annotations):,}",
        f"{size / found:.1f}", f"{size / answered:.1f}", reached,
    )  # fmt: skip


def _seconds_to_find(annotator: Annotator, text: str) -> float:
    began = perf_counter()
    for _ in annotator.mentions([text], ("concept",)):
        pass
    return perf_counter() - began


def _seconds_to_answer(annotator: Annotator, text: str) -> float:
    began = perf_counter()
    for _ in rendered(annotator.mentions([text], ("concept",))):
        pass
    return perf_counter() - began


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
