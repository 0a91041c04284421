"""The v1 application: a route for each path of the operations, the OpenAPI document and its page."""

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from urllib.parse import quote

from starlette.concurrency import run_in_threadpool
from starlette.convertors import StringConvertor, register_url_convertor
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, Router
from starlette.types import ASGIApp, Receive, Scope, Send

from lexarium.domain.errors import LexariumError, RecordMerged
from lexarium.domain.schema.collections import COLLECTIONS
from lexarium.web.http.conditional import encode_response
from lexarium.web.http.problems import HTTPProblem, problem_response, redirect_merged
from lexarium.web.http.streaming import EventStreams
from lexarium.web.middleware.access_gate import AccessGate
from lexarium.web.pages.site import Site
from lexarium.web.v1.operation import MIN_COMPRESSED_BYTES, RequestContext
from lexarium.web.v1.operations import OPERATIONS
from lexarium.web.v1.responses import V1_PATH, OrjsonResponse

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
"""Scripts of other origins may read, but not send a token."""

Handler = Callable[[RequestContext], Awaitable[Response]]


def create_v1_app(site: Site, gate: AccessGate, event_streams: EventStreams) -> ASGIApp:
    """Return the application."""
    paths: dict[str, dict[str, Handler]] = {}
    for operation in OPERATIONS:
        paths.setdefault(V1_PATH + operation.path, {})[operation.method] = operation.respond
    paths["/openapi.json"] = {"GET": _get_document}
    paths["/docs"] = {"GET": _get_reference}
    create_context = partial(RequestContext, site, gate, event_streams)
    routes = [
        _PathRoute(path, _PathEndpoint(create_context, handlers), methods=list(handlers))
        for path, handlers in paths.items()
    ]
    return Router(routes, redirect_slashes=False, default=_respond_not_found)


async def _get_document(context: RequestContext) -> Response:
    def render() -> Response:
        from lexarium.web.v1.openapi.document import build_document  # noqa: PLC0415 - takes long to load

        return OrjsonResponse(build_document(context.site.settings.title))

    return await encode_response(context.request.scope, await run_in_threadpool(render), MIN_COMPRESSED_BYTES)


async def _get_reference(context: RequestContext) -> Response:
    def render() -> Response:
        from lexarium.web.v1.openapi import reference_page  # noqa: PLC0415 - requested rarely

        return reference_page.respond(context.site, context.request)

    return await run_in_threadpool(render)


class _CollectionConvertor(StringConvertor):
    regex = "|".join(COLLECTIONS)


register_url_convertor("collection", _CollectionConvertor())


class _PathRoute(Route):
    """Route that leaves all methods to its endpoint, not only those that it lists.

    A path with `{collection}` matches the names of collections only.
    """

    def __init__(self, path: str, endpoint: ASGIApp, methods: list[str]) -> None:
        super().__init__(path.replace("{collection}", "{collection:collection}"), endpoint, methods=methods)
        self.path = path  # as metrics and logs name it

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.app(scope, receive, send)


class _PathEndpoint:
    """ASGI application of one path: runs the handler of the method, and answers OPTIONS and other methods."""

    def __init__(self, create_context: Callable[..., RequestContext], handlers: Mapping[str, Handler]) -> None:
        self._create_context = create_context
        self._handlers = {**handlers, **({"HEAD": handlers["GET"]} if "GET" in handlers else {})}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive, send)
        context = self._create_context(request, COLLECTIONS.get(request.path_params.get("collection", "")))
        handler = self._handlers.get(scope["method"], self._respond_to_method)
        try:
            response = await handler(context)
        except Exception as error:
            await _send(_build_error_response(request, error), request, send, context.rate_limit_headers)
            if not isinstance(error, HTTPProblem | LexariumError):
                raise
        else:
            await _send(response, request, send, context.rate_limit_headers)

    async def _respond_to_method(self, context: RequestContext) -> Response:
        """Respond to OPTIONS, or with a 405 to a method without a handler."""
        request = context.request
        allow = ", ".join([*(method for method in _METHODS if method in self._handlers), "OPTIONS"])
        if request.method != "OPTIONS":
            raise HTTPProblem(405, f"{request.method} is not allowed here; {allow} are.", {"allow": allow})
        is_preflight = "access-control-request-method" in request.headers
        return Response(status_code=204, headers={"allow": allow, **(_PREFLIGHT_HEADERS if is_preflight else {})})


async def _send(response: Response, request: Request, send: Send, headers: Mapping[str, str]) -> None:
    """Send a response with these headers. Scripts of any origin may read it, unless the request has a token."""
    if headers:
        response.headers.update(headers)
    if request.method in _SAFE_METHODS and "authorization" not in request.headers:
        response.raw_headers.extend(_CORS_HEADERS)
    await response(request.scope, request.receive, send)


async def _respond_not_found(scope: Scope, receive: Receive, send: Send) -> None:
    await _send(problem_response(HTTPException(404)), Request(scope, receive), send, {})


def _build_error_response(request: Request, error: Exception) -> Response:
    """Return the problem document of an error, but redirect reads of a merged record to its survivor."""
    if not isinstance(error, RecordMerged) or request.method not in _SAFE_METHODS:
        return problem_response(error)
    segments = request.scope["raw_path"].decode("ascii").split("/")
    segments[_ID_SEGMENT] = quote(error.survivor_id, safe="")
    query = request.scope["query_string"].decode("latin-1")
    url = "/".join(segments) + (f"?{query}" if query else "")
    return redirect_merged(error, url, {"cache-control": "no-cache"}, merged_into=error.survivor_id)
