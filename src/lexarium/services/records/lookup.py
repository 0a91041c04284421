"""Find records, or raise NotFound, RecordRetired, RecordMerged or VersionConflict."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from lexarium.domain.change import Change
from lexarium.domain.editing.merge import resolve_merge_chains
from lexarium.domain.errors import NotFound, RecordMerged, RecordRetired, VersionConflict
from lexarium.domain.identifiers import get_local_id
from lexarium.domain.record import Record, RecordState, Relation
from lexarium.domain.schema.collections import RELATION_TYPES, Collection
from lexarium.services.not_found import find_or_raise
from lexarium.services.vocabularies.access import ReadScope, choose_record_id, list_record_ids
from lexarium.store import change_log, records
from lexarium.store.engine.position_queries import remember_position
from lexarium.store.position import Position, Snapshot
from lexarium.store.queries import page_queries

find_latest_changes = change_log.find_latest
find_names = records.find_names
find_existing_ids = records.find_existing_ids


@dataclass(frozen=True)
class VersionedRecord:
    """A record with the change that made this version, and warnings for the author of the change."""

    record: Record
    change: Change
    warnings: tuple[str, ...] = ()

    @property
    def version(self) -> int:
        """Number of this version."""
        return self.change.version


def get_change(
    find: Callable[[], Change | None], record_id: str, collection: Collection | None = None, prefix: str = ""
) -> Change:
    """Return the change of a record that `find` returns; raise NotFound if it is None or of another collection."""
    noun = prefix + (collection.local_name if collection else "record")
    message = f"{noun[:1].upper()}{noun[1:]} {get_local_id(record_id)!r} not found."
    change = find_or_raise(find, record_id, message)
    if collection is not None and change.collection != collection.name:
        raise NotFound(message)
    return change


def find_published(
    find: Callable[[], Change | None], record_id: str, collection: Collection | None = None
) -> VersionedRecord:
    """Return the record after the change that `find` returns; raise if that is None or left the record unpublished."""
    change = get_change(find, record_id, collection)
    record = change.to_record()
    require_published(record)
    return VersionedRecord(record, change)


def get_latest_change(snapshot: Snapshot, record_id: str, collection: Collection | None = None) -> Change:
    """Return the latest change of a record in any state; raise NotFound."""
    return get_change(lambda: change_log.find_latest(snapshot, [record_id]).get(record_id), record_id, collection)


def find_versions(
    snapshot: Snapshot, local_id: str, scope: ReadScope, count: int
) -> tuple[Position, str, list[Change]]:
    """Return the position, the record that an id means, and its last versions, the newest first.

    Raise NotFound or AmbiguousId. There are no versions of a record that is meant by an alternative id.
    """
    position, versions = page_queries.find_last_versions(snapshot, list_record_ids(local_id, scope), count)
    remember_position(snapshot, position)
    record_id = choose_record_id(snapshot, local_id, scope, versions)
    return position, record_id, versions.get(record_id, [])


def get_record(snapshot: Snapshot, record_id: str, collection: Collection | None = None) -> VersionedRecord:
    """Return a record in any state; raise NotFound."""
    change = get_latest_change(snapshot, record_id, collection)
    return VersionedRecord(change.to_record(), change)


def get_published(
    snapshot: Snapshot, collection: Collection | None, record_id: str, version: int | None = None
) -> VersionedRecord:
    """Return a published record; raise if it does not exist, is unpublished, or has another version."""
    current = get_record(snapshot, record_id, collection)
    require_published(current.record)
    if version is not None:
        require_version(current.change, version)
    return current


def require_published(record: Record) -> None:
    """Raise RecordRetired or RecordMerged unless a record is published."""
    require_unmerged(record)
    if record.state == RecordState.RETIRED:
        raise RecordRetired(record.id, record.replaced_by)


def require_unmerged(record: Record) -> None:
    """Raise RecordMerged, which names the survivor, if a record is merged."""
    if record.state == RecordState.MERGED and record.replaced_by:
        raise RecordMerged(record.id, record.replaced_by)


def require_version(change: Change, version: int) -> None:
    """Raise VersionConflict unless a record has this version."""
    if change.version != version:
        message = f"{get_local_id(change.record_id)} is at version {change.version}, not {version}."
        raise VersionConflict(f"{message} Reload it and retry.", version=change.version)


def list_mappings(record: Record) -> list[Relation]:
    """Return the relations of a record to other vocabularies, sorted."""
    return [relation for relation in sorted(record.relations) if RELATION_TYPES[relation.relation].is_mapping]


def resolve_survivors(
    snapshot: Snapshot, record_ids: Iterable[str], treat_as_active: Iterable[str] = ()
) -> dict[str, str]:
    """Return the final survivors of those of these records that are merged; some may be treated as active."""
    requested_ids = set(record_ids)
    survivors = resolve_merge_chains(load_merge_chains(snapshot, requested_ids, treat_as_active))
    return {record_id: survivor_id for record_id, survivor_id in survivors.items() if record_id in requested_ids}


def load_merge_chains(
    snapshot: Snapshot, record_ids: Iterable[str], treat_as_active: Iterable[str] = ()
) -> dict[str, str]:
    """Return the direct survivors of merged records, starting from these and following each chain."""
    survivor_ids: dict[str, str] = {}
    seen = set(treat_as_active)
    pending = set(record_ids) - seen
    while pending:
        seen |= pending
        batch = find_survivors(snapshot, pending)
        survivor_ids |= batch
        pending = set(batch.values()) - seen
    return survivor_ids


def find_survivors(snapshot: Snapshot, record_ids: Iterable[str]) -> dict[str, str]:
    """Return the direct survivors of those of these records that are merged."""
    merged_names = records.find_names(snapshot, sorted(record_ids), RecordState.MERGED)
    merged_records = [change.to_record() for change in change_log.find_latest(snapshot, list(merged_names)).values()]
    return {record.id: record.replaced_by for record in merged_records if record.replaced_by}
