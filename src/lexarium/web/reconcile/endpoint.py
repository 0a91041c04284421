"""Routes and handlers of reconciliation. Pages of any origin may call them."""

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any
from urllib.parse import quote

import orjson
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from lexarium.domain.errors import LexariumError, NotFound, RecordMerged
from lexarium.domain.schema.collections import COLLECTIONS
from lexarium.domain.vocabulary import get_default_vocabulary
from lexarium.services.search.properties import PROPERTIES
from lexarium.services.search.reconciliation import Reconciler, format_description
from lexarium.web.http.limits import Limits
from lexarium.web.http.problems import HTTPProblem, problem_response, redirect_merged
from lexarium.web.http.request_body import read_fields
from lexarium.web.reconcile import previews, responses
from lexarium.web.reconcile.requests import MAX_OFFSET, ReconcileParameters, parse_extension, parse_queries
from lexarium.web.reconcile.responses import RECONCILE_PATH

_PAGE_SIZE = 10
_CORS_HEADERS = {"access-control-allow-origin": "*", "cache-control": "no-cache"}
# Parameters of older versions, which would otherwise be ignored.
_UNSUPPORTED_PARAMETERS = {
    "callback": "JSONP is not spoken here: leave `callback` out, pages of any origin may read the answer.",
    "query": "A single `query` was version 0.1: send `queries`, a JSON object of queries by key.",
}

Handler = Callable[[Request], Awaitable[Response]]


def routes(reconciler: Reconciler, limits: Limits) -> list[Route]:
    """Return the routes of reconciliation."""
    handlers = ReconcileHandlers(reconciler, limits)
    query_endpoint = CorsEndpoint(handlers.get_manifest_or_query, handlers.post_query)
    endpoints = {
        "": query_endpoint,
        "/": query_endpoint,
        "/preview": CorsEndpoint(handlers.get_preview),
        "/properties": CorsEndpoint(handlers.list_properties),
        "/suggest/entity": CorsEndpoint(handlers.suggest_entities),
        "/flyout/entity": CorsEndpoint(handlers.get_flyout),
    }
    for noun, items in (("type", responses.TYPES), ("property", responses.PROPERTIES)):
        endpoints[f"/suggest/{noun}"] = CorsEndpoint(partial(_suggest_items, items))
        endpoints[f"/flyout/{noun}"] = CorsEndpoint(partial(_get_item_flyout, noun, items))
    return [Route(RECONCILE_PATH + path, endpoint) for path, endpoint in endpoints.items()]


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
                detail = f"{request.method} is not allowed here; {self._allow} are."
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

    def __init__(self, reconciler: Reconciler, limits: Limits) -> None:
        self._reconciler = reconciler
        self._limits = limits

    async def get_manifest_or_query(self, request: Request) -> Response:
        """Return the manifest, or the result of a query in the URL."""
        query = request.query_params
        if "queries" not in query and "extend" not in query:
            base_url = str(request.base_url).rstrip("/")
            return _json_response(responses.build_manifest(get_default_vocabulary(), base_url))
        return await self._run_query_limited(dict(query))

    async def post_query(self, request: Request) -> Response:
        """Return the result of a query in a form."""
        fields, is_form = await read_fields(request, self._limits)
        if not is_form or not ("queries" in fields or "extend" in fields):
            raise HTTPProblem(
                415 if not is_form else 400,
                "Send a form (application/x-www-form-urlencoded) with a field `queries` or `extend`, which holds JSON.",
            )
        return await self._run_query_limited(fields)

    async def get_preview(self, request: Request) -> Response:
        """Return the preview of a record; redirect to the survivor of a merged one."""
        record_id = _parse_id(request)
        try:
            page = await run_in_threadpool(lambda: previews.render_preview(self._reconciler.get_entity(record_id)))
        except RecordMerged as error:
            return redirect_merged(error, f"{RECONCILE_PATH}/preview?id={quote(error.survivor_id, safe='')}")
        return HTMLResponse(page, headers=previews.HEADERS)

    async def suggest_entities(self, request: Request) -> Response:
        """Suggest records for a prefix."""
        parameters = ReconcileParameters(request.query_params)
        prefix, skip = parameters.text("prefix"), parameters.integer("cursor", 0, MAX_OFFSET, 0)
        types = parameters.types(COLLECTIONS.searched)
        parameters.raise_problems()
        completions = await run_in_threadpool(self._reconciler.suggest_entities, prefix, types, skip, _PAGE_SIZE)
        return _json_response({"result": [responses.serialize_completion(*completion) for completion in completions]})

    async def list_properties(self, request: Request) -> Response:
        """List the properties that records of a type can have."""
        parameters = ReconcileParameters(request.query_params)
        types = parameters.types(tuple(COLLECTIONS))
        limit = parameters.integer("limit", 1, 1_000, len(PROPERTIES))
        parameters.raise_problems()
        properties = [prop for prop in PROPERTIES.values() if set(prop.collections) & set(types)]
        serialized = [responses.PROPERTIES[prop.id] for prop in properties[:limit]]
        type_field = {"type": types[0]} if len(types) == 1 else {}
        return _json_response({**type_field, "properties": serialized, "limit": limit})

    async def get_flyout(self, request: Request) -> Response:
        """Return a small view of a suggested record."""
        entity = await run_in_threadpool(self._reconciler.get_entity, _parse_id(request))
        return _flyout_response(request, entity.name, format_description(entity))

    async def _run_query_limited(self, fields: Any) -> Response:
        async with self._limits.heavy_work.acquire_slot():
            return await run_in_threadpool(self._run_query, fields)

    def _run_query(self, fields: Any) -> Response:
        if "queries" in fields:
            queries = parse_queries(fields["queries"])
            candidate_lists = self._reconciler.find_candidates(list(queries.values()))
            results = zip(queries, candidate_lists, strict=True)
            return _json_response(
                {key: {"result": [*map(responses.serialize_candidate, candidates)]} for key, candidates in results}
            )
        record_ids, properties = parse_extension(fields["extend"])
        rows = self._reconciler.extend(record_ids, properties)
        return _json_response(responses.serialize_extension(rows, properties))


def _parse_id(request: Request) -> str:
    parameters = ReconcileParameters(request.query_params)
    identifier = parameters.text("id")
    parameters.raise_problems()
    return identifier


async def _suggest_items(items: Mapping[str, dict[str, str]], request: Request) -> Response:
    """Return the items with a word, or an identifier, that begins with the prefix."""
    parameters = ReconcileParameters(request.query_params)
    prefix, skip = parameters.text("prefix"), parameters.integer("cursor", 0, MAX_OFFSET, 0)
    parameters.raise_problems()
    word_prefix = f" {prefix.strip().casefold()}"
    matching_items = [item for item in items.values() if word_prefix in f" {item['name']} {item['id']}".casefold()]
    return _json_response({"result": matching_items[skip:]})


async def _get_item_flyout(noun: str, items: Mapping[str, dict[str, str]], request: Request) -> Response:
    identifier = _parse_id(request)
    if identifier not in items:
        raise NotFound(f"There is no {noun} with the id {identifier!r}.")
    return _flyout_response(request, items[identifier]["name"], items[identifier]["description"])


def _flyout_response(request: Request, name: str, description: str) -> Response:
    identifier = request.query_params["id"]
    return _json_response({"id": identifier, "html": previews.render_flyout(name, identifier, description)})


def _json_response(body: Any) -> Response:
    return Response(orjson.dumps(body), media_type="application/json")
