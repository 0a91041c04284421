"""Proposals: made by contributors, decided by curators, withdrawn by whoever made them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import orjson

from lexarium.domain.collections import COLLECTIONS, Collection
from lexarium.domain.editing import draft_of, merge_patch
from lexarium.domain.errors import Conflict, Forbidden, NotFound
from lexarium.domain.identifiers import mint
from lexarium.domain.proposals import Decision, Proposal
from lexarium.domain.stamps import now
from lexarium.domain.text import unstorable
from lexarium.service.access import Caller, Deed
from lexarium.service.desk import Desk, Saved, checked, refuse_gone
from lexarium.store import log, proposals, versions
from lexarium.store.backend import Snapshot
from lexarium.store.transaction import Transaction


def propose_record(
    transaction: Transaction, caller: Caller, collection: Collection, given: Mapping[str, Any]
) -> Proposal:
    """Propose a new record. `given` is a draft of v1; it is held to the rules now."""
    caller.require(Deed.PROPOSE)
    draft = checked(transaction, collection, given)
    proposal = Proposal(mint("prp"), collection.name, orjson.dumps(draft), caller.account.id, now())
    proposals.add(transaction, proposal)
    return proposal


def propose_edit(
    transaction: Transaction, caller: Caller, collection: Collection, identifier: str, patch: Mapping[str, Any]
) -> Proposal:
    """Propose a change of a record, as a merge patch of its draft."""
    caller.require(Deed.PROPOSE)
    before = None if unstorable(identifier) else log.latest(transaction.connection, [identifier]).get(identifier)
    if before is None or before.collection != collection.name:
        raise NotFound(f"There is no {collection.name} with the id {identifier!r}.")
    was = before.whole()
    refuse_gone(was)
    checked(transaction, collection, merge_patch(draft_of(was), patch), was)
    proposal = Proposal(
        id=mint("prp"),
        collection=collection.name,
        change=orjson.dumps(dict(patch)),
        author=caller.account.id,
        made=now(),
        record=identifier,
        base_version=before.version,
    )
    proposals.add(transaction, proposal)
    return proposal


def visible(snapshot: Snapshot, caller: Caller, identifier: str) -> Proposal:
    """A proposal that the caller may see: a curator any, a contributor their own."""
    found = None if unstorable(identifier) else proposals.find(snapshot, identifier)
    if found is None or not (caller.may(Deed.PUBLISH) or found.author == caller.account.id):
        raise NotFound(f"There is no proposal with the id {identifier!r}.")
    return found


def page(
    snapshot: Snapshot, caller: Caller, state: Decision | None, after: tuple[int, str] | None, limit: int
) -> Sequence[Proposal]:
    """The next proposals that the caller may see, the oldest first; `after` is when the last was made, and its id."""
    author = None if caller.may(Deed.PUBLISH) else caller.account.id
    return proposals.page(snapshot, state, author, after, limit)


def conflicts(snapshot: Snapshot, proposal: Proposal) -> list[dict[str, Any]]:
    """The fields that the proposal changes and others have changed since: what each was, is, and would be."""
    if proposal.record is None or proposal.base_version is None:
        return []
    present = log.latest(snapshot, [proposal.record])[proposal.record]
    base = versions.find_version(snapshot, proposal.record, proposal.base_version)
    assert base is not None
    was, now_is = draft_of(base.whole()), draft_of(present.whole())
    wanted = merge_patch(was, orjson.loads(proposal.change))
    return [
        {"field": name, "base": was[name], "current": now_is[name], "proposed": wanted.get(name)}
        for name in was
        if wanted.get(name) != was[name] != now_is[name] != wanted.get(name)
    ]


def accept(transaction: Transaction, caller: Caller, identifier: str, change: Mapping[str, Any] | None) -> Saved:
    """Make what is proposed so; or, where `change` is given, that instead, on what is there now.

    Raises `Conflict` that shows each field where the record has moved on under the proposal.
    """
    caller.require(Deed.PUBLISH)
    proposal = _open(transaction, caller, identifier)
    collection = COLLECTIONS[proposal.collection]
    desk = Desk(transaction, caller)
    if proposal.record is None:
        saved = desk.create(collection, orjson.loads(proposal.change) if change is None else change)
    else:
        if change is None:
            clashes = conflicts(transaction.connection, proposal)
            if clashes:
                raise Conflict("The record has changed since this was proposed.", conflicts=clashes)
            change = orjson.loads(proposal.change)
        present = desk.current(collection, proposal.record)
        assert change is not None
        saved = desk.patch(collection, proposal.record, change, present.version)
    _decide(transaction, replace(proposal, record=saved.whole.id), caller, Decision.ACCEPTED, "")
    return saved


def reject(transaction: Transaction, caller: Caller, identifier: str, reason: str) -> Proposal:
    """Turn a proposal down, for a reason."""
    caller.require(Deed.PUBLISH)
    return _decide(transaction, _open(transaction, caller, identifier), caller, Decision.REJECTED, reason)


def withdraw(transaction: Transaction, caller: Caller, identifier: str) -> Proposal:
    """Take one's own proposal back."""
    proposal = _open(transaction, caller, identifier)
    if proposal.author != caller.account.id:
        raise Forbidden("Only who made a proposal may withdraw it.")
    return _decide(transaction, proposal, caller, Decision.WITHDRAWN, "")


def _open(transaction: Transaction, caller: Caller, identifier: str) -> Proposal:
    proposal = visible(transaction.connection, caller, identifier)
    if proposal.state != Decision.OPEN:
        raise Conflict(f"The proposal is {proposal.state} already.", state=proposal.state)
    return proposal


def _decide(transaction: Transaction, proposal: Proposal, caller: Caller, state: Decision, reason: str) -> Proposal:
    decided = replace(proposal, state=state, decider=caller.account.id, decided=now(), reason=reason)
    proposals.decide(transaction, decided)
    return decided
