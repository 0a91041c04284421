"""JSON Schemas of the document, derived from the types of requests and responses and from the collections."""

from collections.abc import Iterable, Iterator
from typing import Annotated, Any, Literal, Union

from pydantic import BaseModel, ConfigDict, Field, RootModel, TypeAdapter, create_model
from pydantic.json_schema import GenerateJsonSchema
from typing_extensions import TypedDict, get_original_bases, is_typeddict

from lexarium.client import models
from lexarium.domain.account import Origin
from lexarium.domain.editing.validation import build_draft_model, build_valpha_model
from lexarium.domain.proposal import ProposalState
from lexarium.domain.record import RecordState
from lexarium.domain.record_texts import TEXT_ROLES
from lexarium.domain.schema.collections import (
    CONCEPT,
    MAIN_COLLECTIONS,
    SEARCH_HIT_FIELDS,
    SEARCH_HIT_NUMBER_KEY,
    Collection,
)
from lexarium.domain.schema.relation_types import RelationList
from lexarium.formats.registry import EXPORT_FORMATS
from lexarium.services.serializers import HIT_COLUMNS
from lexarium.web.v1.operations import OPERATIONS
from lexarium.web.v1.operations.batch import BatchLine
from lexarium.web.v1.operations.export import schema_name

_ENUM_NAMES = {"ProposalState": "Decision", "RecordState": "State"}
_RESPONSE_NAMES = {
    "Alias": "OtherName",
    "FieldConflict": "Clash",
    "Hierarchy": "Reached",
    "Match": "Matched",
    "ProposalDetail": "ProposalInFull",
    "Reached": "ReachedRecord",
    "Related": "RelatedRecord",
    "SearchResults": "Found",
    "WebhookTest": "Trial",
}
"""Published names that differ from those of the types. Generated clients use them, so they must not change."""
_TEXT_SCHEMAS = {
    "PlainText": "A text to find terms in, in UTF-8.",
    "LinkmlSchema": "A schema in LinkML YAML.",
    "Batch": "One `BatchLine` per line. `limits` of `GET /api/v1` has the maximum number.",
    "BatchResults": "One `BatchResult` per line, in the order of the request.",
    "SearchTable": f"A table of hits with the columns {', '.join(HIT_COLUMNS)}.",
    "Events": "Server-sent events, each with an `id` to resume after, `event: change` and a `Change` as `data`.",
    **{schema_name(item): f"{item.description}." for item in EXPORT_FORMATS.values()},
}


class ValphaProposal(TypedDict):
    """A record submitted as a proposal."""

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


def find_schema_name(content: Any) -> str:
    """Return the name of the schema of a request or response type, or the name itself."""
    if isinstance(content, str):
        return content
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
    drafts = {build_valpha_model(name) for name, collection in MAIN_COLLECTIONS.items() if collection.in_valpha}
    requests = {model for model in bodies if isinstance(model, type)}
    requests |= {BatchLine, Origin, ProposalState, RecordState, build_draft_model("concept"), *drafts}
    responses = {value for value in vars(models).values() if is_typeddict(value)}
    schemas = {
        **{name: {"type": "string", "description": text} for name, text in _TEXT_SCHEMAS.items()},
        **_define(responses.union(_iter_valpha_types()), _ResponseSchemaGenerator),
        **_define(requests, RequestSchemaGenerator),
        "JsonldExport": {"description": "SKOS in JSON-LD.", "items": {"type": "object"}, "type": "array"},
        "JsonSchema": {"additionalProperties": True, "description": "JSON Schema, 2020-12.", "type": "object"},
        "LinkmlExport": {"additionalProperties": True, "description": "Entries by their slots.", "type": "object"},
    }
    # A type in the functional syntax has no docstrings of its fields.
    schemas["Difference"]["properties"]["from"]["description"] = "Old value."
    schemas["Difference"]["properties"]["to"]["description"] = "New value."
    schemas["Problem"]["additionalProperties"] = True
    schemas["WebhookPatch"] = _build_patch_schema(schemas["NewWebhook"])
    schemas["Record"]["additionalProperties"] = True
    part = {"additionalProperties": True, "description": "Fields selected by `fields`.", "type": "object"}
    schemas["RecordPage"]["properties"]["items"]["items"] = {"anyOf": [schema_ref("Record"), part]}
    schemas["RecordDraft"] = _build_draft_schema(schemas.pop("ConceptDraft"))
    schemas["RecordPatch"] = _build_patch_schema(schemas["RecordDraft"])
    return {name: {**schema, "title": name} for name, schema in schemas.items()}


