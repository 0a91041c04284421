"""What has changed, the newest first: all of it, or what one import changed, which can be undone together."""

from collections.abc import Mapping

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from lexarium.domain.changes import Action
from lexarium.domain.errors import Conflict
from lexarium.service import recent, undoing
from lexarium.service.access import Deed
from lexarium.store.backend import read_position
from lexarium.web.pages.fields import Typed, text
from lexarium.web.pages.session import known
from lexarium.web.pages.site import Form, Page, Site
from lexarium.web.pages.wording import with_query

_PATH = "/changes"
_SHOWN = 60
_DIGITS = 16


def changes(site: Site, request: Request) -> Response:
    """Some changes, up to one; perhaps only those after another."""
    return _page(site, request, request.query_params)


def _page(site: Site, request: Request, asked: Mapping[str, str], wrong: str = "") -> Response:
    since, until, before = (_seq(asked, name) for name in ("since", "until", "before"))
    with site.database.read() as snapshot:
        revision = read_position(snapshot).revision
        last = min(revision, revision if until is None else until, revision if before is None else before - 1)
        found = recent.changes(snapshot, last, _SHOWN, since or 0)
        back = bool(found) and found[0].change.action == Action.REVERT
        undoable = not back and since is not None and until is not None and undoing.is_import(snapshot, since, until)
    first = found[-1].change.seq if found else 1
    told = {
        "changes": found,
        "since": since,
        "until": until,
        "ranged": since is not None and until is not None,
        "undoable": undoable,
        "most": undoing.MOST,
        "undone": bool(asked.get("undone")) and back,
        "wrong": wrong,
        "before": first if first > (since or 0) + 1 else None,
    }
    return site.render(request, "changes.html", told, 409 if wrong else 200)


def undo(site: Site, request: Request, fields: Typed) -> Response:
    """Take back what an import changed."""
    caller, since, until = known(site, request), _seq(fields, "since"), _seq(fields, "until")
    try:
        done = site.database.run(lambda transaction: undoing.undo(transaction, caller, since or 0, until or 0))
    except Conflict as error:
        return _page(site, request, fields, str(error))
    return RedirectResponse(with_query(_PATH, since=str(done[0]), until=done[1], undone="1"), 303)


def _seq(asked: Typed, name: str) -> int | None:
    given = text(asked, name)
    return int(given) if given.isascii() and given.isdecimal() and len(given) < _DIGITS else None


PAGES = (Page(_PATH, changes), Form(f"{_PATH}/undo", undo, Deed.PUBLISH))
