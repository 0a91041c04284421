"""Operations and schemas of v-alpha in the document, from the table that declares its resources."""

from collections.abc import Iterable
from typing import Any

from pydantic import BaseModel
from typing_extensions import TypedDict

from lexarium.client.models import Decision
from lexarium.domain.schema.collections import (
    COLLECTIONS,
    CONCEPT,
    SEARCH_HIT_FIELDS,
    SEARCH_HIT_NUMBER_KEY,
    Collection,
)
from lexarium.domain.schema.relation_types import RelationList
from lexarium.domain.validation import build_valpha_model
from lexarium.web.v1.openapi.responses import (
    JSON,
    NOT_MODIFIED,
    describe_content,
    describe_success,
    refer_to_problems,
    schema_ref,
)
from lexarium.web.valpha.resources import FORMATS, RESOURCES, VALPHA_PATH, ResourceSpec

TAG = "v-alpha"
_BODY_TYPES = (JSON, "application/x-www-form-urlencoded", "multipart/form-data")


class ValphaProposal(TypedDict):
    """A record that waits for a curator."""

    proposal: str
    state: Decision
    change: dict[str, Any]


class ValphaResource(TypedDict):
    """Description of a v-alpha resource by OPTIONS."""

    name: str
    description: str
    methods: list[str]
    parameters: dict[str, str]
    order: str
    fields: list[dict[str, Any]]


RESPONSES = {ValphaProposal, ValphaResource}


def name_record_schema(collection: Collection) -> str:
    """Return the name of the schema of a collection's records."""
    return "".join(part.capitalize() for part in collection.name.split("_"))


def list_drafts() -> set[type[BaseModel]]:
    """Return the models of the bodies of POST."""
    return {build_valpha_model(name) for name, collection in COLLECTIONS.items() if collection.in_valpha}


def describe_fields(collection: Collection, names: Iterable[str]) -> dict[str, Any]:
    """Return the schemas of fields of a collection."""
    return {
        name: {"description": collection.fields[name].description, "type": _describe_type(collection, name)}
        for name in names
    }


def _describe_type(collection: Collection, name: str) -> str | list[str]:
    if collection.field_types[name] is str:
        return "string"
    return "integer" if collection.field_defaults[name] is not None else ["integer", "null"]


def build_schemas() -> dict[str, Any]:
    """Return the schemas of all responses but those that are types, by name."""
    schemas: dict[str, Any] = {}
    for collection in COLLECTIONS.values():
        schemas |= _build_record_schemas(collection)
    alone = [schema_ref(f"Valpha{name_record_schema(collection)}Alone") for collection in COLLECTIONS.values()]
    number = {"description": "Its number, counted from 1 in the order returned.", "type": "integer"}
    hit = {**describe_fields(CONCEPT, SEARCH_HIT_FIELDS), SEARCH_HIT_NUMBER_KEY: number}
    every_term = "Terms, the best first; without `q` every term, by name."
    every_record = "Records of all collections, with their relations."
    return {
        **schemas,
        "ValphaHit": _build_object(hit, "A term as v-alpha's search shows it."),
        "ValphaHits": {**_list_of(schema_ref("ValphaHit")), "description": every_term},
        "VAlphaExport": {**_list_of({"anyOf": alone}), "description": every_record},
        "JsonldExport": {"additionalProperties": True, "description": "SKOS in JSON-LD.", "type": "object"},
    }


def _build_record_schemas(collection: Collection) -> dict[str, Any]:
    """Return the schemas of a record in a list and alone; of a collection of v-alpha, also of what GET returns."""
    name, kind = f"Valpha{name_record_schema(collection)}", collection.name
    fields = describe_fields(collection, collection.valpha_field_names or collection.fields)
    entries = {f"{name}{view.key.capitalize()}": view for view in collection.relation_lists.values()}
    lists = {view.key: _list_of(schema_ref(entry)) for entry, view in entries.items()}
    alone = {**fields, "type": {"const": kind, "type": "string"}, **lists}
    schemas = {entry: _build_entry_schema(view) for entry, view in entries.items()}
    schemas[f"{name}Alone"] = _build_object(alone, f"A {kind} alone, with its relations.")
    if collection.in_valpha:
        schemas[name] = _build_object(fields, f"A {kind} in v-alpha's lists.")
        schemas[f"{name}Answer"] = {"anyOf": [_list_of(schema_ref(name)), schema_ref(f"{name}Alone")]}
    return schemas


