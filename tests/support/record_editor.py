"""A writer that also finds the records it writes."""

from lexarium.domain.schema.collections import Collection
from lexarium.services.curation.record_writer import RecordWriter
from lexarium.services.records import lookup
from lexarium.services.records.lookup import VersionedRecord


class RecordEditor(RecordWriter):
    """Finds and writes records in one transaction."""

    def get_published(self, collection: Collection, record_id: str, version: int | None = None) -> VersionedRecord:
        return lookup.get_published(self._transaction.flush(), collection, record_id, version)

    def get_record(self, record_id: str) -> VersionedRecord:
        return lookup.get_record(self._transaction.flush(), record_id)
