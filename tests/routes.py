"""Every address of the service, as the application itself has them."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from starlette.routing import Mount, Route

from lexarium.settings import Settings
from lexarium.store.database import Database
from lexarium.web.app import make_app
from lexarium.web.lazy import Lazy

METHODS = ("GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE")


@dataclass(frozen=True)
class Address:
    """Where something answers, and to which methods as far as its route tells."""

    path: str
    methods: frozenset[str]

    def filled(self, **parts: str) -> str:
        """It with something in every place, of any kind."""
        path = self.path.replace(":path}", "}")
        return path.format_map(defaultdict(lambda: "x", parts))


def every_address(url: str) -> list[Address]:
    """All addresses that an application of this database has."""
    database = Database(url)
    found = {(each.path, each.methods): each for each in _addresses(make_app(Settings(database=url), database))}
    database.close()
    return list(found.values())


def _addresses(app: Any) -> Iterator[Address]:
    while not hasattr(app, "routes"):
        app = app._make(import_module(app._module)) if isinstance(app, Lazy) else app._app
    for route in app.routes:
        if isinstance(route, Mount):
            yield Address(f"{route.path}/{{path}}", frozenset({"GET", "HEAD"}))
        elif isinstance(route, Route) and isinstance(route.endpoint, Lazy):
            yield from _addresses(route.endpoint)
        elif isinstance(route, Route):
            yield Address(route.path, frozenset(route.methods or METHODS))
        else:  # a router that FastAPI has included
            for each in route.original_router.routes:
                yield Address(route.include_context.path_for(each), frozenset(each.methods))
