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

from lexarium.domain.change import Change
from lexarium.domain.errors import NotFound, RecordMerged
from lexarium.domain.schema.collections import COLLECTIONS
from lexarium.domain.vocabulary import Vocabulary
from lexarium.formats.rdf.predicates import lexarium_namespace, list_lexarium_terms
from lexarium.formats.registry import FORMATS
from lexarium.services.records import queries
from lexarium.services.records.valpha_queries import open_valpha_reader
from lexarium.services.serializers import serialize_record
from lexarium.store import relations
from lexarium.store.position import Snapshot, read_position
from lexarium.web.http.conditional import etag_matches, read_conditional_headers
from lexarium.web.http.encodings import choose_encoding, encode_body, encoding_headers
from lexarium.web.http.negotiation import choose_media_type
from lexarium.web.http.problems import HTTPProblem, problem_response
from lexarium.web.pages.catalogue.record import render_record
from lexarium.web.pages.site import SECURITY_HEADERS, Site

RECORD_PATH = "/id"
_HEADERS = {"vary": "Accept, Accept-Encoding", "cache-control": "no-cache", "access-control-allow-origin": "*"}

Renderer = Callable[[Vocabulary, Snapshot, Change], bytes]


@dataclass(frozen=True)
class Representation:
    """A form in which a record can be had."""

    media_type: str
    render: Renderer


def _render_json(vocabulary: Vocabulary, snapshot: Snapshot, change: Change) -> bytes:
    extra_fields = {"iri": vocabulary.record_iri(change.record_id), "relations": queries.list_related(snapshot, change)}
    return orjson.dumps(serialize_record(change) | extra_fields)


def _build_rdf(name: str) -> Representation:
    format = FORMATS[name]  # noqa: A001

    def render(vocabulary: Vocabulary, snapshot: Snapshot, change: Change) -> bytes:
        related_records = relations.find_related(snapshot, [change.record_id]).get(change.record_id, [])
        body: bytes = format.codec.render_record(
            format,
            vocabulary,
            change.to_record(),
            [related_record for related_record in related_records if related_record.name is not None],
        )
        return body

    return Representation(format.media_type, render)


REPRESENTATIONS = {
    "json": Representation("application/json", _render_json),
    "jsonld": _build_rdf("jsonld"),
    "turtle": _build_rdf("skos"),
}
"""By what `?format=` calls them."""
_HTML = "html"
MEDIA_TYPES = {
    _HTML: "text/html",
    **{name: representation.media_type for name, representation in REPRESENTATIONS.items()},
}
"""All that there are; whoever has no wish gets the first."""
_PREDICATE_FORMATS = {"turtle": FORMATS["skos"], "jsonld": FORMATS["jsonld"]}
_PREDICATE_MEDIA_TYPES = {
    _HTML: "text/html",
    **{name: rdf_format.media_type for name, rdf_format in _PREDICATE_FORMATS.items()},
}


