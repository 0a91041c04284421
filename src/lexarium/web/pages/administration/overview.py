"""Service status for administrators."""

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from lexarium.domain.record import RecordState
from lexarium.domain.schema.collections import COLLECTIONS
from lexarium.services.access.permissions import Permission
from lexarium.services.curation.proposals import count_open
from lexarium.services.records.catalogue_state import get_schema_version
from lexarium.services.webhooks import subscriptions
from lexarium.store.position import read_position
from lexarium.web.pages.page_routes import PageRoute
from lexarium.web.pages.site import Site


def show_overview(site: Site, request: Request) -> Response:
    """Show the state of the service and the number of records."""
    with site.database.read() as snapshot:
        position = read_position(snapshot)
        counts = site.database.counts.count_at(snapshot, position.revision)
        webhooks = subscriptions.list_webhooks(snapshot)
        context: dict[str, Any] = {
            "position": position,
            "schema": get_schema_version(snapshot),
            "counts": {
                name: {state.value: counts[name, state] for state in RecordState if counts[name, state]}
                for name in COLLECTIONS
            },
            "webhooks": webhooks,
            "lagging_webhooks": [item for item in webhooks if item.disabled is None and item.seq < position.revision],
            "pending_count": count_open(snapshot),
        }
    cached_count, cached_bytes = site.response_cache.usage
    context |= {
        "engine": "SQLite" if site.database.is_embedded else "PostgreSQL",
        "location": site.database.location,
        "standbys": bool(site.settings.database_read),
        "connections": site.database.load.connections,
        "index_lag": site.record_search.get_index_lag(position),
        "cached_responses": cached_count,
        "cached_mb": cached_bytes / 1_000_000,
        "cache_mb": site.settings.cache_mb,
        "workers": site.settings.workers,
    }
    return site.render(request, "admin.html", context)


ROUTES = (PageRoute("/admin", show_overview, Permission.ADMINISTER),)
