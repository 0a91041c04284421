"""Queries for comments."""

from collections.abc import Iterable
from dataclasses import asdict
from functools import cache
from typing import Any

from sqlalchemy import Connection, Integer, Select, bindparam, insert, select, tuple_, update

from lexarium.domain.cache_tags import UNLOGGED_TAG
from lexarium.domain.comment import Comment, CommentAction, CommentThread
from lexarium.store.dependencies import depend_on
from lexarium.store.schema import comment_table
from lexarium.store.transaction import Transaction

_comment = comment_table.c
_SELECT_THREAD = select(comment_table).where(_comment.thread == bindparam("id")).order_by(_comment.at, _comment.id)


def add(transaction: Transaction, comment: Comment) -> None:
    """Add a comment."""
    transaction.execute(insert(comment_table).values(asdict(comment)))
    transaction.bump_accounts_revision()


def find_thread(connection: Connection, thread_id: str) -> CommentThread | None:
    """Return the thread with an id, or None."""
    with depend_on([UNLOGGED_TAG]):
        rows = connection.execute(_SELECT_THREAD, {"id": thread_id}).all()
    return next(iter(_group_threads(rows)), None)


def list_threads(
    connection: Connection, record_id: str, before: tuple[int, str] | None, limit: int
) -> list[CommentThread]:
    """Return the next threads about a record, the newest first; `before` is the time and id of the last one."""
    parameters: dict[str, Any] = {"record": record_id, "limit": limit}
    if before is not None:
        parameters |= zip(("at", "id"), before, strict=True)
    with depend_on([UNLOGGED_TAG]):
        rows = connection.execute(_select_threads(has_before=before is not None), parameters).all()
    return _group_threads(rows)


@cache
def _select_threads(*, has_before: bool) -> Select[Any]:
    opening = comment_table.alias("opening").c
    query = select(opening.id, opening.at).where(
        opening.record == bindparam("record"), opening.action == CommentAction.OPEN
    )
    if has_before:
        query = query.where(tuple_(opening.at, opening.id) < tuple_(bindparam("at"), bindparam("id")))
    newest_first = opening.at.desc(), opening.id.desc()
    threads = query.order_by(*newest_first).limit(bindparam("limit", type_=Integer)).subquery().c
    comments = select(comment_table).join(threads.id.table, _comment.thread == threads.id)
    return comments.order_by(threads.at.desc(), threads.id.desc(), _comment.at, _comment.id)


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


def _group_threads(rows: Iterable[Any]) -> list[CommentThread]:
    comments: dict[str, list[Comment]] = {}
    for row in rows:
        comments.setdefault(row.thread, []).append(_to_comment(row))
    return [CommentThread(items) for items in comments.values()]


def _to_comment(row: Any) -> Comment:
    return Comment(**{**row._mapping, "action": CommentAction(row.action)})
