"""The sample catalogue that comes with Lexarium."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import as_file, files
from pathlib import Path

from lexarium.service.importing import import_files
from lexarium.service.reading import reading
from lexarium.service.reports import Report
from lexarium.store.database import Database


@contextmanager
def sample_files() -> Iterator[list[Path]]:
    """The files of the sample."""
    with as_file(files("lexarium") / "sample") as folder:
        yield sorted(folder.glob("*.json"))


def load_sample(database: Database) -> Report | None:
    """Load the sample into a new catalogue. None, and nothing done, where records were ever in it."""
    with reading(database) as now:
        if now.position.revision:
            return None
    with sample_files() as paths:
        return import_files(database, paths)