def _build_entry_schema(view: RelationList) -> dict[str, Any]:
    properties: dict[str, Any] = {view.id_key: {"type": "string"}, "name": {"type": "string"}}
    if view.shows_relationship:
        properties["relationship"] = _one_of(list(dict.fromkeys(name for name, _ in view.paths)))
    if view.directions:
        properties["direction"] = _one_of(list(view.directions.values()))
    return _build_object(properties)


def _build_object(properties: dict[str, Any], description: str = "") -> dict[str, Any]:
    described = {"description": description} if description else {}
    return {**described, "properties": properties, "required": list(properties), "type": "object"}


def _list_of(schema: dict[str, Any]) -> dict[str, Any]:
    return {"items": schema, "type": "array"}


def _one_of(values: list[str]) -> dict[str, Any]:
    return {"const": values[0], "type": "string"} if len(values) == 1 else {"enum": values, "type": "string"}


def build_paths() -> dict[str, dict[str, Any]]:
    """Return the operations of v-alpha, by path and method."""
    paths: dict[str, dict[str, Any]] = {}
    for name, resource in RESOURCES.items():
        path = paths[f"{VALPHA_PATH}/{name}"] = {"get": _describe_get(resource), "options": _describe_options(resource)}
        if resource.collection is not None:
            path["post"] = _describe_post(resource.collection)
    return paths


def _describe_get(resource: ResourceSpec) -> dict[str, Any]:
    parameters = [_describe_parameter(name, text) for name, text in resource.parameters.items()]
    formats = {"type": "string", "enum": list(FORMATS)}
    parameters.append({**_describe_parameter("format", "Both answer the same."), "schema": formats})
    parameters.append({**_describe_parameter("If-None-Match", "The ETag you have."), "in": "header"})
    collection = resource.collection
    schema = f"Valpha{name_record_schema(collection)}Answer" if collection else "ValphaHits"
    problems = refer_to_problems(*((308, 404, 406) if collection else (406,)))
    return _describe_operation(
        resource.name,
        f"The whole of {resource.name}, or what the parameters ask for",
        describe_success(200, {JSON: schema}, ("ETag",)) | NOT_MODIFIED | problems,
        description=f"{resource.description} In the order of {resource.order}. Unknown parameters are ignored.",
        parameters=parameters,
    )


def _describe_post(collection: Collection) -> dict[str, Any]:
    created = describe_success(201, {JSON: f"Valpha{name_record_schema(collection)}"}, ("Location",))
    proposed = describe_success(202, {JSON: "ValphaProposal"}, ("Location",))
    content = describe_content(dict.fromkeys(_BODY_TYPES, build_valpha_model(collection.name).__name__))
    return _describe_operation(
        f"create_{collection.name}",
        f"Create a {collection.name}",
        created | proposed | refer_to_problems(400, 401, 408, 413, 415, 422, 429),
        description="A curator's is published, a contributor's becomes a proposal.",
        requestBody={"required": True, "content": content},
        security=[{"token": []}],
    )


def _describe_options(resource: ResourceSpec) -> dict[str, Any]:
    summary = "Its methods, parameters, order, fields and their rules"
    responses = describe_success(200, {JSON: "ValphaResource"}) | refer_to_problems()
    return _describe_operation(f"describe_{resource.name}", summary, responses)


def _describe_operation(name: str, summary: str, responses: dict[str, Any], **members: Any) -> dict[str, Any]:
    operation = {"tags": [TAG], "operationId": f"valpha_{name}", "summary": summary, "responses": responses}
    return {**operation, "security": [], **members}


def _describe_parameter(name: str, text: str) -> dict[str, Any]:
    return {"name": name, "in": "query", "description": text, "schema": {"type": "string"}}
