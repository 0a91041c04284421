"""How the service stands, for whoever keeps it."""

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from lexarium.domain.changes import State
from lexarium.domain.collections import COLLECTIONS
from lexarium.service import webhooks
from lexarium.service.access import Deed
from lexarium.service.proposals import waiting
from lexarium.store.backend import read_position
from lexarium.store.migrate import version_of
from lexarium.web.pages.site import Page, Site


def overview(site: Site, request: Request) -> Response:
    """What the probes know, in words, and what wants looking after."""
    with site.database.read() as snapshot:
        position = read_position(snapshot)
        counted = site.database.tallies.at(snapshot, position.revision)
        hooks = webhooks.oldest_first(snapshot)
        told: dict[str, Any] = {
            "position": position,
            "schema": version_of(snapshot),
            "counts": {
                name: {state.value: counted[name, state] for state in State if counted[name, state]}
                for name in COLLECTIONS
            },
            "hooks": hooks,
            "late": [each for each in hooks if each.disabled is None and each.seq < position.revision],
            "waiting": waiting(snapshot),
        }
    kept, size = site.answers.kept
    told |= {
        "engine": "SQLite" if site.database.embedded else "PostgreSQL",
        "place": site.database.place,
        "standbys": bool(site.settings.database_read),
        "connections": site.database.load.connections,
        "behind": site.finder.behind(position),
        "kept": kept,
        "kept_mb": size / 1_000_000,
        "cache_mb": site.settings.cache_mb,
        "workers": site.settings.workers,
    }
    return site.render(request, "admin.html", told)


PAGES = (Page("/admin", overview, Deed.ADMINISTER),)
