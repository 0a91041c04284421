"""Records at their IRIs, as a page, JSON, JSON-LD or Turtle by content negotiation."""

from collections.abc import Mapping
from dataclasses import replace
from urllib.parse import quote, urlencode

import orjson
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Match, Route
from starlette.types import Scope

from lexarium.domain.errors import LexariumError, NotFound, RecordMerged
from lexarium.domain.identifiers import MAIN_VOCABULARY, get_local_id, qualify_id, split_id
from lexarium.domain.schema.collections import MAIN_COLLECTIONS
from lexarium.domain.vocabulary import VOCABULARIES
from lexarium.formats.registry import FORMATS
from lexarium.services.record_serializer import Presentation, serialize_record
from lexarium.services.records import queries
from lexarium.services.records.lookup import find_latest_changes, get_latest_change, get_published
from lexarium.services.vocabularies.access import (
    AmbiguousId,
    find_record_id,
    get_scope_or_default,
)
from lexarium.web.http.callers import find_reader
from lexarium.web.http.conditional import encode_response, find_not_modified, hash_etag
from lexarium.web.http.languages import describe_languages, get_languages
from lexarium.web.http.negotiation import choose_format, list_formats
from lexarium.web.http.problems import HTTPProblem, problem_response, redirect_merged
from lexarium.web.pages.catalogue.record import show_history, show_record
from lexarium.web.pages.page import Page
from lexarium.web.site import SECURITY_HEADERS, Site, get_request_scope

RECORD_PATH = "/id"
_HISTORY = "/history"
_HEADERS = {"vary": "Accept, Accept-Encoding", "cache-control": "no-cache", "access-control-allow-origin": "*"}

# By the values of `?format=`; the first media type is the default.
_RDF_FORMATS = {"jsonld": FORMATS["jsonld"], "turtle": FORMATS["skos"]}
_HTML, _JSON = "html", "json"
MEDIA_TYPES = {
    _HTML: "text/html",
    _JSON: "application/json",
    **{name: rdf_format.media_type for name, rdf_format in _RDF_FORMATS.items()},
}


