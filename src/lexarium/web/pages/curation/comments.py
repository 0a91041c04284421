"""Comments on a record: a page of their own, and the part that the page of the record shows."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from starlette.responses import Response

from lexarium.domain.comment import Comment, CommentThread
from lexarium.domain.record import Record
from lexarium.services.access.permissions import Permission
from lexarium.services.curation import comments
from lexarium.services.records.activity import get_account_names
from lexarium.services.records.lookup import get_record, require_unmerged
from lexarium.store.position import Snapshot
from lexarium.store.transaction import Transaction
from lexarium.web.http.paging import parse_page_key, split_page
from lexarium.web.pages.form_fields import get_text
from lexarium.web.pages.page import FormRoute, Page, PageRoute, redirect
from lexarium.web.request_models import NewComment, ThreadChange, parse_model
from lexarium.web.template_filters import list_record_routes, record_page

_PAGE_SIZE = 20
# On the page of a record.
_SHOWN = 5
_INVALID = "Invalid comment."


@dataclass(frozen=True)
class ShownThread:
    """A thread with the names of its authors."""

    thread: CommentThread
    comments: Sequence[tuple[Comment, str]]


def build_context(page: Page, snapshot: Snapshot, record: Record, limit: int = _SHOWN) -> dict[str, Any]:
    """Return what `_comments.html` shows: the latest threads about a record."""
    before = parse_page_key(page.query.get("before", ""))
    threads, last = split_page(comments.list_threads(snapshot, record.id, before, limit + 1), limit)
    names = get_account_names(snapshot, [item.author for thread in threads for item in thread.comments])
    caller = page.site.get_caller(page.request)
    return {
        "record": record,
        "threads": [
            ShownThread(thread, [(item, names[item.author]) for item in thread.comments]) for thread in threads
        ],
        "can_comment": caller is not None and caller.has_permission(Permission.COMMENT, record.collection.vocabulary),
        "before": last and f"{last.comments[0].at}-{last.id}",
    }


def show_comments(page: Page) -> Response:
    """Show all threads about a record, the newest first."""
    with page.read() as snapshot:
        record = get_record(snapshot, page.find_record(snapshot)).record
        require_unmerged(record)
        context = {
            "record": record,
            "comments": build_context(page, snapshot, record, _PAGE_SIZE),
            "permission_slug": record.collection.vocabulary,
        }
    return page.render("comments.html", context)


def change_thread(page: Page) -> Response:
    """Open a thread, or reply to, close or reopen one."""
    action, thread_id = get_text(page.fields, "act"), get_text(page.fields, "thread")
    values = {"text": get_text(page.fields, "text").strip()}
    caller = page.caller
    change: Callable[..., CommentThread]
    if action in _CHANGES:
        text = parse_model(ThreadChange, values, _INVALID).text
        change = partial(_CHANGES[action], thread_id=thread_id)
    else:
        page.site.limits.comment_limiter.acquire(caller.account.id)
        text = parse_model(NewComment, values, _INVALID).text
        change = partial(comments.reply, thread_id=thread_id) if thread_id else comments.open_thread

    def task(transaction: Transaction) -> CommentThread:
        return change(transaction, caller, page.find_record(transaction.flush()), text=text)

    thread = page.write(task)
    return redirect(f"{record_page(thread.record, 'comments')}#{thread.id}")


_CHANGES = {"close": comments.close_thread, "reopen": comments.reopen_thread}
ROUTES = tuple(
    route
    for path in list_record_routes("comments")
    for route in (PageRoute(path, show_comments), FormRoute(path, change_thread, Permission.COMMENT, show_comments))
)
