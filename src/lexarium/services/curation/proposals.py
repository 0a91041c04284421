"""Proposals: made by contributors, decided by curators, withdrawn by whoever made them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import orjson

from lexarium.domain.edit import apply_draft, apply_merge_patch, create_merge_patch, to_draft
from lexarium.domain.errors import Conflict, FieldProblem, InvalidInput, NotFound, PermissionDenied, QuotaExceeded
from lexarium.domain.identifiers import mint_id
from lexarium.domain.proposal import Proposal, ProposalState, get_quota
from lexarium.domain.record import RecordState
from lexarium.domain.schema.collections import COLLECTIONS, Collection
from lexarium.domain.text.characters import find_unstorable_char
from lexarium.domain.timestamps import now_ms
from lexarium.services.access.permissions import Caller, Permission
from lexarium.services.curation.draft_checks import check_draft, require_replacement
from lexarium.services.curation.record_writer import RecordWriter
from lexarium.services.records.lookup import VersionedRecord, get_record, require_published
from lexarium.store import proposals, revisions
from lexarium.store.position import Snapshot, read_position
from lexarium.store.transaction import Transaction

_MAX_PER_RECORD = 100
"""How many proposals about one record are shown with it."""


def propose_record(
    transaction: Transaction, caller: Caller, collection: Collection, draft: Mapping[str, Any]
) -> Proposal:
    """Propose a new record. `given` is a draft of v1; it is held to the rules now."""
    caller.require(Permission.PROPOSE)
    checked_draft = check_draft(transaction, collection, draft)
    proposal = Proposal(mint_id("prp"), collection.name, orjson.dumps(checked_draft), caller.account.id, now_ms())
    return _add(transaction, caller, proposal)


def propose_edit(
    transaction: Transaction, caller: Caller, current: VersionedRecord, draft: Mapping[str, Any]
) -> Proposal:
    """Propose a whole draft in place of what a record has. Only what it changes is kept, as a merge patch.

    Raises `Invalid` where it changes nothing.
    """
    caller.require(Permission.PROPOSE)
    record = current.record
    checked_draft = check_draft(transaction, record.collection, draft, record)
    patch = create_merge_patch(
        to_draft(record), to_draft(apply_draft(record, checked_draft, caller.account.id, now_ms()))
    )
    if not patch:
        raise InvalidInput("This changes nothing: the record is so already.")
    return _propose_change(transaction, caller, current, patch)


def propose_patch(
    transaction: Transaction, caller: Caller, current: VersionedRecord, patch: Mapping[str, Any]
) -> Proposal:
    """Propose a merge patch of a record's draft; or that it be retired, where that is what it says of its state."""
    if "state" in patch:
        return propose_retirement(transaction, caller, current, _parse_retirement(patch))
    return propose_edit(transaction, caller, current, apply_merge_patch(to_draft(current.record), patch))


def propose_retirement(
    transaction: Transaction, caller: Caller, current: VersionedRecord, replaced_by: str | None
) -> Proposal:
    """Propose that a record be retired."""
    caller.require(Permission.PROPOSE)
    require_replacement(transaction.connection, current.record.id, replaced_by)
    change = {"state": RecordState.RETIRED, "replaced_by": replaced_by}
    return _propose_change(transaction, caller, current, change)


def _propose_change(
    transaction: Transaction, caller: Caller, current: VersionedRecord, change: Mapping[str, Any]
) -> Proposal:
    proposal = Proposal(
        id=mint_id("prp"),
        collection=current.change.collection,
        change=orjson.dumps(change),
        author=caller.account.id,
        made=now_ms(),
        record=current.record.id,
        base_version=current.version,
    )
    return _add(transaction, caller, proposal)


