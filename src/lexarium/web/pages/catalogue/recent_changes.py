"""Recent changes, also as a feed, and undo of an import."""

from typing import Any

from starlette.responses import Response

from lexarium.domain.change import Action
from lexarium.domain.errors import NotFound
from lexarium.domain.identifiers import get_local_id
from lexarium.domain.text.characters import find_unstorable_char
from lexarium.services.access.permissions import Permission
from lexarium.services.records import activity
from lexarium.services.records.activity import ActivityEntry
from lexarium.services.records.catalogue_state import get_position
from lexarium.services.transfer import import_undo
from lexarium.services.vocabularies.access import ReadScope, find_record_id
from lexarium.store.position import Snapshot
from lexarium.web.http.paging import split_page
from lexarium.web.pages.atom import FeedEntry, render_feed
from lexarium.web.pages.form_fields import get_int
from lexarium.web.pages.page import FormRoute, Page, PageRoute, redirect
from lexarium.web.template_filters import action_label, record_page, record_path, to_singular

_PATH = "/changes"
_FEED_PATH = "/changes.atom"
_PAGE_SIZE = 60
_FEED_SIZE = 50
_MAX_DIGITS = 15


def show_changes(page: Page) -> Response:
    """Show a page of writes, newest first, or the changes of a range such as those of one import."""
    query = page.fields if page.errors else page.query
    after_seq, last_seq, before_seq = (get_int(query, name, _MAX_DIGITS) for name in ("since", "until", "before"))
    with page.read() as snapshot:
        newest_seq = get_position(snapshot).revision if before_seq is None else before_seq - 1
        if after_seq is not None and last_seq is not None:
            context = _describe_range(snapshot, page.scope, after_seq, last_seq, newest_seq)
            context["undone"] = bool(query.get("undone")) and context["is_reverted"]
        else:
            context = {**_describe_writes(snapshot, page.scope, newest_seq), "undone": False}
    return page.render("changes.html", context, error_status=409)


def _describe_writes(snapshot: Snapshot, scope: ReadScope, newest_seq: int) -> dict[str, Any]:
    found = activity.list_writes(snapshot, scope.changes, newest_seq, _PAGE_SIZE + 1)
    writes, last = split_page(found, _PAGE_SIZE)
    slugs = scope.slugs if scope.is_chosen else ()
    before = last and last.last.change.write_id
    return {"changes": [], "writes": writes, "has_range": False, "can_undo": False, "before": before, "slugs": slugs}


def _describe_range(
    snapshot: Snapshot, scope: ReadScope, after_seq: int, last_seq: int, newest_seq: int
) -> dict[str, Any]:
    found = activity.list_activity(snapshot, scope.changes, min(last_seq, newest_seq), _PAGE_SIZE + 1, after_seq)
    changes, last = split_page(found, _PAGE_SIZE)
    is_reverted = bool(changes) and changes[0].change.action == Action.REVERT
    return {
        "changes": changes,
        "writes": [],
        "since": after_seq,
        "until": last_seq,
        "has_range": True,
        "is_reverted": is_reverted,
        "can_undo": not is_reverted and import_undo.is_single_import(snapshot, scope, after_seq, last_seq),
        "max_undo": import_undo.MAX_CHANGES,
        "before": last and last.change.seq,
        "slugs": scope.slugs if scope.is_chosen else (),
    }


def show_feed(page: Page) -> Response:
    """Return the latest changes as a feed: all of them, or those of a record or of a person."""
    person = page.query.get("person") or None
    if person is not None and find_unstorable_char(person):
        raise NotFound(f"Account {person!r} not found.")
    with page.read() as snapshot:
        chosen = page.query.get("record")
        record_id = find_record_id(snapshot, chosen, page.scope) if chosen else None
        shown = page.scope.changes._replace(actor=person, record_id=record_id)
        found = activity.list_activity(snapshot, shown, get_position(snapshot).revision, _FEED_SIZE)
    path = _PATH if record_id is None else record_page(record_id, "history")
    return render_feed(page, "Recent changes", path, [_to_entry(item) for item in found])


def _to_entry(item: ActivityEntry) -> FeedEntry:
    change, record = item.change, item.record
    name = record.fields["name"] or get_local_id(change.record_id)
    kind = to_singular(change.collection)
    return FeedEntry(
        id=str(change.seq),
        at=change.at,
        title=f"{name} ({kind}) was {action_label(change.action)}",
        author=item.actor,
        path=f"/vocabularies/{change.vocabulary}" if record.is_head else record_path(change.record_id),
        text=change.parse_summary() or f"Version {change.version}.",
    )


def undo(page: Page) -> Response:
    """Undo all changes of an import."""
    after_seq, last_seq = (get_int(page.fields, name, _MAX_DIGITS) or 0 for name in ("since", "until"))
    first_undo, last_undo = page.write(import_undo.undo_import, page.caller, after_seq, last_seq)
    return redirect(_PATH, since=str(first_undo), until=last_undo, undone="1")


ROUTES = (
    PageRoute(_PATH, show_changes),
    PageRoute(_FEED_PATH, show_feed, accepts_token=True),
    FormRoute(f"{_PATH}/undo", undo, Permission.PUBLISH, show_changes),
)
