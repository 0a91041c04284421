"""The addresses of v-alpha in the OpenAPI document, from the table that declares them."""

from typing import Any

from lexarium.domain.validation import build_valpha_model
from lexarium.web.v1.schemas import UNCHANGED, answered, numbered, reference, title
from lexarium.web.v1.shapes import valpha_answer_model
from lexarium.web.valpha.resources import FORMATS, RESOURCES, VALPHA_PATH, ValphaResource

TAG = "v-alpha"
_KINDS = ("application/json", "application/x-www-form-urlencoded", "multipart/form-data")


def paths() -> dict[str, dict[str, Any]]:
    """Every address of v-alpha, with its operations by method."""
    return {f"{VALPHA_PATH}/{name}": _operations(resource) for name, resource in RESOURCES.items()}


def _operations(resource: ValphaResource) -> dict[str, Any]:
    found = {"get": _read(resource), "options": _described(resource)}
    return {**found, "post": _create(resource)} if resource.collection else found


def _read(resource: ValphaResource) -> dict[str, Any]:
    collection = resource.collection
    parameters = [_parameter(name, told) for name, told in resource.parameters.items()]
    formats = {"type": "string", "enum": list(FORMATS)}
    parameters.append({**_parameter("format", "Both answer the same."), "schema": formats})
    held = {"type": "string"}
    parameters.append({"name": "If-None-Match", "in": "header", "description": "The ETag you have.", "schema": held})
    schema = valpha_answer_model(collection.name).__name__ if collection else "ValphaHits"
    errors = (308, 404, 406) if collection else (406,)
    return {
        "tags": [TAG],
        "operationId": f"valpha_{resource.name}",
        "summary": f"The whole of {resource.name}, or what the parameters ask for",
        "description": f"{resource.description} In the order of {resource.order}. Unknown parameters are ignored.",
        "parameters": parameters,
        "responses": numbered(answered(schema, *errors, headers=("ETag",)) | UNCHANGED),
        "security": [],
    }


def _create(resource: ValphaResource) -> dict[str, Any]:
    assert resource.collection is not None
    name = resource.collection.name
    schema = reference(build_valpha_model(name).__name__)
    made = answered(f"Valpha{title(name)}", 400, 401, 408, 413, 415, 422, 429, status=201, headers=("Location",))
    waiting = answered("ValphaProposal", status=202, headers=("Location",))
    return {
        "tags": [TAG],
        "operationId": f"valpha_create_{name}",
        "summary": f"Create a {name}",
        "description": "A curator's is published, a contributor's becomes a proposal.",
        "requestBody": {"required": True, "content": {kind: {"schema": schema} for kind in _KINDS}},
        "responses": numbered({**made, **waiting}),
        "security": [{"token": []}],
    }


def _described(resource: ValphaResource) -> dict[str, Any]:
    return {
        "tags": [TAG],
        "operationId": f"valpha_describe_{resource.name}",
        "summary": "Its methods, parameters, order, fields and their rules",
        "responses": numbered(answered("ValphaResource")),
        "security": [],
    }


def _parameter(name: str, told: str) -> dict[str, Any]:
    return {"name": name, "in": "query", "description": told, "schema": {"type": "string"}}