def _add(transaction: Transaction, caller: Caller, proposal: Proposal) -> Proposal:
    """Keep a new proposal. Raises `QuotaExceeded` where a contributor would have too many, or too large ones, open."""
    if not caller.has_permission(Permission.PUBLISH):
        count, size = proposals.sum_open(transaction.connection, caller.account.id)
        limits = get_quota()
        if count >= limits.count or size + len(proposal.change) > limits.bytes:
            raise QuotaExceeded(
                f"You have {count} open proposals with {size} bytes; with this one of {len(proposal.change)} bytes they"
                f" would exceed your quota of {limits.count} proposals and {limits.bytes} bytes. Withdraw some, or wait"
                " until curators have decided them."
            )
    proposals.add(transaction, proposal)
    return proposal


def _parse_retirement(change: Mapping[str, Any]) -> str | None:
    """The record that a proposed retirement names to use instead. Raises `Invalid` where it says anything else."""
    replaced_by: str | None = change.get("replaced_by")
    problems = [
        FieldProblem(name, "is not a field of a record that is to be retired.")
        for name in change
        if name not in ("state", "replaced_by")
    ]
    if change.get("state") != RecordState.RETIRED:
        problems.append(FieldProblem("state", f"can only be proposed to become {RecordState.RETIRED}."))
    if not isinstance(replaced_by, str | None):
        problems.append(FieldProblem("replaced_by", "should be text."))
    if problems:
        raise InvalidInput("This cannot be proposed.", problems)
    return replaced_by


def get_visible_proposal(snapshot: Snapshot, caller: Caller, proposal_id: str) -> Proposal:
    """A proposal that the caller may see: a curator any, a contributor their own."""
    proposal = None if find_unstorable_char(proposal_id) else proposals.find(snapshot, proposal_id)
    if proposal is None or not (caller.has_permission(Permission.PUBLISH) or proposal.author == caller.account.id):
        raise NotFound(f"There is no proposal with the id {proposal_id!r}.")
    return proposal


def get_proposal_status(snapshot: Snapshot, proposal: Proposal) -> dict[str, Any]:
    """How a proposal stands to its record: what clashes while it is open, the version it made once it is accepted."""
    conflicts = find_conflicts(snapshot, proposal) if proposal.state == ProposalState.OPEN else []
    return {"conflicts": conflicts, "version": _find_resulting_version(snapshot, proposal)}


def list_proposals(
    snapshot: Snapshot, caller: Caller, state: ProposalState | None, after: tuple[int, str] | None, limit: int
) -> Sequence[Proposal]:
    """The next proposals that the caller may see, the oldest first; `after` is when the last was made, and its id."""
    author = None if caller.has_permission(Permission.PUBLISH) else caller.account.id
    return proposals.list_page(snapshot, state, author, after, limit)


def list_own(snapshot: Snapshot, caller: Caller, before: tuple[int, str] | None, limit: int) -> Sequence[Proposal]:
    """What the caller has proposed, the newest first; `before` is when the last of the page before was made, its id."""
    return proposals.list_by_author(snapshot, caller.account.id, before, limit)


def list_for_record(snapshot: Snapshot, caller: Caller, record_id: str) -> Sequence[Proposal]:
    """The first open proposals about a record that the caller may see, the oldest first."""
    return proposals.list_open_for_record(
        snapshot, record_id, None if caller.has_permission(Permission.PUBLISH) else caller.account.id, _MAX_PER_RECORD
    )


def count_open(snapshot: Snapshot, max_count: int | None = None) -> int:
    """How many wait to be decided, counted no further than to `most`."""
    return proposals.count_in_state(snapshot, ProposalState.OPEN, max_count)


def find_conflicts(snapshot: Snapshot, proposal: Proposal) -> list[dict[str, Any]]:
    """What the proposal changes and others have changed since: what each field was, is, and would be.

    Where the record is not published any more, that is the one conflict.
    """
    if proposal.record is None or proposal.base_version is None:
        return []
    change = orjson.loads(proposal.change)
    current = get_record(snapshot, proposal.record).record
    if current.state != RecordState.PUBLISHED:
        states = {
            "base": RecordState.PUBLISHED,
            "current": current.state,
            "proposed": change.get("state", RecordState.PUBLISHED),
        }
        return [{"field": "state", **states, "replaced_by": current.replaced_by}]
    base = revisions.find_version(snapshot, proposal.record, proposal.base_version)
    assert base is not None
    base_draft, current_draft = to_draft(base.to_record()), to_draft(current)
    proposed_draft = apply_merge_patch(base_draft, change)
    return [
        {"field": name, "base": base_draft[name], "current": current_draft[name], "proposed": proposed_draft.get(name)}
        for name in base_draft
        if proposed_draft.get(name) != base_draft[name] != current_draft[name] != proposed_draft.get(name)
    ]


