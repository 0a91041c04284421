"""Resources of v-alpha, derived from the collections of its own schema."""

from dataclasses import dataclass
from typing import Any

from lexarium.domain.schema.collections import (
    CONCEPT,
    MAIN_COLLECTIONS,
    SEARCH_HIT_FIELDS,
    SEARCH_HIT_NUMBER_KEY,
    Collection,
)

VALPHA_PATH = "/api/v-alpha"
FORMATS = ("json", "api")
# In place of a parameter, where a request has none that selects records.
WHOLE_COLLECTION = ""
_FORMAT_HELP = "`json` or `api`: both answer the same."
_EXPOSED_HEADERS = "Allow, ETag, Location, Retry-After"


@dataclass(frozen=True)
class ResourceSpec:
    """A collection, or the search, with its URL parameters.

    Of the parameters that select records, the first with a value counts.
    """

    name: str
    description: str
    order: str
    parameters: dict[str, str]
    collection: Collection | None = None

    @property
    def allow(self) -> str:
        """Return the methods, in the order of the contract."""
        return "GET, POST, HEAD, OPTIONS" if self.collection else "GET, HEAD, OPTIONS"

    def build_headers(self, method: str) -> dict[str, str]:
        """Return the headers of every response to a method. Pages of any origin may read; none may write."""
        headers = {"vary": "Accept", "allow": self.allow, "cache-control": "no-cache"}
        if method in ("GET", "HEAD", "OPTIONS"):
            headers |= {"access-control-allow-origin": "*", "access-control-expose-headers": _EXPOSED_HEADERS}
        return headers


def _build_resources() -> dict[str, ResourceSpec]:
    resources = {}
    for collection in MAIN_COLLECTIONS.values():
        if collection.in_valpha:
            parameters = {
                "id": f"Answers the one {collection.name} with this identifier, and its relations.",
                "name": f"Answers the one {collection.name} of this name: spelt so, else ignoring case.",
            }
            if collection is CONCEPT:
                parameters["contrast_id"] = "Answers the concepts that this contrast measures."
            order = "name ignoring case, then id" if collection.sort_by_name else "id"
            name = collection.name
            resources[name] = ResourceSpec(name, collection.description, order, parameters, collection)
    parameters = {"q": "Words that name, alias and definition are searched for. Without it: every term."}
    resources["search"] = ResourceSpec("search", "A term as a search shows it.", SEARCH_HIT_NUMBER_KEY, parameters)
    return resources


RESOURCES = _build_resources()


def build_options_body(resource: ResourceSpec) -> dict[str, Any]:
    """Return the OPTIONS document of a resource: methods, parameters, order, fields and their rules."""
    collection = resource.collection or CONCEPT
    names = collection.valpha_field_names if resource.collection else SEARCH_HIT_FIELDS
    fields = []
    for name in names:
        field_type = "integer" if collection.field_types[name] is int else "string"
        field: dict[str, Any] = {"name": name, "type": field_type, "description": collection.fields[name].description}
        if resource.collection and name in collection.editable_fields:
            field |= {"writable": True, "required": name == "name"}
            if (max_length := collection.get_max_length(name)) is not None:
                field["max_length"] = max_length
        elif resource.collection:
            field["writable"] = False
        fields.append(field)
    if resource.collection is None:
        hit_number_description = "Number of the hit, counted from 1 in the order returned."
        fields.append({"name": SEARCH_HIT_NUMBER_KEY, "type": "integer", "description": hit_number_description})
    return {
        "name": resource.name,
        "description": resource.description,
        "methods": resource.allow.split(", "),
        "parameters": {**resource.parameters, "format": _FORMAT_HELP},
        "order": resource.order,
        "fields": fields,
    }
