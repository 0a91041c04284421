"""Every schema of the OpenAPI document, by name."""

from collections.abc import Iterable
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue, models_json_schema

from lexarium.domain.schema.collections import COLLECTIONS
from lexarium.domain.validation import build_draft_model, build_valpha_model
from lexarium.web.v1.schemas import BODIES, LINES, REFERENCE, draft_name, patch_name, reference, title
from lexarium.web.v1.shapes import ANSWERS


def components() -> dict[str, Any]:
    """Every schema, by name."""
    bodies = [*BODIES, *(build_draft_model(name) for name in COLLECTIONS), *_valpha_bodies()]
    found = {**_definitions(bodies, _Untitled), **_definitions(ANSWERS, _Whole)}
    for name in COLLECTIONS:
        record, draft = found[title(name)], found[draft_name(name)]
        record["properties"]["relations"] |= _relations(name)
        draft["properties"]["relations"] |= {**_relations(name), "additionalProperties": False}
        part = {**record, "title": f"{title(name)}Part", "description": "The fields that `fields` asked for."}
        found[part["title"]] = {key: value for key, value in part.items() if key != "required"}
        items = found[f"{title(name)}Page"]["properties"]["items"]
        items["items"] = {"anyOf": [items["items"], reference(part["title"])]}
    found |= {name: {"type": "string", "title": name, "description": told} for name, told in LINES.items()}
    for body in ("NewWebhook", *(draft_name(name) for name in COLLECTIONS)):
        found[patch_name(body)] = _patch(found[body], patch_name(body))
    return found


class _Untitled(GenerateJsonSchema):
    """Without a title for each field, which only says its name again."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


class _Whole(_Untitled):
    """Without defaults: what is answered has every field, or none is put in its place."""

    def default_schema(self, schema: Any) -> JsonSchemaValue:
        return self.generate_inner(schema["schema"])


def _definitions(models: Iterable[type[BaseModel]], generator: type[GenerateJsonSchema]) -> dict[str, Any]:
    _, schema = models_json_schema(
        [(model, "validation") for model in models], ref_template=REFERENCE, schema_generator=generator
    )
    definitions: dict[str, Any] = schema["$defs"]
    return definitions


def _valpha_bodies() -> list[type[BaseModel]]:
    return [build_valpha_model(name) for name, collection in COLLECTIONS.items() if collection.in_valpha]


def _relations(collection: str) -> dict[str, Any]:
    """The relations that records of a collection may have, each with what it points to."""
    targets = {
        relation.name: f"Ids of {relation.target_collection} records."
        if relation.target_collection
        else "IRIs or CURIEs elsewhere."
        for relation in COLLECTIONS[collection].relation_types.values()
    }
    array = {"type": "array", "items": {"type": "string", "minLength": 1, "maxLength": 2_000}}
    return {"properties": {name: {**array, "description": told} for name, told in targets.items()}}


def _patch(schema: dict[str, Any], name: str) -> dict[str, Any]:
    """Of a schema, that of a JSON merge patch: every field may be left out, and null takes it away."""
    properties = {field: _removable(each) for field, each in schema["properties"].items()}
    rest = {key: value for key, value in schema.items() if key != "required"}
    return {
        **rest,
        "properties": properties,
        "title": name,
        "description": "A JSON merge patch; null takes a field away.",
    }


def _removable(schema: dict[str, Any]) -> dict[str, Any]:
    kept = {key: value for key, value in schema.items() if key not in ("default", "description")}
    if "properties" in kept:
        kept["properties"] = {name: _removable(each) for name, each in kept["properties"].items()}
    told = {"description": schema["description"]} if "description" in schema else {}
    return {"anyOf": [kept, {"type": "null"}], **told}