class RecordEndpoint:
    """The addresses of a catalogue's records."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._database = site.database
        self._vocabulary = site.vocabulary

    def routes(self) -> list[Route]:
        """Their own, those that published papers name them by, and those of their schemes."""
        old_collections = [name for name, collection in COLLECTIONS.items() if collection.in_valpha]
        return [
            Route(f"{RECORD_PATH}/{{id:path}}", self.get_record),
            Route("/vocabulary", self.get_predicates),
            *(Route(f"/{name}{RECORD_PATH}/{{id:path}}", self.redirect_old_url) for name in old_collections),
            *(Route(f"/{name}", _redirect_to_collection) for name in COLLECTIONS),
        ]

    async def get_record(self, request: Request) -> Response:
        """A record in the form that suits the client."""
        name = _negotiate(request, MEDIA_TYPES)
        record_id = request.path_params["id"]
        if name == _HTML:
            return await run_in_threadpool(self._render_page, request, record_id)
        try:
            body = await run_in_threadpool(self._render, REPRESENTATIONS[name], record_id)
        except RecordMerged as error:
            redirect_headers = {**_HEADERS, "location": _record_url(error.survivor_id, request)}
            return problem_response(HTTPProblem(308, str(error), merged_into=error.survivor_id), redirect_headers)
        except NotFound as error:
            return problem_response(error, _HEADERS)
        return await _build_response(request, REPRESENTATIONS[name].media_type, body)

    async def get_predicates(self, request: Request) -> Response:
        """What our own terms mean."""
        name = _negotiate(request, _PREDICATE_MEDIA_TYPES)
        if name == _HTML:
            context = {"terms": list(list_lexarium_terms()), "namespace": lexarium_namespace(self._vocabulary)}
            return await run_in_threadpool(self._site.render, request, "vocabulary.html", context, 200, _HEADERS)
        format = _PREDICATE_FORMATS[name]  # noqa: A001
        body = await run_in_threadpool(format.codec.render_vocabulary, format, self._vocabulary)
        return await _build_response(request, _PREDICATE_MEDIA_TYPES[name], body)

    async def redirect_old_url(self, request: Request) -> Response:
        """From an old address to the record's own."""
        record_id = request.path_params["id"].rstrip("/")
        await run_in_threadpool(self._require_record, record_id)
        return RedirectResponse(_record_url(record_id, request), 303, {"access-control-allow-origin": "*"})

    def _render(self, representation: Representation, record_id: str) -> bytes:
        with self._database.read() as snapshot:
            change = queries.get_record_at(snapshot, record_id, read_position(snapshot).revision)
            return representation.render(self._vocabulary, snapshot, change)

    def _require_record(self, record_id: str) -> None:
        with open_valpha_reader(self._database) as reader:
            reader.get_row(record_id)

    def _render_page(self, request: Request, record_id: str) -> Response:
        try:
            response = render_record(self._site, request, record_id)
        except NotFound as error:
            response = self._site.error_page(request, error)
        caching = response.headers["cache-control"]  # that of a page which is someone's own stands
        response.headers.update({**_HEADERS, "cache-control": caching})
        if response.status_code == 200 and caching == _HEADERS["cache-control"]:
            response.headers["etag"] = etag = f'"{hashlib.sha256(response.body).hexdigest()[:32]}"'
            _, if_none_match, _ = read_conditional_headers(request.scope)
            if if_none_match is not None and etag_matches(etag.encode(), if_none_match):
                return Response(status_code=304, headers={**_HEADERS, **SECURITY_HEADERS, "etag": etag})
        return response


async def _redirect_to_collection(request: Request) -> Response:
    """From the address that names a collection as a scheme to its page."""
    return RedirectResponse(f"/browse{request.url.path}", 303)


def _negotiate(request: Request, offered: Mapping[str, str]) -> str:
    """The form that a request asks for. Raises a 406 that names all there are where it is none of them."""
    choices = ", ".join(f"{name} ({media_type})" for name, media_type in offered.items())
    requested = request.query_params.get("format")
    if requested:
        if requested not in offered:
            raise HTTPProblem(406, f"The format {requested!r} is none of {choices}.", _HEADERS)
        return requested
    by_type = {media_type: name for name, media_type in offered.items()}
    media_type = choose_media_type(",".join(request.headers.getlist("accept")), list(by_type))
    if media_type is None:
        raise HTTPProblem(406, f"This can be had as {choices}.", _HEADERS)
    return by_type[media_type]


async def _build_response(request: Request, media_type: str, body: bytes) -> Response:
    accept_encoding, if_none_match, _ = read_conditional_headers(request.scope)
    encoding = choose_encoding(accept_encoding)
    etag = f'"{hashlib.sha256(body).hexdigest()[:32]}-{encoding}"'
    headers: dict[str, Any] = {**_HEADERS, **SECURITY_HEADERS, "etag": etag}
    if if_none_match is not None and etag_matches(etag.encode(), if_none_match):
        return Response(status_code=304, headers=headers)
    headers |= {name.decode(): value.decode() for name, value in encoding_headers(encoding)}
    body = await run_in_threadpool(encode_body, encoding, body)
    return Response(body, 200, headers, media_type)


def _record_url(record_id: str, request: Request) -> str:
    query = request.scope["query_string"].decode("latin-1")
    return f"{RECORD_PATH}/{quote(record_id, safe='')}" + (f"?{query}" if query else "")
