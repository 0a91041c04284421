"""What merges have done: what a merge touched, what stands in the way of undoing it, and who stands for whom now."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from lexarium.domain.change import Action, Change
from lexarium.domain.edit import FieldDiff, diff_drafts, to_draft
from lexarium.domain.errors import Conflict
from lexarium.domain.merge import (
    MergeEffect,
    build_survivor_draft,
    list_referenced_ids,
    merges_overlap,
    resolve_merge_chains,
)
from lexarium.domain.record import Record, RecordState
from lexarium.store import change_log, records, relations, revisions
from lexarium.store.position import Snapshot

CYCLE_REASON = "comes back to itself"
"""What is wrong with a merge that leads to where it began."""


def load_merge_effects(snapshot: Snapshot, merge: Change) -> dict[str, MergeEffect]:
    """What a merge, of which this is the change of the merged record, made of every other record that it touched.

    Nothing where an import brought the record as merged: what else it wrote has nothing to do with that.
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
    """Raise `Conflict` where a later merge must be undone before this one; `back` is what the merged record becomes.

    So it is where a record that this merge touched is merged now, where a later one had to do with what this one
    added, and where one that is to be named again is merged since.
    """
    for merged_id in _find_survivors(snapshot, effects):
        raise _build_undo_first_error(revisions.find_state_change(snapshot, merged_id, RecordState.MERGED))
    for later in revisions.list_later_merges(snapshot, merge, sorted(effects)):
        cause = revisions.list_by_write(snapshot, later.write_id)[0]
        if _is_in_effect(snapshot, cause) and _builds_on(snapshot, effects[later.record_id], later, cause):
            raise _build_undo_first_error(cause)
    pending, seen = list_referenced_ids(restored) - {merge.record_id}, {merge.record_id}
    while pending:
        seen |= pending
        survivor_ids = _find_survivors(snapshot, pending)
        for merged_id in survivor_ids:
            cause = revisions.find_state_change(snapshot, merged_id, RecordState.MERGED)
            if cause.seq > merge.seq:
                raise _build_undo_first_error(cause)
        pending = set(survivor_ids.values()) - seen


def _builds_on(snapshot: Snapshot, earlier: MergeEffect, later: Change, cause: Change) -> bool:
    """Whether a later merge, which `cause` is the merged record's change of, had to do with what an earlier added."""
    version_keys = [(cause.record_id, cause.version - 1), (later.record_id, later.version - 1)]
    previous = revisions.find_versions(snapshot, version_keys)
    later_effect = MergeEffect(previous[later.record_id].to_record(), later.to_record())
    return merges_overlap(
        earlier, later_effect, previous[cause.record_id].to_record(), str(cause.to_record().replaced_by)
    )


@dataclass(frozen=True)
class MergePreview:
    """What a merge would do."""

    survivor_changes: list[FieldDiff]
    """What the survivor would have otherwise than now."""
    related_count: int
    """How many other records are related to the one that is merged, and would be to the survivor."""
    member_count: int
    """How many records are in the class that is merged."""


def preview_merge(snapshot: Snapshot, merged_record: Record, survivor_record: Record) -> MergePreview:
    """What it would do to merge one record into another."""
    referring_ids = {relation.source for relation in relations.find_touching(snapshot, [merged_record.id])} - {
        merged_record.id,
        survivor_record.id,
    }
    return MergePreview(
        diff_drafts(to_draft(survivor_record), build_survivor_draft(survivor_record, merged_record)),
        len(referring_ids),
        revisions.count_class_members(snapshot, merged_record.id)
        if merged_record.collection.is_class_collection
        else 0,
    )


def resolve_survivors(snapshot: Snapshot, record_ids: Iterable[str], treat_as_active: str) -> dict[str, str]:
    """Of those of these records that are merged, which one each has come to be. `alive` is taken for not merged."""
    requested_ids = set(record_ids)
    return {
        record_id: survivor_id
        for record_id, survivor_id in resolve_merge_chains(
            load_merge_chains(snapshot, requested_ids, treat_as_active)
        ).items()
        if record_id in requested_ids
    }


def load_merge_chains(snapshot: Snapshot, record_ids: Iterable[str], treat_as_active: str = "") -> dict[str, str]:
    """Those of these records, and of those that they lead to, that are merged, and into what."""
    survivor_ids: dict[str, str] = {}
    pending, seen = set(record_ids) - {treat_as_active}, {treat_as_active}
    while pending:
        seen |= pending
        batch = _find_survivors(snapshot, pending)
        survivor_ids |= batch
        pending = set(batch.values()) - seen
    return survivor_ids


def find_invalid_merges(
    snapshot: Snapshot,
    survivors: Mapping[str, str],
    source_collections: Mapping[str, str],
    survivor_collections: Mapping[str, str],
) -> dict[str, str]:
    """Of records that are told to be merged, and into what, those that cannot be, with what is wrong with the other.

    `kinds` are their collections, `collections` those of what they are told to be merged into. One that is merged here
    already is not asked again.
    """
    existing_merges = load_merge_chains(snapshot, survivors.keys() | set(survivors.values()))
    final_survivors = resolve_merge_chains({**survivors, **existing_merges})
    reasons: dict[str, str] = {}
    for record_id, survivor_id in survivors.items():
        if record_id in existing_merges:
            continue
        if record_id not in final_survivors:
            reasons[record_id] = CYCLE_REASON
        elif survivor_collections.get(survivor_id) != source_collections[record_id]:
            reasons[record_id] = f"is no {source_collections[record_id]} of the import or the catalogue"
    return reasons


def format_invalid_merge(record_id: str, reason: str) -> str:
    """What there is to tell of such a record."""
    return f"{record_id} is told as merged, but what it is merged into {reason}; it is retired"


def _find_survivors(snapshot: Snapshot, record_ids: Iterable[str]) -> dict[str, str]:
    """Those of these records that are merged, and into what."""
    merged_names = records.find_names(snapshot, sorted(record_ids), RecordState.MERGED)
    merged_records = [change.to_record() for change in change_log.find_latest(snapshot, list(merged_names)).values()]
    return {record.id: record.replaced_by for record in merged_records if record.replaced_by}


def _is_in_effect(snapshot: Snapshot, merge: Change) -> bool:
    """Whether a merge has not been undone since."""
    latest = change_log.find_latest(snapshot, [merge.record_id])[merge.record_id]
    if latest.to_record().state != RecordState.MERGED:
        return False
    return revisions.find_state_change(snapshot, merge.record_id, RecordState.MERGED).seq == merge.seq


def _build_undo_first_error(merge: Change) -> Conflict:
    message = (
        f"{merge.record_id} was merged into {merge.to_record().replaced_by} since, and that goes on from this merge."
    )
    return Conflict(f"{message} Undo that one first: revert {merge.record_id}.", undo_first=merge.record_id)
