"""Searches that are asked plainly: answered past FastAPI, which takes long to load and to call."""

import re
from functools import partial

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import QueryParams
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from lexarium.domain.errors import FieldProblem, InvalidInput, LexariumError
from lexarium.domain.record import RecordState
from lexarium.domain.schema.collections import COLLECTIONS
from lexarium.services.search.record_search import MAX_QUERY_CHARS, RecordSearch, SearchQuery
from lexarium.services.serializers import serialize_search_result
from lexarium.store.position import Position
from lexarium.web.http.problems import problem_response
from lexarium.web.v1 import answers
from lexarium.web.v1.envelope import Envelope

PATH = f"{answers.PATH}/search"
MOST = 100
"""How many hits can be had at once."""
LONGEST_CLASS = 500
_PLAIN = {
    name: re.compile(form, re.DOTALL)
    for name, form in {
        "q": f".{{0,{MAX_QUERY_CHARS}}}",
        "collection": ".*",
        "class": f".{{0,{LONGEST_CLASS}}}",
        "state": ".*",
        "limit": f"[1-9][0-9]?|{MOST}",
        "offset": "[0-9]{1,3}",
        "explain": "true|false",
    }.items()
}
"""The parameters, as they are taken here. All else goes to v1, which knows more ways to say it, and what is wrong."""


class PlainSearch:
    """Answers where every parameter is plain; else `v1` does."""

    def __init__(self, finder: RecordSearch, v1: ASGIApp) -> None:
        self._finder = finder
        self._v1 = v1

    def route(self) -> Route:
        """Its address."""
        return Route(PATH, self)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        given = QueryParams(scope["query_string"])
        plain = scope["method"] in ("GET", "HEAD") and _is_plain(given)
        await (Envelope(partial(self._answer, given)) if plain else self._v1)(scope, receive, send)

    async def _answer(self, given: QueryParams, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            asked = SearchQuery(
                given["q"],
                collections=collections_of(given.getlist("collection")),
                class_ref=given.get("class"),
                states=states_of(given.getlist("state")),
                limit=int(given.get("limit", 10)),
                offset=int(given.get("offset", 0)),
                explain=given.get("explain") == "true",
            )
            response = await run_in_threadpool(found, self._finder, asked, self._finder.get_position())
        except LexariumError as error:
            response = problem_response(error)
        await response(scope, receive, send)


def _is_plain(given: QueryParams) -> bool:
    """Whether each parameter is known, is there once, and is as it should be."""
    pairs = given.multi_items()
    known = "q" in given and len(given) == len(pairs) and given.keys() <= _PLAIN.keys()
    return known and all(_PLAIN[name].fullmatch(value) for name, value in pairs)


def collections_of(given: list[str]) -> tuple[str, ...]:
    """The collections that a parameter names, by commas or each by itself. Raises `Invalid` where there is no such."""
    return _named("collection", given, list(COLLECTIONS)) if given else ()


def states_of(given: list[str]) -> tuple[RecordState, ...]:
    """The states that a parameter names, likewise."""
    return tuple(RecordState(each) for each in _named("state", given or [RecordState.PUBLISHED], list(RecordState)))


def found(finder: RecordSearch, asked: SearchQuery, position: Position) -> Response:
    """The answer to a search."""
    return answers.read(serialize_search_result(finder.search(asked, position)))


def _named(parameter: str, given: list[str], known: list[str]) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(name.strip() for name in ",".join(given).split(",") if name.strip()))
    unknown = [name for name in names if name not in known]
    if unknown or not names:
        raise InvalidInput(
            "This cannot be looked for.", [FieldProblem(parameter, f"should be among {', '.join(known)}.")]
        )
    return names
