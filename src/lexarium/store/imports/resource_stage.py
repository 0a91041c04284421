"""Stage of the resources of one source of an import, merged by id."""

from collections.abc import Iterator
from typing import NamedTuple

from lexarium.store.imports.stage_database import StageDatabase

_TABLES = """
CREATE TABLE resource (id TEXT, collection TEXT, file INTEGER, line INTEGER, document BLOB, keeps_state INTEGER);
"""


class StagedResource(NamedTuple):
    """A resource as one file states it."""

    # Unique in the database.
    id: str
    # Empty for an update of a record that exists.
    collection: str
    # Number of the file.
    file: int
    line: int
    # As a document of the log has it.
    document: bytes
    # The file does not say which state the record is in.
    keeps_state: bool = False


class ResourceStage:
    """Resources of one source, from any number of files."""

    def __init__(self) -> None:
        self._db = StageDatabase(_TABLES)
        # Deletes the stage.
        self.close = self._db.close
        # Display names.
        self.files: list[str] = []
        # Collections that files have records of.
        self.collections: set[str] = set()
        self.count = 0

    def add(self, resource: StagedResource) -> None:
        """Add a resource. Several of one id are one record."""
        self.count += 1
        if resource.collection:
            self.collections.add(resource.collection)
        self._db.append("resource", resource)

    def format_location(self, resource: StagedResource) -> str:
        """Return a location for people."""
        name = self.files[resource.file]
        return f"{name}, line {resource.line}" if resource.line else name

    def finish(self) -> None:
        """Write buffered rows and create the index. Nothing is added afterwards."""
        self._db.flush()
        self._db.execute("CREATE INDEX resource_by_id ON resource (id)")

    def iter_ids(self) -> Iterator[list[str]]:
        """Yield batches of the ids, sorted."""
        return self._db.iter_id_batches("SELECT DISTINCT id FROM resource ORDER BY id")

    def iter_batches(self) -> Iterator[list[list[StagedResource]]]:
        """Yield batches of the resources of each id, by id, each in the order of reading."""
        for ids in self.iter_ids():
            query = "SELECT * FROM resource WHERE id BETWEEN ? AND ? ORDER BY id, rowid"
            groups: dict[str, list[StagedResource]] = {}
            for row in self._db.execute(query, (ids[0], ids[-1])):
                groups.setdefault(row[0], []).append(StagedResource._make(row))
            yield list(groups.values())

    def contains(self, record_id: str) -> bool:
        """Return whether a resource is staged."""
        return self._db.execute("SELECT 1 FROM resource WHERE id = ? LIMIT 1", (record_id,)).fetchone() is not None
