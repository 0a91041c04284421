"""Read request bodies: JSON objects and form fields, within a limit."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl

import orjson
from starlette.exceptions import HTTPException
from starlette.formparsers import MultiPartException
from starlette.requests import Request
from starlette.types import Message

from lexarium.domain.text.characters import format_json_error
from lexarium.web.http.limits import Limits
from lexarium.web.http.problems import HTTPProblem

_URLENCODED, _MULTIPART = _FORM_TYPES = ("application/x-www-form-urlencoded", "multipart/form-data")


def get_media_type(request: Request) -> str:
    """Return the media type of a request's body, without parameters."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


async def read_fields(request: Request, limits: Limits) -> tuple[Mapping[str, Any], bool]:
    """Return the fields of a body, and whether they came from a form, where every value is text."""
    media_type = get_media_type(request)
    if media_type not in ("application/json", *_FORM_TYPES):
        raise HTTPProblem(415, f"Request body must be application/json or a form ({' or '.join(_FORM_TYPES)}).")
    body = await limits.read_body(request)
    if media_type == "application/json":
        return parse_json_object(body), False
    if body.lstrip().startswith(b"{"):
        raise HTTPProblem(415, "Request body looks like JSON; send it with `Content-Type: application/json`.")
    try:
        if media_type == _URLENCODED:
            return dict(parse_qsl(body.decode(), keep_blank_values=True, errors="strict")), True
        return await _parse_multipart(request, body), True
    except UnicodeDecodeError:
        raise HTTPProblem(400, "Form is not valid UTF-8.") from None
    except (HTTPException, MultiPartException):
        raise HTTPProblem(400, "Form is malformed or contains a file.") from None


def parse_json_object(body: bytes) -> dict[str, Any]:
    """Return the JSON object in a body; raise a 400 where it is none."""
    try:
        data = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise HTTPProblem(400, f"Request body {format_json_error(body, error)}") from None
    if not isinstance(data, dict):
        raise HTTPProblem(400, "Request body must be a JSON object.")
    return data


async def _parse_multipart(request: Request, body: bytes) -> Mapping[str, Any]:
    async def replay() -> Message:
        return {"type": "http.request", "body": body}

    async with Request(request.scope, replay).form(max_files=0, max_part_size=len(body)) as form:
        return {name: value for name, value in form.items() if isinstance(value, str)}
