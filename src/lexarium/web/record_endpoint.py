"""Records at their IRIs, as a page, JSON, JSON-LD or Turtle by content negotiation; and our own predicates."""

from collections.abc import Mapping
from urllib.parse import quote

import orjson
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from lexarium.domain.errors import NotFound, RecordMerged
from lexarium.domain.schema.collections import COLLECTIONS
from lexarium.domain.vocabulary import Vocabulary
from lexarium.formats.rdf.predicates import lexarium_namespace, list_lexarium_terms
from lexarium.formats.registry import FORMATS
from lexarium.services.records import queries
from lexarium.services.records.catalogue_state import get_position
from lexarium.services.records.lookup import get_latest_change
from lexarium.services.serializers import serialize_record
from lexarium.web.http.conditional import encode_response, find_not_modified, hash_etag
from lexarium.web.http.negotiation import choose_format, list_formats
from lexarium.web.http.problems import HTTPProblem, problem_response, redirect_merged
from lexarium.web.pages.catalogue.record import show_record
from lexarium.web.pages.filters import record_path
from lexarium.web.pages.page import Page
from lexarium.web.pages.site import SECURITY_HEADERS, Site

RECORD_PATH = "/id"
_HEADERS = {"vary": "Accept, Accept-Encoding", "cache-control": "no-cache", "access-control-allow-origin": "*"}

# By the values of `?format=`; the first media type is the default.
_RDF_FORMATS = {"jsonld": FORMATS["jsonld"], "turtle": FORMATS["skos"]}
_HTML, _JSON = "html", "json"
MEDIA_TYPES = {
    _HTML: "text/html",
    _JSON: "application/json",
    **{name: rdf_format.media_type for name, rdf_format in _RDF_FORMATS.items()},
}
_PREDICATE_MEDIA_TYPES = {name: MEDIA_TYPES[name] for name in (_HTML, "turtle", "jsonld")}


class RecordEndpoint:
    """Endpoints of records and predicates."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._database = site.database

    @property
    def _vocabulary(self) -> Vocabulary:
        return self._site.vocabulary

    def routes(self) -> list[Route]:
        """Return the routes of records, of the URLs that published papers use, and of concept schemes."""
        old_collections = [name for name, collection in COLLECTIONS.items() if collection.in_valpha]
        return [
            Route(f"{RECORD_PATH}/{{id:path}}", self.get_record),
            Route("/vocabulary", self.get_predicates),
            *(Route(f"/{name}{RECORD_PATH}/{{id:path}}", self.redirect_old_url) for name in old_collections),
            *(Route(f"/{name}", _redirect_to_collection) for name in COLLECTIONS),
        ]

    async def get_record(self, request: Request) -> Response:
        """Return a record in the representation that the client prefers."""
        name = _negotiate(request, MEDIA_TYPES)
        record_id = request.path_params["id"]
        if name == _HTML:
            return await run_in_threadpool(self._render_page, request)
        try:
            body = await run_in_threadpool(self._render, name, record_id)
        except RecordMerged as error:
            survivor_url = _record_url(error.survivor_id, request)
            return redirect_merged(error, survivor_url, _HEADERS, merged_into=error.survivor_id)
        except NotFound as error:
            return problem_response(error, _HEADERS)
        return await _build_response(request, MEDIA_TYPES[name], body)

    async def get_predicates(self, request: Request) -> Response:
        """Return the definitions of our own predicates."""
        name = _negotiate(request, _PREDICATE_MEDIA_TYPES)
        if name == _HTML:
            context = {"terms": list(list_lexarium_terms()), "namespace": lexarium_namespace(self._vocabulary)}
            return await run_in_threadpool(self._site.render, request, "vocabulary.html", context, 200, _HEADERS)
        rdf_format = _RDF_FORMATS[name]
        body = await run_in_threadpool(rdf_format.codec.render_vocabulary, rdf_format, self._vocabulary)
        return await _build_response(request, MEDIA_TYPES[name], body)

    async def redirect_old_url(self, request: Request) -> Response:
        """Redirect an old URL to that of the record."""
        record_id = request.path_params["id"].rstrip("/")

        def require_record() -> None:
            with self._database.read() as snapshot:
                get_latest_change(snapshot, record_id)

        await run_in_threadpool(require_record)
        return RedirectResponse(_record_url(record_id, request), 303, {"access-control-allow-origin": "*"})

    def _render(self, name: str, record_id: str) -> bytes:
        with self._database.read() as snapshot:
            change = queries.get_record_at(snapshot, record_id, get_position(snapshot).revision)
            if name == _JSON:
                iri, related = self._vocabulary.record_iri(record_id), queries.list_related(snapshot, change)
                return orjson.dumps(serialize_record(change) | {"iri": iri, "relations": related})
            related_records = queries.find_related(snapshot, record_id)
        rdf_format, record = _RDF_FORMATS[name], change.to_record()
        body: bytes = rdf_format.codec.render_record(rdf_format, self._vocabulary, record, related_records)
        return body

    def _render_page(self, request: Request) -> Response:
        try:
            response = show_record(Page(self._site, request))
        except RecordMerged as error:
            response = redirect_merged(error, record_path(error.survivor_id), {"cache-control": "no-cache"})
        except NotFound as error:
            response = self._site.error_page(request, error)
        caching = response.headers["cache-control"]  # stays: the page may be private
        response.headers.update({**_HEADERS, "cache-control": caching})
        if response.status_code == 200 and caching == _HEADERS["cache-control"]:
            response.headers["etag"] = etag = hash_etag(response.body)
            headers = {**_HEADERS, **SECURITY_HEADERS, "etag": etag}
            return find_not_modified(request.scope, headers) or response
        return response


async def _redirect_to_collection(request: Request) -> Response:
    return RedirectResponse(f"/browse{request.url.path}", 303)


def _negotiate(request: Request, offered: Mapping[str, str]) -> str:
    """Return the name of the format that a request asks for; raise a 406 where it is not offered."""
    requested = request.query_params.get("format")
    if not requested:
        return choose_format(request, offered, "This", _HEADERS)
    if requested not in offered:
        raise HTTPProblem(406, f"The format {requested!r} is none of {list_formats(offered)}.", _HEADERS)
    return requested


async def _build_response(request: Request, media_type: str, body: bytes) -> Response:
    headers = {**_HEADERS, **SECURITY_HEADERS, "vary": "Accept"}
    return await encode_response(request.scope, Response(body, 200, headers, media_type))


def _record_url(record_id: str, request: Request) -> str:
    query = request.scope["query_string"].decode("latin-1")
    return f"{RECORD_PATH}/{quote(record_id, safe='')}" + (f"?{query}" if query else "")
