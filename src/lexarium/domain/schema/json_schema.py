"""JSON Schema (draft 2020-12) of records as LinkML writes them in JSON."""

from typing import Any
from urllib.parse import quote, unquote

from lexarium.domain.schema.model import Schema, SchemaClass, Slot

DIALECT = "https://json-schema.org/draft/2020-12/schema"

_TYPES: dict[str, dict[str, Any]] = {
    "integer": {"type": "integer"},
    "boolean": {"type": "boolean"},
    "float": {"type": "number"},
    "double": {"type": "number"},
    "decimal": {"type": "number"},
    "date": {"type": "string", "format": "date"},
    "uri": {"type": "string", "format": "uri"},
    # As in XML Schema, and unlike the format `date-time`, the zone is optional.
    "datetime": {
        "type": "string",
        "pattern": r"^-?\d{4,}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)?$",
    },
}

# Keys of ours, for what slots do not say: `formats/json/linkml_values`.
_OWN_KEYS: dict[str, dict[str, Any]] = {
    "@iri": {"type": ["string", "null"]},
    "@state": {"enum": ["published", "retired"]},
    "@replaced_by": {"type": "string"},
    "@details": {"type": "object"},
    "@statements": {"type": "object"},
}


def to_json_schema(schema: Schema, class_name: str | None = None) -> dict[str, Any]:
    """Return the JSON Schema of one class, by its LinkML or collection name, or of all.

    All classes together accept a record of any collection, and a container with its entries. Raise KeyError if there
    is no such class.
    """
    definitions = {
        schema_class.name: _describe_class(schema, schema_class)
        for schema_class in schema.classes.values()
        if not schema_class.abstract
    }
    document: dict[str, Any] = {"$schema": DIALECT, "$id": schema.id, "title": schema.title}
    if schema.description:
        document["description"] = schema.description
    if class_name is not None:
        schema_class = (
            schema.collections[class_name] if class_name in schema.collections else schema.classes[class_name]
        )
        names = _list_concrete(schema, schema_class.name)
        document["$defs"] = _select(definitions, names)
        return document | _refer_to(names)
    containers = [name for name in definitions if schema.classes[name].tree_root]
    collections = [collection.name for collection in schema.collections.values()]
    return document | {"anyOf": [_refer(name) for name in (*collections, *containers)], "$defs": definitions}


def _describe_class(schema: Schema, schema_class: SchemaClass) -> dict[str, Any]:
    properties = {slot.name: _describe_slot(schema, schema_class, slot) for slot in schema_class.slots.values()}
    # LinkML writes the name of the class into its files.
    properties["@type"] = {"const": schema_class.name}
    if not schema_class.tree_root:
        properties |= _OWN_KEYS
    document: dict[str, Any] = {"title": schema_class.label, "type": "object", "properties": properties}
    if schema_class.description:
        document["description"] = schema_class.description
    required = [slot.name for slot in schema_class.slots.values() if slot.required]
    if required:
        document["required"] = required
    document["additionalProperties"] = False
    return document


def _describe_slot(schema: Schema, schema_class: SchemaClass, slot: Slot) -> dict[str, Any]:
    value = _describe_value(schema, schema_class, slot)
    if slot.multivalued:
        value = {"type": "array", "items": value}
        if slot.required:
            value["minItems"] = 1
    description = {"description": slot.description} if slot.description else {}
    return {"title": slot.label, **description, **value}


def _describe_value(schema: Schema, schema_class: SchemaClass, slot: Slot) -> dict[str, Any]:
    is_nested = slot.is_node or (schema_class.tree_root and slot.range in schema.classes)
    if is_nested:
        return _refer_to(_list_concrete(schema, slot.range))
    value = dict(_TYPES.get(slot.range, {"type": "string"}))
    if slot.enum_values:
        value["enum"] = [permissible_value.text for permissible_value in slot.enum_values]
    if slot.pattern and value["type"] == "string":
        # A pattern of the type is kept beside it.
        value = (
            {"allOf": [value, {"pattern": slot.pattern}]} if "pattern" in value else value | {"pattern": slot.pattern}
        )
    if slot.max_length is not None and slot.range == "string":
        value["maxLength"] = slot.max_length
    return value


def _list_concrete(schema: Schema, class_name: str) -> list[str]:
    """Return a class and its descendants, without abstract ones."""
    return [
        schema_class.name
        for schema_class in schema.classes.values()
        if not schema_class.abstract and class_name in (schema_class.name, *schema_class.ancestors)
    ]


def _refer(name: str) -> dict[str, Any]:
    return {"$ref": f"#/$defs/{quote(name)}"}


def _refer_to(names: list[str]) -> dict[str, Any]:
    return _refer(names[0]) if len(names) == 1 else {"anyOf": [_refer(name) for name in names]} if names else {}


def _select(definitions: dict[str, dict[str, Any]], names: list[str]) -> dict[str, Any]:
    """Return the definitions of these names and of all that they refer to."""
    selected: dict[str, Any] = {}
    pending = list(reversed(names))
    while pending:
        name = pending.pop()
        if name not in selected:
            selected[name] = definitions[name]
            pending += _find_references(definitions[name])
    return selected


def _find_references(document: Any) -> list[str]:
    if isinstance(document, dict):
        own = [unquote(document["$ref"].removeprefix("#/$defs/"))] if "$ref" in document else []
        return own + [name for value in document.values() for name in _find_references(value)]
    return [name for item in document for name in _find_references(item)] if isinstance(document, list) else []
