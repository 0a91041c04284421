"""The pages that people see."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.templating import Jinja2Templates

from lexarium import __version__
from lexarium.domain.about import About
from lexarium.domain.changes import Change
from lexarium.domain.collections import COLLECTIONS
from lexarium.domain.relations import RELATIONS
from lexarium.domain.stamps import text_of
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


def record_page(
    about: About, change: Change, related: Sequence[Mapping[str, str]], class_of: tuple[str, str] | None
) -> bytes:
    """A record, with what `looking` tells of its relations and its class."""
    whole = change.whole()
    grouped: dict[str, list[Mapping[str, str]]] = {}
    for item in related:
        relation = RELATIONS[item["relation"]]
        grouped.setdefault(relation.label if item["direction"] == "out" else relation.inverse, []).append(item)
    return _rendered(
        "record.html",
        about=about,
        id=whole.id,
        iri=about.iri(whole.id),
        collection=change.collection,
        name=whole.fields["name"],
        definition=whole.definition,
        aliases=whole.alias_list,
        sources=whole.sources,
        class_of=class_of,
        related=grouped,
        version=change.version,
        updated=text_of(change.at),
    )


def refusal_page(about: About, told: str, stand_in: str | None) -> bytes:
    """That there is no such record, or not any more, and what to use instead."""
    return _rendered("refusal.html", about=about, told=told, stand_in=stand_in)


def _rendered(template: str, **values: Any) -> bytes:
    return _templates.get_template(template).render(**values).encode()


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
