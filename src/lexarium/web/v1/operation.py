"""Declaration of a v1 operation: its route, the parsing of its requests and its OpenAPI entry derive from it."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property, partial
from inspect import get_annotations, getdoc, iscoroutinefunction
from typing import Any, get_origin

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from lexarium.domain.errors import FieldProblem, InvalidInput, VersionConflict
from lexarium.domain.schema.collections import Collection
from lexarium.domain.validation import format_error
from lexarium.services.access.permissions import Caller, Permission
from lexarium.services.idempotency import IdempotencyRequest, WriteResponse, make_idempotent
from lexarium.services.records.lookup import VersionedRecord, get_published
from lexarium.services.serializers import serialize_record
from lexarium.store.position import Snapshot
from lexarium.store.transaction import Transaction
from lexarium.web.http.conditional import encode_response
from lexarium.web.http.limits import Limits
from lexarium.web.http.problems import HTTPProblem
from lexarium.web.http.request_body import get_media_type, parse_json_object
from lexarium.web.http.streaming import EventStreams
from lexarium.web.http.write_requests import authenticate_request, await_write, build_idempotency_request
from lexarium.web.middleware.access_gate import AccessGate
from lexarium.web.pages.site import Site
from lexarium.web.request_models import parse_model
from lexarium.web.v1.responses import OrjsonResponse, to_response

JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"
MIN_COMPRESSED_BYTES = 1024
INVALID_BODY = "The body is not valid."
READ_ERRORS = (410, 308)
"""Errors of reading a record that may be retired or merged."""
WRITE_ERRORS = (409, 410)
"""Errors of writing to one."""
_COLLECTION = "/{collection}"
_ETAG = re.compile(r'"(\d{1,9})(?:-[a-z]+)?"', re.ASCII)
"""ETag of a version, in whichever content encoding it was sent."""


class Parameters(BaseModel):
    """Path and query parameters of an operation. A subclass declares them, those of the path first."""

    model_config = ConfigDict(defer_build=True)


class ById(Parameters):
    """The identifier of the thing that a path names."""

    id: str = Field(description="Its identifier.")


@dataclass(frozen=True)
class Services(Site):
    """Parts of the application that operations use: those of the pages, and some more."""

    gate: AccessGate
    event_streams: EventStreams


@dataclass
class RequestContext:
    """A request with everything that its operation declares."""

    services: Services
    request: Request
    path_collection: Collection | None = None
    """The collection that the path names, if any."""
    caller: Caller = field(init=False)
    """Who sends the request; set for operations that need a token."""
    expected_versions: frozenset[int] | None = None
    """Versions that the write may change, by `If-Match`; None: any."""
    rate_limit_headers: dict[str, str] = field(default_factory=dict)
    """Set for writes; sent with every response to them."""

    @property
    def collection(self) -> Collection:
        """The collection of an operation that exists for each."""
        assert self.path_collection is not None
        return self.path_collection

    def find_expected(self, record_id: str, transaction: Transaction) -> VersionedRecord:
        """Return a published record of the collection if `If-Match` names its version; raise otherwise."""
        return self.require_expected(get_published(transaction.flush(), self.collection, record_id))

    def require_expected(self, record: VersionedRecord) -> VersionedRecord:
        """Return the record if `If-Match` names its version. Raises `VersionConflict`, which shows it, otherwise."""
        expected = self.expected_versions
        if expected is not None and record.version not in expected:
            versions = " or ".join(str(version) for version in sorted(expected))
            instead = f"not at {versions}" if versions else 'and If-Match names none: an ETag is such as "1"'
            is_at = f"{record.record.id} is at version {record.version} now"
            raise VersionConflict(
                f"{is_at}, {instead}. Read it again, and change that.",
                version=record.version,
                record=serialize_record(record.change),
            )
        return record


def _parse_if_match(header: str | None) -> frozenset[int] | None:
    """Return the versions that an `If-Match` header names; None: any. Raises a 428 where there is none."""
    if header is None:
        raise HTTPProblem(428, "This needs an If-Match header with the ETag of the version that is to be changed.")
    if header.strip() == "*":
        return None
    # A weak ETag never matches here (RFC 9110, 13.1.1).
    matches = (_ETAG.fullmatch(part.strip()) for part in header.split(","))
    return frozenset(int(match.group(1)) for match in matches if match)


class RecordDraft:
    """Placeholder for the draft of a record, whose model depends on the collection."""


@dataclass(frozen=True)
class MergePatch:
    """Placeholder for a JSON merge patch of a model."""

    model: type


@dataclass(frozen=True)
class Body:
    """The request body of an operation."""

    content: Mapping[str, Any]
    """By media type: a model, `RecordDraft`, a `MergePatch`, or the name of a schema of text."""
    parse: Callable[[dict[str, Any]], Any] | None = None
    """Turns the JSON object into what the handler takes. None: the handler reads the request itself."""
    required: bool = True


@dataclass(frozen=True)
class Success:
    """A successful response of an operation."""

    content: Mapping[str, Any]
    """By media type: its type, or the name of a schema of text."""
    headers: tuple[str, ...] = ()


@dataclass(eq=False)
class Operation:
    """An operation. What its handler takes says how requests are parsed, and how it is run.

    The handler takes the context, then, if it names them: `Parameters`; the body, as a model or a `dict`; a `Snapshot`
    or a `Transaction`. One that takes a transaction needs a token, and is run once for each `Idempotency-Key`. Unless
    it is a coroutine, any other runs in a thread. It returns a response, a `WriteResponse`, or the content of a JSON
    response that caches must revalidate.
    """

    method: str
    path: str
    """Below `/api/v1`. One that begins with `/{collection}` exists for each collection."""
    handler: Callable[..., Any]
    """Its docstring is the operation's summary and description."""
    responses: Mapping[int, Success]
    _: KW_ONLY
    name: str = ""
    """Its `operationId`; of an operation on a collection, without the collection's name. By default the handler's."""
    body: Body | None = None
    """By default the model that the handler takes."""
    permission: Permission | None = None
    needs_token: bool = False
    """One with a permission, or with a transaction, does."""
    if_match: bool = False
    returns_secret: bool = False
    """The response is not stored, and so cannot be sent again: it takes no `Idempotency-Key`."""
    cacheable: bool = True
    """Whether a successful GET has an ETag and may be compressed."""
    errors: tuple[int, ...] = ()
    """Errors that do not follow from the rest of the declaration."""
    headers: tuple[str, ...] = ()
    """Request headers that the handler reads."""
    parameters: type[Parameters] = field(init=False)

    def __post_init__(self) -> None:
        self.name = self.name or self.handler.__name__
        self.summary, _, self.description = str(getdoc(self.handler)).partition("\n\n")
        arguments = get_annotations(self.handler)
        models = [item for item in arguments.values() if isinstance(item, type) and issubclass(item, BaseModel)]
        self.parameters = next((model for model in models if issubclass(model, Parameters)), Parameters)
        bodies = [model for model in models if not issubclass(model, Parameters)]
        if self.body is None and bodies:
            self.body = json_body(bodies[0])
        self._takes_snapshot = Snapshot in arguments.values()
        self._takes_transaction = Transaction in arguments.values()
        self._is_async = iscoroutinefunction(self.handler)
        self.has_etag = self.cacheable and self.method == "GET"
        self.needs_token = self.needs_token or self.permission is not None or self._takes_transaction
        self.accepts_key = self._takes_transaction and not self.returns_secret

    @property
    def on_collection(self) -> bool:
        """Whether it exists for each collection."""
        return self.path.startswith(_COLLECTION)

    @property
    def request_headers(self) -> tuple[str, ...]:
        """The request headers that it takes, besides those that all take."""
        if_match = ("If-Match",) if self.if_match else ()
        key = ("Idempotency-Key",) if self.accepts_key else ()
        return (*if_match, *key, *self.headers)

    @property
    def error_statuses(self) -> set[int]:
        """The errors that it may respond with, apart from those that any request may cause."""
        statuses = {422, *self.errors}  # an unknown parameter is a 422
        if self.path_names:
            statuses |= {404}
        if self.body is not None:
            statuses |= {400, 408, 413, 415}
        if self.accepts_key:
            statuses |= {400, 408, 409, 413}
        if self.returns_secret:
            statuses |= {400}
        if self.if_match:
            statuses |= {412, 428}
        if self.needs_token:
            statuses |= {401} if self.method == "GET" else {401, 429}
        if self.permission is not None:
            statuses |= {403}
        return statuses

    @cached_property
    def path_names(self) -> frozenset[str]:
        """The names of the path parameters."""
        return frozenset(re.findall(r"{(\w+)}", self.path.removeprefix(_COLLECTION)))

    @cached_property
    def query_names(self) -> dict[str, bool]:
        """The names of the query parameters, and whether each may be repeated."""
        names = ((info.alias or name, info) for name, info in self.parameters.model_fields.items())
        return {name: get_origin(info.annotation) is tuple for name, info in names if name not in self.path_names}

    async def respond(self, context: RequestContext) -> Response:
        """Check the request part by part, run the handler, and return its response."""
        request, limits = context.request, context.services.limits
        if request.query_params:
            self._check_names(context)
        if self.returns_secret and "idempotency-key" in request.headers:
            detail = "Idempotency-Key cannot be used here: the answer holds a secret, which is kept nowhere."
            raise HTTPProblem(400, detail)
        if self.needs_token:
            context.caller = await self._authenticate(context)
        if self.if_match:
            context.expected_versions = _parse_if_match(request.headers.get("if-match"))
        parse = None if self.body is None else self.body.parse
        data = {}
        if self.body is not None and parse is not None and (self.body.required or await limits.read_body(request)):
            data = await read_json(request, limits)
        key = None
        if self.accepts_key:
            header = request.headers.get("idempotency-key")
            key = build_idempotency_request(request, header, await limits.read_body(request))
        parameters, problems = self._parse(context)
        if parameters is None:
            raise InvalidInput("The request is not valid.", problems)
        arguments = [] if self.parameters is Parameters else [parameters]
        response = await self._run(context, key, *arguments, *([] if parse is None else [parse(data)]))
        if self.has_etag and isinstance(response, OrjsonResponse):
            return await encode_response(request.scope, response, MIN_COMPRESSED_BYTES)
        return response

    async def _authenticate(self, context: RequestContext) -> Caller:
        """Return who sends the request; count a write against their rate limit; check their permission."""
        caller = await authenticate_request(context.request, context.services.authenticator)
        if self.method != "GET":
            context.rate_limit_headers = context.services.limits.write_limiter.acquire(caller.token_id)
        if self.permission is not None:
            caller.require(self.permission)
        return caller

    async def _run(self, context: RequestContext, key: IdempotencyRequest | None, *arguments: Any) -> Response:
        database = context.services.database

        def read() -> Response:
            with database.read() as snapshot:
                return to_response(self.handler(context, *arguments, snapshot))

        def write(transaction: Transaction) -> WriteResponse:
            result: WriteResponse = self.handler(context, *arguments, transaction)
            return result

        if self._takes_transaction:
            task = write if key is None else make_idempotent(context.caller.account.id, key, write)
            return to_response(await await_write(database, task))
        if self._takes_snapshot:
            return await run_in_threadpool(read)
        if self._is_async:
            return to_response(await self.handler(context, *arguments))
        return await run_in_threadpool(lambda: to_response(self.handler(context, *arguments)))

    def _check_names(self, context: RequestContext) -> None:
        """Raise InvalidInput for parameters that are unknown or exclude each other, and wrong values with them."""
        query, known = context.request.query_params, self.query_names
        problems = [
            FieldProblem(name, f"is not a parameter here; there are {', '.join(sorted(known)) or 'none'}.")
            for name in query
            if name not in known
        ]
        if {"release", "as_of"} <= query.keys() & known.keys():
            problems.append(FieldProblem("as_of", "cannot go with release: each says which state is to be read."))
        if problems:
            raise InvalidInput("The request is not valid.", [*self._parse(context)[1], *problems])

    def _parse(self, context: RequestContext) -> tuple[Parameters | None, list[FieldProblem]]:
        """Return the parameters, or what is wrong with them."""
        query, path = context.request.query_params, context.request.path_params
        values: dict[str, Any] = {name: path[name] for name in self.path_names}
        for name, repeated in self.query_names.items() if query else ():
            if name in query:
                values[name] = query.getlist(name) if repeated else query[name]
        try:
            return self.parameters.model_validate(values, context=context.path_collection), []
        except ValidationError as error:
            items = error.errors(include_url=False)
            return None, [FieldProblem(str(item["loc"][-1]), format_error(item)) for item in items]


