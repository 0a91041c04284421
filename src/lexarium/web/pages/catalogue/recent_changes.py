"""Recent changes, and undo of an import."""

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from lexarium.domain.change import Action
from lexarium.domain.errors import Conflict
from lexarium.services.access.permissions import Permission
from lexarium.services.records import activity
from lexarium.services.transfer import import_undo
from lexarium.store.position import read_position
from lexarium.web.pages.filters import add_query
from lexarium.web.pages.form_fields import FormValues, get_int
from lexarium.web.pages.page_routes import FormRoute, PageRoute
from lexarium.web.pages.site import Site

_PATH = "/changes"
_PAGE_SIZE = 60
_MAX_DIGITS = 15


def show_changes(site: Site, request: Request, query: FormValues | None = None, error_message: str = "") -> Response:
    """Show a page of changes, newest first: all of them, or a range such as those of one import."""
    query = request.query_params if query is None else query
    after_seq, last_seq, before_seq = (get_int(query, name, _MAX_DIGITS) for name in ("since", "until", "before"))
    with site.database.read() as snapshot:
        revision = read_position(snapshot).revision
        bounds = (last_seq, None if before_seq is None else before_seq - 1)
        newest_seq = min([revision, *(bound for bound in bounds if bound is not None)])
        entries = activity.list_activity(snapshot, newest_seq, _PAGE_SIZE, after_seq or 0)
        is_reverted = bool(entries) and entries[0].change.action == Action.REVERT
        has_range = after_seq is not None and last_seq is not None
        can_undo = (
            has_range and not is_reverted and import_undo.is_single_import(snapshot, after_seq or 0, last_seq or 0)
        )
    oldest_seq = entries[-1].change.seq if entries else 1
    context = {
        "changes": entries,
        "since": after_seq,
        "until": last_seq,
        "has_range": has_range,
        "can_undo": can_undo,
        "max_undo": import_undo.MAX_CHANGES,
        "undone": bool(query.get("undone")) and is_reverted,
        "error": error_message,
        "before": oldest_seq if oldest_seq > (after_seq or 0) + 1 else None,
    }
    return site.render(request, "changes.html", context, 409 if error_message else 200)


def undo(site: Site, request: Request, fields: FormValues) -> Response:
    """Undo all changes of an import."""
    caller = site.require_caller(request)
    after_seq, last_seq = (get_int(fields, name, _MAX_DIGITS) or 0 for name in ("since", "until"))
    try:
        seq_range = site.database.run_write(
            lambda transaction: import_undo.undo_import(transaction, caller, after_seq, last_seq)
        )
    except Conflict as error:
        return show_changes(site, request, fields, str(error))
    return RedirectResponse(add_query(_PATH, since=str(seq_range[0]), until=seq_range[1], undone="1"), 303)


ROUTES = (PageRoute(_PATH, show_changes), FormRoute(f"{_PATH}/undo", undo, Permission.PUBLISH))
