"""The OpenAPI document of v1 and v-alpha, derived from the operations of v1 and the resources of v-alpha."""

from collections.abc import Iterable, Iterator, Mapping
from functools import cache, partial
from http import HTTPStatus
from importlib.resources import files
from threading import Lock
from typing import Any

import orjson

from lexarium import __version__
from lexarium.domain.editing.validation import build_valpha_model
from lexarium.web.v1.openapi.components import (
    RequestSchemaGenerator,
    build_components,
    find_schema_name,
    name_record_schema,
    schema_ref,
)
from lexarium.web.v1.operation import JSON, Operation, Success, returns
from lexarium.web.v1.operations import iter_operations
from lexarium.web.v1.responses import V1_PATH
from lexarium.web.valpha.resources import FORMATS, RESOURCES, VALPHA_PATH, ResourceSpec

_DESCRIPTION = """A terminology catalogue: records with versions, history, relations, proposals and releases.

Reading needs no token. Timestamps are UTC without a zone. Errors are `application/problem+json` and
list all invalid fields. `/api/v1` only adds fields; clients must ignore unknown fields.

The Reconciliation API 0.2 is at `/reconcile` and described by its manifest; it has its own specification."""
_TAGS = {
    "service": "Service information, and records by ID.",
    "search": "Search records.",
    "annotate": "Find terms in a text.",
    "vocabularies": "Vocabularies: their metadata, rules and schemas.",
    "records": (
        "Records. Paths without a vocabulary refer to the default one. IDs in paths are percent-encoded. An `id`"
        " or `iri` may be in the query instead, as in `/api/v1/vocabularies/V/history?id=…`."
    ),
    "changes": "Change feed, paged or live.",
    "batch": "Many writes in one request, all or nothing.",
    "proposals": "Propose and review changes.",
    "comments": "Discuss records.",
    "releases": "Named revisions.",
    "export": "Export.",
    "conformance": "Quality checks of a vocabulary.",
    "accounts": "Accounts and tokens.",
    "webhooks": "Webhook subscriptions.",
    "v-alpha": "Frozen v-alpha API.",
}
_REQUEST_HEADERS = {
    "If-Match": "ETag of the version to change.",
    "Idempotency-Key": "Makes the request idempotent for 24 hours.",
    "Last-Event-Id": "Event ID to resume a live stream after.",
}
_ERROR_DESCRIPTIONS = {
    300: "Several records have this ID",
    308: "The record was merged into another, or has another ID",
    400: "Malformed request",
    401: "Missing or invalid token",
    403: "Permission denied",
    404: "Not found",
    406: "Format not supported",
    408: "Request body timed out",
    409: "Conflicts with the current state",
    410: "Record is retired",
    412: "Changed since it was read",
    413: "Request body too large",
    415: "Unsupported content type",
    422: "Invalid input; lists all errors",
    428: "If-Match header required",
    429: "Too many requests",
}
"""All other errors are described by the `default` response."""
_SUCCESS_DESCRIPTIONS = {200: "OK", 201: "Created", 202: "Accepted as a proposal", 204: "No content"}
_RESPONSE_HEADERS = {
    "Content-Language": "Languages of the names, if one was requested.",
    "Content-Disposition": "File name.",
    "ETag": "Entity tag; for a record its version. Send it as If-None-Match or If-Match.",
    "Link": "Next page, if any.",
    "Location": "URL of the resource.",
    "Retry-After": "Seconds to wait before retrying.",
}
# Building the document takes a lot of memory: not twice at the same time.
DOCUMENT_LOCK = Lock()
_VALPHA_BODY_TYPES = (JSON, "application/x-www-form-urlencoded", "multipart/form-data")


