"""List all routes of the application."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from starlette.applications import Starlette
from starlette.routing import Mount, Route

from lexarium.settings import Settings
from lexarium.store.database import Database
from lexarium.web.app import create_app
from lexarium.web.middleware.lazy_app import LazyApp

METHODS = ("GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE")


@dataclass(frozen=True)
class RoutePattern:
    """Path pattern and methods of a route."""

    path: str
    methods: frozenset[str]

    def fill_path(self, **parts: str) -> str:
        """Return the path with every parameter filled in, by default with `x`."""
        path = self.path.replace(":path}", "}")
        return path.format_map(defaultdict(lambda: "x", parts))


def list_routes(url: str) -> list[RoutePattern]:
    """Return all routes of an application on a database."""
    database = Database(url)
    routes = {
        (route.path, route.methods): route for route in _iter_routes(create_app(Settings(database=url), database))
    }
    database.close()
    return list(routes.values())


def _iter_routes(app: Any) -> Iterator[RoutePattern]:
    while not hasattr(app, "routes"):
        app = app._build() if isinstance(app, LazyApp) else app._app
    for route in app.routes:
        if isinstance(route, Mount):
            yield RoutePattern(f"{route.path}/{{path}}", frozenset({"GET", "HEAD"}))
        elif isinstance(route, Route) and isinstance(route.endpoint, LazyApp):
            yield from _iter_routes(route.endpoint)
        else:
            yield RoutePattern(route.path, frozenset(route.methods or METHODS))
    if isinstance(app, Starlette):
        yield from _iter_routes(app.router.default)
