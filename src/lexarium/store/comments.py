"""Queries for comments."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from sqlalchemy import Connection, insert, select, tuple_, update

from lexarium.domain.cache_tags import UNLOGGED_TAG
from lexarium.domain.comment import Comment, CommentAction, CommentThread
from lexarium.store.dependencies import depend_on
from lexarium.store.schema import comment_table
from lexarium.store.transaction import Transaction

_comment = comment_table.c


def add(transaction: Transaction, comment: Comment) -> None:
    """Add a comment."""
    transaction.execute(insert(comment_table).values(asdict(comment)))
    transaction.bump_accounts_revision()


def find_thread(connection: Connection, thread_id: str) -> CommentThread | None:
    """Return the thread with an id, or None."""
    with depend_on([UNLOGGED_TAG]):
        return next(iter(_load_threads(connection, [thread_id])), None)


def list_threads(
    connection: Connection, record_id: str, before: tuple[int, str] | None, limit: int
) -> list[CommentThread]:
    """Return the next threads about a record, the newest first; `before` is the time and id of the last one."""
    key = tuple_(_comment.at, _comment.id)
    query = select(_comment.id).where(_comment.record == record_id, _comment.action == CommentAction.OPEN)
    if before is not None:
        query = query.where(key < before)
    with depend_on([UNLOGGED_TAG]):
        rows = connection.execute(query.order_by(_comment.at.desc(), _comment.id.desc()).limit(limit))
        return _load_threads(connection, list(rows.scalars()))


def list_replies(connection: Connection, account_id: str, since: int, limit: int) -> list[Comment]:
    """Return the comments of others in threads that an account takes part in, after a time, the newest first."""
    own_threads = select(_comment.thread).where(_comment.author == account_id)
    query = select(comment_table).where(_comment.thread.in_(own_threads), _comment.author != account_id)
    rows = connection.execute(query.where(_comment.at > since).order_by(_comment.at.desc(), _comment.id).limit(limit))
    return [_to_comment(row) for row in rows]


def erase_author(transaction: Transaction, account_id: str) -> None:
    """Erase the texts of all comments of an account."""
    transaction.execute(update(comment_table).where(_comment.author == account_id).values(text=""))
    transaction.bump_accounts_revision()


def _load_threads(connection: Connection, thread_ids: Sequence[str]) -> list[CommentThread]:
    """Return these threads, in this order, without those that do not exist."""
    query = select(comment_table).where(_comment.thread.in_(thread_ids)).order_by(_comment.at, _comment.id)
    comments: dict[str, list[Comment]] = {thread_id: [] for thread_id in thread_ids}
    for row in connection.execute(query):
        comments[row.thread].append(_to_comment(row))
    return [CommentThread(items) for items in comments.values() if items]


def _to_comment(row: Any) -> Comment:
    return Comment(**{**row._mapping, "action": CommentAction(row.action)})
