"""JSON Schemas of the document, derived from the types of requests and responses and from the collections."""

from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import ConfigDict, TypeAdapter
from pydantic.json_schema import GenerateJsonSchema
from typing_extensions import get_original_bases, is_typeddict

from lexarium.client import models
from lexarium.domain.account import Origin
from lexarium.domain.proposal import ProposalState
from lexarium.domain.record import RecordState
from lexarium.domain.schema.collections import COLLECTIONS, Collection
from lexarium.domain.validation import build_draft_model
from lexarium.services.serializers import list_record_fields
from lexarium.web.v1.openapi import valpha
from lexarium.web.v1.openapi.responses import schema_ref
from lexarium.web.v1.operation import MergePatch, RecordDraft
from lexarium.web.v1.operations import OPERATIONS
from lexarium.web.v1.operations.export import EXPORT_FORMATS, schema_name
from lexarium.web.v1.request_models import BatchLine

_ENUM_NAMES = {"ProposalState": "Decision", "RecordState": "State"}
_RESPONSE_NAMES = {
    "Alias": "OtherName",
    "FieldConflict": "Clash",
    "Hierarchy": "Reached",
    "Match": "Matched",
    "ProposalDetail": "ProposalInFull",
    "Reached": "ReachedRecord",
    "Record": "AnyRecord",
    "Related": "RelatedRecord",
    "SearchResults": "Found",
    "WebhookTest": "Trial",
}
"""Names of components that differ from those of the types: clients that are generated from the document know them."""
_FIELD_DESCRIPTIONS = {("Difference", "from"): "What it was.", ("Difference", "to"): "What it is."}
"""Descriptions of fields whose names are no identifiers of Python."""
TEXT_SCHEMAS = {
    "PlainText": "A text to find terms in, in UTF-8.",
    "Batch": "One `BatchLine` a line; `limits` of `GET /api/v1` tells how many.",
    "BatchResults": "One `BatchResult` a line, in the order of the lines that were sent.",
    "Events": "Server-sent events: each with an `id` to resume after, `event: change`, and a `Change` as `data`.",
    **{
        schema_name(item): f"{item.description}."
        for item in EXPORT_FORMATS.values()
        if item.name not in ("v-alpha", "jsonld")
    },
}


def find_schema_name(content: Any, collection: Collection | None) -> str:
    """Return the name of the schema of what an operation takes or responds with."""
    if isinstance(content, str):
        return content
    if isinstance(content, MergePatch):
        return _name_patch(find_schema_name(content.model, collection))
    if content is RecordDraft:
        assert collection is not None
        return build_draft_model(collection.name).__name__
    if collection is not None and content in (models.Record, models.RecordPage):
        return valpha.name_record_schema(collection) + ("Page" if content is models.RecordPage else "")
    name: str = content.__name__
    return _RESPONSE_NAMES.get(name, name) if is_typeddict(content) else _name_request(name)


def _name_request(name: str) -> str:
    return _ENUM_NAMES.get(name, name.removesuffix("Request"))


class RequestSchemaGenerator(GenerateJsonSchema):
    """Generate JSON Schemas of requests under their published names."""

    def normalize_name(self, name: str) -> str:
        return super().normalize_name(_name_request(name))

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False  # it would repeat the name of the field


class _ResponseSchemaGenerator(RequestSchemaGenerator):
    def normalize_name(self, name: str) -> str:
        return super().normalize_name(_RESPONSE_NAMES.get(name, name))


