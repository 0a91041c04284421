"""Comment on records; close and reopen threads of comments."""

from collections.abc import Callable
from functools import partial
from typing import Any

from pydantic import Field

from lexarium.client import models
from lexarium.domain.comment import CommentThread
from lexarium.services.access.permissions import Caller, Permission
from lexarium.services.curation import comments
from lexarium.services.idempotency import WriteResponse
from lexarium.services.records.lookup import get_record, require_unmerged
from lexarium.services.serializers import serialize_thread
from lexarium.store.position import Snapshot
from lexarium.store.transaction import Transaction
from lexarium.web.http.paging import parse_cursor, split_page
from lexarium.web.request_models import NewComment, ThreadChange
from lexarium.web.v1.operation import ById, Operation, RequestContext, json_body, returns


class _CommentParameters(ById):
    limit: int = Field(100, ge=1, le=1_000, description="Maximum number of threads.")
    before: str | None = Field(None, max_length=100, description="`next` of the previous page.")


class _ThreadParameters(ById):
    thread: str = Field(max_length=100, description="ID of the first comment of the thread.")


def list_comments(context: RequestContext, query: _CommentParameters, snapshot: Snapshot) -> dict[str, Any]:
    """List comments

    Returns threads, the newest first, each with all of its comments.
    """
    before = parse_cursor("before", query.before)
    record = get_record(snapshot, context.qualify(query.id), context.path_collection).record
    require_unmerged(record)
    threads, last = split_page(comments.list_threads(snapshot, record.id, before, query.limit + 1), query.limit)
    next_page = f"{last.comments[0].at}-{last.id}" if last else None
    return {"items": [serialize_thread(thread) for thread in threads], "next": next_page}


def add_comment(context: RequestContext, path: ById, body: NewComment, transaction: Transaction) -> WriteResponse:
    """Comment on a record

    Begins a thread.
    """
    _limit_rate(context)
    thread = comments.open_thread(transaction, context.caller, _find_record(context, path, transaction), body.text)
    return WriteResponse(201, serialize_thread(thread))


def reply(
    context: RequestContext, path: _ThreadParameters, body: NewComment, transaction: Transaction
) -> WriteResponse:
    """Reply to a comment"""
    _limit_rate(context)
    return _change_thread(comments.reply, context, path, body.text, transaction)


def close(
    context: RequestContext, path: _ThreadParameters, body: ThreadChange, transaction: Transaction
) -> WriteResponse:
    """Close a thread of comments"""
    return _change_thread(comments.close_thread, context, path, body.text, transaction)


def reopen(
    context: RequestContext, path: _ThreadParameters, body: ThreadChange, transaction: Transaction
) -> WriteResponse:
    """Reopen a thread of comments"""
    return _change_thread(comments.reopen_thread, context, path, body.text, transaction)


def _change_thread(
    change: Callable[[Transaction, Caller, str, str, str], CommentThread],
    context: RequestContext,
    path: _ThreadParameters,
    text: str,
    transaction: Transaction,
) -> WriteResponse:
    record_id = _find_record(context, path, transaction)
    return WriteResponse(200, serialize_thread(change(transaction, context.caller, record_id, path.thread, text)))


def _limit_rate(context: RequestContext) -> None:
    context.site.limits.comment_limiter.acquire(context.caller.account.id)


def _find_record(context: RequestContext, path: ById, transaction: Transaction) -> str:
    return get_record(transaction.flush(), context.qualify(path.id), context.path_collection).record.id


_write = partial(Operation, "POST", permission=Permission.COMMENT, errors=(409,), has_vocabulary=True)
_decide = partial(
    Operation,
    "POST",
    permission=Permission.PUBLISH,
    body=json_body(ThreadChange, required=False),
    errors=(409,),
    has_vocabulary=True,
)
_THREAD = returns(models.CommentThread)
OPERATIONS = (
    Operation(
        "GET",
        "/{collection}/{id}/comments",
        list_comments,
        returns(models.CommentThreadPage),
        errors=(308, 300),
        has_vocabulary=True,
        name="comments",
    ),
    _write("/{collection}/{id}/comments", add_comment, returns(models.CommentThread, status=201)),
    _write("/{collection}/{id}/comments/{thread}/replies", reply, _THREAD),
    _decide("/{collection}/{id}/comments/{thread}/close", close, _THREAD, name="close_comments"),
    _decide("/{collection}/{id}/comments/{thread}/reopen", reopen, _THREAD, name="reopen_comments"),
)
