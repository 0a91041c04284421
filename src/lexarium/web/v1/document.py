"""The OpenAPI document: what the routes say, and all that can be derived from what they ask of a request."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, get_args

from fastapi import APIRouter, FastAPI
from fastapi.dependencies.models import Dependant
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute

from lexarium.domain.schema.collections import COLLECTIONS
from lexarium.web import suggest
from lexarium.web.v1 import frozen
from lexarium.web.v1.components import components
from lexarium.web.v1.examples import example, example_id
from lexarium.web.v1.requests import AdminOf, AskOf, BodyIfAnyOf, BodyOf, CallerOf, CuratorOf, MatchOf, refuse_key
from lexarium.web.v1.schemas import UNCHANGED, answered, known_again, numbered, problems

_DESCRIPTION = """A terminology catalogue: records with versions, history, relations, proposals and releases.

Reading needs no token. Stamps are UTC without a zone. Errors are `application/problem+json`, every wrong field at once.
`/api/v1` only ever grows: clients should pass over fields that they do not know.

The Reconciliation API 0.2 is at `/reconcile`, whose manifest says what it offers; it has a specification of its own."""

_TAGS = {
    "service": "The service itself, and any record by its identifier alone.",
    "search": "Finding records.",
    "annotate": "Finding the terms in a text.",
    **{name: collection.description for name, collection in COLLECTIONS.items()},
    "changes": "The feed: every change, in order, once; and live.",
    "batch": "Many writes in one request, all or nothing.",
    "proposals": "What contributors would change, and curators decide.",
    "releases": "States of the catalogue that have a name.",
    "export": "Taking the catalogue out.",
    "accounts": "People and their tokens.",
    "webhooks": "Programs that are told of changes.",
    frozen.TAG: "The frozen read interface.",
}

_ASKED = {
    BodyOf: (400, 408, 413, 415),
    AskOf: (400, 408, 409, 413),
    BodyIfAnyOf: (400, 408, 413, 415),
    MatchOf: (412, 428),
    CallerOf: (401,),
    CuratorOf: (401, 403),
    AdminOf: (401, 403),
}
"""The errors that come with what a route asks of a request. 422 comes with all: unknown parameters are refused."""
_ERRORS = {get_args(alias)[1].dependency: errors for alias, errors in _ASKED.items()} | {refuse_key: (400,)}
_THEIRS = ("HTTPValidationError", "ValidationError")
"""What the framework would answer with: we do not."""
_IDENTIFIED = get_args(CallerOf)[1].dependency

_PARAMETERS = {
    "id": "Its identifier.",
    "version": "The number of the version.",
    "limit": "How many at most.",
    "offset": "How many of the best to leave out.",
    "sort": "The order; with `-` the other way round.",
    "class": "Only of the class with this id, `ctp_…`.",
    "user": "Only those that the user with this id, `usr_…`, owns.",
    "flagged": "Only those that wait for a curator's look, or only those that do not.",
    "collection": "Only of this collection.",
    "relation": "The name of the relation.",
    "target": "What it points to.",
    "from": "The earlier version.",
    "to": "The later version.",
    "name": "Its name.",
    "If-None-Match": "The ETag you have: where it still holds, the answer is a 304.",
}
"""What parameters are that say nothing of themselves."""
_EXAMPLES: dict[str, Any] = {"q": "working memory", "version": 1, "from": 1, "to": 2, "If-Match": '"1"'}
_IDS = {"users": "usr_4f1d2c8e9b07a635", "tokens": "tok_5d77d105ab49c581", "webhooks": "whk_8a1e6b3c5d7f9024",
        "proposals": "prp_0c5a7e3f9d2b4861", "records": example_id("concept"), "releases": "2026.1"}  # fmt: skip
"""What examples call the things at an address."""


def make_document(app: FastAPI, routers: Sequence[APIRouter], prefix: str) -> dict[str, Any]:
    """The document of an application that these routers were included in."""
    document = get_openapi(
        title=app.title,
        version=app.version,
        description=_DESCRIPTION,
        routes=app.routes,
        tags=[{"name": name, "description": told} for name, told in _TAGS.items()],
    )
    schemas = document.setdefault("components", {}).setdefault("schemas", {})
    schemas |= components()
    for name in _THEIRS:
        schemas.pop(name, None)
    document["components"]["responses"] = {_error(status): each for status, each in problems().items()}
    document["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    for route in _routes(routers):
        for method in route.methods or ():
            operation = document["paths"][prefix + route.path][method.lower()]
            _complete(operation, method, set(_calls(route.dependant)))
    document["paths"][suggest.PATH] = {"get": suggest.describe(numbered(answered("Suggestions", 422)))}
    document["paths"] |= frozen.paths()
    for path, operations in document["paths"].items():
        for operation in operations.values():
            operation["responses"] = _referring(operation["responses"])
            _exemplify(path, operation)
    return document


def _routes(routers: Iterable[APIRouter]) -> Iterator[APIRoute]:
    for router in routers:
        yield from (route for route in router.routes if isinstance(route, APIRoute))


def _calls(dependant: Dependant) -> Iterator[Any]:
    for each in dependant.dependencies:
        yield each.call
        yield from _calls(each)


def _complete(operation: dict[str, Any], method: str, calls: set[Any]) -> None:
    """Add to an operation what comes with what it asks of a request."""
    asked = {error for call, errors in _ERRORS.items() if call in calls for error in errors} | {422}
    if _IDENTIFIED in calls and method != "GET":
        asked |= {429}
    operation["responses"] |= {str(error): {} for error in asked}
    if method == "GET":
        operation["responses"] |= numbered(UNCHANGED)
        operation["responses"]["200"].setdefault("headers", {}).update(known_again())
    operation["security"] = [{"token": []}] if _IDENTIFIED in calls else []
    for parameter in operation.get("parameters", []):
        if parameter["in"] == "header":
            parameter["name"] = parameter["name"].title()
            parameter["required"] = parameter["name"] == "If-Match"
        parameter.setdefault("description", _PARAMETERS.get(parameter["name"], ""))
        parameter["schema"] = _given(parameter["schema"])


def _given(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema of a parameter that is given: in an address there is no null, only leaving out."""
    plain = {key: value for key, value in schema.items() if key not in ("anyOf", "title", "description")}
    for each in schema.get("anyOf", []):
        if each != {"type": "null"}:
            plain |= each
    return plain