@cache
def build_document(title: str) -> dict[str, Any]:
    """Return the document of a service with this title. It is cached, so it must not be changed."""
    paths: dict[str, dict[str, Any]] = {}
    for tag, operation in iter_operations():
        paths.setdefault(V1_PATH + operation.path, {})[operation.method.lower()] = _describe_operation(operation, tag)
    for name, resource in RESOURCES.items():
        paths[f"{VALPHA_PATH}/{name}"] = _describe_resource(resource)
    for path, operations in paths.items():
        for description in operations.values():
            _add_examples(path, description)
    return {
        "openapi": "3.1.0",
        "info": {"title": title, "description": _DESCRIPTION, "version": __version__},
        "paths": paths,
        "components": {
            "schemas": build_components(),
            "responses": _describe_problems(),
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "tags": [{"name": name, "description": text} for name, text in _TAGS.items()],
    }


def _describe_operation(operation: Operation, tag: str) -> dict[str, Any]:
    body = operation.body
    return _build_entry(
        tag,
        operation.name,
        operation.summary,
        _describe_responses(operation.responses, operation.error_statuses, has_etag=operation.has_etag),
        needs_token=operation.needs_token,
        description=operation.description,
        parameters=[*_describe_parameters(operation), *_describe_headers(operation)],
        requestBody=body and {"required": body.required, "content": _describe_content(body.content)},
    )


def _describe_resource(resource: ResourceSpec) -> dict[str, Any]:
    """Return the operations of a resource of v-alpha, by method."""
    name, collection = resource.name, resource.collection
    schema = f"Valpha{name_record_schema(collection)}" if collection else ""
    build_entry = partial(_build_entry, "v-alpha")
    parameters = [
        *(_describe_parameter(parameter, text) for parameter, text in resource.parameters.items()),
        _describe_parameter(
            "format", "Both return the same response.", schema={"type": "string", "enum": list(FORMATS)}
        ),
        _describe_parameter("If-None-Match", "ETag of the cached response.", "header"),
    ]
    found, errors = (returns(f"{schema}Answer"), (308, 404, 406)) if collection else (returns("ValphaHits"), (406,))
    get = build_entry(
        f"valpha_{name}",
        f"List or get {name} records",
        _describe_responses(found, errors, has_etag=True),
        description=f"{resource.description} In the order of {resource.order}. Unknown parameters are ignored.",
        parameters=parameters,
    )
    responses = _describe_responses(returns("ValphaResource"))
    summary = "Describe methods, parameters, order and fields"
    operations = {"get": get, "options": build_entry(f"valpha_describe_{name}", summary, responses)}
    if collection is not None:
        created = returns(schema, "Location", status=201) | returns("ValphaProposal", "Location", status=202)
        content = _describe_content(dict.fromkeys(_VALPHA_BODY_TYPES, build_valpha_model(name)))
        operations["post"] = build_entry(
            f"valpha_create_{name}",
            f"Create a {name}",
            _describe_responses(created, (400, 401, 408, 413, 415, 422, 429)),
            needs_token=True,
            description="Published if sent by a curator; a proposal if sent by a contributor.",
            requestBody={"required": True, "content": content},
        )
    return operations


def _describe_parameter(name: str, text: str, place: str = "query", **members: Any) -> dict[str, Any]:
    return {"name": name, "in": place, "description": text, "schema": {"type": "string"}, **members}


def _build_entry(
    tag: str, name: str, summary: str, responses: dict[str, Any], *, needs_token: bool = False, **optional: Any
) -> dict[str, Any]:
    """Return the entry of an operation, without optional members that are empty."""
    security = [{"token": list[str]()}] if needs_token else []
    entry = {"tags": [tag], "operationId": name, "summary": summary, "responses": responses, "security": security}
    return {**entry, **{member: value for member, value in optional.items() if value}}


def _describe_parameters(operation: Operation) -> Iterator[dict[str, Any]]:
    schema = operation.parameters.model_json_schema(
        ref_template="#/components/schemas/{model}", schema_generator=RequestSchemaGenerator
    )
    if "{collection}" in operation.path:
        yield _describe_parameter("collection", "Name of a collection.", "path", required=True)
    if "{vocabulary}" in operation.path:
        yield _describe_parameter("vocabulary", "Slug of a vocabulary.", "path", required=True)
    for name, value in schema.get("properties", {}).items():
        place, required = "path" if name in operation.path_names else "query", name in schema.get("required", ())
        yield _describe_parameter(name, value["description"], place, required=required, schema=_drop_null(value))


def _drop_null(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a parameter, which can be absent but not null."""
    plain = {key: value for key, value in schema.items() if key not in ("anyOf", "description")}
    for alternative in schema.get("anyOf", ()):
        if alternative != {"type": "null"}:
            plain |= alternative
    if plain.get("default", ...) in (None, []):
        del plain["default"]
    return plain


def _describe_headers(operation: Operation) -> Iterator[dict[str, Any]]:
    derived = {"If-Match": operation.if_match, "Idempotency-Key": operation.accepts_key}
    for name, description in _REQUEST_HEADERS.items():
        if derived.get(name) or name in operation.headers:
            yield _describe_parameter(name, description, "header", required=name == "If-Match")


def _describe_responses(
    successes: Mapping[int, Success],
    errors: Iterable[int] = (),
    *,
    has_etag: bool = False,
) -> dict[str, Any]:
    """Return the responses of an operation, by status. All other errors are its `default`."""
    responses: dict[str, Any] = {"304": {"description": "Not modified"}} if has_etag else {}
    for status, success in successes.items():
        response = responses[str(status)] = {"description": _SUCCESS_DESCRIPTIONS[status]}
        headers = dict.fromkeys((*success.headers, "ETag") if has_etag else success.headers)
        described = {
            "content": _describe_content(success.content),
            "headers": {name: _describe_header(name) for name in headers},
        }
        response |= {member: value for member, value in described.items() if value}
    names = {str(status): f"Problem{status}" for status in errors} | {"default": "Problem"}
    responses |= {status: {"$ref": f"#/components/responses/{name}"} for status, name in names.items()}
    return dict(sorted(responses.items()))


def _describe_content(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return the content of a body: by media type, a reference to the schema of its type."""
    return {media: {"schema": schema_ref(find_schema_name(item))} for media, item in content.items()}


def _describe_problems() -> dict[str, Any]:
    """Return the shared responses for errors, by name."""
    problems = {f"Problem{status}": _describe_problem(status, text) for status, text in _ERROR_DESCRIPTIONS.items()}
    problems["Problem429"]["headers"] = {"Retry-After": _describe_header("Retry-After")}
    return {**problems, "Problem": _describe_problem(503, "Any other error")}


def _describe_problem(status: int, text: str) -> dict[str, Any]:
    example: dict[str, Any] = {"type": "about:blank", "title": HTTPStatus(status).phrase, "status": status}
    example["detail"] = f"{text}."
    if status == HTTPStatus.UNPROCESSABLE_ENTITY:
        example["errors"] = [{"pointer": "/name", "detail": "name is required."}]
    content = {"application/problem+json": {"schema": schema_ref("Problem"), "example": example}}
    return {"description": text, "content": content}


def _describe_header(name: str) -> dict[str, Any]:
    return {"description": _RESPONSE_HEADERS[name], "schema": {"type": "string"}}


def _add_examples(path: str, operation: dict[str, Any]) -> None:
    """Add examples to an operation's parameters, body and responses."""
    prefix = f"{V1_PATH}/vocabularies/{{vocabulary}}/"
    is_qualified = path.startswith(prefix)
    names = path.removeprefix(prefix).split("/")
    segment = names[0] if is_qualified else names[3] if len(names) > 3 else ""
    segment = segment.replace("{collection}", "concept").replace("collections", "concept")
    examples = _load_examples()
    by_schema = examples["schemas"]["concept"] | examples["schemas"].get(segment, {})
    identifier = examples["ids"].get(segment)
    if is_qualified:
        identifier = examples["ids"].get(f"{segment} of a vocabulary", identifier)
    vocabulary = "main" if segment in ("records", "concept") else "uat"
    values = {"collection": "concept", "vocabulary": vocabulary, "slug": "old", **examples["parameters"]}
    values |= {"id": identifier, "name": identifier}
    values |= by_schema["Relate"]
    for parameter in operation.get("parameters", ()):
        if parameter.get("required") and values.get(parameter["name"]) is not None:
            parameter["example"] = values[parameter["name"]]
    for described in (operation.get("requestBody", {}), *operation["responses"].values()):
        for media in described.get("content", {}).values():
            name = media["schema"]["$ref"].rpartition("/")[2]
            if name in by_schema:
                media["example"] = by_schema[name]


@cache
def _load_examples() -> dict[str, Any]:
    """Return examples of parameters, of ids by the first segment of a path, and of schemas by collection.

    Those of `concept` serve where a collection has none of its own.
    """
    examples: dict[str, Any] = orjson.loads(files(__package__).joinpath("examples.json").read_bytes())
    examples["schemas"]["concept"]["Service"]["version"] = __version__
    return examples
