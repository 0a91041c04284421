"""JSON Schemas of the document, derived from the types of requests and responses and from the collections."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any, Literal, Union

from pydantic import BaseModel, ConfigDict, Field, RootModel, TypeAdapter, create_model
from pydantic.json_schema import GenerateJsonSchema
from typing_extensions import TypedDict, get_original_bases, is_typeddict

from lexarium.client import models
from lexarium.domain.account import Origin
from lexarium.domain.proposal import ProposalState
from lexarium.domain.record import RecordState
from lexarium.domain.schema.collections import COLLECTIONS, SEARCH_HIT_NUMBER_KEY, Collection
from lexarium.domain.schema.fields import SearchHit
from lexarium.domain.schema.relation_types import RelationList
from lexarium.domain.validation import build_draft_model, build_valpha_model
from lexarium.services.serializers import list_record_fields
from lexarium.web.v1.operations import OPERATIONS
from lexarium.web.v1.operations.batch import BatchLine
from lexarium.web.v1.operations.export import EXPORT_FORMATS, schema_name

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
"""Published names that differ from those of the types. Generated clients use them, so they must not change."""
_TEXT_SCHEMAS = {
    "PlainText": "A text to find terms in, in UTF-8.",
    "Batch": "One `BatchLine` a line; `limits` of `GET /api/v1` tells how many.",
    "BatchResults": "One `BatchResult` a line, in the order of the lines that were sent.",
    "Events": "Server-sent events: each with an `id` to resume after, `event: change`, and a `Change` as `data`.",
    **{schema_name(item): f"{item.description}." for item in EXPORT_FORMATS.values()},
}


class ValphaProposal(TypedDict):
    """A record that waits for a curator."""

    proposal: str
    state: models.Decision
    change: dict[str, Any]


class ValphaResource(TypedDict):
    """Description of a v-alpha resource by OPTIONS."""

    name: str
    description: str
    methods: list[str]
    parameters: dict[str, str]
    order: str
    fields: list[dict[str, Any]]


def name_record_schema(collection: Collection) -> str:
    """Return the name of the schema of a collection's records."""
    return "".join(part.capitalize() for part in collection.name.split("_"))


def find_schema_name(content: Any, collection: Collection | None) -> str:
    """Return the name of the schema of a request or response type, or the name itself, with the collection inserted."""
    if isinstance(content, str):
        return content.format(Record=name_record_schema(collection)) if collection else content
    if collection is not None and content in (models.Record, models.RecordPage):
        return name_record_schema(collection) + ("Page" if content is models.RecordPage else "")
    name: str = content.__name__
    return _RESPONSE_NAMES.get(name, name) if is_typeddict(content) else _name_request(name)


def schema_ref(name: str) -> dict[str, Any]:
    """Return a reference to a schema."""
    return {"$ref": f"#/components/schemas/{name}"}


def _name_request(name: str) -> str:
    return _ENUM_NAMES.get(name, name.removesuffix("Request"))


class RequestSchemaGenerator(GenerateJsonSchema):
    """Generate JSON Schemas of requests under their published names."""

    def normalize_name(self, name: str) -> str:
        return super().normalize_name(_name_request(name))

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False  # it would repeat the name of the field


class _ResponseSchemaGenerator(RequestSchemaGenerator):
    """Generate JSON Schemas of responses, where fields with a default are always present."""

    def normalize_name(self, name: str) -> str:
        return super().normalize_name(_RESPONSE_NAMES.get(name, name))

    def field_is_required(self, field: Any, total: bool) -> bool:
        return field["type"] == "model-field" or super().field_is_required(field, total)

    def default_schema(self, schema: Any) -> dict[str, Any]:
        return self.generate_inner(schema["schema"])


def build_components() -> dict[str, Any]:
    """Return every schema, by name."""
    bodies = {model for operation in OPERATIONS if operation.body for model in operation.body.content.values()}
    drafts = {build_draft_model(name) for name in COLLECTIONS}
    drafts |= {build_valpha_model(name) for name, collection in COLLECTIONS.items() if collection.in_valpha}
    requests = {model for model in bodies if isinstance(model, type)}
    requests |= {BatchLine, Origin, ProposalState, RecordState, *drafts}
    responses = {value for value in vars(models).values() if is_typeddict(value)}
    schemas = {
        **{name: {"type": "string", "description": text} for name, text in _TEXT_SCHEMAS.items()},
        **_define(responses.union(_iter_valpha_types()), _ResponseSchemaGenerator),
        **_define(requests, RequestSchemaGenerator),
        "JsonldExport": {"additionalProperties": True, "description": "SKOS in JSON-LD.", "type": "object"},
    }
    # A type in the functional syntax has no docstrings of its fields.
    schemas["Difference"]["properties"]["from"]["description"] = "What it was."
    schemas["Difference"]["properties"]["to"]["description"] = "What it is."
    schemas["Problem"]["additionalProperties"] = True
    schemas["WebhookPatch"] = _build_patch_schema(schemas["NewWebhook"])
    for collection in COLLECTIONS.values():
        schemas |= _build_record_schemas(collection, schemas)
    del schemas["RecordPage"]
    refs = {name: schema_ref(name_record_schema(collection)) for name, collection in COLLECTIONS.items()}
    schemas["AnyRecord"] = {
        "description": models.Record.__doc__,
        "discriminator": {"mapping": {name: ref["$ref"] for name, ref in refs.items()}, "propertyName": "collection"},
        "oneOf": list(refs.values()),
    }
    return {name: {**schema, "title": name} for name, schema in schemas.items()}


