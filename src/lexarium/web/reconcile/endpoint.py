"""Routes and handlers of reconciliation. Pages of any origin may call them."""

from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any
from urllib.parse import quote

import orjson
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from lexarium.domain.errors import LexariumError, NotFound, RecordMerged, Unauthenticated
from lexarium.domain.identifiers import MAIN_VOCABULARY
from lexarium.domain.vocabulary import VOCABULARIES, Vocabulary
from lexarium.services.access.authentication import Authenticator
from lexarium.services.search.reconciliation import Reconciler, format_description
from lexarium.services.vocabularies.access import get_read_scope
from lexarium.web.http.callers import authenticate_request
from lexarium.web.http.limits import Limits
from lexarium.web.http.problems import HTTPProblem, problem_response, redirect_merged
from lexarium.web.http.request_body import read_fields
from lexarium.web.reconcile import previews, responses
from lexarium.web.reconcile.requests import MAX_OFFSET, ReconcileParameters, parse_extension, parse_queries
from lexarium.web.reconcile.responses import RECONCILE_PATH, ReconcileService

_PAGE_SIZE = 10
_CORS_HEADERS = {"access-control-allow-origin": "*", "cache-control": "no-cache"}
# Parameters of older versions, which would otherwise be ignored.
_UNSUPPORTED_PARAMETERS = {
    "callback": "JSONP is not supported; omit `callback`. Pages of any origin may read the response (CORS).",
    "query": "`query` is not supported (version 0.1); send `queries`, a JSON object of queries by key.",
}

Handler = Callable[[Request], Awaitable[Response]]
ServiceHandler = Callable[[Request, ReconcileService], Awaitable[Response]]


def routes(reconciler: Reconciler, authenticator: Authenticator, limits: Limits) -> list[Route]:
    """Return the routes of reconciliation with all vocabularies that everyone may read, and with single ones."""
    handlers = ReconcileHandlers(reconciler, authenticator, limits)

    def build(get: ServiceHandler, post: ServiceHandler | None = None) -> CorsEndpoint:
        return CorsEndpoint(handlers.with_service(get), None if post is None else handlers.with_service(post))

    query_endpoint = build(handlers.get_manifest_or_query, handlers.post_query)
    endpoints = {
        "": query_endpoint,
        "/": query_endpoint,
        "/preview": build(handlers.get_preview),
        "/properties": build(list_properties),
        "/suggest/entity": build(handlers.suggest_entities),
        "/flyout/entity": build(handlers.get_flyout),
    }
    for noun in ("type", "property"):
        endpoints[f"/suggest/{noun}"] = build(partial(_suggest_items, noun))
        endpoints[f"/flyout/{noun}"] = build(partial(_get_item_flyout, noun))
    paths = (RECONCILE_PATH, f"/vocabularies/{{vocabulary}}{RECONCILE_PATH}")
    return [Route(start + path, endpoint) for start in paths for path, endpoint in endpoints.items()]


class CorsEndpoint:
    """One URL with its methods and CORS headers. An ASGI application."""

    def __init__(self, get: Handler, post: Handler | None = None) -> None:
        self._methods = {"GET": get, "HEAD": get, "OPTIONS": self._options}
        if post is not None:
            self._methods["POST"] = post
        self._allow = ", ".join(self._methods)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        try:
            method = self._methods.get(request.method)
            if method is None:
                detail = f"{request.method} is not allowed; allowed: {self._allow}."
                raise HTTPProblem(405, detail, {"allow": self._allow})
            for name, message in _UNSUPPORTED_PARAMETERS.items():
                if name in request.query_params:
                    raise HTTPProblem(400, message)
            response = await method(request)
            response.headers.update(_CORS_HEADERS)
        except (LexariumError, HTTPProblem) as error:
            response = problem_response(error, _CORS_HEADERS)
        await response(scope, receive, send)

    async def _options(self, request: Request) -> Response:
        headers = {
            "allow": self._allow,
            "access-control-allow-methods": self._allow,
            "access-control-allow-headers": "Content-Type, Cache-Control, X-Requested-With",
            "access-control-max-age": "86400",
        }
        return Response(status_code=204, headers=headers)


