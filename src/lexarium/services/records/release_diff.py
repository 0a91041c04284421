"""Differences between two releases of a vocabulary."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from lexarium.domain.editing.edit import diff_records
from lexarium.domain.record import Record, RecordState
from lexarium.domain.release import Release
from lexarium.domain.vocabulary import VOCABULARIES
from lexarium.services.records.detail import FieldWordDiff, build_record_diffs
from lexarium.store import revisions
from lexarium.store.position import Snapshot

# Records of one page of a diff.
PAGE_SIZE = 100
# Beyond this, records are listed page by page but not counted.
MAX_COUNTED = 5_000


@dataclass(frozen=True)
class DiffCounts:
    """Numbers of records that one release has and the other has not, and of those that both have."""

    added: int
    changed: int
    retired: int


@dataclass(frozen=True)
class ChangedRecord:
    """A record that both releases have, with its differences."""

    record: Record
    field_diffs: Sequence[FieldWordDiff]


@dataclass(frozen=True)
class ReleaseDiff:
    """One page of what differs between a release and the one before. Records are in the state of the later one."""

    added: Sequence[Record]
    changed: Sequence[ChangedRecord]
    retired: Sequence[Record]
    # None if there are more than MAX_COUNTED.
    counts: DiffCounts | None
    # Sequence number after which the next page begins, if there is one.
    next: int | None

    @property
    def field_counts(self) -> list[tuple[str, int]]:
        """Numbers of the changed records of this page by field, the largest first."""
        return Counter(diff.field for item in self.changed for diff in item.field_diffs).most_common()


def diff_releases(snapshot: Snapshot, earlier: Release, later: Release, after: int = 0) -> ReleaseDiff:
    """Return a page of the differences of a release from an earlier one of its vocabulary."""
    vocabulary = VOCABULARIES[later.vocabulary]
    collections = [collection.name for collection in vocabulary.collections]
    start = max(earlier.revision, after)
    changes = revisions.list_changed(snapshot, collections, start, later.revision, PAGE_SIZE + 1)
    shown = changes[:PAGE_SIZE]
    old_changes = revisions.find_many_at(snapshot, [change.record_id for change in shown], earlier.revision)
    old_records = (change.to_record() for change in old_changes)
    old_published = {record.id: record for record in old_records if record.state == RecordState.PUBLISHED}
    records = sorted((change.to_record() for change in shown), key=lambda record: record.rendered.name_key)
    published = [record for record in records if record.state == RecordState.PUBLISHED]
    changed = [record for record in published if record.id in old_published]
    diffs = [diff_records(old_published[record.id], record) for record in changed]
    withdrawn = [record for record in records if record.state != RecordState.PUBLISHED]
    return ReleaseDiff(
        added=[record for record in published if record.id not in old_published],
        changed=list(map(ChangedRecord, changed, build_record_diffs(snapshot, diffs, vocabulary.slug))),
        retired=[record for record in withdrawn if record.id in old_published],
        counts=_count(snapshot, collections, earlier, later),
        next=shown[-1].seq if len(changes) > PAGE_SIZE else None,
    )


def _count(snapshot: Snapshot, collections: Sequence[str], earlier: Release, later: Release) -> DiffCounts | None:
    counts = revisions.count_changed(snapshot, collections, earlier.revision, later.revision, MAX_COUNTED)
    if counts is None:
        return None
    return DiffCounts(added=counts[False, True], changed=counts[True, True], retired=counts[True, False])
