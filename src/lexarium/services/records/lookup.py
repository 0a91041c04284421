"""Find a record, or raise what explains its absence."""

from dataclasses import dataclass

from lexarium.domain.change import Change
from lexarium.domain.errors import NotFound, RecordMerged, RecordRetired, VersionConflict
from lexarium.domain.record import Record, RecordState
from lexarium.domain.schema.collections import Collection
from lexarium.domain.text.characters import find_unstorable_char
from lexarium.store import change_log
from lexarium.store.position import Snapshot


@dataclass(frozen=True)
class VersionedRecord:
    """A record as it is written, and the change that made it so."""

    record: Record
    change: Change
    warnings: tuple[str, ...] = ()
    """What the one who wrote it should know."""

    @property
    def version(self) -> int:
        """The version that it has now."""
        return self.change.version


def get_record(connection: Snapshot, record_id: str, collection: Collection | None = None) -> VersionedRecord:
    """The record of this identifier as it is, in whatever state. Raises `NotFound` where there is none."""
    change = None if find_unstorable_char(record_id) else change_log.find_latest(connection, [record_id]).get(record_id)
    if change is None or (collection is not None and change.collection != collection.name):
        raise NotFound(f"There is no {collection.name if collection else 'record'} with the id {record_id!r}.")
    return VersionedRecord(change.to_record(), change)


def get_published(
    connection: Snapshot, collection: Collection, record_id: str, version: int | None = None
) -> VersionedRecord:
    """A published record as it is; raises where it is not there, gone, moved, or not at this version."""
    existing = get_record(connection, record_id, collection)
    require_published(existing.record)
    if version is not None:
        require_version(existing.change, version)
    return existing


def require_published(record: Record) -> None:
    """Raise where a record is retired or merged."""
    if record.state == RecordState.RETIRED:
        raise RecordRetired(record.id, record.replaced_by)
    if record.state == RecordState.MERGED:
        assert record.replaced_by is not None
        raise RecordMerged(record.id, record.replaced_by)


def require_version(change: Change, version: int) -> None:
    """Raise where a record is not at this version."""
    if change.version != version:
        message = f"{change.record_id} is at version {change.version} now, not at {version}."
        raise VersionConflict(f"{message} Read it again, and change that.", version=change.version)
