"""The addresses of reconciliation. Pages of any origin may ask at each of them."""

from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import quote

import orjson
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from lexarium.domain.errors import LexariumError, NotFound, RecordMerged
from lexarium.domain.schema.collections import COLLECTIONS, DEFAULT_SEARCH_COLLECTIONS
from lexarium.domain.vocabulary import Vocabulary
from lexarium.services.search.properties import PROPERTIES
from lexarium.services.search.reconciliation import Reconciler, format_description
from lexarium.web.http.limits import Limits
from lexarium.web.http.problems import HTTPProblem, problem_response
from lexarium.web.http.request_body import read_fields
from lexarium.web.reconcile import previews, responses
from lexarium.web.reconcile.requests import MAX_OFFSET, Parameters, parse_extension, parse_queries
from lexarium.web.reconcile.responses import RECONCILE_PATH

_PAGE_SIZE = 10
"""How many suggestions are told at a time."""
_CORS_HEADERS = {"access-control-allow-origin": "*", "cache-control": "no-cache"}
_UNSUPPORTED_PARAMETERS = {
    "callback": "JSONP is not spoken here: leave `callback` out, pages of any origin may read the answer.",
    "query": "A single `query` was version 0.1: send `queries`, a JSON object of queries by key.",
}
"""Parameters of older versions, which would else be passed over in silence."""

Handler = Callable[[Request], Awaitable[Response]]


def routes(vocabulary: Vocabulary, reconciler: Reconciler, limits: Limits) -> list[Route]:
    """The routes of reconciliation."""
    handlers = ReconcileHandlers(vocabulary, reconciler, limits)
    suggestions = {
        "entity": handlers.suggest_entities,
        "type": handlers.suggest_types,
        "property": handlers.suggest_properties,
    }
    return [
        *(
            Route(RECONCILE_PATH + slash, CorsEndpoint(handlers.get_manifest_or_query, handlers.post_query))
            for slash in ("", "/")
        ),
        Route(f"{RECONCILE_PATH}/preview", CorsEndpoint(handlers.get_preview)),
        Route(f"{RECONCILE_PATH}/properties", CorsEndpoint(handlers.list_properties)),
        *(
            Route(f"{RECONCILE_PATH}/suggest/{entity_type}", CorsEndpoint(handler))
            for entity_type, handler in suggestions.items()
        ),
        *(
            Route(f"{RECONCILE_PATH}/flyout/{entity_type}", CorsEndpoint(handlers.build_flyout_handler(entity_type)))
            for entity_type in suggestions
        ),
    ]


