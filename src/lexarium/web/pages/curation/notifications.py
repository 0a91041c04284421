"""Notifications of the signed-in person, also as a feed."""

from starlette.responses import Response

from lexarium.services.access.permissions import Permission
from lexarium.services.curation import notifications
from lexarium.services.curation.notifications import Notification
from lexarium.web.pages.atom import FeedEntry, render_feed
from lexarium.web.pages.curation.revert import OWN_PROPOSALS_PATH
from lexarium.web.pages.form_fields import get_int
from lexarium.web.pages.page import FormRoute, Page, PageRoute, redirect
from lexarium.web.template_filters import record_page, record_path

_PATH = "/notifications"
_MAX_SHOWN = 100
_MAX_DIGITS = 15


def show_notifications(page: Page) -> Response:
    """Show the latest notifications, the newest first."""
    with page.read() as snapshot:
        found = notifications.list_notifications(snapshot, page.caller, _MAX_SHOWN)
    rows = [(item, _find_path(item)) for item in found]
    return page.render("notifications.html", {"rows": rows, "max_shown": _MAX_SHOWN})


def mark_read(page: Page) -> Response:
    """Mark the notifications that the page has shown as read."""
    page.write(notifications.mark_read, page.caller, get_int(page.fields, "until", _MAX_DIGITS) or 0)
    return redirect(_PATH)


def show_feed(page: Page) -> Response:
    """Return the latest notifications as a feed."""
    with page.read() as snapshot:
        found = notifications.list_notifications(snapshot, page.caller, _MAX_SHOWN)
    title = f"Notifications of {page.caller.account.name}"
    return render_feed(page, title, _PATH, [_to_entry(item) for item in found])


def _to_entry(item: Notification) -> FeedEntry:
    name = item.record_name or "(no name)"
    return FeedEntry(item.id, item.at, f"{name}: {item.actor} {item.event}", item.actor, _find_path(item), item.text)


def _find_path(item: Notification) -> str:
    """Return the path of the proposal, or of the comments."""
    if item.is_decision or item.record_id is None:
        return f"{OWN_PROPOSALS_PATH}#{item.id}" if item.record_id is None else record_path(item.record_id)
    return record_page(item.record_id, "comments")


ROUTES = (
    PageRoute(_PATH, show_notifications, Permission.COMMENT),
    FormRoute(f"{_PATH}/read", mark_read, Permission.COMMENT),
    PageRoute(f"{_PATH}.atom", show_feed, Permission.COMMENT, accepts_token=True),
)
