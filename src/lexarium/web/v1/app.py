"""The v1 application: a route for each path of the operations, the OpenAPI document and its page."""

from collections.abc import Iterator
from functools import cache
from importlib import import_module
from typing import Any
from urllib.parse import quote

import orjson
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from lexarium.domain.errors import LexariumError, RecordMerged
from lexarium.domain.schema.collections import COLLECTIONS, Collection
from lexarium.services.access.authentication import Authenticator
from lexarium.settings import Settings
from lexarium.web.http.problems import HTTPProblem, handle_error, problem_response
from lexarium.web.http.streaming import EventStreams
from lexarium.web.middleware.access_gate import AccessGate
from lexarium.web.pages.site import Site
from lexarium.web.v1.compression import CompressionMiddleware
from lexarium.web.v1.operation import Operation, RequestContext, Services
from lexarium.web.v1.operations import OPERATIONS
from lexarium.web.v1.responses import V1_PATH

_ID_SEGMENT = len(f"{V1_PATH}/collection/".split("/")) - 1
"""Index of the record's identifier among the segments of a path."""
_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD")
_PREFLIGHT_HEADERS = {
    "access-control-allow-methods": "GET, HEAD, OPTIONS",
    "access-control-allow-headers": "Accept, Cache-Control, If-None-Match, Last-Event-ID",
    "access-control-max-age": "86400",
}
"""Pages of other origins may read, and send no token."""


def create_v1_app(
    site: Site, authenticator: Authenticator, gate: AccessGate, streams: EventStreams, settings: Settings
) -> ASGIApp:
    """Return the application."""
    services = Services(
        site.database, authenticator, gate, site.limits, streams, settings, site.record_search, site.annotator_cache
    )  # fmt: skip

    @cache
    def load_document() -> dict[str, Any]:
        # Imported here: it is requested rarely, and what it describes takes long to build.
        document: dict[str, Any] = import_module("lexarium.web.v1.openapi.document").build_document(settings.title)
        return document

    def get_document(request: Request) -> Response:
        return Response(orjson.dumps(load_document()), media_type="application/json")

    def get_reference(request: Request) -> Response:
        page = import_module("lexarium.web.v1.openapi.reference_page")
        response: Response = page.respond(site, request, load_document)
        return response

    app = Starlette(
        routes=[
            *build_routes(services),
            Route("/openapi.json", get_document),
            Route("/docs", get_reference),
        ],
        exception_handlers={
            **dict.fromkeys([HTTPProblem, LexariumError, Exception], handle_error),
            HTTPException: _handle_http_exception,
            RecordMerged: _redirect_merged,
        },
    )
    app.router.redirect_slashes = False
    return CompressionMiddleware(app)


def build_routes(services: Services) -> Iterator[Route]:
    """Yield a route for each path, in the order of the table."""
    endpoints: dict[str, _Endpoint] = {}
    for operation in OPERATIONS:
        for collection in COLLECTIONS.values() if operation.on_collection else (None,):
            path = operation.path if collection is None else operation.path.replace("{collection}", collection.name)
            endpoint = endpoints.setdefault(V1_PATH + path, _Endpoint(services, collection))
            endpoint.operations[operation.method] = operation
    for path, endpoint in endpoints.items():
        yield Route(path, endpoint, methods=list(endpoint.operations))


class _Endpoint:
    """ASGI application of one path, which has an operation for each method."""

    def __init__(self, services: Services, collection: Collection | None) -> None:
        self._services = services
        self._collection = collection
        self.operations: dict[str, Operation] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        operation = self.operations[scope["method"]]
        if not operation.cacheable:
            scope["state"]["cacheable"] = False
        request = Request(scope, receive, send)
        response = await operation.respond(RequestContext(self._services, request, self._collection))
        await response(scope, receive, send)


async def _handle_http_exception(request: Request, error: Exception) -> Response:
    if isinstance(error, HTTPException) and error.status_code == 405:
        return _respond_to_method(request)
    return await handle_error(request, error)


def _respond_to_method(request: Request) -> Response:
    """Respond to OPTIONS, or with a 405 to another method that the path does not have."""
    methods = request.scope["route"].methods
    allow = ", ".join([*(method for method in _METHODS if method in methods), "OPTIONS"])
    if request.method != "OPTIONS":
        return problem_response(
            HTTPProblem(405, f"{request.method} is not allowed here; {allow} are.", {"allow": allow})
        )
    is_preflight = "access-control-request-method" in request.headers
    return Response(status_code=204, headers={"allow": allow, **(_PREFLIGHT_HEADERS if is_preflight else {})})


async def _redirect_merged(request: Request, error: Exception) -> Response:
    """Redirect a read to the record that survived; refuse a write, whose sender must see what they change."""
    assert isinstance(error, RecordMerged)
    if request.method != "GET":
        return problem_response(error)
    segments = request.scope["raw_path"].decode("ascii").split("/")
    segments[_ID_SEGMENT] = quote(error.survivor_id, safe="")
    query = request.scope["query_string"].decode("latin-1")
    headers = {"location": "/".join(segments) + (f"?{query}" if query else ""), "cache-control": "no-cache"}
    return problem_response(HTTPProblem(308, str(error), headers, merged_into=error.survivor_id))
