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

from lexarium.domain.errors import (
    Conflict,
    Damaged,
    Forbidden,
    Gone,
    Invalid,
    LexariumError,
    Moved,
    NoRoom,
    NotFound,
    Stale,
    StoreError,
    Unauthenticated,
    Unready,
)

log = logging.getLogger(__name__)

_STATUS: dict[type[LexariumError], int] = {
    Invalid: 422,
    Gone: 410,
    Moved: 409,
    NotFound: 404,
    Stale: 412,
    Unauthenticated: 401,
    Forbidden: 403,
    Conflict: 409,
    StoreError: 503,
    Unready: 503,
}
DAMAGED = (
    "The catalogue's database is damaged. Nothing is read or written until its operator has run `lexarium check` and"
    " it found nothing wrong, or has restored a backup."
)
NO_ROOM = (
    "The disk of the catalogue's database is full. Reads are answered; writes are refused until there is room again."
)
_HEADERS = {401: {"WWW-Authenticate": 'Bearer realm="lexarium"'}, 503: {"Retry-After": "1"}}


class HttpProblem(Exception):
    """A request that HTTP itself has a name for refusing."""

    def __init__(self, status: int, detail: str, headers: Mapping[str, str] | None = None, **details: Any) -> None:
        super().__init__(detail)
        self.status = status
        self.headers = headers or {}
        self.details = details


@dataclass(frozen=True)
class Explained:
    """An error as an answer tells it."""

    status: int
    detail: str
    extra: Mapping[str, Any]
    """What else there is to tell of it, by name."""
    headers: Mapping[str, str]

    @property
    def title(self) -> str:
        """What HTTP calls it."""
        return HTTPStatus(self.status).phrase


def explained(error: Exception) -> Explained:
    """What an error is to a client, whatever raised it."""
    own: Mapping[str, str] = {}
    extra: dict[str, Any] = {}
    if isinstance(error, HTTPException):
        status, own = error.status_code, error.headers or {}
        detail = "There is nothing at this address." if status == 404 else f"{error.detail}."
    elif isinstance(error, HttpProblem):
        status, detail, extra, own = error.status, str(error), error.details, error.headers
    elif isinstance(error, LexariumError):
        status, detail, extra = _told(error)
    else:
        status, detail = 500, "The server made a mistake. It has been logged."
    return Explained(status, detail, extra, {**_HEADERS.get(status, {}), **own})


def respond(error: Exception, headers: Mapping[str, str] | None = None) -> Response:
    """The answer to an error; `headers` are added to those that its status asks for."""
    told = explained(error)
    body = {"type": "about:blank", "title": told.title, "status": told.status, "detail": told.detail, **told.extra}
    return Response(
        orjson.dumps(body), told.status, {**(headers or {}), **told.headers}, media_type="application/problem+json"
    )


def _told(error: LexariumError) -> tuple[int, str, dict[str, Any]]:
    """The status of an error of the domain, what is wrong, and what else there is to tell of it."""
    status = next((status for kind, status in _STATUS.items() if isinstance(error, kind)), 500)
    detail, extra = str(error), dict[str, Any]()
    if isinstance(error, Damaged):
        detail = DAMAGED  # The log has the reason, once.
    elif isinstance(error, StoreError):
        # Where the database is, and what its driver says, is for the log.
        log.warning("%s", error)
        unavailable = "The catalogue's database cannot be used at this moment. Try again."
        detail = NO_ROOM if isinstance(error, NoRoom) else unavailable
    if isinstance(error, Gone):
        extra["replaced_by"] = error.replaced_by
    if isinstance(error, Moved):
        extra["merged_into"] = error.survivor
    if isinstance(error, Conflict):
        extra |= error.details
    if isinstance(error, Invalid):
        extra["errors"] = [{"pointer": _pointer(each.field), "detail": each.sentence} for each in error.problems]
        detail = " ".join([detail, *(each["detail"] for each in extra["errors"])])
    return status, detail, extra


def _pointer(field: str) -> str:
    """A field's place as a JSON pointer; a `/` stands between the parts of a place, so it cannot stand for itself."""
    return "/" + field.replace("~", "~0")


async def handle_error(request: Request, error: Exception) -> Response:
    """The framework's handler for every error that reached it."""
    return respond(error)
