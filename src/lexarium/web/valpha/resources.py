"""What there is under v-alpha: declared from the registry of collections."""

from dataclasses import dataclass
from typing import Any

from lexarium.domain.collections import COLLECTIONS, CONCEPT, HIT_NUMBER, Collection
from lexarium.domain.records import SearchHit

PATH = "/api/v-alpha"
FORMATS = ("json", "api")
WHOLE = ""
"""Stands for a parameter where a request has none that counts: the whole is asked for."""
_FORMAT_HELP = "`json` or `api`: both answer the same."
_EXPOSED = "Allow, ETag, Location, Retry-After"


@dataclass(frozen=True)
class Resource:
    """One of the addresses under v-alpha. It has a collection, or is the search."""

    name: str
    description: str
    order: str
    parameters: dict[str, str]
    """Each with what it does; the first that a request gives a value to is the one that counts."""
    collection: Collection | None = None

    @property
    def allow(self) -> str:
        """The methods, in the contract's order."""
        return "GET, POST, HEAD, OPTIONS" if self.collection else "GET, HEAD, OPTIONS"

    def headers(self, method: str) -> dict[str, str]:
        """What every answer to a method carries. Pages of any origin may read; none may write."""
        headers = {"vary": "Accept", "allow": self.allow, "cache-control": "no-cache"}
        if method in ("GET", "HEAD", "OPTIONS"):
            headers |= {"access-control-allow-origin": "*", "access-control-expose-headers": _EXPOSED}
        return headers


def _resources() -> dict[str, Resource]:
    found = {}
    for collection in COLLECTIONS.values():
        if collection.on_valpha:
            parameters = {
                "id": f"Answers the one {collection.name} with this identifier, and its relations.",
                "name": f"Answers the one {collection.name} of this name: spelt so, else ignoring case.",
            }
            if collection is CONCEPT:
                parameters["contrast_id"] = "Answers the concepts that this contrast measures."
            order = "name ignoring case, then id" if collection.ordered_by_name else "id"
            found[collection.name] = Resource(collection.name, collection.description, order, parameters, collection)
    parameters = {"q": "Words that name, alias and definition are searched for. Without it: every term."}
    found["search"] = Resource("search", "A term as a search shows it.", HIT_NUMBER, parameters)
    return found


RESOURCES = _resources()


def describe(resource: Resource) -> dict[str, Any]:
    """What OPTIONS tells of a resource: its methods, parameters, order, fields and their rules."""
    record = resource.collection.record if resource.collection else SearchHit
    written = resource.collection.written if resource.collection else {}
    fields = []
    for name, info in record.model_fields.items():
        field: dict[str, Any] = {
            "name": name,
            "type": "integer" if info.annotation is int else "string",
            "description": info.description,
        }
        if name in written:
            field |= {"writable": True, "required": info.is_required()}
            if written[name].limit is not None:
                field["max_length"] = written[name].limit
        elif resource.collection:
            field["writable"] = False
        fields.append(field)
    if resource.collection is None:
        number = "Number of the hit, counted from 1 in the order returned."
        fields.append({"name": HIT_NUMBER, "type": "integer", "description": number})
    return {
        "name": resource.name,
        "description": resource.description,
        "methods": resource.allow.split(", "),
        "parameters": {**resource.parameters, "format": _FORMAT_HELP},
        "order": resource.order,
        "fields": fields,
    }
