"""Notifications of an account: decisions on its proposals, and comments of others in threads that it takes part in."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import orjson

from lexarium.domain.comment import Comment, CommentAction
from lexarium.domain.proposal import Proposal, ProposalState
from lexarium.services.access.permissions import Caller
from lexarium.services.records.activity import get_account_names
from lexarium.services.records.lookup import find_latest_changes
from lexarium.services.vocabularies.access import get_read_scope
from lexarium.store import accounts, comments, proposals
from lexarium.store.position import Snapshot
from lexarium.store.transaction import Transaction

_DECISIONS = {ProposalState.ACCEPTED: "accepted your proposal", ProposalState.REJECTED: "rejected your proposal"}
_AMENDED = "accepted your proposal with changes"
_COMMENTS = {
    CommentAction.OPEN: "commented",
    CommentAction.REPLY: "replied",
    CommentAction.CLOSE: "closed the comments",
    CommentAction.REOPEN: "reopened the comments",
}


@dataclass(frozen=True)
class Notification:
    """Action of another person on a proposal or in a thread of comments."""

    # Id of the proposal or comment.
    id: str
    at: int
    actor: str
    # What they did, as a verb phrase.
    event: str
    # Record that it is about, unless none was made.
    record_id: str | None
    record_name: str
    # Reason of a decision, or a comment.
    text: str
    is_decision: bool
    is_unread: bool


def list_notifications(snapshot: Snapshot, caller: Caller, limit: int) -> list[Notification]:
    """Return the latest notifications of a caller about what they may read, the newest first."""
    seen_at = accounts.find_notified(snapshot, caller.account.id)
    decided, commented = _load(snapshot, caller, 0, limit)
    record_ids = [item.record for item in decided if item.record is not None]
    record_ids += [item.record for item in commented]
    changes = find_latest_changes(snapshot, record_ids)
    record_names = {record_id: change.to_record().fields["name"] for record_id, change in changes.items()}
    account_ids = [*(item.decider or "" for item in decided), *(item.author for item in commented)]
    actors = get_account_names(snapshot, account_ids)
    found = [_describe_decision(item, record_names, actors, seen_at) for item in decided]
    found += [_describe_comment(item, record_names, actors, seen_at) for item in commented]
    return sorted(found, key=lambda item: (item.at, item.id), reverse=True)[:limit]


def count_unread(snapshot: Snapshot, caller: Caller, max_count: int) -> int:
    """Return the number of notifications that a caller has not marked as read, up to a maximum."""
    decided, commented = _load(snapshot, caller, accounts.find_notified(snapshot, caller.account.id), max_count)
    return min(max_count, len(decided) + len(commented))


def mark_read(transaction: Transaction, caller: Caller, until: int) -> None:
    """Mark the notifications of a caller until a time as read."""
    accounts.set_notified(transaction, caller.account.id, until)


def _load(snapshot: Snapshot, caller: Caller, since: int, limit: int) -> tuple[Sequence[Proposal], Sequence[Comment]]:
    scope, account_id = get_read_scope(caller), caller.account.id
    decided = proposals.list_decided(snapshot, account_id, since, limit)
    commented = comments.list_replies(snapshot, account_id, since, limit)
    return (
        [item for item in decided if item.collection in scope.collections],
        [item for item in commented if scope.includes(item.record)],
    )


def _describe_decision(
    proposal: Proposal, record_names: Mapping[str, str], actors: Mapping[str, str], seen_at: int
) -> Notification:
    at = proposal.decided or 0
    return Notification(
        id=proposal.id,
        at=at,
        actor=actors[proposal.decider or ""],
        event=_AMENDED if proposal.amended else _DECISIONS[proposal.state],
        record_id=proposal.record,
        record_name=record_names.get(proposal.record or "") or orjson.loads(proposal.change).get("name", ""),
        text=proposal.reason,
        is_decision=True,
        is_unread=at > seen_at,
    )


def _describe_comment(
    comment: Comment, record_names: Mapping[str, str], actors: Mapping[str, str], seen_at: int
) -> Notification:
    return Notification(
        id=comment.id,
        at=comment.at,
        actor=actors[comment.author],
        event=_COMMENTS[comment.action],
        record_id=comment.record,
        record_name=record_names.get(comment.record, ""),
        text=comment.text,
        is_decision=False,
        is_unread=comment.at > seen_at,
    )
