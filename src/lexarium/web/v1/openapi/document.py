"""The OpenAPI document, derived from the operations."""

from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import Any

import orjson

from lexarium import __version__
from lexarium.domain.schema.collections import COLLECTIONS, Collection
from lexarium.web.v1.openapi import valpha
from lexarium.web.v1.openapi.components import RequestSchemaGenerator, build_components, find_schema_name
from lexarium.web.v1.openapi.responses import (
    NOT_MODIFIED,
    describe_content,
    describe_problems,
    describe_success,
    refer_to_problems,
)
from lexarium.web.v1.operation import Operation
from lexarium.web.v1.operations import iter_operations
from lexarium.web.v1.responses import V1_PATH

_DESCRIPTION = """A terminology catalogue: records with versions, history, relations, proposals and releases.

Reading needs no token. Stamps are UTC without a zone. Errors are `application/problem+json`, every wrong field at once.
`/api/v1` only ever grows: clients should pass over fields that they do not know.

The Reconciliation API 0.2 is at `/reconcile`, whose manifest says what it offers; it has a specification of its own."""
_TAGS = {
    "service": "The service itself, and any record by its identifier alone.",
    "search": "Finding records.",
    "annotate": "Finding the terms in a text.",
    **{name: collection.description for name, collection in COLLECTIONS.items()},
    "changes": "The feed: every change, in order, once; and live.",
    "batch": "Many writes in one request, all or nothing.",
    "proposals": "What contributors would change, and curators decide.",
    "releases": "States of the catalogue that have a name.",
    "export": "Taking the catalogue out.",
    "accounts": "People and their tokens.",
    "webhooks": "Programs that are told of changes.",
    valpha.TAG: "The frozen read interface.",
}
_HEADERS = {
    "If-Match": "The ETag of the version that is to be changed.",
    "Idempotency-Key": "Done once, however often it is sent, for a day.",
    "Last-Event-Id": "Where a live stream resumes.",
}


def build_document(title: str) -> dict[str, Any]:
    """Return the document of a service with this title."""
    paths: dict[str, dict[str, Any]] = {}
    for tag, path, operation, collection in iter_operations():
        description = _describe_operation(operation, tag, collection)
        paths.setdefault(V1_PATH + path, {})[operation.method.lower()] = description
    paths |= valpha.build_paths()
    for path, operations in paths.items():
        for description in operations.values():
            _add_examples(path, description)
    return {
        "openapi": "3.1.0",
        "info": {"title": title, "description": _DESCRIPTION, "version": __version__},
        "paths": paths,
        "components": {
            "schemas": build_components(),
            "responses": describe_problems(),
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "tags": [{"name": name, "description": text} for name, text in _TAGS.items()],
    }


def _describe_operation(operation: Operation, tag: str, collection: Collection | None) -> dict[str, Any]:
    description: dict[str, Any] = {
        "tags": [tag],
        "summary": operation.summary.format(collection=tag),
        "operationId": operation.name if collection is None else f"{tag}_{operation.name}",
        "responses": _describe_responses(operation, collection),
        "security": [{"token": []}] if operation.needs_token else [],
    }
    if operation.description:
        description["description"] = operation.description
    if parameters := [*_describe_parameters(operation), *_describe_headers(operation)]:
        description["parameters"] = parameters
    if operation.body is not None:
        content = describe_content(_find_schema_names(operation.body.content, collection))
        description["requestBody"] = {"required": operation.body.required, "content": content}
    return description


def _describe_responses(operation: Operation, collection: Collection | None) -> dict[str, Any]:
    responses = dict(NOT_MODIFIED) if operation.has_etag else {}
    for status, success in operation.responses.items():
        schemas = _find_schema_names(success.content, collection)
        etag = ("ETag",) if operation.has_etag and "ETag" not in success.headers else ()
        responses |= describe_success(status, schemas, (*success.headers, *etag))
    return dict(sorted((responses | refer_to_problems(*operation.error_statuses)).items()))


def _find_schema_names(content: Mapping[str, Any], collection: Collection | None) -> dict[str, str]:
    return {media_type: find_schema_name(model, collection) for media_type, model in content.items()}


def _describe_parameters(operation: Operation) -> Iterator[dict[str, Any]]:
    schema = operation.parameters.model_json_schema(
        ref_template="#/components/schemas/{model}", schema_generator=RequestSchemaGenerator
    )
    for name, value in schema.get("properties", {}).items():
        yield {
            "name": name,
            "in": "path" if name in operation.path_names else "query",
            "required": name in schema.get("required", ()),
            "description": value["description"],
            "schema": _drop_null(value),
        }


def _drop_null(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a parameter that is present: it cannot be null, only absent."""
    plain = {key: value for key, value in schema.items() if key not in ("anyOf", "description")}
    for alternative in schema.get("anyOf", ()):
        if alternative != {"type": "null"}:
            plain |= alternative
    if plain.get("default", ...) in (None, []):
        del plain["default"]
    return plain


def _describe_headers(operation: Operation) -> Iterator[dict[str, Any]]:
    for name in operation.request_headers:
        parameter = {"name": name, "in": "header", "required": name == "If-Match"}
        yield {**parameter, "description": _HEADERS[name], "schema": {"type": "string"}}


def _add_examples(path: str, operation: dict[str, Any]) -> None:
    """Add examples to an operation's parameters, body and responses."""
    segment = path.split("/")[3] if path.count("/") > 2 else ""
    examples = _load_examples()
    by_schema = examples["schemas"]["concept"] | examples["schemas"].get(segment, {})
    identifier = examples["ids"].get(segment)
    values = {**examples["parameters"], "id": identifier, "name": identifier, **by_schema["Relate"]}
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
