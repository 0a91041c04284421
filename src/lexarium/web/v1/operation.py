"""Declare v1 operations. Routes, the parsing of requests and the OpenAPI document are derived from them."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import partial
from inspect import get_annotations, getdoc, iscoroutinefunction
from typing import Annotated, Any, Self, get_origin

from pydantic import BaseModel, BeforeValidator, Field, ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from lexarium.domain.editing.validation import format_error
from lexarium.domain.errors import FieldProblem, InvalidInput, LexariumError, NotFound, VersionConflict
from lexarium.domain.identifiers import get_local_id, qualify_id
from lexarium.domain.schema.collections import COLLECTIONS, Collection
from lexarium.domain.schema.relation_types import qualify_name
from lexarium.domain.vocabulary import Vocabulary
from lexarium.services.access.permissions import Caller, Permission
from lexarium.services.curation.name_warnings import WriteWarning
from lexarium.services.idempotency import IdempotencyRequest, make_idempotent
from lexarium.services.record_serializer import Presentation, serialize_record
from lexarium.services.records.lookup import VersionedRecord, get_published
from lexarium.services.vocabularies.access import ReadScope, get_unqualified_vocabulary
from lexarium.store.position import Snapshot
from lexarium.store.transaction import Transaction
from lexarium.web.http.callers import AccessGate, authenticate_request, find_reader
from lexarium.web.http.conditional import encode_response
from lexarium.web.http.languages import get_languages
from lexarium.web.http.limits import Limits
from lexarium.web.http.problems import HTTPProblem
from lexarium.web.http.request_body import get_media_type, parse_json_object
from lexarium.web.http.streaming import EventStreams
from lexarium.web.http.write_requests import await_write, build_idempotency_request
from lexarium.web.request_models import parse_model
from lexarium.web.site import Site, get_request_scope
from lexarium.web.v1.responses import OrjsonResponse, to_response

JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"
MIN_COMPRESSED_BYTES = 1024
INVALID_BODY = "Invalid request body."
_ETAG = re.compile(r'"(\d{1,9})(?:-[A-Za-z0-9-]+)?"', re.ASCII)
"""ETag of a version, in whichever language and content encoding it was sent."""


class Parameters(BaseModel, defer_build=True):
    """Path and query parameters of an operation. A subclass declares them, those of the path first."""


class ById(Parameters):
    """Identifier in the path."""

    id: str = Field(description="ID.")


@dataclass
class RequestContext:
    """A request, what was parsed from it, and the services that handlers use."""

    site: Site
    gate: AccessGate
    event_streams: EventStreams
    request: Request
    caller: Caller = field(init=False)
    """Set for operations that need a token."""
    reader: Caller | None = None
    """The caller; of operations that need no token, if there is one."""
    warnings: list[WriteWarning] = field(default_factory=list)
    """Warnings about a write, found before it."""
    path_vocabulary: Vocabulary | None = None
    """Vocabulary that the path is about, if any."""
    path_collection: Collection | None = None
    """Collection in the path, if any."""
    expected_versions: frozenset[int] | None = None
    """Versions that `If-Match` allows to change; None for any."""
    rate_limit_headers: dict[str, str] = field(default_factory=dict)
    """Set for writes, and sent with every response to them."""

    @property
    def vocabulary(self) -> Vocabulary:
        """Vocabulary that the path of an operation is about."""
        assert self.path_vocabulary is not None
        return self.path_vocabulary

    @property
    def collection(self) -> Collection:
        """Collection in the path of an operation on collections."""
        assert self.path_collection is not None
        return self.path_collection

    def get_scope(self, chosen: Sequence[str] = ()) -> ReadScope:
        """Return the vocabularies that the caller may read, or those they chose; raise NotFound."""
        return get_request_scope(self.request, self.reader, chosen)

    def resolve_path(self, *, has_default: bool) -> None:
        """Find the vocabulary and the collection of the path; raise NotFound unless the caller may read them.

        A path without a vocabulary is about the default one if `has_default`.
        """
        slug, name = (self.request.path_params.get(key) for key in ("vocabulary", "collection"))
        if slug is not None:
            [self.path_vocabulary] = self.get_scope((slug,)).vocabularies
        elif has_default:
            self.path_vocabulary = get_unqualified_vocabulary()
            if self.path_vocabulary.slug not in self.get_scope().slugs:
                raise HTTPException(404)
        if name is not None:
            self.path_collection = COLLECTIONS.get(qualify_name(self.vocabulary.slug, name))
            if self.path_collection is None:
                known = ", ".join(collection.local_name for collection in self.vocabulary.collections)
                raise NotFound(f"{self.vocabulary.slug} has no collection {name!r}; available: {known}.")

    def qualify(self, local_id: str) -> str:
        """Return the id of a record of the vocabulary of the path that is unique in the database; raise NotFound."""
        return qualify_client_id(self.vocabulary.slug, local_id)

    @property
    def presentation(self) -> Presentation:
        """Return how records are rendered in their default language."""
        return Presentation(self.site.get_base(self.request))

    @property
    def translated(self) -> Presentation:
        """Return how records are rendered in the languages of the request."""
        return Presentation(self.site.get_base(self.request), get_languages(self.request))

    def find_expected(self, local_id: str, transaction: Transaction) -> VersionedRecord:
        """Return a published record of the path if `If-Match` names its version; raise otherwise."""
        record_id = self.qualify(local_id)
        return self.require_expected(get_published(transaction.flush(), self.path_collection, record_id))

    def require_expected(self, record: VersionedRecord) -> VersionedRecord:
        """Return the record if `If-Match` names its version; raise VersionConflict, which holds it, otherwise."""
        expected = self.expected_versions
        if expected is None or record.version in expected:
            return record
        versions = " or ".join(str(version) for version in sorted(expected))
        instead = f"not {versions}" if versions else 'and If-Match has no valid ETag, such as "1"'
        message = f"{record.record.local_id} is at version {record.version}, {instead}. Reload it and retry."
        content = serialize_record(record.change, self.presentation)
        raise VersionConflict(message, version=record.version, record=content)


def qualify_client_id(vocabulary: str, local_id: str) -> str:
    """Return the unique id of a record, given the id that a client sent; raise NotFound if no record can have it."""
    if get_local_id(local_id) != local_id:
        raise NotFound(f"Record {get_local_id(local_id)!r} not found.")
    return qualify_id(vocabulary, local_id)


def _parse_if_match(header: str | None) -> frozenset[int] | None:
    """Return the versions that an `If-Match` header names, or None for any; raise a 428 if there is no header."""
    if header is None:
        raise HTTPProblem(428, "If-Match header required: send the current ETag of the record.")
    if header.strip() == "*":
        return None
    # A weak ETag never matches here (RFC 9110, 13.1.1).
    matches = (_ETAG.fullmatch(part.strip()) for part in header.split(","))
    return frozenset(int(match.group(1)) for match in matches if match)


@dataclass(frozen=True)
class Body:
    """The request body of an operation, which is read as JSON if the handler takes a model or a `dict`."""

    content: Mapping[str, Any]
    """By media type: a model, or the name of a schema."""
    required: bool = True
    error: str = INVALID_BODY
    """The message if the model does not accept it."""
    strict: bool = True
    """Whether a value of another type is refused, not converted."""


@dataclass(frozen=True)
class Success:
    """A successful response of an operation."""

    content: Mapping[str, Any]
    """By media type: its type, or the name of a schema."""
    headers: tuple[str, ...] = ()


@dataclass(eq=False)
class Operation:
    """An operation. The annotations of its handler determine how requests are parsed and how the handler runs.

    The arguments of the handler are the context and, in this order and all optional: `Parameters`; the body, as a model
    or a `dict`; a `Snapshot` or a `Transaction`. A handler with a transaction needs a token, and runs once per
    `Idempotency-Key`. Other handlers run in a thread, unless they are coroutines. A handler returns a response, a
    `WriteResponse`, the content of a JSON response that caches must revalidate, or None for a 204.
    """

    method: str
    path: str
    """Path below `/api/v1`. It may have a `{vocabulary}`, or begin with a `/{collection}` of the default one."""
    handler: Callable[..., Any]
    """Its docstring is the summary and description of the operation."""
    responses: Mapping[int, Success]
    _: KW_ONLY
    name: str = ""
    """`operationId`. Default: the name of the handler."""
    body: Body | None = None
    """Default: JSON of the model that the handler takes."""
    permission: Permission | None = None
    needs_token: bool = False
    """Implied by a permission and by a transaction."""
    if_match: bool = False
    returns_secret: bool = False
    """The response must not be stored, so the operation does not accept an `Idempotency-Key`."""
    cacheable: bool = True
    """Whether a successful GET has an ETag and may be compressed."""
    errors: tuple[int, ...] = ()
    """Statuses of errors that are not derived from the rest of the declaration."""
    headers: tuple[str, ...] = ()
    """Request headers that the handler reads."""
    has_vocabulary: bool = False
    """Whether there is the same operation for every vocabulary, in which case this one is that of the default one."""
    find_warnings: Callable[..., list[WriteWarning]] | None = None
    """Called with the context and the parsed arguments in a thread, before the transaction of the handler begins."""

    def __post_init__(self) -> None:
        self.name = self.name or self.handler.__name__
        self.summary, _, self.description = str(getdoc(self.handler)).partition("\n\n")
        arguments = [item for name, item in get_annotations(self.handler).items() if name != "return"]
        models = [item for item in arguments if isinstance(item, type) and issubclass(item, BaseModel)]
        self.parameters = next((model for model in models if issubclass(model, Parameters)), Parameters)
        self.path_names = set(re.findall(r"{(\w+)}", self.path)) - {"collection", "vocabulary"}
        names = {info.alias or name: info for name, info in self.parameters.model_fields.items()}
        # By name: whether the parameter may be repeated.
        self.query_names = {
            name: get_origin(info.annotation) is tuple for name, info in names.items() if name not in self.path_names
        }
        body_model = next((model for model in models if not issubclass(model, Parameters)), None)
        self._parse_body: Callable[[dict[str, Any]], Any] | None = dict if dict[str, Any] in arguments else None
        if body_model is not None:
            self.body = self.body or json_body(body_model)
            self._parse_body = partial(parse_model, body_model, message=self.body.error, strict=self.body.strict)
        self._is_async = iscoroutinefunction(self.handler)
        self._takes_snapshot = Snapshot in arguments
        self._takes_transaction = Transaction in arguments
        self.has_etag = self.cacheable and self.method == "GET"
        self.needs_token = self.needs_token or self.permission is not None or self._takes_transaction
        self.accepts_key = self._takes_transaction and not self.returns_secret

    def in_vocabulary(self) -> Self:
        """Return the same operation for any vocabulary. The collection of a record follows from the record."""
        path = re.sub(
            r"^/{collection}(?=/|$)", "/records" if "{id}" in self.path else "/collections/{collection}", self.path
        )
        path = f"/vocabularies/{{vocabulary}}{path}"
        return replace(self, path=path, name=f"vocabulary_{self.name}", has_vocabulary=False)

    @property
    def error_statuses(self) -> set[int]:
        """Statuses of errors that the operation may return, besides those that every operation may."""
        statuses_by_cause = (
            # A token that is not valid is a 401 even where none is needed, and an unknown parameter a 422.
            (True, {401, 422, *self.errors}),
            (self.path_names or "{" in self.path or "vocabulary" in self.query_names, {404}),
            (self.body, {400, 408, 413, 415}),
            (self.accepts_key, {400, 408, 409, 413}),
            (self.returns_secret, {400}),
            (self.if_match, {412, 428}),
            (self.needs_token and self.method != "GET", {429}),
            (self.permission, {403}),
        )
        return set[int]().union(*(statuses for applies, statuses in statuses_by_cause if applies))

    async def respond(self, context: RequestContext) -> Response:
        """Check the request part by part, run the handler, and return its response."""
        request, limits = context.request, context.site.limits
        if self.returns_secret and "idempotency-key" in request.headers:
            detail = "Idempotency-Key is not supported here because the response contains a secret."
            raise HTTPProblem(400, detail)
        if self.needs_token:
            context.caller = context.reader = await self._authenticate(context)
        else:
            context.reader = await find_reader(request, context.site.authenticator)
        context.resolve_path(has_default=self.has_vocabulary)
        if request.query_params:
            self._check_names(context)
        if self.permission is not None:
            self._require_permission(context)
        if self.if_match:
            context.expected_versions = _parse_if_match(request.headers.get("if-match"))
        data = {}
        if self._parse_body and self.body and (self.body.required or await limits.read_body(request)):
            data = await read_json(request, limits)
        key = None
        if self.accepts_key:
            header = request.headers.get("idempotency-key")
            key = build_idempotency_request(request, header, await limits.read_body(request))
        parameters = self._parse(context)
        arguments: list[Any] = [] if self.parameters is Parameters else [parameters]
        if self._parse_body:
            arguments.append(self._parse_body(data))
        response = await self._run(context, key, *arguments)
        if self.has_etag and isinstance(response, OrjsonResponse):
            return await encode_response(request.scope, response, MIN_COMPRESSED_BYTES)
        return response

    async def _authenticate(self, context: RequestContext) -> Caller:
        """Return the caller, and count a write against their rate limit."""
        caller = await authenticate_request(context.request, context.site.authenticator)
        if self.method != "GET":
            context.rate_limit_headers = context.site.limits.write_limiter.acquire(caller.token_id)
        return caller

    def _require_permission(self, context: RequestContext) -> None:
        """Raise PermissionDenied unless the caller has the permission, which records of any vocabulary may need."""
        assert self.permission is not None
        if context.path_vocabulary is not None:
            context.caller.require(self.permission, context.path_vocabulary.slug)
        elif self.permission is Permission.ADMINISTER:
            context.caller.require(self.permission)
        else:
            context.caller.require_anywhere(self.permission)

    async def _run(self, context: RequestContext, key: IdempotencyRequest | None, *arguments: Any) -> Response:
        database, handler = context.site.database, partial(self.handler, context, *arguments)
        if self._takes_transaction:
            if self.find_warnings is not None:
                with suppress(LexariumError):  # which the handler raises too
                    context.warnings = await run_in_threadpool(self.find_warnings, context, *arguments)
            task = handler if key is None else make_idempotent(context.caller.account.id, key, handler)
            return to_response(await await_write(database, task))
        if self._is_async:
            return to_response(await handler())
        if self._takes_snapshot:
            return await run_in_threadpool(database.run_read, lambda snapshot: to_response(handler(snapshot)))
        return await run_in_threadpool(lambda: to_response(handler()))

    def _check_names(self, context: RequestContext) -> None:
        """Raise InvalidInput if parameters are unknown or exclude each other, with the problems of all others."""
        query, known = context.request.query_params, self.query_names
        problems = [
            FieldProblem(name, f"is not a valid parameter; valid: {', '.join(sorted(known)) or 'none'}.")
            for name in query
            if name not in known
        ]
        if {"release", "as_of"} <= query.keys() & known.keys():
            problems.append(FieldProblem("as_of", "cannot be combined with release."))
        if problems:
            self._parse(context, problems)

    def _parse(self, context: RequestContext, problems: Sequence[FieldProblem] = ()) -> Parameters:
        """Return the parameters; raise InvalidInput with all problems if there are any, these included."""
        query, path = context.request.query_params, context.request.path_params
        values: dict[str, Any] = {name: path[name] for name in self.path_names}
        for name, repeated in self.query_names.items() if query else ():
            if name in query:
                values[name] = query.getlist(name) if repeated else query[name]
        try:
            parameters = self.parameters.model_validate(values, context=context.path_collection)
        except ValidationError as error:
            items = error.errors(include_url=False)
            problems = [*(FieldProblem(str(item["loc"][-1]), format_error(item)) for item in items), *problems]
        if problems:
            raise InvalidInput("Invalid request.", problems)
        return parameters


def returns(content: Any, *headers: str, status: int = 200) -> dict[int, Success]:
    """Return a JSON response of this type with these headers, to declare an operation."""
    return {status: Success({JSON: content}, headers)}


NO_CONTENT = {204: Success({})}


def json_body(schema: Any, *, patch: bool = False, **options: Any) -> Body:
    """Return a body of JSON with this schema; a `patch` may also be sent as `application/merge-patch+json`."""
    return Body(dict.fromkeys((MERGE_PATCH, JSON) if patch else (JSON,), schema), **options)


async def read_json(request: Request, limits: Limits) -> dict[str, Any]:
    """Return the JSON object in a request body."""
    if get_media_type(request) not in (JSON, MERGE_PATCH):
        raise HTTPProblem(415, f"Request body must be {JSON} or {MERGE_PATCH}.")
    return parse_json_object(await limits.read_body(request))


def split_commas(values: list[str]) -> list[str]:
    """Split values that are separated by commas, given once or repeatedly; drop empty ones."""
    return [part.strip() for part in ",".join(values).split(",") if part.strip()]


def split_unique(values: list[str]) -> tuple[str, ...]:
    """Split values as `split_commas` does, and drop repeated ones."""
    return tuple(dict.fromkeys(split_commas(values)))


LangParam = Annotated[
    str | None,
    Field(max_length=100, description="Language of names and definitions (default: from `Accept-Language`)."),
]
NamesParam = Annotated[tuple[str, ...], BeforeValidator(split_unique)]
"""Names, separated by commas or repeated."""
VOCABULARIES_TEXT = "Vocabularies, comma-separated or repeated (default: all you may read)."


def split_names(known: Iterable[str], *, allow_none: bool = False) -> BeforeValidator:
    """Return a validator that splits names at commas and rejects unknown ones; by default also an empty list."""

    def validate(values: list[str]) -> tuple[str, ...]:
        names = split_unique(values)
        if not set(names) <= set(known) or not (names or allow_none):
            raise ValueError(f"must be among {', '.join(known)}.")
        return names

    return BeforeValidator(validate)
