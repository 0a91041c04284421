"""The guide: how people and programs use the catalogue."""

from starlette.requests import Request
from starlette.responses import Response

from lexarium.web.pages.page_routes import PageRoute
from lexarium.web.pages.site import Site


def show_guide(site: Site, request: Request) -> Response:
    """All of it, on one page."""
    return site.render(request, "guide.html", {})


ROUTES = (PageRoute("/guide", show_guide),)
