"""How the service stands, for whoever keeps it."""

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from lexarium.domain.record import RecordState
from lexarium.domain.schema.collections import COLLECTIONS
from lexarium.services.access.permissions import Permission
from lexarium.services.curation.proposals import count_open
from lexarium.services.webhooks import subscriptions
from lexarium.store.position import read_position
from lexarium.store.upgrade import read_schema_version
from lexarium.web.pages.page_routes import PageRoute
from lexarium.web.pages.site import Site


def show_overview(site: Site, request: Request) -> Response:
    """What the probes know, in words, and what wants looking after."""
    with site.database.read() as snapshot:
        position = read_position(snapshot)
        counts = site.database.counts.count_at(snapshot, position.revision)
        webhook_list = subscriptions.list_webhooks(snapshot)
        context: dict[str, Any] = {
            "position": position,
            "schema": read_schema_version(snapshot),
            "counts": {
                name: {state.value: counts[name, state] for state in RecordState if counts[name, state]}
                for name in COLLECTIONS
            },
            "hooks": webhook_list,
            "late": [
                webhook for webhook in webhook_list if webhook.disabled is None and webhook.seq < position.revision
            ],
            "waiting": count_open(snapshot),
        }
    cached_count, cached_bytes = site.response_cache.usage
    context |= {
        "engine": "SQLite" if site.database.is_embedded else "PostgreSQL",
        "place": site.database.location,
        "standbys": bool(site.settings.database_read),
        "connections": site.database.load.connections,
        "behind": site.record_search.get_index_lag(position),
        "kept": cached_count,
        "kept_mb": cached_bytes / 1_000_000,
        "cache_mb": site.settings.cache_mb,
        "workers": site.settings.workers,
    }
    return site.render(request, "admin.html", context)


ROUTES = (PageRoute("/admin", show_overview, Permission.ADMINISTER),)
