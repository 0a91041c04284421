"""Create, list, accept, reject and withdraw proposals."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import orjson

from lexarium.domain.editing.edit import apply_draft, apply_merge_patch, create_merge_patch, to_draft
from lexarium.domain.errors import Conflict, FieldProblem, InvalidInput, NotFound, PermissionDenied, QuotaExceeded
from lexarium.domain.identifiers import get_local_id, mint_id
from lexarium.domain.labels import parse_aliases
from lexarium.domain.proposal import Proposal, ProposalFilter, ProposalState
from lexarium.domain.record import RecordState
from lexarium.domain.schema.collections import COLLECTIONS, Collection, Fields
from lexarium.domain.text.limits import get_input_limits
from lexarium.domain.text.timestamps import now_ms
from lexarium.domain.vocabulary import VOCABULARIES
from lexarium.services.access.permissions import Caller, Permission
from lexarium.services.curation.draft_checks import check_draft, check_new_draft, find_replacement
from lexarium.services.curation.record_writer import RecordWriter
from lexarium.services.not_found import find_or_raise
from lexarium.services.records.lookup import VersionedRecord, get_record, require_published
from lexarium.services.vocabularies.access import ReadScope, get_read_scope
from lexarium.store import proposals, revisions
from lexarium.store.engine.position_queries import read_position
from lexarium.store.position import Snapshot
from lexarium.store.transaction import Transaction


class ProposalWriter:
    """Proposes changes on behalf of one caller in one transaction; mirrors `RecordWriter`."""

    def __init__(self, transaction: Transaction, caller: Caller, summary: str = "") -> None:
        caller.require_anywhere(Permission.PROPOSE)
        self._transaction = transaction
        self._caller = caller
        self._summary = summary

    def create(self, collection: Collection, draft: Mapping[str, Any]) -> Proposal:
        """Propose a new record from a v1 draft."""
        self._require_permission(collection)
        return self._add(collection, check_new_draft(self._transaction, collection, draft))

    def create_valpha(self, collection: Collection, draft: Fields) -> Proposal:
        """Propose a new record from a checked v-alpha draft."""
        aliases = [alias.model_dump() for alias in parse_aliases(draft.get("alias", ""))]
        fields = {name: value for name, value in draft.items() if name != "alias"}
        return self.create(collection, {**fields, "aliases": aliases})

    def update(self, current: VersionedRecord, draft: Mapping[str, Any]) -> Proposal:
        """Propose a complete draft, stored as a merge patch; raise InvalidInput if it changes nothing."""
        record = current.record
        self._require_permission(record.collection)
        checked_draft = check_draft(self._transaction, record.collection, draft, record)
        updated = apply_draft(record, checked_draft, self._caller.account.id, now_ms())
        patch = create_merge_patch(to_draft(record), to_draft(updated))
        if not patch:
            raise InvalidInput("No changes: the record already has these values.")
        return self._add(record.collection, patch, current)

    def patch(self, current: VersionedRecord, patch: Mapping[str, Any]) -> Proposal:
        """Propose a JSON merge patch of a draft."""
        return self.update(current, apply_merge_patch(to_draft(current.record), patch))

    def patch_or_retire(self, current: VersionedRecord, patch: Mapping[str, Any]) -> Proposal:
        """Propose a JSON merge patch of a draft, or a retirement if it sets the state."""
        if "state" not in patch:
            return self.patch(current, patch)
        return self.retire(current, _parse_retirement(patch))

    def add_relation(self, current: VersionedRecord, type_name: str, target: str) -> Proposal:
        """Propose another relation."""
        targets = [*current.record.relation_targets.get(type_name, []), target]
        return self.patch(current, {"relations": {type_name: targets}})

    def remove_relation(self, current: VersionedRecord, type_name: str, target: str) -> Proposal:
        """Propose the removal of a relation."""
        existing = current.record.relation_targets.get(type_name, [])
        targets = [item for item in existing if item != target]
        return self.patch(current, {"relations": {type_name: targets or None}})

    def retire(self, current: VersionedRecord, replaced_by: str | None = None) -> Proposal:
        """Propose to retire a record."""
        self._require_permission(current.record.collection)
        find_replacement(self._transaction.flush(), current.record, replaced_by)
        change = {"state": RecordState.RETIRED, "replaced_by": replaced_by}
        return self._add(current.record.collection, change, current)

    def _require_permission(self, collection: Collection) -> None:
        self._caller.require(Permission.PROPOSE, collection.vocabulary)

    def _add(
        self, collection: Collection, change: Mapping[str, Any], current: VersionedRecord | None = None
    ) -> Proposal:
        self._caller.require(Permission.PROPOSE, collection.vocabulary)
        proposal = Proposal(
            id=mint_id("prp"),
            collection=collection.name,
            change=orjson.dumps(change),
            author=self._caller.account.id,
            made=now_ms(),
            summary=self._summary,
            record=current.record.id if current else None,
            base_version=current.version if current else None,
        )
        if not self._caller.has_permission(Permission.PUBLISH, collection.vocabulary):
            self._require_quota(len(proposal.change))
        proposals.add(self._transaction, proposal)
        return proposal

    def _require_quota(self, new_size: int) -> None:
        count, size = proposals.sum_open(self._transaction.flush(), self._caller.account.id)
        limits = get_input_limits()
        if count >= limits.open_proposals or size + new_size > limits.open_proposal_bytes:
            raise QuotaExceeded(
                f"You have {count} open proposals with {size} bytes; with this one of {new_size} bytes they"
                f" would exceed your quota of {limits.open_proposals} proposals and {limits.open_proposal_bytes} bytes."
                " Withdraw some, or wait until curators have reviewed them."
            )


def _parse_retirement(change: Mapping[str, Any]) -> str | None:
    """Return the replacement that a proposed retirement names; raise InvalidInput if it changes anything else."""
    replaced_by: str | None = change.get("replaced_by")
    problems = [
        FieldProblem(name, "cannot be combined with retiring the record.")
        for name in change
        if name not in ("state", "replaced_by")
    ]
    if change.get("state") != RecordState.RETIRED:
        problems.append(FieldProblem("state", f"can only be {RecordState.RETIRED} in a proposal."))
    if not isinstance(replaced_by, str | None):
        problems.append(FieldProblem("replaced_by", "must be text."))
    if problems:
        raise InvalidInput("Invalid proposal.", problems)
    return replaced_by


def get_visible_proposal(snapshot: Snapshot, caller: Caller, proposal_id: str) -> Proposal:
    """Return a proposal: any for curators of its vocabulary, their own for contributors; raise NotFound."""
    message = f"Proposal {proposal_id!r} not found."
    proposal = find_or_raise(lambda: proposals.find(snapshot, proposal_id), proposal_id, message)
    if not _is_visible(caller, proposal):
        raise NotFound(message)
    return proposal


def _is_visible(caller: Caller, proposal: Proposal) -> bool:
    """Return whether a caller may see a proposal: as a curator of its vocabulary, or as an author who may read it."""
    collection = COLLECTIONS.get(proposal.collection)
    if collection is None:  # of a removed vocabulary
        return False
    is_readable = collection.vocabulary in get_read_scope(caller).slugs
    return is_readable and (
        proposal.author == caller.account.id or caller.has_permission(Permission.PUBLISH, collection.vocabulary)
    )


def get_proposal_status(snapshot: Snapshot, proposal: Proposal) -> dict[str, Any]:
    """Return the conflicts of an open proposal, and the version that an accepted one made."""
    conflicts = find_conflicts(snapshot, proposal) if proposal.state == ProposalState.OPEN else []
    return {"conflicts": conflicts, "version": _find_resulting_version(snapshot, proposal)}


def limit_to_visible(caller: Caller, proposal_filter: ProposalFilter, scope: ReadScope | None = None) -> ProposalFilter:
    """Return a filter that only shows what the caller may see: all as a curator of a vocabulary, else their own.

    With a scope, only proposals of its vocabularies.
    """
    scope = scope or get_read_scope(caller)
    curated = [slug for slug in scope.slugs if caller.has_permission(Permission.PUBLISH, slug)]
    readable = scope.collections if len(scope.slugs) < len(VOCABULARIES) else None
    if len(curated) == len(scope.slugs):
        return replace(proposal_filter, collections=readable)
    if not curated:
        return replace(proposal_filter, collections=readable, author=caller.account.id)
    names = tuple(name for name in scope.collections if COLLECTIONS[name].vocabulary in curated)
    return replace(proposal_filter, collections=readable, reader=caller.account.id, curated=names)


def list_proposals(  # noqa: PLR0913, PLR0917 (a filter and a page)
    snapshot: Snapshot,
    caller: Caller,
    scope: ReadScope,
    state: ProposalState | None,
    after: tuple[int, str] | None,
    limit: int,
) -> Sequence[Proposal]:
    """Return the next proposals of a scope that the caller may see, the oldest first.

    `after` is the time and id of the last one.
    """
    visible = limit_to_visible(caller, ProposalFilter(state=state), scope)
    return proposals.list_page(snapshot, visible, after, limit)


def list_own(snapshot: Snapshot, caller: Caller, before: tuple[int, str] | None, limit: int) -> Sequence[Proposal]:
    """Return the next proposals of the caller, the newest first; `before` is the time and id of the last."""
    own_filter = ProposalFilter(author=caller.account.id, newest_first=True, state=None)
    return proposals.list_page(snapshot, limit_to_visible(caller, own_filter), before, limit)


def list_curated(caller: Caller, scope: ReadScope) -> tuple[str, ...]:
    """Return the collections of a scope in which the caller decides proposals."""
    slugs = [slug for slug in scope.slugs if caller.has_permission(Permission.PUBLISH, slug)]
    return tuple(name for slug in slugs for name in COLLECTIONS.list_names(slug))


def count_open(snapshot: Snapshot, max_count: int | None = None, caller: Caller | None = None) -> int:
    """Count open proposals, up to a maximum; for a caller, those in the vocabularies that they curate."""
    if caller is None:
        return proposals.count_in_state(snapshot, ProposalState.OPEN, max_count)
    visible = limit_to_visible(caller, ProposalFilter())
    collections = visible.curated if visible.reader else visible.collections
    return proposals.count_in_state(snapshot, ProposalState.OPEN, max_count, collections)


def find_conflicts(snapshot: Snapshot, proposal: Proposal) -> list[dict[str, Any]]:
    """Return the fields that both a proposal and others have changed: base, current and proposed value.

    If the record is unpublished, its state is the only conflict.
    """
    if proposal.record is None or proposal.base_version is None:
        return []
    change = orjson.loads(proposal.change)
    current = get_record(snapshot, proposal.record).record
    if current.state != RecordState.PUBLISHED:
        states = {"base": RecordState.PUBLISHED, "current": current.state}
        proposed = change.get("state", RecordState.PUBLISHED)
        replaced_by = None if current.replaced_by is None else get_local_id(current.replaced_by)
        return [{"field": "state", **states, "proposed": proposed, "replaced_by": replaced_by}]
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
    transaction: Transaction, caller: Caller, proposal_id: str, change: Mapping[str, Any] | None, reason: str = ""
) -> VersionedRecord:
    """Apply a proposal to the current record, then `change`, a merge patch on top of it. The author sees the reason.

    Raise Conflict if the record is unpublished, or if fields conflict that `change` does not resolve.
    """
    proposal = _get_decidable(transaction, caller, proposal_id)
    saved = _apply(transaction, caller, proposal, change or {})
    proposed = orjson.loads(proposal.change)
    # In a merge patch, null is the same as no value.
    values = apply_merge_patch(proposed, change or {})
    is_amended = any(values.get(name) != proposed.get(name) for name in values.keys() | proposed.keys())
    accepted = replace(proposal, record=saved.record.id, amended=is_amended)
    _decide(transaction, accepted, caller, ProposalState.ACCEPTED, reason)
    return saved


def _apply(transaction: Transaction, caller: Caller, proposal: Proposal, change: Mapping[str, Any]) -> VersionedRecord:
    writer = RecordWriter(transaction, caller, proposal)
    proposed = orjson.loads(proposal.change)
    if proposal.record is None:
        return writer.create(COLLECTIONS[proposal.collection], apply_merge_patch(proposed, change))
    current = get_record(transaction.flush(), proposal.record)
    try:
        require_published(current.record)
    except NotFound as error:
        conflicts = find_conflicts(transaction.flush(), proposal)
        raise Conflict(f"{error} Restore it first, or reject the proposal.", conflicts=conflicts) from None
    if "state" in proposed:
        return writer.retire(current, _parse_retirement(apply_merge_patch(proposed, change)))
    conflicts = find_conflicts(transaction.flush(), proposal)
    conflicts = [conflict for conflict in conflicts if conflict["field"] not in change]
    if conflicts:
        message = "The record has changed since this proposal."
        raise Conflict(f"{message} Accept it with a `change` that resolves these fields.", conflicts=conflicts)
    return writer.update(current, apply_merge_patch(apply_merge_patch(to_draft(current.record), proposed), change))


def _find_resulting_version(snapshot: Snapshot, proposal: Proposal) -> int | None:
    # An accepted proposal makes no version if it changes nothing.
    if proposal.state != ProposalState.ACCEPTED or proposal.record is None:
        return None
    changes = revisions.list_history(snapshot, proposal.record, read_position(snapshot).revision)
    origins = ((change.version, change.parse_origin()) for change in changes)
    return next((version for version, origin in origins if origin and origin.proposal == proposal.id), None)


def reject_proposal(transaction: Transaction, caller: Caller, proposal_id: str, reason: str) -> Proposal:
    """Reject a proposal with a reason."""
    proposal = _get_decidable(transaction, caller, proposal_id)
    return _decide(transaction, proposal, caller, ProposalState.REJECTED, reason)


def withdraw_proposal(transaction: Transaction, caller: Caller, proposal_id: str) -> Proposal:
    """Withdraw a proposal of the caller."""
    proposal = _get_open(transaction, caller, proposal_id)
    if proposal.author != caller.account.id:
        raise PermissionDenied("Only its author can withdraw a proposal.")
    return _decide(transaction, proposal, caller, ProposalState.WITHDRAWN, "")


def _get_decidable(transaction: Transaction, caller: Caller, proposal_id: str) -> Proposal:
    """Return an open proposal that the caller may decide; raise NotFound, PermissionDenied or Conflict."""
    proposal = _get_open(transaction, caller, proposal_id)
    caller.require(Permission.PUBLISH, COLLECTIONS[proposal.collection].vocabulary)
    return proposal


def _get_open(transaction: Transaction, caller: Caller, proposal_id: str) -> Proposal:
    proposal = get_visible_proposal(transaction.flush(), caller, proposal_id)
    if proposal.state != ProposalState.OPEN:
        raise Conflict(f"The proposal is already {proposal.state}.", state=proposal.state)
    return proposal


def _decide(
    transaction: Transaction, proposal: Proposal, caller: Caller, state: ProposalState, reason: str
) -> Proposal:
    decided = replace(proposal, state=state, decider=caller.account.id, decided=now_ms(), reason=reason)
    proposals.save_decision(transaction, decided)
    return decided