def build_components() -> dict[str, Any]:
    """Return every schema, by name."""
    bodies = {model for operation in OPERATIONS if operation.body for model in operation.body.content.values()}
    requests = {model for model in bodies if isinstance(model, type) and model is not RecordDraft}
    requests |= {BatchLine, Origin, ProposalState, RecordState, *valpha.list_drafts()}
    responses = {value for value in vars(models).values() if is_typeddict(value)}
    drafts = [build_draft_model(name) for name in COLLECTIONS]
    schemas = {
        **_define(responses | valpha.RESPONSES, _ResponseSchemaGenerator),
        **_define(requests | set(drafts), RequestSchemaGenerator),
        **valpha.build_schemas(),
        **{name: {"type": "string", "description": text} for name, text in TEXT_SCHEMAS.items()},
    }
    for (name, field), description in _FIELD_DESCRIPTIONS.items():
        schemas[name]["properties"][field]["description"] = description
    schemas["Problem"]["additionalProperties"] = True
    page = schemas.pop("RecordPage")
    record = schemas["AnyRecord"]["properties"]
    for collection in COLLECTIONS.values():
        schemas |= _build_record_schemas(collection, record, page)
        draft = schemas[find_schema_name(RecordDraft, collection)]
        draft["properties"]["relations"] |= {**_describe_relations(collection), "additionalProperties": False}
    names = {name: valpha.name_record_schema(collection) for name, collection in COLLECTIONS.items()}
    schemas["AnyRecord"] = {
        "description": models.Record.__doc__,
        "discriminator": {
            "mapping": {name: schema_ref(schema)["$ref"] for name, schema in names.items()},
            "propertyName": "collection",
        },
        "oneOf": [schema_ref(schema) for schema in names.values()],
    }
    for name in ("NewWebhook", *(draft.__name__ for draft in drafts)):
        schemas[_name_patch(name)] = _build_patch_schema(schemas[name])
    return {name: {**schema, "title": name} for name, schema in schemas.items()}


def _define(types: Iterable[Any], generator: type[GenerateJsonSchema]) -> dict[str, Any]:
    """Return the schemas of these types and of all that they contain."""
    adapter = TypeAdapter[Any](
        tuple[*sorted(types, key=lambda item: str(item.__name__))],  # type: ignore[misc, arg-type]
        config=ConfigDict(use_attribute_docstrings=True),
    )
    schema = adapter.json_schema(ref_template="#/components/schemas/{model}", schema_generator=generator)
    definitions: dict[str, Any] = schema["$defs"]
    for child in filter(is_typeddict, types):
        for parent in filter(is_typeddict, get_original_bases(child)):
            # Pydantic does not look for the descriptions of inherited fields.
            inherited = definitions[find_schema_name(parent, None)]["properties"]
            definitions[find_schema_name(child, None)]["properties"] |= inherited
    return definitions


def _build_record_schemas(collection: Collection, record: Mapping[str, Any], page: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schemas of a record of this collection, of a part of it, and of a page of a list."""
    name, fields = valpha.name_record_schema(collection), list_record_fields(collection)
    own = {
        **valpha.describe_fields(collection, collection.fields),
        "collection": {"const": collection.name, "type": "string"},
        "relations": {**record["relations"], **_describe_relations(collection)},
    }
    properties = {field: own.get(field) or record[field] for field in (*fields, "warnings")}
    part = {"description": "The fields that `fields` asked for.", "properties": properties, "type": "object"}
    items = {"items": {"anyOf": [schema_ref(name), schema_ref(f"{name}Part")]}, "type": "array"}
    return {
        name: {**part, "description": collection.description, "required": list(fields)},
        f"{name}Part": part,
        f"{name}Page": {
            **page,
            "description": f"Some {collection.name} records of a list.",
            "properties": {**page["properties"], "items": items},
        },
    }


def _describe_relations(collection: Collection) -> dict[str, Any]:
    """Return the relations that records of a collection may have, each with what it points to."""
    targets = {
        relation.name: "IRIs or CURIEs elsewhere."
        if relation.is_mapping
        else f"Ids of {' or '.join(relation.targets[collection.name])} records."
        for relation in collection.relation_types.values()
    }
    array = {"type": "array", "items": {"type": "string", "minLength": 1, "maxLength": 2_000}}
    return {"properties": {name: {**array, "description": text} for name, text in targets.items()}}


def _name_patch(name: str) -> str:
    return f"{name.removeprefix('New').removesuffix('Draft')}Patch"


def _build_patch_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a JSON merge patch: every field is optional, and null removes it."""
    return {
        **{key: value for key, value in schema.items() if key != "required"},
        "properties": {field: _make_nullable(value) for field, value in schema["properties"].items()},
        "description": "A JSON merge patch; null takes a field away.",
    }


def _make_nullable(schema: dict[str, Any]) -> dict[str, Any]:
    plain = {key: value for key, value in schema.items() if key not in ("default", "description")}
    if "properties" in plain:
        plain["properties"] = {name: _make_nullable(value) for name, value in plain["properties"].items()}
    description = {"description": schema["description"]} if "description" in schema else {}
    return {"anyOf": [plain, {"type": "null"}], **description}
