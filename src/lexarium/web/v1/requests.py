"""What the addresses of v1 ask of a request: who sends it, a JSON body, a version, known parameters only."""

from typing import Annotated, Any

import orjson
from fastapi import Depends, Header, Request
from fastapi.dependencies.utils import get_flat_params
from fastapi.params import ParamTypes

from lexarium.domain.errors import Invalid, Problem
from lexarium.service import access
from lexarium.service.access import Caller, Deed
from lexarium.service.once import Ask
from lexarium.settings import Settings
from lexarium.store.database import Database
from lexarium.web.limits import Limits
from lexarium.web.problems import HttpProblem

_JSON = ("application/json", "application/merge-patch+json")
_LONGEST_KEY = 200


def _database(request: Request) -> Database:
    database: Database = request.app.state.database
    return database


StoreOf = Annotated[Database, Depends(_database)]


def _settings(request: Request) -> Settings:
    settings: Settings = request.app.state.settings
    return settings


SettingsOf = Annotated[Settings, Depends(_settings)]


def _limits(request: Request) -> Limits:
    limits: Limits = request.app.state.limits
    return limits


LimitsOf = Annotated[Limits, Depends(_limits)]


def _identified(request: Request, database: StoreOf, limits: LimitsOf) -> Caller:
    caller = access.identify(database, request.headers.get("authorization"))
    if request.method != "GET":
        request.state.rate = limits.writes.take(caller.token)
    return caller


CallerOf = Annotated[Caller, Depends(_identified)]


def _curator(caller: CallerOf) -> Caller:
    caller.require(Deed.PUBLISH)
    return caller


CuratorOf = Annotated[Caller, Depends(_curator)]


def _admin(caller: CallerOf) -> Caller:
    caller.require(Deed.ADMINISTER)
    return caller


AdminOf = Annotated[Caller, Depends(_admin)]


def kind_of(request: Request) -> str:
    """The media type of a body, without its parameters."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


async def json_body(request: Request, limits: LimitsOf) -> dict[str, Any]:
    """The body as a JSON object."""
    kind = kind_of(request)
    if kind not in _JSON:
        raise HttpProblem(415, f"The body must be {' or '.join(_JSON)}.")
    try:
        given = orjson.loads(await limits.body(request))
    except orjson.JSONDecodeError as error:
        raise HttpProblem(400, f"The body is not JSON: {error}.") from None
    if not isinstance(given, dict):
        raise HttpProblem(400, "The body must be a JSON object.")
    return given


BodyOf = Annotated[dict[str, Any], Depends(json_body)]


def _version(if_match: Annotated[str | None, Header(description="The version that is to be changed.")] = None) -> int:
    if if_match is None:
        raise HttpProblem(428, "This needs an If-Match header with the ETag of the version that is to be changed.")
    text = if_match.strip().removeprefix("W/").strip('"')
    if not text.isdecimal() or not text.isascii() or len(text) > 9:
        raise HttpProblem(412, "The If-Match header does not hold the ETag of a version.")
    return int(text)


VersionOf = Annotated[int, Depends(_version)]


async def _ask(
    request: Request,
    limits: LimitsOf,
    idempotency_key: Annotated[
        str | None, Header(description="Done once, however often it is sent, for a day.")
    ] = None,
) -> Ask:
    if idempotency_key is not None and not 0 < len(idempotency_key) <= _LONGEST_KEY:
        raise HttpProblem(400, f"An Idempotency-Key must have from 1 to {_LONGEST_KEY} characters.")
    what = f"{request.method} {request.url.path}?{request.url.query}\n".encode() + await limits.body(request)
    return Ask(idempotency_key, what)


AskOf = Annotated[Ask, Depends(_ask)]


def refuse_unknown_parameters(request: Request) -> None:
    """Raise `Invalid` that names every parameter which the address does not know."""
    known = {
        field.alias
        for field in get_flat_params(request.scope["route"].dependant)
        if getattr(field.field_info, "in_", None) == ParamTypes.query
    }
    problems = [
        Problem(name, f"is not a parameter here; there are {', '.join(sorted(known)) or 'none'}.")
        for name in request.query_params
        if name not in known
    ]
    if problems:
        raise Invalid("The request has parameters that are not known.", problems)


def taken(body: dict[str, Any], **kinds: type) -> list[Any]:
    """The values of these fields of a body, None where left out; raises `Invalid` for others and for wrong types."""
    problems = [Problem(name, "is not a field that can be written here.") for name in body if name not in kinds]
    for name, kind in kinds.items():
        value = body.get(name)
        if value is not None and type(value) is not kind:
            what = {str: "text", int: "a whole number", dict: "an object", list: "a list"}[kind]
            problems.append(Problem(name, f"should be {what}."))
    if problems:
        raise Invalid("The body is not valid.", problems)
    return [body.get(name) for name in kinds]
