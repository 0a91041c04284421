"""Review queue, side-by-side comparison of proposals, and undo of an acceptance."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import orjson

from lexarium.domain.change import Action, Change
from lexarium.domain.editing.edit import FieldDiff, apply_merge_patch, create_merge_patch, to_draft
from lexarium.domain.errors import Conflict
from lexarium.domain.identifiers import get_local_id
from lexarium.domain.proposal import Proposal, ProposalFilter, ProposalState
from lexarium.domain.record import Record, RecordState
from lexarium.domain.schema.collections import COLLECTIONS, Collection
from lexarium.domain.text.characters import name_key
from lexarium.services.access.permissions import Caller
from lexarium.services.curation.name_warnings import list_new_names
from lexarium.services.curation.proposals import (
    accept_proposal,
    get_proposal_status,
    get_visible_proposal,
    limit_to_visible,
)
from lexarium.services.curation.record_writer import RecordWriter
from lexarium.services.records.activity import get_account_names
from lexarium.services.records.detail import FieldWordDiff, build_word_diffs
from lexarium.services.records.lookup import VersionedRecord, get_record, require_version
from lexarium.services.search.record_search import NearName, RecordSearch
from lexarium.store import change_log, proposals, revisions
from lexarium.store.position import Snapshot
from lexarium.store.transaction import Transaction

_MAX_AUTHORS = 200  # in the filter of the queue
_MAX_PER_RECORD = 100  # proposals shown with one record
NEW, EDIT, RETIRE = "new", "edit", "retire"  # kinds of proposals


@dataclass(frozen=True)
class QueuedProposal:
    """A row of the review queue."""

    proposal: Proposal
    kind: str
    name: str
    author: str
    fields: Sequence[str]
    record_changed: bool  # since it was proposed


@dataclass(frozen=True)
class ProposalReview:
    """A proposal compared with its record."""

    proposal: Proposal
    kind: str
    name: str
    account_names: Mapping[str, str]
    fields: Sequence[FieldWordDiff]
    draft: Mapping[str, Any]  # as proposed, complete
    current: VersionedRecord | None  # None if the record would be new
    is_unpublished: bool
    version: int | None  # made by the acceptance
    can_undo: bool
    undo_change: Change | None

    @property
    def collection(self) -> Collection:
        """Collection of the record."""
        return COLLECTIONS[self.proposal.collection]

    @property
    def editable_fields(self) -> Sequence[str]:
        """Fields that a curator may edit before accepting."""
        return list(self.draft) if self.kind == NEW else [field.field for field in self.fields]

    @property
    def conflicting_fields(self) -> Sequence[str]:
        """Fields that others have changed since the proposal."""
        return [field.field for field in self.fields if field.conflicting_segments is not None]


def list_queue(
    snapshot: Snapshot, queue_filter: ProposalFilter, after: tuple[int, str] | None, limit: int
) -> list[QueuedProposal]:
    """Return the next open proposals; `after` is the time and id of the last of the page before."""
    queued = proposals.list_page(snapshot, queue_filter, after, limit)
    latest = change_log.find_latest(snapshot, [proposal.record for proposal in queued if proposal.record is not None])
    return _to_queued_proposals(snapshot, queued, latest)


def list_pending(snapshot: Snapshot, caller: Caller, latest: Change) -> list[QueuedProposal]:
    """Return the open proposals about a record that the caller may see, the oldest first."""
    pending = limit_to_visible(caller, ProposalFilter(record=latest.record_id))
    queued = proposals.list_page(snapshot, pending, None, _MAX_PER_RECORD)
    return _to_queued_proposals(snapshot, queued, {latest.record_id: latest})


def find_next(snapshot: Snapshot, queue_filter: ProposalFilter, decided: Proposal) -> Proposal | None:
    """Return the proposal after a decided one in the queue, else the first of the queue, or None."""
    following = proposals.list_page(snapshot, queue_filter, (decided.made, decided.id), 1)
    return next(iter(following or proposals.list_page(snapshot, queue_filter, None, 1)), None)


def list_authors(snapshot: Snapshot, collections: Sequence[str], include_id: str | None) -> list[tuple[str, str]]:
    """Return id and name of the authors of open proposals in these collections, by name.

    One more account is included if it has proposals there, in any state.
    """
    author_ids = [*proposals.list_open_authors(snapshot, collections, _MAX_AUTHORS)]
    if include_id is not None:
        own = ProposalFilter(author=include_id, state=None, collections=tuple(collections))
        author_ids += [proposal.author for proposal in proposals.list_page(snapshot, own, None, 1)]
    names = get_account_names(snapshot, author_ids)
    return sorted(names.items(), key=lambda item: item[1].casefold())


def load_review(snapshot: Snapshot, proposal: Proposal) -> ProposalReview:
    """Compare a proposal with its record: the current one while it is open, else the one it was made for."""
    change: dict[str, Any] = orjson.loads(proposal.change)
    kind = _get_kind(proposal, change)
    vocabulary = COLLECTIONS[proposal.collection].vocabulary
    status = get_proposal_status(snapshot, proposal)
    version: int | None = status["version"]
    conflicts = {conflict["field"]: conflict for conflict in status["conflicts"]}
    is_unpublished = "state" in conflicts
    record = None if proposal.record is None else get_record(snapshot, proposal.record)
    current = None if kind == NEW else record
    base = _get_base(snapshot, proposal, current)
    base_draft: dict[str, Any] = {} if base is None else to_draft(base)
    draft = change if kind == RETIRE else apply_merge_patch(base_draft, change)
    if kind == RETIRE:
        base_draft = {"state": RecordState.PUBLISHED, "replaced_by": None}
    diffs = [FieldDiff(name, base_draft.get(name), draft.get(name)) for name in change]
    diffs = [diff for diff in diffs if diff.before != diff.after and (diff.before or diff.after)]
    conflict_diffs = [
        FieldDiff(name, conflict["base"], conflict["current"])
        for name, conflict in conflicts.items()
        if not is_unpublished
    ]
    conflicting_segments = {
        diff.field: diff.segments for diff in build_word_diffs(snapshot, conflict_diffs, vocabulary)
    }
    undo_change = _find_undo(snapshot, proposal, version)
    account_ids = [proposal.author, proposal.decider, undo_change.actor if undo_change else None]
    named = record if proposal.state == ProposalState.ACCEPTED else None
    return ProposalReview(
        proposal=proposal,
        kind=kind,
        name=_get_name(named.record if named else None) or change.get("name") or _get_name(base),
        account_names=get_account_names(snapshot, filter(None, account_ids)),
        fields=[
            replace(diff, conflicting_segments=conflicting_segments.get(diff.field))
            for diff in build_word_diffs(snapshot, diffs, vocabulary)
        ],
        draft=draft,
        current=current,
        is_unpublished=is_unpublished,
        version=version,
        can_undo=version is not None and record is not None and record.version == version,
        undo_change=undo_change,
    )


def find_near_records(record_search: RecordSearch, review: ProposalReview) -> list[NearName]:
    """Return records with names that equal a proposed name or are near it."""
    current = None if review.current is None else review.current.record
    names = [text for _, text in list_new_names(orjson.loads(review.proposal.change), current)]
    return record_search.find_near_names(names, review.proposal.collection, review.proposal.record)


def accept_with_edits(  # noqa: PLR0913, PLR0917 (a decision)
    transaction: Transaction,
    caller: Caller,
    proposal_id: str,
    edits: Mapping[str, Any],
    version: int | None,
    reason: str = "",
) -> VersionedRecord:
    """Accept a proposal with edited values of some fields; raise VersionConflict unless the record has this version."""
    proposal = get_visible_proposal(transaction.flush(), caller, proposal_id)
    draft = orjson.loads(proposal.change)
    if proposal.record is not None and version is not None:
        current = get_record(transaction.flush(), proposal.record)
        require_version(current.change, version)
        draft = apply_merge_patch(to_draft(current.record), draft)
    change = {name: _build_field_patch(draft.get(name), value) for name, value in edits.items()}
    return accept_proposal(transaction, caller, proposal_id, change, reason)


def undo_acceptance(transaction: Transaction, caller: Caller, proposal_id: str) -> VersionedRecord:
    """Undo an accepted proposal: retire the new record, or revert the change.

    Raise Conflict if it changed nothing, or if the record has changed since.
    """
    proposal = get_visible_proposal(transaction.flush(), caller, proposal_id)
    version = get_proposal_status(transaction.flush(), proposal)["version"]
    if version is None or proposal.record is None:
        raise Conflict("Nothing to undo: the proposal changed nothing.")
    writer = RecordWriter(transaction, caller)
    current = get_record(transaction.flush(), proposal.record)
    if current.version != version:
        raise Conflict(f"{get_local_id(proposal.record)} was changed since. Revert it from its history.")
    if version == 1:
        return writer.retire(current)
    previous = revisions.find_version(transaction.flush(), proposal.record, version - 1)
    assert previous is not None
    return writer.revert(previous, version)


def group_same_names(snapshot: Snapshot, record_ids: Sequence[str]) -> list[list[Record]]:
    """Return groups of published records, among these, with the same name."""
    groups: dict[tuple[str, str], list[Record]] = {}
    latest = change_log.find_latest(snapshot, record_ids)
    for record_id in record_ids:
        record = latest[record_id].to_record() if record_id in latest else None
        if record is not None and record.state == RecordState.PUBLISHED:
            groups.setdefault((record.collection.name, name_key(record.fields["name"])), []).append(record)
    return [group for group in groups.values() if len(group) > 1]


def _to_queued_proposals(
    snapshot: Snapshot, queued: Sequence[Proposal], latest_by_id: Mapping[str, Change]
) -> list[QueuedProposal]:
    names = get_account_names(snapshot, (proposal.author for proposal in queued))
    rows = []
    for proposal in queued:
        change: dict[str, Any] = orjson.loads(proposal.change)
        kind = _get_kind(proposal, change)
        latest = latest_by_id.get(proposal.record or "")
        name = change.get("name", "") if latest is None else _get_name(latest.to_record())
        record_changed = latest is not None and latest.version != proposal.base_version
        fields = list(change) if kind == EDIT else []
        rows.append(QueuedProposal(proposal, kind, name, names[proposal.author], fields, record_changed))
    return rows


def _get_kind(proposal: Proposal, change: Mapping[str, Any]) -> str:
    if proposal.base_version is None:
        return NEW
    return RETIRE if "state" in change else EDIT


def _find_undo(snapshot: Snapshot, proposal: Proposal, version: int | None) -> Change | None:
    """Return the change after the one that a proposal made, if it reverted that."""
    if proposal.record is None or version is None:
        return None
    changes = {change.version: change for change in revisions.list_versions(snapshot, proposal.record, version + 1, 3)}
    undo = changes.get(version + 1)
    if undo is None or version == 1:
        return undo if undo is not None and undo.action == Action.RETIRE else None
    previous, restored = changes[version - 1].to_record(), undo.to_record()
    is_same = (to_draft(previous), previous.state) == (to_draft(restored), restored.state)
    return undo if undo.action == Action.REVERT and is_same else None


def _get_base(snapshot: Snapshot, proposal: Proposal, current: VersionedRecord | None) -> Record | None:
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
    """Return the merge patch that turns a proposed value into an edited one."""
    return create_merge_patch(proposed, edited) if isinstance(proposed, dict) and isinstance(edited, dict) else edited
