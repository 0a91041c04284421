"""Errors as answers: `application/problem+json`, everywhere (RFC 9457). One table maps the domain's errors."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

import orjson
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from lexarium.domain.errors import (
    Conflict,
    DatabaseDamaged,
    DiskFull,
    IndexNotReady,
    InvalidInput,
    LexariumError,
    NotFound,
    PermissionDenied,
    RecordMerged,
    RecordRetired,
    StoreError,
    Unauthenticated,
    VersionConflict,
)

logger = logging.getLogger(__name__)

_STATUS_BY_ERROR: dict[type[LexariumError], int] = {
    InvalidInput: 422,
    RecordRetired: 410,
    RecordMerged: 409,
    NotFound: 404,
    VersionConflict: 412,
    Unauthenticated: 401,
    PermissionDenied: 403,
    Conflict: 409,
    StoreError: 503,
    IndexNotReady: 503,
}
DAMAGED_MESSAGE = (
    "The catalogue's database is damaged. Nothing is read or written until its operator has run `lexarium check` and"
    " it found nothing wrong, or has restored a backup."
)
DISK_FULL_MESSAGE = (
    "The disk of the catalogue's database is full. Reads are answered; writes are refused until there is room again."
)
_HEADERS_BY_STATUS = {401: {"WWW-Authenticate": 'Bearer realm="lexarium"'}, 503: {"Retry-After": "1"}}


class HTTPProblem(Exception):
    """A request that HTTP itself has a name for refusing."""

    def __init__(self, status: int, detail: str, headers: Mapping[str, str] | None = None, **extensions: Any) -> None:
        super().__init__(detail)
        self.status = status
        self.headers = headers or {}
        self.extensions = extensions


@dataclass(frozen=True)
class ErrorDescription:
    """An error as an answer tells it."""

    status: int
    detail: str
    extensions: Mapping[str, Any]
    """What else there is to tell of it, by name."""
    headers: Mapping[str, str]

    @property
    def title(self) -> str:
        """What HTTP calls it."""
        return HTTPStatus(self.status).phrase


def describe_error(error: Exception) -> ErrorDescription:
    """What an error is to a client, whatever raised it."""
    own_headers: Mapping[str, str] = {}
    extensions: dict[str, Any] = {}
    if isinstance(error, HTTPException):
        status, own_headers = error.status_code, error.headers or {}
        detail = "There is nothing at this address." if status == 404 else f"{error.detail}."
    elif isinstance(error, HTTPProblem):
        status, detail, extensions, own_headers = error.status, str(error), error.extensions, error.headers
    elif isinstance(error, LexariumError):
        status, detail, extensions = _describe_domain_error(error)
    else:
        status, detail = 500, "The server made a mistake. It has been logged."
    return ErrorDescription(status, detail, extensions, {**_HEADERS_BY_STATUS.get(status, {}), **own_headers})


def problem_response(error: Exception, headers: Mapping[str, str] | None = None) -> Response:
    """The answer to an error; `headers` are added to those that its status asks for."""
    description = describe_error(error)
    body = {
        "type": "about:blank",
        "title": description.title,
        "status": description.status,
        "detail": description.detail,
        **description.extensions,
    }
    return Response(
        orjson.dumps(body),
        description.status,
        {**(headers or {}), **description.headers},
        media_type="application/problem+json",
    )


def _describe_domain_error(error: LexariumError) -> tuple[int, str, dict[str, Any]]:
    """The status of an error of the domain, what is wrong, and what else there is to tell of it."""
    status = next((status for error_type, status in _STATUS_BY_ERROR.items() if isinstance(error, error_type)), 500)
    detail, extensions = str(error), dict[str, Any]()
    if isinstance(error, DatabaseDamaged):
        detail = DAMAGED_MESSAGE  # The log has the reason, once.
    elif isinstance(error, StoreError):
        # Where the database is, and what its driver says, is for the log.
        logger.warning("%s", error)
        unavailable = "The catalogue's database cannot be used at this moment. Try again."
        detail = DISK_FULL_MESSAGE if isinstance(error, DiskFull) else unavailable
    if isinstance(error, RecordRetired):
        extensions["replaced_by"] = error.replaced_by
    if isinstance(error, RecordMerged):
        extensions["merged_into"] = error.survivor_id
    if isinstance(error, Conflict):
        extensions |= error.details
    if isinstance(error, InvalidInput):
        extensions["errors"] = [
            {"pointer": _to_json_pointer(problem.field), "detail": problem.message} for problem in error.problems
        ]
        detail = " ".join([detail, *(problem["detail"] for problem in extensions["errors"])])
    return status, detail, extensions


def _to_json_pointer(field: str) -> str:
    """A field's place as a JSON pointer; a `/` stands between the parts of a place, so it cannot stand for itself."""
    return "/" + field.replace("~", "~0")


async def handle_error(request: Request, error: Exception) -> Response:
    """The framework's handler for every error that reached it."""
    return problem_response(error)


CORS_HEADERS = {"access-control-allow-origin": "*"}


class NotFoundApp:
    """Answers, to every method, that there is nothing, and what there is instead."""

    def __init__(self, detail: str) -> None:
        self._detail = detail

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await problem_response(HTTPProblem(404, self._detail), CORS_HEADERS)(scope, receive, send)
