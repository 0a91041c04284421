"""Load the sample catalogue of the distribution."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import as_file, files
from pathlib import Path

from lexarium.services.transfer.field_import.importer import import_files
from lexarium.services.transfer.import_report import ImportReport
from lexarium.services.transfer.import_request import ImportRequest
from lexarium.services.transfer.resource_import.importer import import_resource_files
from lexarium.store import records
from lexarium.store.database import Database


@contextmanager
def sample_files(pattern: str = "*.json*") -> Iterator[list[Path]]:
    """Return the paths of sample files, by default those of the main vocabulary, extracted if need be."""
    with as_file(files("lexarium") / "sample") as folder:
        yield sorted(folder.glob(pattern))


def load_sample(database: Database) -> ImportReport | None:
    """Load the sample vocabularies into a new catalogue; return None if it has ever held records."""
    if database.run_read(records.has_any):
        return None
    with sample_files() as paths:
        report = import_files(database, paths)
    with sample_files("*.ttl") as paths:
        for path in paths:
            import_resource_files(database, ImportRequest([path], path.stem))
    return report
