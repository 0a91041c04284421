"""Merge queries: preview, effects, undo blockers."""

from dataclasses import dataclass

from lexarium.domain.change import Action, Change
from lexarium.domain.editing.edit import FieldDiff, diff_drafts, to_draft
from lexarium.domain.editing.merge import MergeEffect, build_survivor_draft, list_referenced_ids, merges_overlap
from lexarium.domain.errors import Conflict
from lexarium.domain.identifiers import get_local_id
from lexarium.domain.record import Record, RecordState
from lexarium.services.records.lookup import find_survivors, load_merge_chains
from lexarium.store import change_log, relations, revisions
from lexarium.store.position import Snapshot


def load_merge_effects(snapshot: Snapshot, merge: Change) -> dict[str, MergeEffect]:
    """Return the effects of a merge on other records, by id; `merge` is the change of the merged record.

    There are none if the record was imported as merged.
    """
    changes = [
        change
        for change in revisions.list_by_write(snapshot, merge.write_id)
        if change.action == Action.MERGE and change.version > 1 and change.record_id != merge.record_id
    ]
    previous = revisions.find_versions(snapshot, [(change.record_id, change.version - 1) for change in changes])
    return {
        change.record_id: MergeEffect(previous[change.record_id].to_record(), change.to_record()) for change in changes
    }


def require_undoable(snapshot: Snapshot, merge: Change, effects: dict[str, MergeEffect], restored: Record) -> None:
    """Raise Conflict if a later merge must be undone first; `restored` is the record that the undo restores.

    A later merge blocks the undo if it merged a record that this merge changed, if it built on what this merge added,
    or if it merged a record that the restored one refers to.
    """
    for merged_id in find_survivors(snapshot, effects):
        raise _build_undo_first_error(_find_merge(snapshot, merged_id))
    for later in revisions.list_later_merges(snapshot, merge, sorted(effects)):
        cause = revisions.list_by_write(snapshot, later.write_id)[0]
        if _is_in_effect(snapshot, cause) and _builds_on(snapshot, effects[later.record_id], later, cause):
            raise _build_undo_first_error(cause)
    for merged_id in load_merge_chains(snapshot, list_referenced_ids(restored), [merge.record_id]):
        cause = _find_merge(snapshot, merged_id)
        if cause.seq > merge.seq:
            raise _build_undo_first_error(cause)


def _builds_on(snapshot: Snapshot, earlier: MergeEffect, later: Change, cause: Change) -> bool:
    """Return True if a later merge depends on what an earlier one added; `cause` is the merged record's change."""
    version_keys = [(cause.record_id, cause.version - 1), (later.record_id, later.version - 1)]
    previous = revisions.find_versions(snapshot, version_keys)
    later_effect = MergeEffect(previous[later.record_id].to_record(), later.to_record())
    return merges_overlap(
        earlier, later_effect, previous[cause.record_id].to_record(), str(cause.to_record().replaced_by)
    )


@dataclass(frozen=True)
class MergePreview:
    """Effects of a merge before it is done: counts are of records that refer to the merged one."""

    survivor_changes: list[FieldDiff]
    related_count: int
    member_count: int


def preview_merge(snapshot: Snapshot, merged: Record, survivor: Record) -> MergePreview:
    """Return the effects of merging one record into another."""
    referring_ids = {relation.source for relation in relations.find_touching(snapshot, [merged.id])}
    is_class = merged.collection.is_class_collection
    return MergePreview(
        diff_drafts(to_draft(survivor), build_survivor_draft(survivor, merged)),
        len(referring_ids - {merged.id, survivor.id}),
        revisions.count_class_members(snapshot, merged.id) if is_class else 0,
    )


def _is_in_effect(snapshot: Snapshot, merge: Change) -> bool:
    """Return True if a merge has not been undone."""
    latest = change_log.find_latest(snapshot, [merge.record_id])[merge.record_id].to_record()
    return latest.state == RecordState.MERGED and _find_merge(snapshot, merge.record_id).seq == merge.seq


def _find_merge(snapshot: Snapshot, merged_id: str) -> Change:
    return revisions.find_state_change(snapshot, merged_id, RecordState.MERGED)


def _build_undo_first_error(merge: Change) -> Conflict:
    merged_id, survivor_id = get_local_id(merge.record_id), get_local_id(str(merge.to_record().replaced_by))
    message = f"{merged_id} was later merged into {survivor_id}, which depends on this merge."
    return Conflict(f"{message} Revert {merged_id} first.", undo_first=merged_id)
