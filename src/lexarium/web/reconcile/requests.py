"""What a client asks, read from JSON and parameters: all that is wrong with it is told at once."""

from collections.abc import Mapping
from typing import Any

import orjson

from lexarium.domain.errors import FieldProblem, InvalidInput
from lexarium.domain.schema.collections import COLLECTIONS, DEFAULT_SEARCH_COLLECTIONS
from lexarium.services.search.properties import PROPERTIES, Property
from lexarium.services.search.reconciliation import (
    MAX_BATCH_QUERIES,
    MAX_CANDIDATES,
    PropertyConstraint,
    ReconcileQuery,
)
from lexarium.store.records import BATCH_SIZE
from lexarium.web.http.problems import HTTPProblem

_QUERY_FIELDS = ("query", "type", "limit", "properties", "type_strict")
_TYPE_STRICT_VALUES = ("any", "should", "all")
_TYPE_MESSAGE = f"should be among the types {', '.join(COLLECTIONS)}."
_PROPERTY_MESSAGE = f"should be among the properties {', '.join(PROPERTIES)}."
_MAX_PROPERTIES = 50
_MAX_VALUES = 100
MAX_OFFSET = 1_000
"""How far one may go in suggestions."""


def parse_queries(text: str) -> dict[str, ReconcileQuery]:
    """The queries of a batch, by the keys that the client gave them."""
    data = _parse_object("queries", text)
    if len(data) > MAX_BATCH_QUERIES:
        raise HTTPProblem(
            413, f"A batch has at most {MAX_BATCH_QUERIES} queries, not {len(data)}: send several batches."
        )
    problems: list[FieldProblem] = []
    queries = {key: _parse_query(key, value, problems) for key, value in data.items()}
    if problems:
        raise InvalidInput("These queries cannot be answered.", problems)
    return queries


def parse_extension(text: str) -> tuple[list[str], list[Property]]:
    """The records that are to be extended, and by which properties."""
    data = _parse_object("extend", text)
    problems: list[FieldProblem] = []
    ids, property_items = data.get("ids"), data.get("properties")
    if not isinstance(ids, list) or not all(isinstance(item, str) for item in ids):
        problems.append(FieldProblem("ids", "should be an array of identifiers."))
    elif len(ids) > BATCH_SIZE:
        raise HTTPProblem(
            413, f"At most {BATCH_SIZE:,} records are extended at once, not {len(ids)}: send several requests."
        )
    if not isinstance(property_items, list):
        problems.append(FieldProblem("properties", "should be an array of objects, each with an `id`."))
        property_items = []
    properties: dict[str, Property] = {}
    for index, item in enumerate(property_items):
        property_id = item.get("id") if isinstance(item, dict) else None
        if isinstance(property_id, str) and property_id in PROPERTIES:
            properties[property_id] = PROPERTIES[property_id]
        else:
            problems.append(FieldProblem(f"properties/{index}/id", _PROPERTY_MESSAGE))
    if problems:
        raise InvalidInput("This cannot be extended.", problems)
    assert isinstance(ids, list)
    return ids, list(properties.values())


class Parameters:
    """The parameters of an address. Those that it does not know are passed over: clients add their own."""

    def __init__(self, values: Mapping[str, str]) -> None:
        self._values = values
        self._problems: list[FieldProblem] = []

    def text(self, name: str) -> str:
        """A text that must be given, if only an empty one."""
        if name not in self._values:
            self._problems.append(FieldProblem(name, "is missing."))
        return self._values.get(name, "")

    def types(self, default: tuple[str, ...]) -> tuple[str, ...]:
        """The type that is asked for, or the usual ones."""
        requested = self._values.get("type", "")
        if requested and requested not in COLLECTIONS:
            self._problems.append(FieldProblem("type", _TYPE_MESSAGE))
        return (requested,) if requested else default

    def integer(self, name: str, minimum: int, maximum: int, default: int) -> int:
        """A whole number."""
        text = self._values.get(name, "") or str(default)
        if text.isascii() and text.isdecimal() and len(text) < 10 and minimum <= int(text) <= maximum:
            return int(text)
        self._problems.append(FieldProblem(name, f"should be a whole number from {minimum} to {maximum:,}."))
        return default

    def raise_problems(self) -> None:
        """Raise `Invalid` where something was wrong."""
        if self._problems:
            raise InvalidInput("This cannot be answered.", self._problems)


