"""Comment on records; close and reopen threads of comments."""

from lexarium.domain.comment import MAX_THREAD_COMMENTS, Comment, CommentAction, CommentThread
from lexarium.domain.errors import Conflict, NotFound
from lexarium.domain.identifiers import mint_id, split_id
from lexarium.domain.text.timestamps import now_ms
from lexarium.services.access.permissions import Caller, Permission
from lexarium.services.not_found import find_or_raise
from lexarium.services.records.lookup import get_record, require_unmerged
from lexarium.store import comments
from lexarium.store.position import Snapshot
from lexarium.store.transaction import Transaction


def list_threads(snapshot: Snapshot, record_id: str, before: tuple[int, str] | None, limit: int) -> list[CommentThread]:
    """Return the next threads about a record, the newest first; `before` is the time and id of the last one."""
    return comments.list_threads(snapshot, record_id, before, limit)


def open_thread(transaction: Transaction, caller: Caller, record_id: str, text: str) -> CommentThread:
    """Begin a thread about a record."""
    _require_permission(transaction, caller, record_id, Permission.COMMENT)
    comment_id = mint_id("cmt")
    comment = Comment(comment_id, record_id, comment_id, caller.account.id, now_ms(), CommentAction.OPEN, text)
    comments.add(transaction, comment)
    return CommentThread([comment])


def reply(transaction: Transaction, caller: Caller, record_id: str, thread_id: str, text: str) -> CommentThread:
    """Add a comment to an open thread; raise NotFound, or Conflict if it is closed or full."""
    thread = _get_thread(transaction, caller, record_id, thread_id, Permission.COMMENT)
    if thread.is_closed:
        raise Conflict("This thread is closed. Start a new one, or ask a curator to reopen it.")
    if len(thread.comments) >= MAX_THREAD_COMMENTS:
        raise Conflict(f"This thread has {MAX_THREAD_COMMENTS} comments. Start a new one.")
    return _append(transaction, caller, thread, CommentAction.REPLY, text)


def close_thread(transaction: Transaction, caller: Caller, record_id: str, thread_id: str, text: str) -> CommentThread:
    """Close a thread, with a last comment if there is a text; raise NotFound, or Conflict if it is closed."""
    thread = _get_thread(transaction, caller, record_id, thread_id, Permission.PUBLISH)
    if thread.is_closed:
        raise Conflict("This thread is closed already.")
    return _append(transaction, caller, thread, CommentAction.CLOSE, text)


def reopen_thread(transaction: Transaction, caller: Caller, record_id: str, thread_id: str, text: str) -> CommentThread:
    """Reopen a thread, with a comment if there is a text; raise NotFound, or Conflict if it is open."""
    thread = _get_thread(transaction, caller, record_id, thread_id, Permission.PUBLISH)
    if not thread.is_closed:
        raise Conflict("This thread is open already.")
    return _append(transaction, caller, thread, CommentAction.REOPEN, text)


def _get_thread(
    transaction: Transaction, caller: Caller, record_id: str, thread_id: str, permission: Permission
) -> CommentThread:
    _require_permission(transaction, caller, record_id, permission)
    message = f"Comment thread {thread_id!r} not found."
    thread = find_or_raise(lambda: comments.find_thread(transaction.flush(), thread_id), thread_id, message)
    # A thread of another record is not found here: who may read this one may not be allowed to read that.
    if thread.record != record_id:
        raise NotFound(message)
    return thread


def _require_permission(transaction: Transaction, caller: Caller, record_id: str, permission: Permission) -> None:
    caller.require(permission, split_id(record_id)[0])
    require_unmerged(get_record(transaction.flush(), record_id).record)


def _append(
    transaction: Transaction, caller: Caller, thread: CommentThread, action: CommentAction, text: str
) -> CommentThread:
    # Comments of a thread have different times, since these are their order.
    at = max(now_ms(), thread.comments[-1].at + 1)
    comment = Comment(mint_id("cmt"), thread.record, thread.id, caller.account.id, at, action, text)
    comments.add(transaction, comment)
    return CommentThread([*thread.comments, comment])
