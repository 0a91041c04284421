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
    """Where a file of ours is served, under a name that changes with it, so that it may be kept for good."""
    return f"/static/{name}?v={hashlib.sha256((STATIC / name).read_bytes()).hexdigest()[:12]}"


class _VersionedStaticFiles(StaticFiles):
    """Our files: kept for good under the name that tells their content, asked for again under any other."""

    def file_response(self, *arguments: Any, **options: Any) -> Response:
        response = super().file_response(*arguments, **options)
        scope: Scope = next(argument for argument in (*arguments, *options.values()) if isinstance(argument, dict))
        is_versioned = isinstance(response, FileResponse) and scope["query_string"].startswith(b"v=")
        response.headers["cache-control"] = (
            f"public, max-age={_YEAR_SECONDS}, immutable" if is_versioned else "no-cache"
        )
        return response


def build_static_route() -> BaseRoute:
    """Where the files of ours are that pages load."""
    return Mount("/static", _VersionedStaticFiles(directory=STATIC), name="static")
