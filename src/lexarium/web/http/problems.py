"""Problem documents (RFC 9457): one table maps domain errors to HTTP statuses."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

import orjson
from starlette.exceptions import HTTPException
from starlette.responses import Response

from lexarium.domain import errors
from lexarium.domain.errors import LexariumError, RecordMerged, StoreError
from lexarium.domain.identifiers import get_local_id
from lexarium.services.vocabularies.access import AmbiguousId

logger = logging.getLogger(__name__)

_STATUS_BY_ERROR: dict[type[LexariumError], int] = {
    errors.InvalidInput: 422,
    errors.RecordRetired: 410,
    RecordMerged: 409,
    AmbiguousId: 300,
    errors.NotFound: 404,
    errors.VersionConflict: 412,
    errors.Unauthenticated: 401,
    errors.PermissionDenied: 403,
    errors.Conflict: 409,
    StoreError: 503,
    errors.IndexNotReady: 503,
}
DAMAGED_MESSAGE = (
    "Database is damaged. Reads and writes are refused until an operator restores a backup or `lexarium check`"
    " finds no problems."
)
DISK_FULL_MESSAGE = "Database disk is full. Reads work; writes are refused until there is space again."
_HEADERS_BY_STATUS = {401: {"WWW-Authenticate": 'Bearer realm="lexarium"'}, 503: {"Retry-After": "1"}}


class HTTPProblem(Exception):
    """A request refused with an HTTP status of its own; raised by web code."""

    def __init__(self, status: int, detail: str, headers: Mapping[str, str] | None = None, **extensions: Any) -> None:
        super().__init__(detail)
        self.status = status
        self.headers = headers or {}
        self.extensions = extensions


@dataclass(frozen=True)
class ErrorDescription:
    """Status, detail, extension members and headers of an error response."""

    status: int
    detail: str
    extensions: Mapping[str, Any]
    headers: Mapping[str, str]

    @property
    def title(self) -> str:
        """Return the reason phrase of the status."""
        return HTTPStatus(self.status).phrase


def describe_error(error: Exception) -> ErrorDescription:
    """Describe any error for a client."""
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
        status, detail = 500, "Internal server error. It has been logged."
    return ErrorDescription(status, detail, extensions, {**_HEADERS_BY_STATUS.get(status, {}), **own_headers})


def problem_response(error: Exception, headers: Mapping[str, str] | None = None) -> Response:
    """Return the problem document of an error; `headers` are added to those of its status."""
    description = describe_error(error)
    status = description.status
    body = {"type": "about:blank", "title": description.title, "status": status, "detail": description.detail}
    all_headers = {**(headers or {}), **description.headers}
    return Response(orjson.dumps({**body, **description.extensions}), status, all_headers, "application/problem+json")


def redirect_merged(
    error: RecordMerged, url: str, headers: Mapping[str, str] | None = None, **extensions: Any
) -> Response:
    """Return a permanent redirect from a merged record to the URL of its survivor."""
    return problem_response(HTTPProblem(308, str(error), {"location": url}, **extensions), headers)


def _describe_domain_error(error: LexariumError) -> tuple[int, str, dict[str, Any]]:
    status = next((status for error_type, status in _STATUS_BY_ERROR.items() if isinstance(error, error_type)), 500)
    detail, extensions = str(error), dict[str, Any]()
    if isinstance(error, errors.DatabaseDamaged):
        detail = DAMAGED_MESSAGE  # The reason is logged once.
    elif isinstance(error, StoreError):
        # Clients must not see addresses and driver messages.
        logger.warning("%s", error)
        unavailable = "Database unavailable; try again in a few seconds."
        detail = DISK_FULL_MESSAGE if isinstance(error, errors.DiskFull) else unavailable
    if isinstance(error, errors.RecordRetired):
        extensions["replaced_by"] = error.replaced_by and get_local_id(error.replaced_by)
    if isinstance(error, RecordMerged):
        extensions["merged_into"] = get_local_id(error.survivor_id)
    if isinstance(error, errors.Conflict):
        extensions |= error.details
    if isinstance(error, errors.InvalidInput):
        # A `/` in a field separates the parts of its path, so it is not escaped.
        extensions["errors"] = [
            {"pointer": "/" + problem.field.replace("~", "~0"), "detail": problem.message} for problem in error.problems
        ]
        detail = " ".join([detail, *(problem.message for problem in error.problems)])
    return status, detail, extensions


CORS_HEADERS = {"access-control-allow-origin": "*"}