def _parse_object(name: str, text: str) -> dict[str, Any]:
    try:
        data = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise HTTPProblem(400, f"`{name}` is not JSON: {error}.") from None
    if not isinstance(data, dict):
        raise HTTPProblem(400, f"`{name}` should be a JSON object.")
    return data


def _parse_query(key: str, data: Any, problems: list[FieldProblem]) -> ReconcileQuery:
    if not isinstance(data, dict):
        problems.append(FieldProblem(key, "should be an object."))
        return ReconcileQuery()
    query_problems = [
        FieldProblem(f"{key}/{name}", f"is no field of a query; there are {', '.join(_QUERY_FIELDS)}.")
        for name in data
        if name not in _QUERY_FIELDS
    ]
    text = data.get("query", "")
    if not isinstance(text, str):
        query_problems.append(FieldProblem(f"{key}/query", "should be text."))
    property_items = data.get("properties", [])
    if not isinstance(property_items, list):
        query_problems.append(
            FieldProblem(f"{key}/properties", "should be an array of objects, each with `pid` and `v`.")
        )
        property_items = []
    elif len(property_items) > _MAX_PROPERTIES:
        query_problems.append(
            FieldProblem(f"{key}/properties", f"should be at most {_MAX_PROPERTIES}, not {len(property_items)}.")
        )
        property_items = []
    elif "query" not in data and not property_items:
        query_problems.append(FieldProblem(key, "should have a `query`, or `properties`."))
    strictness = data.get("type_strict", "any")
    if strictness not in _TYPE_STRICT_VALUES:
        query_problems.append(FieldProblem(f"{key}/type_strict", f"should be one of {', '.join(_TYPE_STRICT_VALUES)}."))
    properties = [
        _parse_property(f"{key}/properties/{index}", item, query_problems) for index, item in enumerate(property_items)
    ]
    collections = _parse_collections(f"{key}/type", data.get("type", []), query_problems)
    limit = _parse_limit(f"{key}/limit", data.get("limit", 10), query_problems)
    if query_problems:
        problems += query_problems
        return ReconcileQuery()
    if strictness == "all" and len(collections) > 1 and data.get("type"):
        return ReconcileQuery()  # No record is of two types.
    return ReconcileQuery(
        text, collections, limit, tuple(item for item in properties if item is not None and item.texts)
    )


def _parse_collections(pointer: str, value: Any, problems: list[FieldProblem]) -> tuple[str, ...]:
    types = [value] if isinstance(value, str) else value
    if not isinstance(types, list) or not all(isinstance(name, str) for name in types):
        problems.append(FieldProblem(pointer, "should be a type or an array of types."))
        return DEFAULT_SEARCH_COLLECTIONS
    requested = tuple(dict.fromkeys(name for name in types if name))
    if any(name not in COLLECTIONS for name in requested):
        problems.append(FieldProblem(pointer, _TYPE_MESSAGE))
    return requested or DEFAULT_SEARCH_COLLECTIONS


def _parse_limit(pointer: str, value: Any, problems: list[FieldProblem]) -> int:
    if isinstance(value, (int, float)) and not isinstance(value, bool) and value >= 1 and value == int(value):
        return min(int(value), MAX_CANDIDATES)
    problems.append(FieldProblem(pointer, "should be a whole number from 1 on."))
    return 1


def _parse_property(pointer: str, data: Any, problems: list[FieldProblem]) -> PropertyConstraint | None:
    pid = data.get("pid") if isinstance(data, dict) else None
    if not isinstance(pid, str) or pid not in PROPERTIES:
        problems.append(FieldProblem(f"{pointer}/pid", _PROPERTY_MESSAGE))
        return None
    values = data.get("v") if isinstance(data.get("v"), list) else [data.get("v")]
    if len(values) > _MAX_VALUES:
        problems.append(FieldProblem(f"{pointer}/v", f"should have at most {_MAX_VALUES} values, not {len(values)}."))
        return None
    texts = [_value_to_text(value) for value in values]
    if None in texts:
        problems.append(
            FieldProblem(f"{pointer}/v", "should be text, a number, true, false, or an object with an `id`.")
        )
    return PropertyConstraint(PROPERTIES[pid], [text for text in texts if text is not None])


def _value_to_text(value: Any) -> str | None:
    """A value of a property as text; None where it is none."""
    if isinstance(value, dict):
        value = value.get("id")
        return value if isinstance(value, str) else None
    if isinstance(value, str):
        return value
    return orjson.dumps(value).decode() if isinstance(value, (bool, int, float)) else None
