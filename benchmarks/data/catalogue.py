"""Catalogues of the read benchmark: one of about 1 MB, and generated ones of any size."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import count, islice
from pathlib import Path
from typing import Any

from benchmarks.data.generated import CLASSES, generate_records
from benchmarks.data.records import FIELDS, Record, to_json
from benchmarks.harness.errors import BenchmarkError

REPEATED_RECORDS = 2_000
_TERM_FILES = ("concept.json", "task.json")
_CLASS_FILE = "concept_class.json"


@dataclass(frozen=True)
class BenchmarkCatalogue:
    """Collection of concepts and their classes."""

    title: str
    description: str
    concepts: Sequence[Record]
    classes: Sequence[Record]

    @property
    def sample_record(self) -> Record:
        """Record that single-record requests ask for."""
        return self.concepts[len(self.concepts) // 2]

    @property
    def body_bytes(self) -> int:
        """Size of the whole collection as compact JSON."""
        return len(to_json(self.concepts))


def load_small_catalogue(real_folder: Path, sample_folder: Path) -> BenchmarkCatalogue:
    """Load the real catalogue if its folder exists, else the repeated sample.

    Concepts and tasks have the same shape, and each list is about half a megabyte, so both are read as one collection
    of concepts.
    """
    if (real_folder / _TERM_FILES[0]).is_file():
        concepts = _load_terms(real_folder)
        return BenchmarkCatalogue(
            f"{len(concepts):,} records",
            "the real concepts and tasks, read as one collection of concepts",
            concepts,
            _load_classes(real_folder),
        )
    if (sample_folder / _TERM_FILES[0]).is_file():
        return BenchmarkCatalogue(
            f"{REPEATED_RECORDS:,} records",
            "the sample's concepts and tasks, read as one collection and repeated under new names",
            list(islice(_repeat_records(_load_terms(sample_folder)), REPEATED_RECORDS)),
            _load_classes(sample_folder),
        )
    raise BenchmarkError(f"There is no catalogue: neither {real_folder} nor {sample_folder} has a {_TERM_FILES[0]}.")


def generate_catalogue(records: int) -> BenchmarkCatalogue:
    """Generate a catalogue with a number of records."""
    return BenchmarkCatalogue(
        f"{records:,} records",
        "generated, with words that follow Zipf's law",
        list(generate_records(records)),
        CLASSES,
    )


def _load_terms(folder: Path) -> list[Record]:
    records_by_id: dict[str, Record] = {}
    for file in _TERM_FILES:
        for loaded in _load_json(folder / file):
            record: Record = {field: loaded[field] for field in FIELDS}
            # Concept ids begin with trm_; some tasks' ids begin with tsk_.
            record["id"] = "trm_" + str(record["id"]).partition("_")[2]
            records_by_id.setdefault(str(record["id"]), record)
    return list(records_by_id.values())


def _load_classes(folder: Path) -> Sequence[Record]:
    path = folder / _CLASS_FILE
    return _load_json(path) if path.is_file() else ()


def _load_json(path: Path) -> list[dict[str, Any]]:
    loaded: list[dict[str, Any]] = json.loads(path.read_bytes())
    return loaded


def _repeat_records(records: Sequence[Record]) -> Iterable[Record]:
    yield from records
    for copy in count(2):
        for record in records:
            yield record | {"id": f"{record['id']}x{copy}", "name": f"{record['name']} {copy}"}