def _iter_valpha_types() -> Iterator[Any]:
    """Yield the types of the responses of v-alpha, and of the export that is made of them."""
    yield from (ValphaProposal, ValphaResource)
    records: list[Any] = []
    for collection in COLLECTIONS.values():
        name, kind = f"Valpha{name_record_schema(collection)}", collection.name
        fields: dict[str, Any] = {"type": Literal[kind]}
        fields |= {view.key: _list_of(_build_entry_model(name, view)) for view in collection.relation_lists}
        about = f"A {kind} alone, with its relations."
        records.append(create_model(f"{name}Alone", __base__=collection.model, __doc__=about, **fields))
        if collection.in_valpha:
            row = create_model(name, __base__=collection.model, __doc__=f"A {kind} in v-alpha's lists.")
            yield create_model(f"{name}Answer", __base__=RootModel, root=_list_of(row) | records[-1])
    number: Any = Annotated[int, Field(description="Its number, counted from 1 in the order returned.")]
    about = "A term as v-alpha's search shows it."
    hit = create_model("ValphaHit", __base__=SearchHit, __doc__=about, **{SEARCH_HIT_NUMBER_KEY: number})
    about = "Terms, the best first; without `q` every term, by name."
    yield create_model("ValphaHits", __base__=RootModel, __doc__=about, root=_list_of(hit))
    about = "Records of all collections, with their relations."
    yield create_model("VAlphaExport", __base__=RootModel, __doc__=about, root=_list_of(*records))


def _build_entry_model(prefix: str, view: RelationList) -> type[BaseModel]:
    fields: dict[str, Any] = {view.id_key: str, "name": str}
    if view.shows_relationship:
        fields["relationship"] = Literal[*(relation.name for relation in view.relation_types)]
    if view.directions:
        fields["direction"] = Literal[*view.directions.values()]
    return create_model(f"{prefix}{view.key.capitalize()}", **fields)


def _list_of(*models: type[BaseModel]) -> Any:
    return list[Union[*models]]  # type: ignore[valid-type]


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


def _build_record_schemas(collection: Collection, schemas: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schemas of a record of this collection, of a part, a draft and a patch of it, and of a page of a list.

    They are made of those of a record of any collection, and of the collection's own fields in v-alpha.
    """
    name, fields = name_record_schema(collection), list_record_fields(collection)
    record, page, draft = schemas["AnyRecord"]["properties"], schemas["RecordPage"], schemas[f"{name}Draft"]
    relations = _describe_relations(collection)
    draft["properties"]["relations"] |= {**relations, "additionalProperties": False}
    known = {
        **record,
        **schemas[f"Valpha{name}Alone"]["properties"],
        "collection": {"const": collection.name, "type": "string"},
        "relations": {**record["relations"], **relations},
    }
    properties = {field: known[field] for field in (*fields, "warnings")}
    part = {"description": "The fields that `fields` asked for.", "properties": properties, "type": "object"}
    items = {"items": {"anyOf": [schema_ref(name), schema_ref(f"{name}Part")]}, "type": "array"}
    return {
        name: {**part, "description": collection.description, "required": list(fields)},
        f"{name}Part": part,
        f"{name}Patch": _build_patch_schema(draft),
        f"{name}Page": {
            **page,
            "description": f"Some {collection.name} records of a list.",
            "properties": {**page["properties"], "items": items},
        },
    }


def _describe_relations(collection: Collection) -> dict[str, Any]:
    """Return the schemas of the relations that records of a collection may have."""
    array = {"type": "array", "items": {"type": "string", "minLength": 1, "maxLength": 2_000}}
    properties = {}
    for name, relation in collection.relation_types.items():
        target = relation.target_collection
        properties[name] = {
            **array,
            "description": f"Ids of {target} records." if target else "IRIs or CURIEs elsewhere.",
        }
    return {"properties": properties}


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
