"""Completions as someone types: a plain route, since it is asked at every keystroke."""

from typing import Any

import orjson
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from lexarium.domain.errors import FieldProblem, InvalidInput, LexariumError
from lexarium.domain.schema.collections import COLLECTIONS
from lexarium.services.search.record_search import MAX_QUERY_CHARS, RecordSearch
from lexarium.services.serializers import serialize_suggestion
from lexarium.web.http.problems import HTTPProblem, problem_response

PATH = "/api/v1/suggest"
MOST = 50
PARAMETERS = {
    "prefix": "What was typed so far.",
    "collection": "Only these, separated by commas; left out: all.",
    "limit": f"How many at most: 10, or from 1 to {MOST}.",
}
_HEADERS = {"access-control-allow-origin": "*", "cache-control": "no-cache"}


class Suggest:
    """Answers with completions."""

    def __init__(self, finder: RecordSearch) -> None:
        self._finder = finder

    def route(self) -> Route:
        """Its address."""
        return Route(PATH, self)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        response = await self._get(Request(scope, receive))
        await response(scope, receive, send)

    async def _get(self, request: Request) -> Response:
        """The few best completions of `prefix`."""
        if request.method not in ("GET", "HEAD"):
            return problem_response(HTTPProblem(405, f"{request.method} is not allowed here.", {"allow": "GET, HEAD"}))
        try:
            prefix, collections, limit = _asked(request)
            found = await run_in_threadpool(
                self._finder.suggest, prefix, collections, limit, self._finder.get_position()
            )
        except LexariumError as error:
            return problem_response(error, _HEADERS)
        body = orjson.dumps({"suggestions": [serialize_suggestion(each) for each in found]})
        return Response(body, 200, _HEADERS, media_type="application/json")


def describe(responses: dict[str, Any]) -> dict[str, Any]:
    """What OpenAPI says of it."""
    kinds = {"prefix": {"type": "string", "maxLength": MAX_QUERY_CHARS}, "collection": {"type": "string"}}
    whole_number = {"type": "integer", "minimum": 1, "maximum": MOST, "default": 10}
    return {
        "tags": ["search"],
        "summary": "The few best completions of what someone types",
        "operationId": "suggest",
        "parameters": [
            {
                "name": name,
                "in": "query",
                "required": name == "prefix",
                "description": told,
                "schema": kinds.get(name, whole_number),
                **({"example": "work mem"} if name == "prefix" else {}),
            }
            for name, told in PARAMETERS.items()
        ],
        "responses": responses,
        "security": [],
    }


def _asked(request: Request) -> tuple[str, list[str], int]:
    given = request.query_params
    problems = [
        FieldProblem(name, f"is not a parameter here; there are {', '.join(sorted(PARAMETERS))}.")
        for name in given
        if name not in PARAMETERS
    ]
    if "prefix" not in given:
        problems.append(FieldProblem("prefix", "is missing."))
    collections = [name for name in ",".join(given.getlist("collection")).split(",") if name]
    problems += [
        FieldProblem("collection", f"should be among {', '.join(COLLECTIONS)}.")
        for name in collections
        if name not in COLLECTIONS
    ]
    limit = given.get("limit", "10")
    if not (limit.isascii() and limit.isdecimal() and len(limit) < 5 and 1 <= int(limit) <= MOST):
        problems.append(FieldProblem("limit", f"should be a whole number from 1 to {MOST}."))
    if problems:
        raise InvalidInput("This cannot be completed.", problems)
    return given["prefix"], collections, int(limit)
