"""Service status for administrators."""

from typing import Any

from starlette.responses import Response

from lexarium.services.access.permissions import Permission
from lexarium.services.curation.proposals import count_open
from lexarium.services.records.catalogue_state import get_position, get_schema_version
from lexarium.services.webhooks import subscriptions
from lexarium.web.pages.page import Page, PageRoute


def show_overview(page: Page) -> Response:
    """Show the state of the service and the number of records."""
    site = page.site
    with page.read() as snapshot:
        position = get_position(snapshot)
        counts = site.database.counts.count_at(snapshot, position.revision)
        webhooks = subscriptions.list_webhooks(snapshot)
        context: dict[str, Any] = {
            "position": position,
            "schema": get_schema_version(snapshot),
            "counts": counts,
            "webhooks": webhooks,
            "lagging_webhooks": [item for item in webhooks if item.disabled is None and item.seq < position.revision],
            "pending_count": count_open(snapshot),
        }
    cached_count, cached_bytes = site.response_cache.usage
    context |= {
        "database": site.database,
        "settings": site.settings,
        "index_lag": site.record_search.get_index_lag(position),
        "cached_responses": cached_count,
        "cached_mb": cached_bytes / 1_000_000,
    }
    return page.render("admin.html", context)


ROUTES = (PageRoute("/admin", show_overview, Permission.ADMINISTER),)