def accept_proposal(
    transaction: Transaction, caller: Caller, proposal_id: str, change: Mapping[str, Any] | None
) -> VersionedRecord:
    """Make what is proposed so, on what is there now; `change` is a merge patch on top of it.

    Raises `Conflict` that shows each field that the record has moved on in under the proposal and `change` does not
    settle; and where the record is retired or merged by now.
    """
    caller.require(Permission.PUBLISH)
    proposal = _get_open(transaction, caller, proposal_id)
    saved = _apply(transaction, RecordWriter(transaction, caller, proposal), proposal, change or {})
    _decide(transaction, replace(proposal, record=saved.record.id), caller, ProposalState.ACCEPTED, "")
    return saved


def _apply(
    transaction: Transaction, writer: RecordWriter, proposal: Proposal, change: Mapping[str, Any]
) -> VersionedRecord:
    proposed = orjson.loads(proposal.change)
    if proposal.record is None:
        return writer.create(COLLECTIONS[proposal.collection], apply_merge_patch(proposed, change))
    current = writer.get_record(proposal.record)
    try:
        require_published(current.record)
    except NotFound as error:
        conflicts = find_conflicts(transaction.connection, proposal)
        raise Conflict(f"{error} Bring it back first, or reject the proposal.", conflicts=conflicts) from None
    if "state" in proposed:
        return writer.retire(current, _parse_retirement(apply_merge_patch(proposed, change)))
    conflicts = [
        conflict for conflict in find_conflicts(transaction.connection, proposal) if conflict["field"] not in change
    ]
    if conflicts:
        message = "The record has changed since this was proposed."
        raise Conflict(f"{message} Accept it with a change that says what these fields shall be.", conflicts=conflicts)
    return writer.update(current, apply_merge_patch(apply_merge_patch(to_draft(current.record), proposed), change))


def _find_resulting_version(snapshot: Snapshot, proposal: Proposal) -> int | None:
    """The version that an accepted proposal made; None where the record was so already."""
    if proposal.state != ProposalState.ACCEPTED or proposal.record is None:
        return None
    for change in revisions.list_history(snapshot, proposal.record, read_position(snapshot).revision):
        origin = change.parse_origin()
        if origin is not None and origin.proposal == proposal.id:
            return change.version
    return None


def reject_proposal(transaction: Transaction, caller: Caller, proposal_id: str, reason: str) -> Proposal:
    """Turn a proposal down, for a reason."""
    caller.require(Permission.PUBLISH)
    return _decide(transaction, _get_open(transaction, caller, proposal_id), caller, ProposalState.REJECTED, reason)


def withdraw_proposal(transaction: Transaction, caller: Caller, proposal_id: str) -> Proposal:
    """Take one's own proposal back."""
    proposal = _get_open(transaction, caller, proposal_id)
    if proposal.author != caller.account.id:
        raise PermissionDenied("Only who made a proposal may withdraw it.")
    return _decide(transaction, proposal, caller, ProposalState.WITHDRAWN, "")


def _get_open(transaction: Transaction, caller: Caller, proposal_id: str) -> Proposal:
    proposal = get_visible_proposal(transaction.connection, caller, proposal_id)
    if proposal.state != ProposalState.OPEN:
        raise Conflict(f"The proposal is {proposal.state} already.", state=proposal.state)
    return proposal


def _decide(
    transaction: Transaction, proposal: Proposal, caller: Caller, state: ProposalState, reason: str
) -> Proposal:
    decided = replace(proposal, state=state, decider=caller.account.id, decided=now_ms(), reason=reason)
    proposals.save_decision(transaction, decided)
    return decided
