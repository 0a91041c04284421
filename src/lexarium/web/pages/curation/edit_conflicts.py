"""What others have done to a record while someone had a page of it open."""

from collections.abc import Sequence

from lexarium.services.records import detail
from lexarium.services.records.detail import HistoryEntry
from lexarium.services.records.lookup import VersionedRecord
from lexarium.store.position import Snapshot

CONFLICT_MESSAGE = "Someone has changed it since you opened this page. See what they changed, and decide anew."
_MAX_VERSIONS = 20


def list_newer_versions(
    snapshot: Snapshot, current: VersionedRecord, known_version: int | None
) -> Sequence[HistoryEntry]:
    """The versions that a record has got since one that was seen, the newest first: the last few."""
    newer_count = 0 if known_version is None else current.version - known_version
    return (
        detail.list_history(snapshot, current.record.id, current.version, min(newer_count, _MAX_VERSIONS))
        if newer_count > 0
        else ()
    )
