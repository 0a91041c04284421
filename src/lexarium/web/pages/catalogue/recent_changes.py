"""Recent changes, and undo of an import."""

from starlette.responses import Response

from lexarium.domain.change import Action
from lexarium.services.access.permissions import Permission
from lexarium.services.records import activity
from lexarium.services.records.catalogue_state import get_position
from lexarium.services.transfer import import_undo
from lexarium.web.pages.form_fields import get_int, split_page
from lexarium.web.pages.page import FormRoute, Page, PageRoute, redirect

_PATH = "/changes"
_PAGE_SIZE = 60
_MAX_DIGITS = 15


def show_changes(page: Page) -> Response:
    """Show a page of changes, newest first: all of them, or a range such as those of one import."""
    query = page.fields if page.errors else page.query
    after_seq, last_seq, before_seq = (get_int(query, name, _MAX_DIGITS) for name in ("since", "until", "before"))
    with page.read() as snapshot:
        revision = get_position(snapshot).revision
        bounds = (last_seq, None if before_seq is None else before_seq - 1)
        newest_seq = min([revision, *(bound for bound in bounds if bound is not None)])
        collections = page.scope.collections
        found = activity.list_activity(snapshot, newest_seq, _PAGE_SIZE + 1, after_seq or 0, collections)
        entries, last = split_page(found, _PAGE_SIZE)
        is_reverted = bool(entries) and entries[0].change.action == Action.REVERT
        has_range = after_seq is not None and last_seq is not None
        can_undo = (
            has_range and not is_reverted and import_undo.is_single_import(snapshot, after_seq or 0, last_seq or 0)
        )
    context = {
        "changes": entries,
        "since": after_seq,
        "until": last_seq,
        "has_range": has_range,
        "can_undo": can_undo,
        "max_undo": import_undo.MAX_CHANGES,
        "undone": bool(query.get("undone")) and is_reverted,
        "before": last and last.change.seq,
        "slugs": page.scope.slugs if page.scope.is_chosen else (),
    }
    return page.render("changes.html", context, error_status=409)


def undo(page: Page) -> Response:
    """Undo all changes of an import."""
    after_seq, last_seq = (get_int(page.fields, name, _MAX_DIGITS) or 0 for name in ("since", "until"))
    first_undo, last_undo = page.write(import_undo.undo_import, page.caller, after_seq, last_seq)
    return redirect(_PATH, since=str(first_undo), until=last_undo, undone="1")


ROUTES = (
    PageRoute(_PATH, show_changes),
    FormRoute(f"{_PATH}/undo", undo, Permission.PUBLISH, show_changes),
)
