"""The v1 application: a route for each path of the operations, the OpenAPI document and its page."""

from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import fields
from functools import cache
from typing import Any
from urllib.parse import quote

import orjson
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, Router
from starlette.types import ASGIApp, Receive, Scope, Send

from lexarium.domain.errors import LexariumError, RecordMerged
from lexarium.domain.schema.collections import Collection
from lexarium.web.http.conditional import encode_response
from lexarium.web.http.problems import HTTPProblem, problem_response, redirect_merged
from lexarium.web.http.streaming import EventStreams
from lexarium.web.middleware.access_gate import AccessGate
from lexarium.web.pages.site import Site
from lexarium.web.v1.operation import MIN_COMPRESSED_BYTES, RequestContext, Services
from lexarium.web.v1.operations import iter_operations
from lexarium.web.v1.responses import V1_PATH

_ID_SEGMENT = len(f"{V1_PATH}/collection/".split("/")) - 1
"""Index of the record's identifier among the segments of a path."""
_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD")
_SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
_CORS_HEADERS = (
    (b"access-control-allow-origin", b"*"),
    (b"access-control-expose-headers", b"Allow, ETag, Link, Location, RateLimit, RateLimit-Policy, Retry-After"),
)
_PREFLIGHT_HEADERS = {
    "access-control-allow-methods": "GET, HEAD, OPTIONS",
    "access-control-allow-headers": "Accept, Cache-Control, If-None-Match, Last-Event-ID",
    "access-control-max-age": "86400",
}
"""Pages of other origins may read, and send no token."""

Handler = Callable[[RequestContext], Awaitable[Response]]


def create_v1_app(site: Site, gate: AccessGate, event_streams: EventStreams) -> ASGIApp:
    """Return the application."""
    shared = {item.name: getattr(site, item.name) for item in fields(site)}
    services = Services(**shared, gate=gate, event_streams=event_streams)

    @cache
    def load_document() -> dict[str, Any]:
        from lexarium.web.v1.openapi.document import build_document  # noqa: PLC0415 - takes long to load

        return build_document(site.settings.title)

    async def get_document(context: RequestContext) -> Response:
        body = await run_in_threadpool(lambda: orjson.dumps(load_document()))
        response = Response(body, media_type="application/json")
        return await encode_response(context.request.scope, response, MIN_COMPRESSED_BYTES)

    def render_reference(request: Request) -> Response:
        from lexarium.web.v1.openapi import reference_page  # noqa: PLC0415 - requested rarely

        return reference_page.respond(site, request, load_document)

    async def get_reference(context: RequestContext) -> Response:
        return await run_in_threadpool(render_reference, context.request)

    routes = [
        *_build_routes(services),
        _PathRoute("/openapi.json", services, {"GET": get_document}),
        _PathRoute("/docs", services, {"GET": get_reference}),
    ]
    return Router(routes, redirect_slashes=False, default=_respond_not_found)


def _build_routes(services: Services) -> Iterator[Route]:
    """Yield a route for each path, in the order of the table."""
    paths: dict[str, tuple[Collection | None, dict[str, Handler]]] = {}
    for _, path, operation, collection in iter_operations():
        _, handlers = paths.setdefault(V1_PATH + path, (collection, {}))
        handlers[operation.method] = operation.respond
    for path, (collection, handlers) in paths.items():
        yield _PathRoute(path, services, handlers, collection)


class _PathRoute(Route):
    """Route of one path, which has a handler for each method, and answers all others too."""

    def __init__(
        self, path: str, services: Services, handlers: Mapping[str, Handler], collection: Collection | None = None
    ) -> None:
        super().__init__(path, self, methods=list(handlers))
        self._services = services
        self._handlers = handlers
        self._collection = collection

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        context = RequestContext(self._services, Request(scope, receive, send), self._collection)
        handler = self._handlers.get("GET" if scope["method"] == "HEAD" else scope["method"], self._respond_to_method)
        try:
            response = await handler(context)
        except (HTTPProblem, LexariumError) as error:
            response = _build_error_response(context.request, error)
        except Exception as error:
            await self._respond(context, problem_response(error), send)
            raise
        await self._respond(context, response, send)

    async def _respond(self, context: RequestContext, response: Response, send: Send) -> None:
        if context.rate_limit_headers:
            response.headers.update(context.rate_limit_headers)
        await _send(response, context.request.scope, context.request.receive, send)

    async def _respond_to_method(self, context: RequestContext) -> Response:
        """Respond to OPTIONS, or with a 405 to another method that the path does not have."""
        request = context.request
        allow = ", ".join([*(method for method in _METHODS if method in (self.methods or ())), "OPTIONS"])
        if request.method != "OPTIONS":
            raise HTTPProblem(405, f"{request.method} is not allowed here; {allow} are.", {"allow": allow})
        is_preflight = "access-control-request-method" in request.headers
        return Response(status_code=204, headers={"allow": allow, **(_PREFLIGHT_HEADERS if is_preflight else {})})


async def _send(response: Response, scope: Scope, receive: Receive, send: Send) -> None:
    """Send a response, which pages of any origin may read, except what needs a token."""
    if scope["method"] in _SAFE_METHODS and not any(name == b"authorization" for name, _ in scope["headers"]):
        response.raw_headers.extend(_CORS_HEADERS)
    await response(scope, receive, send)


async def _respond_not_found(scope: Scope, receive: Receive, send: Send) -> None:
    await _send(problem_response(HTTPException(404)), scope, receive, send)


def _build_error_response(request: Request, error: Exception) -> Response:
    """Redirect the read of a merged record to its survivor. The sender of a write must see what they change."""
    if not isinstance(error, RecordMerged) or request.method not in _SAFE_METHODS:
        return problem_response(error)
    segments = request.scope["raw_path"].decode("ascii").split("/")
    segments[_ID_SEGMENT] = quote(error.survivor_id, safe="")
    query = request.scope["query_string"].decode("latin-1")
    url = "/".join(segments) + (f"?{query}" if query else "")
    return redirect_merged(error, url, {"cache-control": "no-cache"}, merged_into=error.survivor_id)
