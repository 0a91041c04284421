"""What has changed, the newest first."""

from starlette.requests import Request
from starlette.responses import Response

from lexarium.service import recent
from lexarium.store.backend import read_position
from lexarium.web.pages.site import Page, Site

_SHOWN = 60
_DIGITS = 16


def changes(site: Site, request: Request) -> Response:
    """Some changes, up to one."""
    before = request.query_params.get("before", "")
    with site.database.read() as snapshot:
        until = read_position(snapshot).revision
        if before.isascii() and before.isdecimal() and len(before) < _DIGITS:
            until = min(until, int(before) - 1)
        found = recent.changes(snapshot, until, _SHOWN)
    last = found[-1].change.seq if found else 1
    return site.render(request, "changes.html", {"changes": found, "before": last if last > 1 else None})


PAGES = (Page("/changes", changes),)
