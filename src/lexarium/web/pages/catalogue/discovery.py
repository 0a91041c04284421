"""`robots.txt` and the sitemap, for search engines."""

from collections.abc import Iterable
from html import escape
from urllib.parse import urlencode

from starlette.responses import PlainTextResponse, Response

from lexarium.services.records import sitemap
from lexarium.web.pages.page import Page, PageRoute
from lexarium.web.site import get_base_url
from lexarium.web.template_filters import record_path

_SITEMAP_PATH = "/sitemap.xml"
_NAMESPACE = "http://www.sitemaps.org/schemas/sitemap/0.9"
# Pages that list, count or change what other pages show.
_DISALLOWED_PATHS = ("/api/", "/search", "/sign-in", "/propose", "/changes", "/annotate")


def show_robots(page: Page) -> Response:
    """Say which pages robots may read, and where the sitemap is."""
    rules = [f"Disallow: {path}" for path in _DISALLOWED_PATHS]
    return PlainTextResponse(
        "\n".join(["User-agent: *", *rules, f"Sitemap: {get_base_url(page.request)}{_SITEMAP_PATH}", ""])
    )


def show_sitemap(page: Page) -> Response:
    """List the pages of records, or the sitemaps that do if there are too many for one."""
    after = page.query.get("after")
    scope = page.scope
    with page.read() as snapshot:
        starts = sitemap.list_part_starts(snapshot, scope) if after is None else []
        if len(starts) > 1:
            paths = [f"{_SITEMAP_PATH}?{urlencode({'after': start})}" for start in starts]
            return _build_xml(page, "sitemapindex", "sitemap", paths)
        record_ids = sitemap.list_record_ids(snapshot, scope, after or "")
    return _build_xml(page, "urlset", "url", map(record_path, record_ids))


def _build_xml(page: Page, root: str, entry: str, paths: Iterable[str]) -> Response:
    base = get_base_url(page.request)
    entries = (f"<{entry}><loc>{escape(base + path, quote=False)}</loc></{entry}>\n" for path in paths)
    header = f'<?xml version="1.0" encoding="UTF-8"?>\n<{root} xmlns="{_NAMESPACE}">\n'
    return Response(f"{header}{''.join(entries)}</{root}>\n", media_type="application/xml")


ROUTES = (PageRoute("/robots.txt", show_robots), PageRoute(_SITEMAP_PATH, show_sitemap))
