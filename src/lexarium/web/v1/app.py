"""The v1 application: a route for each path of the operations, the OpenAPI document and its page."""

import re
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from urllib.parse import parse_qsl, quote, unquote, urlencode

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match, Route, Router
from starlette.types import ASGIApp, Receive, Scope, Send

from lexarium.domain.errors import LexariumError, NotFound, RecordMerged
from lexarium.domain.identifiers import get_local_id
from lexarium.domain.schema.collections import COLLECTIONS
from lexarium.domain.schema.relation_types import qualify_name
from lexarium.services.records.lookup import find_existing_ids
from lexarium.services.vocabularies.access import AmbiguousId, find_record_id, get_unqualified_vocabulary
from lexarium.web.http.callers import AccessGate
from lexarium.web.http.conditional import encode_response
from lexarium.web.http.problems import HTTPProblem, problem_response, redirect_merged
from lexarium.web.http.streaming import EventStreams
from lexarium.web.site import Site
from lexarium.web.v1.operation import (
    MIN_COMPRESSED_BYTES,
    RequestContext,
    qualify_client_id,
)
from lexarium.web.v1.operations import OPERATIONS
from lexarium.web.v1.operations.service import build_choice
from lexarium.web.v1.responses import V1_PATH, OrjsonResponse

_VOCABULARY_PATH = f"{V1_PATH}/vocabularies/{{vocabulary}}"
_ANY_RECORD_PATH = f"{V1_PATH}/records/{{id}}"
_QUERIED_PREFIXES = (f"{_VOCABULARY_PATH}/records/{{id}}", _ANY_RECORD_PATH)
"""Paths of records, and of what belongs to them, that may also have the id in the query."""
_RECORD_PREFIXES = (f"{V1_PATH}/{{collection}}/{{id}}", *_QUERIED_PREFIXES)
_ID_PARAMETERS = ("id", "iri")
_RESERVED_NAMES = frozenset(operation.path.split("/")[1] for operation in OPERATIONS if operation.path)
_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD")
# Paths of operations that read, though by POST.
_PUBLIC_POST_PATHS = frozenset(
    V1_PATH + operation.path for operation in OPERATIONS if operation.method == "POST" and not operation.needs_token
)
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
    endpoints: dict[str, _PathEndpoint] = {}
    # Those of a record before those of what belongs to it.
    for path in sorted(paths, key=len):
        record_endpoint = (
            endpoints.get(path.partition("{id}")[0] + "{id}") if path.startswith(_RECORD_PREFIXES) else None
        )
        endpoints[path] = _PathEndpoint(path, create_context, paths[path], record_endpoint)
    query_paths = {path: _to_query_path(path) for path in paths if path.startswith(_QUERIED_PREFIXES)}
    routes: list[Route] = [
        _PathRoute(path, endpoints[path], methods=list(handlers))
        for path, handlers in sorted(paths.items(), key=lambda item: _get_order(list(paths), item[0]))
    ]
    routes += [
        _QueryRoute(query_path, endpoints[path], methods=list(paths[path])) for path, query_path in query_paths.items()
    ]
    return Router(routes, redirect_slashes=False, default=_respond_not_found)


async def _get_document(context: RequestContext) -> Response:
    def render() -> Response:
        from lexarium.web.v1.openapi.document import DOCUMENT_LOCK, build_document  # noqa: PLC0415 - takes long to load

        with DOCUMENT_LOCK:
            document = build_document(context.site.settings.title)
        return OrjsonResponse(document)

    return await encode_response(context.request.scope, await run_in_threadpool(render), MIN_COMPRESSED_BYTES)


async def _get_reference(context: RequestContext) -> Response:
    def render() -> Response:
        from lexarium.web.v1.openapi import reference_page  # noqa: PLC0415 - requested rarely

        return reference_page.respond(context.site, context.request)

    return await run_in_threadpool(render)


