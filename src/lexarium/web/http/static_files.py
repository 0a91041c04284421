"""Serve static files, compressed and with long-lived caching."""

import hashlib
import sys
from functools import cache
from os import PathLike, stat_result
from pathlib import Path

from starlette.responses import Response
from starlette.routing import BaseRoute, Mount
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from lexarium.web.http.conditional import encode_response

WEB_FOLDER = Path(__file__).parents[1]
STATIC = WEB_FOLDER / "static"
# Files of others. The names of their folders contain the version.
_VENDOR_PREFIX = "vendor/"
# Those of nearly every text; others are loaded where a page has their characters.
PRELOADED_FONTS = ("vendor/source-sans-3-5.3.0/latin.woff2", "vendor/source-serif-4-5.3.1/latin.woff2")
_YEAR_SECONDS = 31_536_000
_FONT_TYPE = "font/woff2"
# Explicit, because the standard library asks the operating system, which may not know all.
_MEDIA_TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml", ".woff2": _FONT_TYPE}
_MIN_COMPRESSED_BYTES = 512


@cache
def static_url(name: str) -> str:
    """Return the URL of a static file, with a version that changes with its content."""
    if name.startswith(_VENDOR_PREFIX):
        return f"/static/{name}"
    return f"/static/{name}?v={hashlib.sha256((STATIC / name).read_bytes()).hexdigest()[:12]}"


class _VersionedStaticFiles(StaticFiles):
    """Static files: immutable under a versioned URL, revalidated under any other."""

    def file_response(
        self, full_path: str | PathLike[str], stat_result: stat_result, scope: Scope, status_code: int = 200
    ) -> Response:
        path = Path(full_path)
        name = path.relative_to(STATIC.resolve()).as_posix()
        url = f"/static/{name}?{scope['query_string'].decode('latin-1')}"
        is_versioned = name.startswith(_VENDOR_PREFIX) or url == static_url(name)
        caching = f"public, max-age={_YEAR_SECONDS}, immutable" if is_versioned else "no-cache"
        media_type = _MEDIA_TYPES.get(path.suffix, "text/plain")
        return Response(path.read_bytes(), status_code, {"cache-control": caching}, media_type)

    async def get_response(self, path: str, scope: Scope) -> Response:
        response = await super().get_response(path, scope)
        # A font is compressed already.
        min_bytes = sys.maxsize if response.media_type == _FONT_TYPE else _MIN_COMPRESSED_BYTES
        return await encode_response(scope, response, min_bytes)


def build_static_route() -> BaseRoute:
    """Return the route of the files that pages load."""
    return Mount("/static", _VersionedStaticFiles(directory=STATIC), name="static")
