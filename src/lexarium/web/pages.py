"""The pages that people see."""

from pathlib import Path

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.templating import Jinja2Templates

from lexarium import __version__
from lexarium.domain.collections import COLLECTIONS
from lexarium.service.reading import reading
from lexarium.store.database import Database
from lexarium.web.valpha.resources import PATH, RESOURCES

_FOLDER = Path(__file__).parent
SECURITY_HEADERS = {
    "content-security-policy": "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    "referrer-policy": "same-origin",
    "x-content-type-options": "nosniff",
}
_templates = Jinja2Templates(_FOLDER / "templates")


class Pages:
    """The pages of one catalogue."""

    def __init__(self, database: Database, title: str) -> None:
        self._database = database
        self._title = title

    def routes(self) -> list[BaseRoute]:
        """The addresses of pages and of what they load."""
        return [Route("/", self.home), Mount("/static", StaticFiles(directory=_FOLDER / "static"), name="static")]

    async def home(self, request: Request) -> Response:
        """What the catalogue holds, and where to go on."""
        counts = await run_in_threadpool(self._counts)
        context = {
            "title": self._title,
            "version": __version__,
            "counts": {name: counts.get(name, 0) for name in COLLECTIONS},
            "addresses": {name: f"{PATH}/{name}" for name in RESOURCES},
            "base": str(request.base_url).rstrip("/"),
        }
        return _templates.TemplateResponse(request, "home.html", context, headers=SECURITY_HEADERS)

    def _counts(self) -> dict[str, int]:
        with reading(self._database) as now:
            return now.counts()