def _referring(responses: dict[str, Any]) -> dict[str, Any]:
    """The same answers in order, with errors told where all of their kind are."""
    errors = {status: {"$ref": f"#/components/responses/{_error(status)}"} for status in (*problems(), "default")}
    return {status: errors.get(status, told) for status, told in sorted({**responses, "default": {}}.items())}


def _error(status: str) -> str:
    return f"Problem{status.removeprefix('default')}"


def _exemplify(path: str, operation: dict[str, Any]) -> None:
    """Add examples to an operation's parameters, body and answers."""
    place = path.split("/")[3] if path.count("/") > 2 else ""
    collection = place if place in COLLECTIONS else "concept"
    identifier = example_id(place) if place in COLLECTIONS else _IDS.get(place)
    known = {**_EXAMPLES, "id": identifier, "name": identifier, **example("Relate", collection)}
    for parameter in operation.get("parameters", []):
        given = known.get(parameter["name"])
        if given is not None and parameter.get("required"):
            parameter["example"] = given
    bodies = operation.get("requestBody", {}).get("content", {})
    for told in ({"content": bodies}, *operation["responses"].values()):
        _show(told, collection)


def _show(told: dict[str, Any], of: str) -> None:
    """Add examples to what a body or an answer holds."""
    for media in told.get("content", {}).values():
        shown = example(media["schema"]["$ref"].rpartition("/")[2], of)
        if shown is not None:
            media["example"] = shown