class EncodedIdRoute(Route):
    """Route of paths whose last segment is an id. It may contain slashes, which are encoded."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        is_one_segment = scope["raw_path"].removeprefix(b"%b/" % RECORD_PATH.encode()).count(b"/") == 0
        return super().matches(scope) if is_one_segment else (Match.NONE, {})


class RecordEndpoint:
    """Endpoints of records."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._database = site.database

    def routes(self) -> list[Route]:
        """Return the routes of records, of the URLs that published papers use, and of concept schemes."""
        old_collections = [name for name, collection in MAIN_COLLECTIONS.items() if collection.in_valpha]
        return [
            Route(f"{RECORD_PATH}/{{id:path}}", self.get_record),
            *(Route(f"/{name}{RECORD_PATH}/{{id:path}}", self.redirect_old_url) for name in old_collections),
            *(Route(f"/{name}", _redirect_to_collection) for name in MAIN_COLLECTIONS),
        ]

    def first_routes(self) -> list[Route]:
        """Return the routes that come before those of pages: records, and their history, which may be part of an id."""
        return [
            EncodedIdRoute(f"{RECORD_PATH}/{{id:path}}", self.get_record),
            Route(f"{RECORD_PATH}/{{id}}{_HISTORY}", self.get_history),
        ]

    async def get_record(self, request: Request) -> Response:
        """Return a record in the representation that the client prefers."""
        name = _negotiate(request, MEDIA_TYPES)
        local_id = request.path_params["id"] or request.query_params.get("iri", "")
        if name == _HTML:
            return await run_in_threadpool(self._render_page, request)
        try:
            reader = await find_reader(request, self._site.authenticator)
            scope = get_request_scope(request, reader, request.query_params.getlist("vocabulary"))
            record_id = await run_in_threadpool(self._database.run_read, find_record_id, local_id, scope)
            if get_local_id(record_id) != request.path_params["id"]:
                detail = f"{local_id} is an alternative ID of {get_local_id(record_id)}."
                raise HTTPProblem(308, detail, {**_HEADERS, "location": _record_url(record_id, request)})
            body, headers = await run_in_threadpool(self._render, request, name, record_id)
        except RecordMerged as error:
            url, merged_into = _record_url(error.survivor_id, request), get_local_id(error.survivor_id)
            return redirect_merged(error, url, _HEADERS, merged_into=merged_into)
        except (LexariumError, HTTPProblem) as error:
            return await run_in_threadpool(self._respond_to_error, request, error)
        return await _build_response(request, MEDIA_TYPES[name], body, headers)

    async def get_history(self, request: Request) -> Response:
        """Return the page of a record's history, or the record whose id is all of the path."""
        whole_id = f"{request.path_params['id']}{_HISTORY}"
        reader = await find_reader(request, self._site.authenticator)
        scope = get_request_scope(request, reader, request.query_params.getlist("vocabulary"))
        try:
            record_id = await run_in_threadpool(self._database.run_read, find_record_id, whole_id, scope)
            is_record = get_local_id(record_id) == whole_id
        except AmbiguousId:
            is_record = True
        except NotFound:
            is_record = False
        if not is_record:
            return await run_in_threadpool(show_history, Page(self._site, request))
        request.scope["path_params"] = {"id": whole_id}
        return await self.get_record(request)

    def _respond_to_error(self, request: Request, error: LexariumError | HTTPProblem) -> Response:
        """Return a problem document; list the records that an id may mean."""
        if isinstance(error, AmbiguousId):
            with self._database.read() as snapshot:
                changes = find_latest_changes(snapshot, error.record_ids)
            candidates = [
                {
                    "id": get_local_id(record_id),
                    "vocabulary": split_id(record_id)[0],
                    "name": changes[record_id].to_record().fields["name"],
                    "url": _record_url(record_id, request, is_qualified=True),
                }
                for record_id in error.record_ids
            ]
            return problem_response(HTTPProblem(300, str(error), _HEADERS, candidates=candidates))
        return problem_response(error, _HEADERS)

    async def redirect_old_url(self, request: Request) -> Response:
        """Redirect an old URL to that of the record."""
        [slug] = get_scope_or_default(None, ()).slugs
        record_id = qualify_id(slug, get_local_id(request.path_params["id"].rstrip("/")))

        def require_record() -> None:
            with self._database.read() as snapshot:
                get_latest_change(snapshot, record_id)

        await run_in_threadpool(require_record)
        return RedirectResponse(_record_url(record_id, request), 303, {"access-control-allow-origin": "*"})

    def _render(self, request: Request, name: str, record_id: str) -> tuple[bytes, dict[str, str]]:
        """Return the body of a record in a format, and the headers about its language."""
        with self._database.read() as snapshot:
            change = get_published(snapshot, None, record_id).change
            if name == _JSON:
                presentation = Presentation(self._site.get_base(request), get_languages(request))
                content = serialize_record(change, presentation)
                content["relations"] = queries.list_related(snapshot, change)
                return orjson.dumps(content), describe_languages(request, presentation.languages, [content])
            related_records = queries.find_related(snapshot, record_id)
        rdf_format, record = _RDF_FORMATS[name], change.to_record()
        vocabulary = replace(VOCABULARIES[record.collection.vocabulary], address=self._site.get_base(request))
        body: bytes = rdf_format.codec.render_record(rdf_format, vocabulary, record, related_records)
        return body, {}

    def _render_page(self, request: Request) -> Response:
        try:
            response = show_record(Page(self._site, request))
        except RecordMerged as error:
            response = redirect_merged(error, _record_url(error.survivor_id, request), {"cache-control": "no-cache"})
        except NotFound as error:
            response = self._site.error_page(request, error)
        caching = response.headers["cache-control"]  # stays: the page may be private
        vary = ", ".join(filter(None, ["Accept", response.headers.get("vary")]))
        response.headers.update({**_HEADERS, "vary": vary, "cache-control": caching})
        if response.status_code == 200 and caching == _HEADERS["cache-control"]:
            response.headers["etag"] = etag = hash_etag(response.body)
            headers = {**_HEADERS, **SECURITY_HEADERS, "vary": vary, "etag": etag}
            return find_not_modified(request.scope, headers) or response
        return response


async def _redirect_to_collection(request: Request) -> Response:
    return RedirectResponse(f"/browse{request.url.path}", 303)


def _negotiate(request: Request, offered: Mapping[str, str]) -> str:
    """Return the name of the format that a request asks for; raise a 406 where it is not offered."""
    requested = request.query_params.get("format")
    if not requested:
        return choose_format(request, offered, _HEADERS)
    if requested not in offered:
        raise HTTPProblem(406, f"Unknown format {requested!r}; available: {list_formats(offered)}.", _HEADERS)
    return requested


async def _build_response(
    request: Request, media_type: str, body: bytes, language_headers: Mapping[str, str] | None = None
) -> Response:
    headers = {**_HEADERS, **SECURITY_HEADERS, **(language_headers or {})}
    headers["vary"] = "Accept, Accept-Language" if "vary" in (language_headers or {}) else "Accept"
    return await encode_response(request.scope, Response(body, 200, headers, media_type))


def _record_url(record_id: str, request: Request, *, is_qualified: bool = False) -> str:
    """Return the URL of a record with the query of a request, which names the vocabulary if the id alone does not."""
    slug, local_id = split_id(record_id)
    query = [(name, value) for name, value in request.query_params.multi_items() if name not in ("iri", "vocabulary")]
    is_unique = slug == MAIN_VOCABULARY or local_id.partition(":")[0] in VOCABULARIES[slug].defines
    if is_qualified or not is_unique or "vocabulary" in request.query_params:
        query.append(("vocabulary", slug))
    return f"{RECORD_PATH}/{quote(local_id, safe='')}" + (f"?{urlencode(query)}" if query else "")