def _build_draft_schema(draft: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a draft for any collection, from that of a draft for one of them."""
    properties = {name: draft["properties"][name] for name in ("name", *TEXT_ROLES, "aliases", "sources", "relations")}
    fields = {
        "additionalProperties": {"type": ["string", "integer", "null"]},
        "default": {},
        "description": "Other fields that the schema declares for the collection. Omitted fields are empty.",
        "type": "object",
    }
    return {
        "additionalProperties": True,
        "description": "A record to write. Further fields depend on its collection.",
        "properties": {**properties, "fields": fields},
        "required": ["name"],
        "type": "object",
    }


def _iter_valpha_types() -> Iterator[Any]:
    """Yield the types of the responses of v-alpha, and of the export that is made of them."""
    yield from (ValphaProposal, ValphaResource)
    records: list[Any] = []
    for collection in MAIN_COLLECTIONS.values():
        if not collection.valpha_field_names:
            continue
        name, kind = f"Valpha{name_record_schema(collection)}", collection.name
        fields = _build_field_types(collection, collection.valpha_field_names)
        lists: dict[str, Any] = {"type": Literal[kind]}
        lists |= {key: _list_of(_build_entry_model(name, view)) for key, view in collection.relation_lists.items()}
        about = f"A {kind} with its relations."
        records.append(create_model(f"{name}Alone", __doc__=about, **fields, **lists))
        if collection.in_valpha:
            row = create_model(name, __doc__=f"A {kind} in v-alpha's lists.", **fields)
            yield create_model(f"{name}Answer", __base__=RootModel, root=_list_of(row) | records[-1])
    hit_fields = _build_field_types(CONCEPT, SEARCH_HIT_FIELDS)
    number: Any = Annotated[int, Field(description="Position in the results, from 1.")]
    about = "A term as v-alpha's search shows it."
    hit = create_model("ValphaHit", __doc__=about, **hit_fields, **{SEARCH_HIT_NUMBER_KEY: number})
    about = "Terms, the best first; without `q` every term, by name."
    yield create_model("ValphaHits", __base__=RootModel, __doc__=about, root=_list_of(hit))
    about = "Records of all collections, with their relations."
    yield create_model("VAlphaExport", __base__=RootModel, __doc__=about, root=_list_of(*records, dict[str, Any]))


def _build_field_types(collection: Collection, names: Iterable[str]) -> dict[str, Any]:
    return {
        name: Annotated[collection.field_types[name], Field(description=collection.fields[name].description)]
        for name in names
    }


def _build_entry_model(prefix: str, view: RelationList) -> type[BaseModel]:
    fields: dict[str, Any] = {view.id_key: str, "name": str}
    if view.shows_relationship:
        fields["relationship"] = Literal[*dict.fromkeys(name for name, _ in view.paths)]
    if view.directions:
        fields["direction"] = Literal[*view.directions.values()]
    return create_model(f"{prefix}{view.key.capitalize()}", **fields)


def _list_of(*types: Any) -> Any:
    return list[Union[*types]]  # type: ignore[valid-type]


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
            inherited = definitions[find_schema_name(parent)]["properties"]
            definitions[find_schema_name(child)]["properties"] |= inherited
    return definitions


def _build_patch_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a JSON merge patch: every field is optional, and null removes it."""
    return {
        **{key: value for key, value in schema.items() if key != "required"},
        "properties": {field: _make_nullable(value) for field, value in schema["properties"].items()},
        "description": "JSON merge patch; null removes a field.",
    }


def _make_nullable(schema: dict[str, Any]) -> dict[str, Any]:
    plain = {key: value for key, value in schema.items() if key not in ("default", "description")}
    if "properties" in plain:
        plain["properties"] = {name: _make_nullable(value) for name, value in plain["properties"].items()}
    description = {"description": schema["description"]} if "description" in schema else {}
    return {"anyOf": [plain, {"type": "null"}], **description}
