"""Proposals: made by contributors, decided by curators, withdrawn by whoever made them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import orjson

from lexarium.domain.changes import State
from lexarium.domain.collections import COLLECTIONS, Collection
from lexarium.domain.editing import draft_of, edited, merge_patch, patch_between
from lexarium.domain.errors import Conflict, Forbidden, Invalid, NotFound, Problem, QuotaExceeded
from lexarium.domain.identifiers import mint
from lexarium.domain.proposals import Decision, Proposal, quota
from lexarium.domain.stamps import now
from lexarium.domain.text import unstorable
from lexarium.service.access import Caller, Deed
from lexarium.service.desk import Desk, Saved, checked, found, refuse_gone, refuse_stand_in
from lexarium.store import proposals, versions
from lexarium.store.backend import Snapshot, read_position
from lexarium.store.transaction import Transaction

_MOST_ABOUT = 100
"""How many proposals about one record are shown with it."""


def propose_record(
    transaction: Transaction, caller: Caller, collection: Collection, given: Mapping[str, Any]
) -> Proposal:
    """Propose a new record. `given` is a draft of v1; it is held to the rules now."""
    caller.require(Deed.PROPOSE)
    draft = checked(transaction, collection, given)
    proposal = Proposal(mint("prp"), collection.name, orjson.dumps(draft), caller.account.id, now())
    return _add(transaction, caller, proposal)


def propose_edit(transaction: Transaction, caller: Caller, before: Saved, given: Mapping[str, Any]) -> Proposal:
    """Propose a whole draft in place of what a record has. Only what it changes is kept, as a merge patch.

    Raises `Invalid` where it changes nothing.
    """
    caller.require(Deed.PROPOSE)
    was = before.whole
    draft = checked(transaction, was.collection, given, was)
    patch = patch_between(draft_of(was), draft_of(edited(was, draft, caller.account.id, now())))
    if not patch:
        raise Invalid("This changes nothing: the record is so already.")
    return _propose_change(transaction, caller, before, patch)


def propose_patch(transaction: Transaction, caller: Caller, before: Saved, patch: Mapping[str, Any]) -> Proposal:
    """Propose a merge patch of a record's draft; or that it be retired, where that is what it says of its state."""
    if "state" in patch:
        return propose_retirement(transaction, caller, before, _stand_in(patch))
    return propose_edit(transaction, caller, before, merge_patch(draft_of(before.whole), patch))


def propose_retirement(transaction: Transaction, caller: Caller, before: Saved, replaced_by: str | None) -> Proposal:
    """Propose that a record be retired."""
    caller.require(Deed.PROPOSE)
    refuse_stand_in(transaction.connection, before.whole.id, replaced_by)
    change = {"state": State.RETIRED, "replaced_by": replaced_by}
    return _propose_change(transaction, caller, before, change)


def _propose_change(transaction: Transaction, caller: Caller, before: Saved, change: Mapping[str, Any]) -> Proposal:
    proposal = Proposal(
        id=mint("prp"),
        collection=before.change.collection,
        change=orjson.dumps(change),
        author=caller.account.id,
        made=now(),
        record=before.whole.id,
        base_version=before.version,
    )
    return _add(transaction, caller, proposal)


def _add(transaction: Transaction, caller: Caller, proposal: Proposal) -> Proposal:
    """Keep a new proposal. Raises `QuotaExceeded` where a contributor would have too many, or too large ones, open."""
    if not caller.may(Deed.PUBLISH):
        count, size = proposals.sum_open(transaction.connection, caller.account.id)
        most = quota()
        if count >= most.count or size + len(proposal.change) > most.bytes:
            raise QuotaExceeded(
                f"You have {count} open proposals with {size} bytes; with this one of {len(proposal.change)} bytes they"
                f" would exceed your quota of {most.count} proposals and {most.bytes} bytes. Withdraw some, or wait"
                " until curators have decided them."
            )
    proposals.add(transaction, proposal)
    return proposal


def _stand_in(change: Mapping[str, Any]) -> str | None:
    """The record that a proposed retirement names to use instead. Raises `Invalid` where it says anything else."""
    replaced_by: str | None = change.get("replaced_by")
    problems = [
        Problem(name, "is not a field of a record that is to be retired.")
        for name in change
        if name not in ("state", "replaced_by")
    ]
    if change.get("state") != State.RETIRED:
        problems.append(Problem("state", f"can only be proposed to become {State.RETIRED}."))
    if not isinstance(replaced_by, str | None):
        problems.append(Problem("replaced_by", "should be text."))
    if problems:
        raise Invalid("This cannot be proposed.", problems)
    return replaced_by


def visible(snapshot: Snapshot, caller: Caller, identifier: str) -> Proposal:
    """A proposal that the caller may see: a curator any, a contributor their own."""
    proposal = None if unstorable(identifier) else proposals.find(snapshot, identifier)
    if proposal is None or not (caller.may(Deed.PUBLISH) or proposal.author == caller.account.id):
        raise NotFound(f"There is no proposal with the id {identifier!r}.")
    return proposal


