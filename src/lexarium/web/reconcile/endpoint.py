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

from lexarium.domain.about import About
from lexarium.domain.collections import COLLECTIONS, SEARCHED
from lexarium.domain.errors import LexariumError, Moved, NotFound
from lexarium.service.properties import PROPERTIES
from lexarium.service.reconciling import Reconciler, description
from lexarium.web.bodies import read_fields
from lexarium.web.limits import Limits
from lexarium.web.problems import HttpProblem, respond
from lexarium.web.reconcile import answers, cards
from lexarium.web.reconcile.answers import PATH
from lexarium.web.reconcile.requests import MOST_SKIPPED, Parameters, read_extension, read_queries

_PAGE = 10
"""How many suggestions are told at a time."""
_OPEN = {"access-control-allow-origin": "*", "cache-control": "no-cache"}
_REFUSED = {
    "callback": "JSONP is not spoken here: leave `callback` out, pages of any origin may read the answer.",
    "query": "A single `query` was version 0.1: send `queries`, a JSON object of queries by key.",
}
"""Parameters of older versions, which would else be passed over in silence."""

Handler = Callable[[Request], Awaitable[Response]]


def routes(about: About, reconciler: Reconciler, limits: Limits) -> list[Route]:
    """The routes of reconciliation."""
    service = Service(about, reconciler, limits)
    suggestions = {"entity": service.entities, "type": service.types, "property": service.properties}
    return [
        *(Route(PATH + slash, Endpoint(service.get, service.post)) for slash in ("", "/")),
        Route(f"{PATH}/preview", Endpoint(service.preview)),
        Route(f"{PATH}/properties", Endpoint(service.proposals)),
        *(Route(f"{PATH}/suggest/{kind}", Endpoint(handler)) for kind, handler in suggestions.items()),
        *(Route(f"{PATH}/flyout/{kind}", Endpoint(service.flyout(kind))) for kind in suggestions),
    ]


class Endpoint:
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
                told = f"{request.method} is not allowed here; {self._allow} are."
                raise HttpProblem(405, told, {"allow": self._allow})
            for name, why in _REFUSED.items():
                if name in request.query_params:
                    raise HttpProblem(400, why)
            response = await method(request)
            response.headers.update(_OPEN)
        except (LexariumError, HttpProblem) as error:
            response = respond(error, _OPEN)
        await response(scope, receive, send)

    async def _options(self, request: Request) -> Response:
        headers = {
            "allow": self._allow,
            "access-control-allow-methods": self._allow,
            "access-control-allow-headers": "Content-Type, Cache-Control, X-Requested-With",
            "access-control-max-age": "86400",
        }
        return Response(status_code=204, headers=headers)


class Service:
    """Answers what each address is asked."""

    def __init__(self, about: About, reconciler: Reconciler, limits: Limits) -> None:
        self._about = about
        self._reconciler = reconciler
        self._limits = limits

    async def get(self, request: Request) -> Response:
        """The manifest, where nothing is asked."""
        given = request.query_params
        if "queries" not in given and "extend" not in given:
            return _json(answers.manifest(self._about, str(request.base_url).rstrip("/")))
        return await self._answer_in_turn(dict(given))

    async def post(self, request: Request) -> Response:
        """The answer to a form."""
        fields, is_form = await read_fields(request, self._limits)
        if not is_form or not ("queries" in fields or "extend" in fields):
            raise HttpProblem(
                415 if not is_form else 400,
                "Send a form (application/x-www-form-urlencoded) with a field `queries` or `extend`, which holds JSON.",
            )
        return await self._answer_in_turn(fields)

    async def preview(self, request: Request) -> Response:
        """A record as a card; of a merged one its survivor's."""
        identifier = _identifier(request)
        try:
            page = await run_in_threadpool(lambda: cards.card(self._reconciler.entity(identifier)))
        except Moved as error:
            return RedirectResponse(f"{PATH}/preview?id={quote(error.survivor, safe='')}", 308)
        return HTMLResponse(page, headers=cards.HEADERS)

    async def entities(self, request: Request) -> Response:
        """Records that someone who types may mean."""
        parameters = Parameters(request.query_params)
        prefix, skip = parameters.text("prefix"), parameters.number("cursor", 0, MOST_SKIPPED, 0)
        types = parameters.types(SEARCHED)
        parameters.check()
        found = await run_in_threadpool(self._reconciler.completions, prefix, types, skip, _PAGE)
        return _json({"result": [answers.completion_view(each) for each in found]})

    async def types(self, request: Request) -> Response:
        """Types that someone who types may mean."""
        return _suggested(request, [answers.type_view(name) for name in COLLECTIONS])

    async def properties(self, request: Request) -> Response:
        """Properties that someone who types may mean."""
        return _suggested(request, [answers.property_view(each) for each in PROPERTIES.values()])

    async def proposals(self, request: Request) -> Response:
        """The properties that records of a type can have."""
        parameters = Parameters(request.query_params)
        types = parameters.types(tuple(COLLECTIONS))
        limit = parameters.number("limit", 1, 1_000, len(PROPERTIES))
        parameters.check()
        found = [each for each in PROPERTIES.values() if set(each.collections) & set(types)]
        told: dict[str, Any] = {"properties": [answers.property_view(each) for each in found[:limit]], "limit": limit}
        return _json({"type": types[0], **told} if len(types) == 1 else told)

    def flyout(self, kind: str) -> Handler:
        """What was suggested, of a kind, as a piece of a page."""

        async def answer(request: Request) -> Response:
            identifier = _identifier(request)
            if kind == "entity":
                entity = await run_in_threadpool(self._reconciler.entity, identifier)
                html = cards.flyout(entity.name, identifier, description(entity))
            elif kind == "type" and identifier in COLLECTIONS:
                told = answers.type_view(identifier)
                html = cards.flyout(told["name"], identifier, told["description"])
            elif kind == "property" and identifier in PROPERTIES:
                html = cards.flyout(PROPERTIES[identifier].name, identifier, PROPERTIES[identifier].description)
            else:
                raise NotFound(f"There is no {kind} with the id {identifier!r}.")
            return _json({"id": identifier, "html": html})

        return answer

    async def _answer_in_turn(self, fields: Any) -> Response:
        async with self._limits.heavy.turn():
            return await run_in_threadpool(self._answer, fields)

    def _answer(self, fields: Any) -> Response:
        if "queries" in fields:
            queries = read_queries(fields["queries"])
            found = self._reconciler.candidates(list(queries.values()))
            return _json(
                {
                    key: {"result": [answers.candidate_view(each) for each in candidates]}
                    for key, candidates in zip(queries, found, strict=True)
                }
            )
        identifiers, wanted = read_extension(fields["extend"])
        return _json(answers.extension_view(self._reconciler.extended(identifiers, wanted), wanted))


def _identifier(request: Request) -> str:
    parameters = Parameters(request.query_params)
    identifier = parameters.text("id")
    parameters.check()
    return identifier


def _suggested(request: Request, items: list[dict[str, str]]) -> Response:
    """Those of a short list of which a word, or the identifier, begins as was typed."""
    parameters = Parameters(request.query_params)
    prefix, skip = parameters.text("prefix"), parameters.number("cursor", 0, MOST_SKIPPED, 0)
    parameters.check()
    begun = f" {prefix.strip().casefold()}"
    found = [item for item in items if begun in f" {item['name']} {item['id']}".casefold()]
    return _json({"result": found[skip:]})


def _json(body: Any) -> Response:
    return Response(orjson.dumps(body), media_type="application/json")