class ReconcileHandlers:
    """Handlers of all URLs."""

    def __init__(self, reconciler: Reconciler, authenticator: Authenticator, limits: Limits) -> None:
        self._reconciler = reconciler
        self._authenticator = authenticator
        self._limits = limits

    def with_service(self, handler: ServiceHandler) -> Handler:
        """Return a handler that is given the service which a request is for."""

        async def handle(request: Request) -> Response:
            return await handler(request, await self._open_service(request))

        return handle

    async def _open_service(self, request: Request) -> ReconcileService:
        """Return the service of all vocabularies that everyone may read, or of the one in the path; raise NotFound."""
        self._reconciler.get_position()  # which makes vocabularies known
        slug = request.path_params.get("vocabulary")
        if slug is None:
            main = VOCABULARIES[MAIN_VOCABULARY]
            about = Vocabulary(base=main.base) if main.is_private else main
            return ReconcileService(RECONCILE_PATH, get_read_scope(None), about)
        caller = None
        if "authorization" in request.headers:
            with suppress(Unauthenticated):
                caller = await authenticate_request(request, self._authenticator)
        scope = get_read_scope(caller, [slug])
        return ReconcileService(f"/vocabularies/{slug}{RECONCILE_PATH}", scope, VOCABULARIES[slug], is_local=True)

    async def get_manifest_or_query(self, request: Request, service: ReconcileService) -> Response:
        """Return the manifest, or the result of a query in the URL."""
        query = request.query_params
        if "queries" not in query and "extend" not in query:
            return _json_response(responses.build_manifest(service, str(request.base_url).rstrip("/")))
        return await self._run_query_limited(service, dict(query))

    async def post_query(self, request: Request, service: ReconcileService) -> Response:
        """Return the result of a query in a form."""
        fields, is_form = await read_fields(request, self._limits)
        if not is_form or not ("queries" in fields or "extend" in fields):
            raise HTTPProblem(
                415 if not is_form else 400,
                "Send a form (application/x-www-form-urlencoded) with a field `queries` or `extend` with JSON.",
            )
        return await self._run_query_limited(service, fields)

    async def get_preview(self, request: Request, service: ReconcileService) -> Response:
        """Return the preview of a record; redirect to the survivor of a merged one."""
        identifier = _parse_id(request, service)
        try:
            entity = await run_in_threadpool(self._reconciler.get_entity, identifier, service.entity_ids)
        except RecordMerged as error:
            survivor = service.entity_ids.format(error.survivor_id)
            return redirect_merged(error, f"{service.path}/preview?id={quote(survivor, safe='')}")
        page = await run_in_threadpool(previews.render_preview, service, entity)
        return HTMLResponse(page, headers=previews.HEADERS)

    async def suggest_entities(self, request: Request, service: ReconcileService) -> Response:
        """Suggest records for a prefix."""
        parameters = ReconcileParameters(service, request.query_params)
        prefix, skip = parameters.text("prefix"), parameters.integer("cursor", 0, MAX_OFFSET, 0)
        types = parameters.types(service.scope.searched_collections)
        parameters.raise_problems()
        completions = await run_in_threadpool(
            self._reconciler.suggest_entities, prefix, types, skip, _PAGE_SIZE, service.scope
        )
        results = [responses.serialize_completion(service, *completion) for completion in completions]
        return _json_response({"result": results})

    async def get_flyout(self, request: Request, service: ReconcileService) -> Response:
        """Return a small view of a suggested record."""
        identifier = _parse_id(request, service)
        entity = await run_in_threadpool(self._reconciler.get_entity, identifier, service.entity_ids)
        return _flyout_response(request, entity.name, format_description(entity))

    async def _run_query_limited(self, service: ReconcileService, fields: Any) -> Response:
        async with self._limits.heavy_work.acquire_slot():
            return await run_in_threadpool(self._run_query, service, fields)

    def _run_query(self, service: ReconcileService, fields: Any) -> Response:
        if "queries" in fields:
            queries = parse_queries(service, fields["queries"])
            candidate_lists = self._reconciler.find_candidates(list(queries.values()), service.scope)
            serialize = partial(responses.serialize_candidate, service)
            results = zip(queries, candidate_lists, strict=True)
            return _json_response({key: {"result": [*map(serialize, candidates)]} for key, candidates in results})
        identifiers, properties = parse_extension(service, fields["extend"])
        rows = self._reconciler.extend(identifiers, properties, service.entity_ids)
        return _json_response(responses.serialize_extension(service, rows, properties))


def _parse_id(request: Request, service: ReconcileService) -> str:
    parameters = ReconcileParameters(service, request.query_params)
    identifier = parameters.text("id")
    parameters.raise_problems()
    return identifier


async def list_properties(request: Request, service: ReconcileService) -> Response:
    """List the properties that records of a type can have."""
    parameters = ReconcileParameters(service, request.query_params)
    types = parameters.types(service.scope.collections)
    limit = parameters.integer("limit", 1, 1_000, len(service.properties))
    parameters.raise_problems()
    properties = [prop for prop in service.properties.values() if set(prop.collections) & set(types)]
    serialized = service.serialize_properties()
    type_field = {"type": request.query_params["type"]} if request.query_params.get("type") else {}
    return _json_response(
        {**type_field, "properties": [serialized[prop.id] for prop in properties[:limit]], "limit": limit}
    )


def _list_items(noun: str, service: ReconcileService) -> Mapping[str, dict[str, str]]:
    return service.serialize_types() if noun == "type" else service.serialize_properties()


async def _suggest_items(noun: str, request: Request, service: ReconcileService) -> Response:
    """Return the types or properties with a word, or an identifier, that begins with the prefix."""
    parameters = ReconcileParameters(service, request.query_params)
    prefix, skip = parameters.text("prefix"), parameters.integer("cursor", 0, MAX_OFFSET, 0)
    parameters.raise_problems()
    word_prefix = f" {prefix.strip().casefold()}"
    items = _list_items(noun, service).values()
    matching_items = [item for item in items if word_prefix in f" {item['name']} {item['id']}".casefold()]
    return _json_response({"result": matching_items[skip:]})


async def _get_item_flyout(noun: str, request: Request, service: ReconcileService) -> Response:
    identifier, items = _parse_id(request, service), _list_items(noun, service)
    if identifier not in items:
        raise NotFound(f"{noun.capitalize()} {identifier!r} not found.")
    return _flyout_response(request, items[identifier]["name"], items[identifier]["description"])


def _flyout_response(request: Request, name: str, description: str) -> Response:
    identifier = request.query_params["id"]
    return _json_response({"id": identifier, "html": previews.render_flyout(name, identifier, description)})


def _json_response(body: Any) -> Response:
    return Response(orjson.dumps(body), media_type="application/json")
