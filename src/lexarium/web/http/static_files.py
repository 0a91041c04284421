"""Serve static files with long-lived caching."""

import hashlib
from functools import cache
from pathlib import Path
from typing import Any

from starlette.responses import FileResponse, Response
from starlette.routing import BaseRoute, Mount
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

WEB_FOLDER = Path(__file__).parents[1]
STATIC = WEB_FOLDER / "static"
_YEAR_SECONDS = 31_536_000


@cache
def static_url(name: str) -> str:
    """Return the URL of a static file, with a version that changes with its content."""
    return f"/static/{name}?v={hashlib.sha256((STATIC / name).read_bytes()).hexdigest()[:12]}"


class _VersionedStaticFiles(StaticFiles):
    """Static files: immutable under a versioned URL, revalidated under any other."""

    def file_response(self, *arguments: Any, **options: Any) -> Response:
        response = super().file_response(*arguments, **options)
        scope: Scope = next(argument for argument in (*arguments, *options.values()) if isinstance(argument, dict))
        is_versioned = isinstance(response, FileResponse) and scope["query_string"].startswith(b"v=")
        caching = f"public, max-age={_YEAR_SECONDS}, immutable" if is_versioned else "no-cache"
        response.headers["cache-control"] = caching
        return response


def build_static_route() -> BaseRoute:
    """Return the route of the files that pages load."""
    return Mount("/static", _VersionedStaticFiles(directory=STATIC), name="static")
