"""The catalogues that are served: one of about 1 MB, and a made one of any size."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import count, islice
from pathlib import Path
from typing import Any

from benchmarks.errors import BenchmarkError
from benchmarks.made import CLASSES, made_records
from benchmarks.records import FIELDS, Record, as_json

GROWN_RECORDS = 2_000
_TERM_FILES = ("concept.json", "task.json")
_CLASS_FILE = "concept_class.json"


@dataclass(frozen=True)
class Catalogue:
    """One collection of concepts, and the classes that they name."""

    title: str
    origin: str
    concepts: Sequence[Record]
    classes: Sequence[Record]

    @property
    def example(self) -> Record:
        """The record that is asked for where one record is measured."""
        return self.concepts[len(self.concepts) // 2]

    @property
    def body_bytes(self) -> int:
        """How large the whole collection is as compact JSON."""
        return len(as_json(self.concepts))


def about_one_megabyte(real: Path, sample: Path) -> Catalogue:
    """The real catalogue where its folder is there, else the sample, grown.

    Concepts and tasks have the same shape and each list alone is about half a megabyte, so the two are read
    as one collection of concepts.
    """
    if (real / _TERM_FILES[0]).is_file():
        concepts = _terms(real)
        return Catalogue(
            f"{len(concepts):,} records",
            "the real concepts and tasks, read as one collection of concepts",
            concepts,
            _classes(real),
        )
    if (sample / _TERM_FILES[0]).is_file():
        return Catalogue(
            f"{GROWN_RECORDS:,} records",
            "the sample's concepts and tasks, read as one collection and repeated under new names",
            list(islice(_grown(_terms(sample)), GROWN_RECORDS)),
            _classes(sample),
        )
    raise BenchmarkError(f"There is no catalogue to serve: neither {real} nor {sample} has a {_TERM_FILES[0]}.")


def made(records: int) -> Catalogue:
    """A made catalogue of so many records."""
    return Catalogue(
        f"{records:,} records",
        "made, with words that follow Zipf's law",
        list(made_records(records)),
        CLASSES,
    )


def _terms(folder: Path) -> list[Record]:
    found: dict[str, Record] = {}
    for file in _TERM_FILES:
        for loaded in _load(folder / file):
            record: Record = {field: loaded[field] for field in FIELDS}
            # A concept's id begins with trm_; some tasks' ids begin with tsk_.
            record["id"] = "trm_" + str(record["id"]).partition("_")[2]
            found.setdefault(str(record["id"]), record)
    return list(found.values())


def _classes(folder: Path) -> Sequence[Record]:
    path = folder / _CLASS_FILE
    return _load(path) if path.is_file() else ()


def _load(path: Path) -> list[dict[str, Any]]:
    loaded: list[dict[str, Any]] = json.loads(path.read_bytes())
    return loaded


def _grown(records: Sequence[Record]) -> Iterable[Record]:
    yield from records
    for copy in count(2):
        for record in records:
            yield record | {"id": f"{record['id']}x{copy}", "name": f"{record['name']} {copy}"}
