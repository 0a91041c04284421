"""What has changed, the newest first: all of it, or what one import changed, which can be undone together."""

from collections.abc import Mapping

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from lexarium.domain.change import Action
from lexarium.domain.errors import Conflict
from lexarium.services.access.permissions import Permission
from lexarium.services.records import activity
from lexarium.services.transfer import import_undo
from lexarium.store.position import read_position
from lexarium.web.pages.filters import add_query
from lexarium.web.pages.form_fields import FormValues, get_text
from lexarium.web.pages.page_routes import FormRoute, PageRoute
from lexarium.web.pages.session import require_caller
from lexarium.web.pages.site import Site

_PATH = "/changes"
_PAGE_SIZE = 60
_MAX_DIGITS = 16


def show_changes(site: Site, request: Request) -> Response:
    """Some changes, up to one; perhaps only those after another."""
    return _render_list(site, request, request.query_params)


def _render_list(site: Site, request: Request, query: Mapping[str, str], error_message: str = "") -> Response:
    after_seq, last_seq, before_seq = (_parse_seq(query, name) for name in ("since", "until", "before"))
    with site.database.read() as snapshot:
        revision = read_position(snapshot).revision
        newest_seq = min(
            revision, revision if last_seq is None else last_seq, revision if before_seq is None else before_seq - 1
        )
        entries = activity.list_activity(snapshot, newest_seq, _PAGE_SIZE, after_seq or 0)
        is_reverted = bool(entries) and entries[0].change.action == Action.REVERT
        can_undo = (
            not is_reverted
            and after_seq is not None
            and last_seq is not None
            and import_undo.is_single_import(snapshot, after_seq, last_seq)
        )
    oldest_seq = entries[-1].change.seq if entries else 1
    context = {
        "changes": entries,
        "since": after_seq,
        "until": last_seq,
        "ranged": after_seq is not None and last_seq is not None,
        "undoable": can_undo,
        "most": import_undo.MAX_CHANGES,
        "undone": bool(query.get("undone")) and is_reverted,
        "wrong": error_message,
        "before": oldest_seq if oldest_seq > (after_seq or 0) + 1 else None,
    }
    return site.render(request, "changes.html", context, 409 if error_message else 200)


def undo(site: Site, request: Request, fields: FormValues) -> Response:
    """Take back what an import changed."""
    caller, after_seq, last_seq = (
        require_caller(site, request),
        _parse_seq(fields, "since"),
        _parse_seq(fields, "until"),
    )
    try:
        seq_range = site.database.run_write(
            lambda transaction: import_undo.undo_import(transaction, caller, after_seq or 0, last_seq or 0)
        )
    except Conflict as error:
        return _render_list(site, request, fields, str(error))
    return RedirectResponse(add_query(_PATH, since=str(seq_range[0]), until=seq_range[1], undone="1"), 303)


def _parse_seq(query: FormValues, name: str) -> int | None:
    digits = get_text(query, name)
    return int(digits) if digits.isascii() and digits.isdecimal() and len(digits) < _MAX_DIGITS else None


ROUTES = (PageRoute(_PATH, show_changes), FormRoute(f"{_PATH}/undo", undo, Permission.PUBLISH))