def standing(snapshot: Snapshot, proposal: Proposal) -> dict[str, Any]:
    """How a proposal stands to its record: what clashes while it is open, the version it made once it is accepted."""
    clashes = conflicts(snapshot, proposal) if proposal.state == Decision.OPEN else []
    return {"conflicts": clashes, "version": _version_made(snapshot, proposal)}


def page(
    snapshot: Snapshot, caller: Caller, state: Decision | None, after: tuple[int, str] | None, limit: int
) -> Sequence[Proposal]:
    """The next proposals that the caller may see, the oldest first; `after` is when the last was made, and its id."""
    author = None if caller.may(Deed.PUBLISH) else caller.account.id
    return proposals.page(snapshot, state, author, after, limit)


def own(snapshot: Snapshot, caller: Caller, before: tuple[int, str] | None, limit: int) -> Sequence[Proposal]:
    """What the caller has proposed, the newest first; `before` is when the last of the page before was made, its id."""
    return proposals.made_by(snapshot, caller.account.id, before, limit)


def about(snapshot: Snapshot, caller: Caller, record: str) -> Sequence[Proposal]:
    """The first open proposals about a record that the caller may see, the oldest first."""
    return proposals.about(snapshot, record, None if caller.may(Deed.PUBLISH) else caller.account.id, _MOST_ABOUT)


def waiting(snapshot: Snapshot, most: int | None = None) -> int:
    """How many wait to be decided, counted no further than to `most`."""
    return proposals.count(snapshot, Decision.OPEN, most)


def conflicts(snapshot: Snapshot, proposal: Proposal) -> list[dict[str, Any]]:
    """What the proposal changes and others have changed since: what each field was, is, and would be.

    Where the record is not published any more, that is the one conflict.
    """
    if proposal.record is None or proposal.base_version is None:
        return []
    change = orjson.loads(proposal.change)
    present = found(snapshot, proposal.record).whole
    if present.state != State.PUBLISHED:
        states = {"base": State.PUBLISHED, "current": present.state, "proposed": change.get("state", State.PUBLISHED)}
        return [{"field": "state", **states, "replaced_by": present.replaced_by}]
    base = versions.find_version(snapshot, proposal.record, proposal.base_version)
    assert base is not None
    was, now_is = draft_of(base.whole()), draft_of(present)
    wanted = merge_patch(was, change)
    return [
        {"field": name, "base": was[name], "current": now_is[name], "proposed": wanted.get(name)}
        for name in was
        if wanted.get(name) != was[name] != now_is[name] != wanted.get(name)
    ]


def accept(transaction: Transaction, caller: Caller, identifier: str, change: Mapping[str, Any] | None) -> Saved:
    """Make what is proposed so, on what is there now; `change` is a merge patch on top of it.

    Raises `Conflict` that shows each field that the record has moved on in under the proposal and `change` does not
    settle; and where the record is retired or merged by now.
    """
    caller.require(Deed.PUBLISH)
    proposal = _open(transaction, caller, identifier)
    saved = _accepted(transaction, Desk(transaction, caller, proposal), proposal, change or {})
    _decide(transaction, replace(proposal, record=saved.whole.id), caller, Decision.ACCEPTED, "")
    return saved


def _accepted(transaction: Transaction, desk: Desk, proposal: Proposal, change: Mapping[str, Any]) -> Saved:
    proposed = orjson.loads(proposal.change)
    if proposal.record is None:
        return desk.create(COLLECTIONS[proposal.collection], merge_patch(proposed, change))
    present = desk.any(proposal.record)
    try:
        refuse_gone(present.whole)
    except NotFound as gone:
        clashes = conflicts(transaction.connection, proposal)
        raise Conflict(f"{gone} Bring it back first, or reject the proposal.", conflicts=clashes) from None
    if "state" in proposed:
        return desk.retire(present, _stand_in(merge_patch(proposed, change)))
    clashes = [each for each in conflicts(transaction.connection, proposal) if each["field"] not in change]
    if clashes:
        what = "The record has changed since this was proposed."
        raise Conflict(f"{what} Accept it with a change that says what these fields shall be.", conflicts=clashes)
    return desk.edit(present, merge_patch(merge_patch(draft_of(present.whole), proposed), change))


def _version_made(snapshot: Snapshot, proposal: Proposal) -> int | None:
    """The version that an accepted proposal made; None where the record was so already."""
    if proposal.state != Decision.ACCEPTED or proposal.record is None:
        return None
    for change in versions.history(snapshot, proposal.record, read_position(snapshot).revision):
        proposed = change.proposed()
        if proposed is not None and proposed.proposal == proposal.id:
            return change.version
    return None


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