class _PathRoute(Route):
    """Route that leaves all methods to its endpoint, not only those that it lists.

    Parameters are taken from the path as it was sent, so that the id of a record may contain any characters. A path
    that begins with `{collection}` matches the collections of the default vocabulary only.
    """

    def __init__(self, path: str, endpoint: ASGIApp, methods: list[str]) -> None:
        super().__init__(path, endpoint, methods=methods)
        any_id = ".+" if path.startswith(_RECORD_PREFIXES) else "[^/]+"
        pattern = re.escape(path).replace(r"\{id\}", f"(?P<id>{any_id})")
        self._prefix = path.partition("{")[0].encode()
        self._pattern = re.compile(re.sub(r"\\{(\w+)\\}", r"(?P<\1>[^/]+)", pattern))
        self._is_unqualified = path.startswith(f"{V1_PATH}/{{collection}}")

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        path: bytes = scope["raw_path"]
        # Quicker than the pattern, and true of few routes.
        match = self._pattern.fullmatch(path.decode("latin-1")) if path.startswith(self._prefix) else None
        if match is None:
            return Match.NONE, {}
        parameters = {name: unquote(value) for name, value in match.groupdict().items()}
        if self._is_unqualified and not _is_collection(parameters["collection"]):
            return Match.NONE, {}
        return Match.FULL, {"endpoint": self.endpoint, "path_params": parameters}

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.app(scope, receive, send)


