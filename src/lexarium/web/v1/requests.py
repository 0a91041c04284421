"""What the addresses of v1 ask of a request: who sends it, a JSON body, a version, known parameters only.

None of it is a plain function: FastAPI would give each a thread, which costs more than what it does.
"""

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

from fastapi import Depends, Header, Request
from fastapi._compat import ModelField
from fastapi.dependencies.utils import get_flat_params, request_params_to_args
from fastapi.params import ParamTypes
from fastapi.routing import APIRoute
from pydantic import BaseModel, ValidationError
from starlette.datastructures import QueryParams

from lexarium.domain.errors import FieldProblem, InvalidInput, VersionConflict
from lexarium.domain.validation import format_error, to_field_problems
from lexarium.services.access.authentication import Authenticator
from lexarium.services.access.permissions import Caller, Permission
from lexarium.services.idempotency import IdempotencyRequest
from lexarium.services.records.lookup import VersionedRecord
from lexarium.services.search.annotator_cache import AnnotatorCache
from lexarium.services.search.record_search import RecordSearch
from lexarium.services.serializers import serialize_record
from lexarium.settings import Settings
from lexarium.store.database import Database
from lexarium.store.position import Position
from lexarium.web.http.limits import Limits
from lexarium.web.http.problems import HTTPProblem
from lexarium.web.http.request_body import parse_json_object
from lexarium.web.http.streaming import EventStreams
from lexarium.web.http.write_requests import authenticate_request, build_idempotency_request
from lexarium.web.middleware.access_gate import AccessGate

Model = TypeVar("Model", bound=BaseModel)

_JSON = ("application/json", "application/merge-patch+json")
_ETAG = re.compile(r'"(\d{1,9})(?:-[a-z]+)?"', re.ASCII)
"""The ETag of a version, however the answer that had it was compressed."""


def _part(name: str) -> Callable[[Request], Awaitable[Any]]:
    """What hands a handler a part of the application, by the name that `make_v1` gave it."""

    async def found(request: Request) -> Any:
        return getattr(request.app.state, name)

    return found


StoreOf = Annotated[Database, Depends(_part("database"))]
SettingsOf = Annotated[Settings, Depends(_part("settings"))]
FinderOf = Annotated[RecordSearch, Depends(_part("finder"))]
LimitsOf = Annotated[Limits, Depends(_part("limits"))]
StreamsOf = Annotated[EventStreams, Depends(_part("streams"))]
GateOf = Annotated[AccessGate, Depends(_part("gate"))]
AnnotatingOf = Annotated[AnnotatorCache, Depends(_part("annotating"))]


async def _seen(finder: FinderOf) -> Position:
    return finder.get_position()


SeenOf = Annotated[Position, Depends(_seen)]


async def identified(request: Request, limits: LimitsOf) -> Caller:
    """Who sends a request; a write is counted as theirs."""
    callers: Authenticator = request.app.state.callers
    caller = await authenticate_request(request, callers)
    if request.method != "GET":
        request.state.rate = limits.write_limiter.acquire(caller.token_id)
    return caller


CallerOf = Annotated[Caller, Depends(identified)]


async def _curator(caller: CallerOf) -> Caller:
    caller.require(Permission.PUBLISH)
    return caller


CuratorOf = Annotated[Caller, Depends(_curator)]


async def _admin(caller: CallerOf) -> Caller:
    caller.require(Permission.ADMINISTER)
    return caller


AdminOf = Annotated[Caller, Depends(_admin)]


