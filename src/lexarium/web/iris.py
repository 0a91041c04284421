"""Records at their own addresses, which their IRIs are: as a page, JSON, JSON-LD or Turtle, as the client likes.

And what the IRIs of our own vocabulary name.
"""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import orjson
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from lexarium.domain.about import About
from lexarium.domain.changes import Change
from lexarium.domain.collections import COLLECTIONS
from lexarium.domain.errors import Moved, NotFound
from lexarium.exchange.formats import FORMATS
from lexarium.exchange.meanings import vocabulary
from lexarium.exchange.vocabulary import terms
from lexarium.service import looking
from lexarium.service.reading import reading
from lexarium.service.views import record_view
from lexarium.store import edges
from lexarium.store.backend import Snapshot, read_position
from lexarium.web.answers import conditions, encoding_headers, matches
from lexarium.web.encodings import chosen, encoded
from lexarium.web.negotiation import preferred
from lexarium.web.pages.site import SECURITY_HEADERS, Site
from lexarium.web.pages.term import record_page
from lexarium.web.problems import HttpProblem, respond

PATH = "/id"
_HEADERS = {"vary": "Accept, Accept-Encoding", "cache-control": "no-cache", "access-control-allow-origin": "*"}

Maker = Callable[[About, Snapshot, Change], bytes]


@dataclass(frozen=True)
class Form:
    """A form in which a record can be had."""

    media_type: str
    make: Maker


def _json(about: About, snapshot: Snapshot, change: Change) -> bytes:
    own = {"iri": about.iri(change.record), "relations": looking.related(snapshot, change)}
    return orjson.dumps(record_view(change) | own)


def _rdf(name: str) -> Form:
    format = FORMATS[name]  # noqa: A001

    def make(about: About, snapshot: Snapshot, change: Change) -> bytes:
        around = edges.related(snapshot, [change.record]).get(change.record, [])
        body: bytes = format.codec.one(
            format, about, change.whole(), [each for each in around if each.name is not None]
        )
        return body

    return Form(format.media_type, make)


FORMS = {
    "json": Form("application/json", _json),
    "jsonld": _rdf("jsonld"),
    "turtle": _rdf("skos"),
}
"""By what `?format=` calls them."""
_PAGE = "html"
MEDIA_TYPES = {_PAGE: "text/html", **{name: form.media_type for name, form in FORMS.items()}}
"""All that there are; whoever has no wish gets the first."""
_VOCABULARY_FORMS = {"turtle": FORMATS["skos"], "jsonld": FORMATS["jsonld"]}
_VOCABULARY_TYPES = {_PAGE: "text/html", **{name: each.media_type for name, each in _VOCABULARY_FORMS.items()}}


class Iris:
    """The addresses of a catalogue's records."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._database = site.database
        self._about = site.about

    def routes(self) -> list[Route]:
        """Their own, those that published papers name them by, and those of their schemes."""
        old = [name for name, collection in COLLECTIONS.items() if collection.on_valpha]
        return [
            Route(f"{PATH}/{{id:path}}", self.get),
            Route("/vocabulary", self.vocabulary),
            *(Route(f"/{name}{PATH}/{{id:path}}", self.redirect) for name in old),
            *(Route(f"/{name}", _to_collection) for name in COLLECTIONS),
        ]

    async def get(self, request: Request) -> Response:
        """A record in the form that suits the client."""
        name = _form(request, MEDIA_TYPES)
        identifier = request.path_params["id"]
        if name == _PAGE:
            return await run_in_threadpool(self._page, request, identifier)
        try:
            body = await run_in_threadpool(self._made, FORMS[name], identifier)
        except Moved as error:
            there = {**_HEADERS, "location": _address(error.survivor, request)}
            return respond(HttpProblem(308, str(error), merged_into=error.survivor), there)
        except NotFound as error:
            return respond(error, _HEADERS)
        return await _answered(request, FORMS[name].media_type, body)

    async def vocabulary(self, request: Request) -> Response:
        """What our own terms mean."""
        name = _form(request, _VOCABULARY_TYPES)
        if name == _PAGE:
            told = {"terms": list(terms()), "namespace": vocabulary(self._about)}
            return await run_in_threadpool(self._site.render, request, "vocabulary.html", told, 200, _HEADERS)
        format = _VOCABULARY_FORMS[name]  # noqa: A001
        body = await run_in_threadpool(format.codec.vocabulary, format, self._about)
        return await _answered(request, _VOCABULARY_TYPES[name], body)

    async def redirect(self, request: Request) -> Response:
        """From an old address to the record's own."""
        identifier = request.path_params["id"].rstrip("/")
        await run_in_threadpool(self._require, identifier)
        return RedirectResponse(_address(identifier, request), 303, {"access-control-allow-origin": "*"})

    def _made(self, form: Form, identifier: str) -> bytes:
        with self._database.read() as snapshot:
            change = looking.record(snapshot, identifier, read_position(snapshot).revision)
            return form.make(self._about, snapshot, change)

    def _require(self, identifier: str) -> None:
        with reading(self._database) as now:
            now.any(identifier)

    def _page(self, request: Request, identifier: str) -> Response:
        try:
            response = record_page(self._site, request, identifier)
        except NotFound as error:
            response = self._site.error_page(request, error)
        caching = response.headers["cache-control"]  # that of a page which is someone's own stands
        response.headers.update({**_HEADERS, "cache-control": caching})
        if response.status_code == 200 and caching == _HEADERS["cache-control"]:
            response.headers["etag"] = etag = f'"{hashlib.sha256(response.body).hexdigest()[:32]}"'
            _, if_none_match, _ = conditions(request.scope)
            if if_none_match is not None and matches(etag.encode(), if_none_match):
                return Response(status_code=304, headers={**_HEADERS, **SECURITY_HEADERS, "etag": etag})
        return response


async def _to_collection(request: Request) -> Response:
    """From the address that names a collection as a scheme to its page."""
    return RedirectResponse(f"/browse{request.url.path}", 303)


def _form(request: Request, offered: Mapping[str, str]) -> str:
    """The form that a request asks for. Raises a 406 that names all there are where it is none of them."""
    told = ", ".join(f"{name} ({kind})" for name, kind in offered.items())
    wanted = request.query_params.get("format")
    if wanted:
        if wanted not in offered:
            raise HttpProblem(406, f"The format {wanted!r} is none of {told}.", _HEADERS)
        return wanted
    by_type = {kind: name for name, kind in offered.items()}
    kind = preferred(",".join(request.headers.getlist("accept")), list(by_type))
    if kind is None:
        raise HttpProblem(406, f"This can be had as {told}.", _HEADERS)
    return by_type[kind]


async def _answered(request: Request, media_type: str, body: bytes) -> Response:
    accept, if_none_match, _ = conditions(request.scope)
    encoding = chosen(accept)
    etag = f'"{hashlib.sha256(body).hexdigest()[:32]}-{encoding}"'
    headers: dict[str, Any] = {**_HEADERS, **SECURITY_HEADERS, "etag": etag}
    if if_none_match is not None and matches(etag.encode(), if_none_match):
        return Response(status_code=304, headers=headers)
    headers |= {name.decode(): value.decode() for name, value in encoding_headers(encoding)}
    body = await run_in_threadpool(encoded, encoding, body)
    return Response(body, 200, headers, media_type)


def _address(identifier: str, request: Request) -> str:
    query = request.scope["query_string"].decode("latin-1")
    return f"{PATH}/{quote(identifier, safe='')}" + (f"?{query}" if query else "")