def returns(content: Any, *headers: str, status: int = 200) -> dict[int, Success]:
    """Return the response of an operation that responds with JSON of this type, and these headers."""
    return {status: Success({JSON: content}, headers)}


NO_CONTENT = {204: Success({})}


def json_body(
    model: type[BaseModel], message: str = INVALID_BODY, *, required: bool = True, strict: bool = True
) -> Body:
    """Return a body of JSON that is parsed as this model; an invalid one is refused with the message."""
    return Body({JSON: model}, partial(parse_model, model, message=message, strict=strict), required)


def raw_body(model: type, *, patch: bool = False) -> Body:
    """Return a body of JSON that is documented by this model, or as a merge patch of it, and validated later."""
    return Body(dict.fromkeys((MERGE_PATCH, JSON), MergePatch(model)) if patch else {JSON: model}, dict)


async def read_json(request: Request, limits: Limits) -> dict[str, Any]:
    """Return the JSON object that the request body holds."""
    if get_media_type(request) not in (JSON, MERGE_PATCH):
        raise HTTPProblem(415, f"The body must be {JSON} or {MERGE_PATCH}.")
    return parse_json_object(await limits.read_body(request))


def split_commas(values: list[str]) -> list[str]:
    """Split values that are separated by commas, given once or repeatedly; drop empty ones."""
    return [part.strip() for part in ",".join(values).split(",") if part.strip()]


def check_names(known: Iterable[str], *, allow_none: bool = False) -> AfterValidator:
    """Return a validator that drops repeated names and rejects unknown ones; by default also an empty list."""

    def validate(names: tuple[str, ...]) -> tuple[str, ...]:
        if not set(names) <= set(known) or not (names or allow_none):
            raise ValueError(f"should be among {', '.join(known)}.")
        return tuple(dict.fromkeys(names))

    return AfterValidator(validate)
