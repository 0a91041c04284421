"""Catalogues to search: the sample, and real ones where they are present, each in a new database."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.harness.command_line import ROOT
from benchmarks.servers.lexarium import build_sqlite_url
from lexarium.domain.record import Record, RecordState
from lexarium.domain.schema.collections import COLLECTIONS
from lexarium.domain.vocabulary import register_vocabularies
from lexarium.search.documents import list_labels, list_texts
from lexarium.services.search.indexer import Indexer
from lexarium.services.search.record_search import RecordSearch
from lexarium.services.transfer.file_import import run_import
from lexarium.services.transfer.import_request import ImportRequest
from lexarium.services.transfer.sample import load_sample
from lexarium.store import revisions
from lexarium.store.database import Database
from lexarium.store.maintenance.upgrade import open_database

SAMPLE = "sample"
_BATCH_SIZE = 1_000
_ATLAS_FILES = ("concept.full.json", "task.full.json", "disorder.full.json", "concept_class.json")


@dataclass(frozen=True)
class CatalogueRecord:
    """Texts of a record that is searched by default."""

    # Unique in the database.
    id: str
    # The name that is shown by default, then those in other languages.
    names: tuple[str, ...]
    aliases: tuple[str, ...]
    definitions: tuple[str, ...]


@dataclass(frozen=True)
class IndexedCatalogue:
    """A catalogue that can be searched."""

    records: Sequence[CatalogueRecord]
    search: RecordSearch


def list_catalogues() -> list[str]:
    """Return the names of the catalogues that are present."""
    return [SAMPLE, *(name for name, source in _REAL_CATALOGUES.items() if source.folder.is_dir())]


@contextmanager
def open_catalogue(name: str) -> Iterator[IndexedCatalogue]:
    """Load and index a catalogue."""
    with TemporaryDirectory(prefix="lexarium-benchmark-") as folder:
        with closing(open_database(build_sqlite_url(Path(folder)))) as database:
            if name == SAMPLE:
                load_sample(database)
            else:
                source = _REAL_CATALOGUES[name]
                source.load(database, source.folder)
            indexer = Indexer(database, "auto")
            try:
                indexer.catch_up()
                yield IndexedCatalogue(list(_iter_records(database)), RecordSearch(database, indexer))
            finally:
                indexer.stop()
        register_vocabularies([])


def _load_atlas(database: Database, folder: Path) -> None:
    run_import(database, ImportRequest([folder / name for name in _ATLAS_FILES]))


def _load_vocabularies(database: Database, folder: Path) -> None:
    for path in sorted([*folder.glob("*.obo"), *folder.glob("*.ttl")]):
        run_import(database, ImportRequest([path]))


@dataclass(frozen=True)
class _RealCatalogue:
    variable: str
    load: Callable[[Database, Path], None]
    default_folder: str

    @property
    def folder(self) -> Path:
        return Path(os.environ.get(self.variable, ROOT.parent / "shared" / self.default_folder))


_REAL_CATALOGUES = {
    "cognitive-atlas": _RealCatalogue("LEXARIUM_REAL_CATALOGUE", _load_atlas, "cognitive-atlas"),
    "vocabularies": _RealCatalogue("LEXARIUM_REAL_VOCABULARIES", _load_vocabularies, "vocabularies"),
}


def _iter_records(database: Database) -> Iterator[CatalogueRecord]:
    """Yield the published records of the collections that are searched by default."""
    after = ""
    while changes := database.run_read(revisions.list_current, after, _BATCH_SIZE):
        after = changes[-1].record_id
        for change in changes:
            record = change.to_record()
            if record.collection.name in COLLECTIONS.searched and record.state == RecordState.PUBLISHED:
                yield _read_texts(record)


def _read_texts(record: Record) -> CatalogueRecord:
    labels = list_labels(record)
    return CatalogueRecord(
        record.id,
        tuple(label.text for label in labels if label.is_name),
        tuple(label.text for label in labels if not label.is_name),
        tuple(text.text for _, text in list_texts(record)),
    )