def kind_of(request: Request) -> str:
    """The media type of a body, without its parameters."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


async def json_body(request: Request, limits: LimitsOf) -> dict[str, Any]:
    """The body as a JSON object."""
    kind = kind_of(request)
    if kind not in _JSON:
        raise HTTPProblem(415, f"The body must be {' or '.join(_JSON)}.")
    return parse_json_object(await limits.read_body(request))


BodyOf = Annotated[dict[str, Any], Depends(json_body)]


async def _body_if_any(request: Request, limits: LimitsOf) -> dict[str, Any]:
    return await json_body(request, limits) if await limits.read_body(request) else {}


BodyIfAnyOf = Annotated[dict[str, Any], Depends(_body_if_any)]


@dataclass(frozen=True)
class Match:
    """Which versions of a record a write may change."""

    versions: frozenset[int] | None
    """None: whichever there is."""

    def agreed(self, found: VersionedRecord) -> VersionedRecord:
        """The record, where its version is one of these. Raises `Stale`, which shows it."""
        if self.versions is not None and found.version not in self.versions:
            named = " or ".join(str(version) for version in sorted(self.versions))
            instead = f"not at {named}" if named else 'and If-Match names none: an ETag is such as "1"'
            told = f"{found.record.id} is at version {found.version} now, {instead}. Read it again, and change that."
            raise VersionConflict(told, version=found.version, record=serialize_record(found.change))
        return found


async def _match(
    if_match: Annotated[str | None, Header(description="The ETag of the version that is to be changed.")] = None,
) -> Match:
    if if_match is None:
        raise HTTPProblem(428, "This needs an If-Match header with the ETag of the version that is to be changed.")
    if if_match.strip() == "*":
        return Match(None)
    # A weak one never matches here, as HTTP has it.
    named = (_ETAG.fullmatch(part.strip()) for part in if_match.split(","))
    return Match(frozenset(int(found.group(1)) for found in named if found))


MatchOf = Annotated[Match, Depends(_match)]


async def _ask(
    request: Request,
    limits: LimitsOf,
    idempotency_key: Annotated[
        str | None, Header(description="Done once, however often it is sent, for a day.")
    ] = None,
) -> IdempotencyRequest:
    return build_idempotency_request(request, idempotency_key, await limits.read_body(request))


AskOf = Annotated[IdempotencyRequest, Depends(_ask)]


async def refuse_key(request: Request) -> None:
    """Raise a 400 for a key, where the answer holds a secret: it is not kept, so it could not be told again."""
    if "idempotency-key" in request.headers:
        raise HTTPProblem(400, "Idempotency-Key cannot be used here: the answer holds a secret, which is kept nowhere.")


def refuse_parameters(request: Request) -> None:
    """Raise `Invalid` for each parameter, where there are none."""
    unknown = [FieldProblem(name, "is not a parameter here; there are none.") for name in request.query_params]
    if unknown:
        raise InvalidInput("The request is not valid.", unknown)


async def check_parameters(request: Request) -> None:
    """Raise `Invalid` that names every parameter which is not known, or does not go with another.

    Then those with wrong values are named too; where it is these alone, the framework does so.
    """
    given = request.query_params
    if not given:
        return
    queried = parameters_of(request.scope["route"])
    problems = _strange(given, queried)
    if {"release", "as_of"} <= given.keys() & {each.alias for each in queried}:
        problems.append(FieldProblem("as_of", "cannot go with release: each says which state is to be read."))
    if problems:
        _, errors = request_params_to_args(queried, given)
        raise InvalidInput("The request is not valid.", [*parameter_problems(errors), *problems])


def parameters_of(route: APIRoute) -> list[ModelField]:
    """What a route takes in the query of an address."""
    parameters = get_flat_params(route.dependant)
    return [each for each in parameters if getattr(each.field_info, "in_", None) == ParamTypes.query]


def _strange(given: QueryParams, queried: Sequence[ModelField]) -> list[FieldProblem]:
    known = {each.alias for each in queried}
    return [
        FieldProblem(name, f"is not a parameter here; there are {', '.join(sorted(known)) or 'none'}.")
        for name in given
        if name not in known
    ]


def parameter_problems(errors: Iterable[Mapping[str, Any]]) -> list[FieldProblem]:
    """What the framework found wrong with parameters."""
    return [FieldProblem(str(item["loc"][-1]), format_error(item)) for item in errors]


def read_as(model: type[Model], body: Mapping[str, Any]) -> Model:
    """A body as what it should be. Raises `Invalid` with every problem: what is missing, unknown, of a wrong type."""
    try:
        return model.model_validate(body, strict=True, extra="forbid")
    except ValidationError as error:
        raise InvalidInput("The body is not valid.", to_field_problems(error)) from None
