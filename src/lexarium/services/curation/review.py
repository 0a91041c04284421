"""What a curator needs to see to decide a proposal, and the way back from a decision."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from lexarium.domain.change import Action, Change
from lexarium.domain.edit import FieldDiff, apply_merge_patch, create_merge_patch, to_draft
from lexarium.domain.errors import Conflict
from lexarium.domain.proposal import Proposal, ProposalFilter, ProposalState
from lexarium.domain.record import Record, RecordState
from lexarium.domain.schema.collections import COLLECTIONS, Collection
from lexarium.domain.text.characters import name_key
from lexarium.domain.text.diff import DiffSegment
from lexarium.services.access.permissions import Caller
from lexarium.services.curation import proposals
from lexarium.services.curation.record_writer import RecordWriter
from lexarium.services.records.activity import get_account_names
from lexarium.services.records.detail import build_word_diffs
from lexarium.services.records.lookup import VersionedRecord, get_record, require_version
from lexarium.services.search.record_search import RecordHit, RecordSearch
from lexarium.store import change_log, revisions
from lexarium.store import proposals as stored
from lexarium.store.position import Snapshot
from lexarium.store.transaction import Transaction

_MAX_AUTHORS = 200
"""How many are offered to choose from."""
NEW, EDIT, RETIRE = "new", "edit", "retire"
"""What may be proposed: a record, a change of one, the end of one."""


@dataclass(frozen=True)
class QueuedProposal:
    """A proposal in the queue."""

    proposal: Proposal
    kind: str
    name: str
    """What its record is called, or would be."""
    author: str
    fields: Sequence[str]
    """What it would change."""
    record_changed: bool
    """Whether the record has changed since."""


@dataclass(frozen=True)
class ProposedFieldChange:
    """One field that a proposal would change."""

    field: str
    segments: Sequence[DiffSegment]
    """From what is there to what is proposed."""
    conflicting_segments: Sequence[DiffSegment] | None
    """What others have made of it since it was proposed; None where that is no conflict."""


@dataclass(frozen=True)
class ProposalReview:
    """A proposal, beside what is there."""

    proposal: Proposal
    kind: str
    name: str
    account_names: Mapping[str, str]
    """What those are called who made and decided it, by id."""
    fields: Sequence[ProposedFieldChange]
    draft: Mapping[str, Any]
    """All that is writable of the record, as it would be."""
    current: VersionedRecord | None
    """The record as it is; None where it would be new."""
    is_unpublished: bool
    """Whether the record is retired or merged by now, so that nothing can be changed of it."""
    version: int | None
    """The version that it made, once it is accepted."""
    can_undo: bool
    """Whether the record is still what it made of it."""
    undo_change: Change | None
    """The change that took back what it had made."""

    @property
    def collection(self) -> Collection:
        """Where the record is."""
        return COLLECTIONS[self.proposal.collection]

    @property
    def editable_fields(self) -> Sequence[str]:
        """The fields that may be accepted otherwise than they are proposed."""
        return list(self.draft) if self.kind == NEW else [field_change.field for field_change in self.fields]

    @property
    def conflicting_fields(self) -> Sequence[str]:
        """The fields that the record has moved on in."""
        return [field_change.field for field_change in self.fields if field_change.conflicting_segments is not None]


def list_queue(
    snapshot: Snapshot, queue_filter: ProposalFilter, after: tuple[int, str] | None, limit: int
) -> list[QueuedProposal]:
    """The next proposals to be decided; `after` is when the last of the page before was made, and its id."""
    queued = stored.list_open(snapshot, queue_filter, after, limit)
    latest = change_log.find_latest(snapshot, [proposal.record for proposal in queued if proposal.record is not None])
    names = get_account_names(snapshot, (proposal.author for proposal in queued))
    return [
        _to_queued_proposal(proposal, latest.get(proposal.record or ""), names[proposal.author]) for proposal in queued
    ]


def list_pending(snapshot: Snapshot, caller: Caller, latest: Change) -> list[QueuedProposal]:
    """The open proposals about a record that the caller may see, the oldest first."""
    queued = proposals.list_for_record(snapshot, caller, latest.record_id)
    names = get_account_names(snapshot, (proposal.author for proposal in queued))
    return [_to_queued_proposal(proposal, latest, names[proposal.author]) for proposal in queued]


def find_next(snapshot: Snapshot, queue_filter: ProposalFilter, decided: Proposal) -> Proposal | None:
    """What comes after a proposal that was decided: the next of the queue, or else the first of it."""
    following = stored.list_open(snapshot, queue_filter, (decided.made, decided.id), 1)
    return next(iter(following or stored.list_open(snapshot, queue_filter, None, 1)), None)


def list_authors(snapshot: Snapshot, include_id: str | None) -> list[tuple[str, str]]:
    """Who has proposals in the queue, by name, and this one: the id and the name of each. Not all of very many."""
    names = get_account_names(
        snapshot, {*stored.list_open_authors(snapshot, _MAX_AUTHORS), *([include_id] if include_id else [])}
    )
    return sorted(names.items(), key=lambda item: item[1].casefold())


def load_review(snapshot: Snapshot, proposal: Proposal) -> ProposalReview:
    """All there is to see of a proposal; of one that was decided, as it was made."""
    change: dict[str, Any] = orjson.loads(proposal.change)
    status = proposals.get_proposal_status(snapshot, proposal)
    is_new = proposal.base_version is None
    current = None if is_new or proposal.record is None else get_record(snapshot, proposal.record)
    base = _get_base(snapshot, proposal, current)
    base_draft: dict[str, Any] = {} if base is None else to_draft(base)
    draft = change if "state" in change else apply_merge_patch(base_draft, change)
    conflicts = {item["field"]: item for item in status["conflicts"]}
    is_unpublished = "state" in conflicts
    if "state" in change:
        base_draft = {"state": RecordState.PUBLISHED, "replaced_by": None}
    diffs = [
        FieldDiff(name, base_draft.get(name), draft.get(name))
        for name in change
        if base_draft.get(name) != draft.get(name)
    ]
    diffs = [item for item in diffs if item.before or item.after]
    conflict_diffs = [
        FieldDiff(name, conflict["base"], conflict["current"])
        for name, conflict in conflicts.items()
        if not is_unpublished
    ]
    segments_by_field = {item.field: item.segments for item in build_word_diffs(snapshot, conflict_diffs)}
    undo_change = _find_undo(snapshot, proposal, status["version"])
    account_ids = {
        proposal.author,
        *([proposal.decider] if proposal.decider else []),
        *([undo_change.actor] if undo_change else []),
    }
    return ProposalReview(
        proposal=proposal,
        kind=_get_kind(proposal, change),
        name=_get_name(_get_result(snapshot, proposal)) or change.get("name") or _get_name(base),
        account_names=get_account_names(snapshot, account_ids),
        fields=[
            ProposedFieldChange(item.field, item.segments, segments_by_field.get(item.field))
            for item in build_word_diffs(snapshot, diffs)
        ],
        draft=draft,
        current=current,
        is_unpublished=is_unpublished,
        version=status["version"],
        can_undo=status["version"] is not None and _is_current(snapshot, proposal, status["version"]),
        undo_change=undo_change,
    )


def find_similar_records(record_search: RecordSearch, review: ProposalReview) -> list[RecordHit]:
    """Records that are called much like what a proposal would call one; none where it changes no name."""
    if review.kind == RETIRE or "name" not in orjson.loads(review.proposal.change):
        return []
    return record_search.find_similar_names([review.name], review.proposal.collection, review.proposal.record)


def accept_with_edits(
    transaction: Transaction, caller: Caller, proposal_id: str, edits: Mapping[str, Any], version: int | None
) -> VersionedRecord:
    """Make a proposal so, with these fields as they are given here, whatever it says of them.

    Raises `Stale` where the record is not at this version, as it was looked at.
    """
    proposal = proposals.get_visible_proposal(transaction.connection, caller, proposal_id)
    draft = orjson.loads(proposal.change)
    if proposal.record is not None and version is not None:
        current = get_record(transaction.connection, proposal.record)
        require_version(current.change, version)
        draft = apply_merge_patch(to_draft(current.record), draft)
    change = {name: _build_field_patch(draft.get(name), value) for name, value in edits.items()}
    return proposals.accept_proposal(transaction, caller, proposal_id, change)


def undo_acceptance(transaction: Transaction, caller: Caller, proposal_id: str) -> VersionedRecord:
    """Take back what a proposal made when it was accepted: a new record is retired, another is as it was before.

    Raises `Conflict` where it made nothing, or the record has changed since.
    """
    proposal = proposals.get_visible_proposal(transaction.connection, caller, proposal_id)
    version = proposals.get_proposal_status(transaction.connection, proposal)["version"]
    if version is None or proposal.record is None:
        raise Conflict("There is nothing to undo: the proposal has changed nothing.")
    writer = RecordWriter(transaction, caller)
    current = writer.get_record(proposal.record)
    if current.version != version:
        raise Conflict(f"{proposal.record} has been changed since. Its history has the way back.")
    if version == 1:
        return writer.retire(current)
    previous = revisions.find_version(transaction.connection, proposal.record, version - 1)
    assert previous is not None
    return writer.revert(previous, version)


def group_same_names(snapshot: Snapshot, record_ids: Sequence[str]) -> list[list[Record]]:
    """Those of these records that are called alike, together; without what is retired or merged by now."""
    groups: dict[tuple[str, str], list[Record]] = {}
    latest = change_log.find_latest(snapshot, record_ids)
    for record_id in record_ids:
        if record_id in latest:
            record = latest[record_id].to_record()
            if record.state == RecordState.PUBLISHED:
                groups.setdefault((record.collection.name, name_key(record.fields["name"])), []).append(record)
    return [group for group in groups.values() if len(group) > 1]


def _to_queued_proposal(proposal: Proposal, latest: Change | None, author: str) -> QueuedProposal:
    change: dict[str, Any] = orjson.loads(proposal.change)
    record = None if latest is None else latest.to_record()
    kind = _get_kind(proposal, change)
    return QueuedProposal(
        proposal,
        kind,
        change.get("name", "") if record is None else _get_name(record),
        author,
        [] if kind != EDIT else list(change),
        latest is not None and latest.version != proposal.base_version,
    )


def _get_kind(proposal: Proposal, change: Mapping[str, Any]) -> str:
    if proposal.base_version is None:
        return NEW
    return RETIRE if "state" in change else EDIT


def _get_result(snapshot: Snapshot, proposal: Proposal) -> Record | None:
    """The record that an accepted proposal has made or changed, as it is now."""
    is_accepted = proposal.state == ProposalState.ACCEPTED and proposal.record is not None
    return get_record(snapshot, proposal.record or "").record if is_accepted else None


def _is_current(snapshot: Snapshot, proposal: Proposal, version: int) -> bool:
    return proposal.record is not None and get_record(snapshot, proposal.record).version == version


def _find_undo(snapshot: Snapshot, proposal: Proposal, version: int | None) -> Change | None:
    """The change right after the one that a proposal made, where it was taken back by that."""
    if proposal.record is None or version is None:
        return None
    after = revisions.find_version(snapshot, proposal.record, version + 1)
    previous = revisions.find_version(snapshot, proposal.record, version - 1)
    if after is None or previous is None:
        return after if after is not None and after.action == Action.RETIRE else None
    previous_record, record = previous.to_record(), after.to_record()
    is_reverted = after.action == Action.REVERT and (to_draft(previous_record), previous_record.state) == (
        to_draft(record),
        record.state,
    )
    return after if is_reverted else None


def _get_base(snapshot: Snapshot, proposal: Proposal, current: VersionedRecord | None) -> Record | None:
    """What a proposal is held against: the record as it is while that is open, else as it was."""
    if current is None or proposal.base_version is None:
        return None
    if proposal.state == ProposalState.OPEN:
        return current.record
    base = revisions.find_version(snapshot, current.record.id, proposal.base_version)
    assert base is not None
    return base.to_record()


def _get_name(record: Record | None) -> str:
    return "" if record is None else str(record.fields["name"])


def _build_field_patch(proposed: Any, edited: Any) -> Any:
    """What a merge patch must say of a field for it to become what is wanted."""
    return create_merge_patch(proposed, edited) if isinstance(proposed, dict) and isinstance(edited, dict) else edited