class CorsEndpoint:
    """One address: which methods it has, and what every answer carries. An ASGI application."""

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
    """Answers what each address is asked."""

    def __init__(self, vocabulary: Vocabulary, reconciler: Reconciler, limits: Limits) -> None:
        self._vocabulary = vocabulary
        self._reconciler = reconciler
        self._limits = limits

    async def get_manifest_or_query(self, request: Request) -> Response:
        """The manifest, where nothing is asked."""
        query = request.query_params
        if "queries" not in query and "extend" not in query:
            return _json_response(responses.build_manifest(self._vocabulary, str(request.base_url).rstrip("/")))
        return await self._run_query_limited(dict(query))

    async def post_query(self, request: Request) -> Response:
        """The answer to a form."""
        fields, is_form = await read_fields(request, self._limits)
        if not is_form or not ("queries" in fields or "extend" in fields):
            raise HTTPProblem(
                415 if not is_form else 400,
                "Send a form (application/x-www-form-urlencoded) with a field `queries` or `extend`, which holds JSON.",
            )
        return await self._run_query_limited(fields)

    async def get_preview(self, request: Request) -> Response:
        """A record as a card; of a merged one its survivor's."""
        record_id = _parse_id(request)
        try:
            page = await run_in_threadpool(lambda: previews.render_preview(self._reconciler.get_entity(record_id)))
        except RecordMerged as error:
            return RedirectResponse(f"{RECONCILE_PATH}/preview?id={quote(error.survivor_id, safe='')}", 308)
        return HTMLResponse(page, headers=previews.HEADERS)

    async def suggest_entities(self, request: Request) -> Response:
        """Records that someone who types may mean."""
        parameters = Parameters(request.query_params)
        prefix, skip = parameters.text("prefix"), parameters.integer("cursor", 0, MAX_OFFSET, 0)
        types = parameters.types(DEFAULT_SEARCH_COLLECTIONS)
        parameters.raise_problems()
        completions = await run_in_threadpool(self._reconciler.suggest_entities, prefix, types, skip, _PAGE_SIZE)
        return _json_response({"result": [responses.serialize_completion(completion) for completion in completions]})

    async def suggest_types(self, request: Request) -> Response:
        """Types that someone who types may mean."""
        return _filter_by_prefix(request, [responses.serialize_type(name) for name in COLLECTIONS])

    async def suggest_properties(self, request: Request) -> Response:
        """Properties that someone who types may mean."""
        return _filter_by_prefix(request, [responses.serialize_property(prop) for prop in PROPERTIES.values()])

    async def list_properties(self, request: Request) -> Response:
        """The properties that records of a type can have."""
        parameters = Parameters(request.query_params)
        types = parameters.types(tuple(COLLECTIONS))
        limit = parameters.integer("limit", 1, 1_000, len(PROPERTIES))
        parameters.raise_problems()
        properties = [prop for prop in PROPERTIES.values() if set(prop.collections) & set(types)]
        body: dict[str, Any] = {
            "properties": [responses.serialize_property(prop) for prop in properties[:limit]],
            "limit": limit,
        }
        return _json_response({"type": types[0], **body} if len(types) == 1 else body)

    def build_flyout_handler(self, entity_type: str) -> Handler:
        """What was suggested, of a kind, as a piece of a page."""

        async def get_flyout(request: Request) -> Response:
            identifier = _parse_id(request)
            if entity_type == "entity":
                entity = await run_in_threadpool(self._reconciler.get_entity, identifier)
                html = previews.render_flyout(entity.name, identifier, format_description(entity))
            elif entity_type == "type" and identifier in COLLECTIONS:
                type_data = responses.serialize_type(identifier)
                html = previews.render_flyout(type_data["name"], identifier, type_data["description"])
            elif entity_type == "property" and identifier in PROPERTIES:
                html = previews.render_flyout(
                    PROPERTIES[identifier].name, identifier, PROPERTIES[identifier].description
                )
            else:
                raise NotFound(f"There is no {entity_type} with the id {identifier!r}.")
            return _json_response({"id": identifier, "html": html})

        return get_flyout

    async def _run_query_limited(self, fields: Any) -> Response:
        async with self._limits.heavy_work.acquire_slot():
            return await run_in_threadpool(self._run_query, fields)

    def _run_query(self, fields: Any) -> Response:
        if "queries" in fields:
            queries = parse_queries(fields["queries"])
            candidate_lists = self._reconciler.find_candidates(list(queries.values()))
            return _json_response(
                {
                    key: {"result": [responses.serialize_candidate(candidate) for candidate in candidates]}
                    for key, candidates in zip(queries, candidate_lists, strict=True)
                }
            )
        record_ids, properties = parse_extension(fields["extend"])
        return _json_response(
            responses.serialize_extension(self._reconciler.extend(record_ids, properties), properties)
        )


def _parse_id(request: Request) -> str:
    parameters = Parameters(request.query_params)
    identifier = parameters.text("id")
    parameters.raise_problems()
    return identifier


def _filter_by_prefix(request: Request, items: list[dict[str, str]]) -> Response:
    """Those of a short list of which a word, or the identifier, begins as was typed."""
    parameters = Parameters(request.query_params)
    prefix, skip = parameters.text("prefix"), parameters.integer("cursor", 0, MAX_OFFSET, 0)
    parameters.raise_problems()
    word_prefix = f" {prefix.strip().casefold()}"
    matching_items = [item for item in items if word_prefix in f" {item['name']} {item['id']}".casefold()]
    return _json_response({"result": matching_items[skip:]})


def _json_response(body: Any) -> Response:
    return Response(orjson.dumps(body), media_type="application/json")
