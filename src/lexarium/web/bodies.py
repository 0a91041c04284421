"""Request bodies: JSON or form fields, within a limit."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl

import orjson
from starlette.exceptions import HTTPException
from starlette.formparsers import MultiPartException
from starlette.requests import Request
from starlette.types import Message

from lexarium.web.limits import Limits
from lexarium.web.problems import HttpProblem

_FORMS = ("application/x-www-form-urlencoded", "multipart/form-data")


async def read_fields(request: Request, limits: Limits) -> tuple[Mapping[str, Any], bool]:
    """The fields of a body, and whether they came from a form, where every value is text."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in ("application/json", *_FORMS):
        raise HttpProblem(415, f"The body must be application/json or a form ({' or '.join(_FORMS)}).")
    body = await limits.body(request)
    if kind == "application/json":
        return json_object(body), False
    if body.lstrip().startswith(b"{"):
        raise HttpProblem(415, "The body looks like JSON: send it with `Content-Type: application/json`.")
    return await _form(request, kind, body), True


def json_object(body: bytes) -> dict[str, Any]:
    """The JSON object that a body is. Raises a 400 that says where it is none."""
    try:
        given = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise HttpProblem(400, f"The body {not_json(body, error)}") from None
    if not isinstance(given, dict):
        raise HttpProblem(400, "The body must be a JSON object.")
    return given


def not_json(text: bytes, error: orjson.JSONDecodeError) -> str:
    """Why some bytes are no JSON, as what a sentence goes on with."""
    try:
        text.decode()
    except UnicodeDecodeError as wrong:
        # The decoder of JSON would say that the whole of it is wrong, from its first character on.
        line = text.count(b"\n", 0, wrong.start) + 1
        return f"is not UTF-8: its byte {wrong.start + 1}, on line {line}, cannot be read."
    return f"is not JSON: {error}."


async def _form(request: Request, kind: str, body: bytes) -> Mapping[str, Any]:
    try:
        if kind == "application/x-www-form-urlencoded":
            return dict(parse_qsl(body.decode(), keep_blank_values=True, errors="strict"))
        return await _multipart(request, body)
    except UnicodeDecodeError:
        raise HttpProblem(400, "The form is not UTF-8.") from None
    except (HTTPException, MultiPartException):
        raise HttpProblem(400, "The form cannot be read: it is malformed, or holds a file.") from None


async def _multipart(request: Request, body: bytes) -> Mapping[str, Any]:
    async def replay() -> Message:
        return {"type": "http.request", "body": body}

    async with Request(request.scope, replay).form(max_files=0, max_part_size=len(body)) as form:
        return {name: value for name, value in form.items() if isinstance(value, str)}
