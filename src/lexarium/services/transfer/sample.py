"""Load the sample catalogue of the distribution."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import as_file, files
from pathlib import Path

from lexarium.services.records.valpha_queries import open_valpha_reader
from lexarium.services.transfer.import_report import ImportReport
from lexarium.services.transfer.imports import import_files
from lexarium.store.database import Database


@contextmanager
def sample_files() -> Iterator[list[Path]]:
    """Return the paths of the sample files, extracted if the package is an archive."""
    with as_file(files("lexarium") / "sample") as folder:
        yield sorted(folder.glob("*.json*"))


def load_sample(database: Database) -> ImportReport | None:
    """Load the sample into a new catalogue; return None if the catalogue has ever held records."""
    with open_valpha_reader(database) as reader:
        if reader.position.revision:
            return None
    with sample_files() as paths:
        return import_files(database, paths)
