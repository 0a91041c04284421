"""Descriptions of responses that all operations share."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

JSON = "application/json"
ERROR_DESCRIPTIONS = {
    308: "The record is merged into another",
    400: "The request cannot be read",
    401: "No token, or one that is not valid",
    403: "The role does not allow it",
    404: "Not there",
    406: "That format is not spoken",
    408: "The body took too long",
    409: "It does not go with what is there",
    410: "The record is retired",
    412: "Changed since it was read",
    413: "Too large",
    415: "Another content type is needed",
    422: "Not valid: every problem at once",
    428: "If-Match is missing",
    429: "Too many requests",
}
"""All others are the `default` of an operation."""
_SUCCESS_DESCRIPTIONS = {200: "Done", 201: "Made", 202: "It waits for a curator", 204: "Done; there is nothing to tell"}
_HEADER_DESCRIPTIONS = {
    "Content-Disposition": "What to call the file.",
    "ETag": "By what it is known again; of a record, its version. To be sent as If-None-Match or If-Match.",
    "Link": "The next page, where there is one.",
    "Location": "Where it is now.",
    "Retry-After": "After how many seconds to try again.",
}
NOT_MODIFIED = {"304": {"description": "The version you have still holds"}}


def schema_ref(name: str) -> dict[str, Any]:
    """Return a reference to a schema."""
    return {"$ref": f"#/components/schemas/{name}"}


def describe_content(schemas: Mapping[str, str]) -> dict[str, Any]:
    """Return the content of a body: the names of its schemas, by media type."""
    return {media_type: {"schema": schema_ref(name)} for media_type, name in schemas.items()}


def describe_success(status: int, schemas: Mapping[str, str], headers: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return a response with this content and these headers, by its status."""
    response: dict[str, Any] = {"description": _SUCCESS_DESCRIPTIONS[status]}
    if schemas:
        response["content"] = describe_content(schemas)
    if headers:
        response["headers"] = {name: _describe_header(name) for name in headers}
    return {str(status): response}


def refer_to_problems(*statuses: int) -> dict[str, Any]:
    """Return references to the shared responses for these errors, and to the one for all others."""
    names = {str(status): f"Problem{status}" for status in statuses}
    return {
        status: {"$ref": f"#/components/responses/{name}"} for status, name in {**names, "default": "Problem"}.items()
    }


def describe_problems() -> dict[str, Any]:
    """Return the shared responses for errors, by name."""
    problems = {f"Problem{status}": _describe_problem(status, text) for status, text in ERROR_DESCRIPTIONS.items()}
    problems["Problem429"]["headers"] = {"Retry-After": _describe_header("Retry-After")}
    return {**problems, "Problem": _describe_problem(503, "Anything else that went wrong")}


def _describe_problem(status: int, text: str) -> dict[str, Any]:
    example: dict[str, Any] = {"type": "about:blank", "title": HTTPStatus(status).phrase, "status": status}
    example["detail"] = f"{text}."
    if status == HTTPStatus.UNPROCESSABLE_ENTITY:
        example["errors"] = [{"pointer": "/name", "detail": "name is required."}]
    content = {"application/problem+json": {"schema": schema_ref("Problem"), "example": example}}
    return {"description": text, "content": content}


def _describe_header(name: str) -> dict[str, Any]:
    return {"description": _HEADER_DESCRIPTIONS[name], "schema": {"type": "string"}}