class _QueryRoute(_PathRoute):
    """Route of an operation on a record whose id, or IRI, is in the query."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        match, child_scope = super().matches(scope)
        if match is Match.NONE:
            return match, child_scope
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        record_id = next((value for name, value in query if name in _ID_PARAMETERS), "")
        rest = urlencode([(name, value) for name, value in query if name not in _ID_PARAMETERS])
        parameters = {**child_scope["path_params"], "id": record_id}
        return match, {**child_scope, "path_params": parameters, "query_string": rest.encode()}


def _is_collection(name: str) -> bool:
    """Return whether a first segment of a path is a collection of the default vocabulary, and nothing else."""
    return name not in _RESERVED_NAMES and qualify_name(get_unqualified_vocabulary().slug, name) in COLLECTIONS


class _PathEndpoint:
    """ASGI application of one path: runs the handler of the method, and answers OPTIONS and other methods."""

    def __init__(
        self,
        path: str,
        create_context: Callable[..., RequestContext],
        handlers: Mapping[str, Handler],
        record_endpoint: "_PathEndpoint | None" = None,
    ) -> None:
        """Create the endpoint of a path. If it belongs to a record, `record_endpoint` is that of the record."""
        self._path = path
        self._create_context = create_context
        self._record_endpoint = record_endpoint
        self._handlers = {**handlers, **({"HEAD": handlers["GET"]} if "GET" in handlers else {})}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive, send)
        context = self._create_context(request)
        handler = self._handlers.get(scope["method"], self._respond_to_method)
        try:
            if await self._is_record(context):
                assert self._record_endpoint is not None
                await self._record_endpoint(scope, receive, send)
                return
            response = await handler(context)
        except Exception as error:
            response = await self._respond_to_error(context, error)
            await _send(response, request, send, context.rate_limit_headers)
            if not isinstance(error, HTTPProblem | LexariumError | HTTPException):
                raise
        else:
            if context.reader is not None and "authorization" not in request.headers:
                response.headers["cache-control"] = "private, no-cache"
            await _send(response, request, send, context.rate_limit_headers)

    async def _is_record(self, context: RequestContext) -> bool:
        """Return whether the path is the id of a record, although it ends like that of what belongs to one.

        If so, the id becomes the parameter of the path.
        """
        request, endpoint = context.request, self._record_endpoint
        if endpoint is None or endpoint is self or request.method not in endpoint._handlers:
            return False
        path = request.scope["raw_path"].decode("latin-1")
        start = endpoint._path.removesuffix("{id}").count("/")
        parameters = request.path_params
        local_id = unquote("/".join(path.split("/")[start:]))
        slug = parameters.get("vocabulary") or get_unqualified_vocabulary().slug
        if local_id == parameters["id"]:
            return False
        record_ids = [qualify_client_id(slug, local_id)]
        if not await run_in_threadpool(context.site.database.run_read, find_existing_ids, record_ids):
            return False
        parameters["id"] = local_id
        return True

    async def _respond_to_error(self, context: RequestContext, error: Exception) -> Response:
        """Return the problem document of an error, but redirect reads of a merged record or an alternative id."""
        request = context.request
        if request.method not in _SAFE_METHODS or "id" not in request.path_params:
            return problem_response(error)
        if isinstance(error, RecordMerged):
            merged_into = get_local_id(error.survivor_id)
            url = self._build_url(request, merged_into)
            return redirect_merged(error, url, {"cache-control": "no-cache"}, merged_into=merged_into)
        if type(error) is NotFound and self._path.startswith(_RECORD_PREFIXES):
            try:
                record_id = await run_in_threadpool(_find_alternative, context)
            except AmbiguousId as ambiguity:
                choice = await run_in_threadpool(context.site.database.run_read, build_choice, ambiguity)
                return problem_response(choice)
            if record_id is not None:
                local_id = get_local_id(record_id)
                detail = f"{request.path_params['id']} is an alternative ID of {local_id}."
                headers = {"location": self._build_url(request, local_id), "cache-control": "no-cache"}
                return problem_response(HTTPProblem(308, detail, headers, id=local_id))
        return problem_response(error)

    def _build_url(self, request: Request, local_id: str) -> str:
        parameters = {name: quote(value, safe="") for name, value in request.path_params.items()}
        path = self._path.format_map({**parameters, "id": quote(local_id, safe="")})
        query = request.scope["query_string"].decode("latin-1")
        return f"{path}?{query}" if query else path

    async def _respond_to_method(self, context: RequestContext) -> Response:
        """Respond to OPTIONS, or with a 405 to a method without a handler."""
        request = context.request
        allow = ", ".join([*(method for method in _METHODS if method in self._handlers), "OPTIONS"])
        if request.method != "OPTIONS":
            raise HTTPProblem(405, f"{request.method} is not allowed; allowed: {allow}.", {"allow": allow})
        headers = {"allow": allow}
        if "access-control-request-method" in request.headers:
            headers |= _PREFLIGHT_HEADERS
            if self._path in _PUBLIC_POST_PATHS:
                headers["access-control-allow-methods"] += ", POST"
                headers["access-control-allow-headers"] += ", Content-Type"
        return Response(status_code=204, headers=headers)


async def _send(response: Response, request: Request, send: Send, headers: Mapping[str, str]) -> None:
    """Send a response with these headers. Scripts of any origin may read it, unless the request has a token."""
    if headers:
        response.headers.update(headers)
    if request.method in _SAFE_METHODS and "authorization" not in request.headers:
        response.raw_headers.extend(_CORS_HEADERS)
    await response(request.scope, request.receive, send)


async def _respond_not_found(scope: Scope, receive: Receive, send: Send) -> None:
    await _send(problem_response(HTTPException(404)), Request(scope, receive), send, {})


def _find_alternative(context: RequestContext) -> str | None:
    """Return the record that has the id of the path as an alternative one, or None; raise AmbiguousId."""
    if context.path_vocabulary is None and "vocabulary" in context.request.path_params:
        return None
    chosen = context.request.query_params.getlist("vocabulary")
    try:
        scope = context.get_scope([context.vocabulary.slug] if context.path_vocabulary else chosen)
        record_id = context.site.database.run_read(find_record_id, context.request.path_params["id"], scope)
    except NotFound:
        return None
    return None if get_local_id(record_id) == context.request.path_params["id"] else record_id


def _get_order(paths: list[str], path: str) -> tuple[bool, int, bool]:
    """Return the place of a path among others: where it is declared, but a record after what belongs to one.

    That of any record, which is requested most, comes first: nothing else begins so.
    """
    root = next((prefix for prefix in _RECORD_PREFIXES if path.startswith(prefix)), path)
    return path != _ANY_RECORD_PATH, paths.index(root), path == root


def _to_query_path(path: str) -> str:
    """Return the path of an operation on a record without its id."""
    start, _, end = path.partition("/{id}")
    return start + end if not end else start.rpartition("/")[0] + end
