"""Parse queries and parameters of clients, and report everything that is wrong with them at once."""

from collections.abc import Mapping
from typing import Any

import orjson

from lexarium.domain.errors import FieldProblem, InvalidInput
from lexarium.services.search import reconciliation
from lexarium.services.search.properties import Property
from lexarium.services.search.reconciliation import MAX_EXTENDED_RECORDS, PropertyConstraint, ReconcileQuery
from lexarium.web.http.problems import HTTPProblem
from lexarium.web.reconcile.responses import ReconcileService

_QUERY_FIELDS = ("query", "type", "limit", "properties", "type_strict")
_TYPE_STRICT_VALUES = ("any", "should", "all")
_MAX_PROPERTIES = 100
_MAX_VALUES = 100
MAX_OFFSET = 1_000


class _Problems(list[FieldProblem]):
    def add(self, field: str, message: str) -> None:
        self.append(FieldProblem(field, message))

    def raise_if_any(self, message: str) -> None:
        if self:
            raise InvalidInput(message, self)


def _describe_types(service: ReconcileService) -> str:
    return f"must be one of the types {', '.join(map(service.get_type_id, service.collections))}."


def _describe_properties(service: ReconcileService) -> str:
    return f"must be one of the properties {', '.join(service.properties)}."


def parse_queries(service: ReconcileService, text: str) -> dict[str, ReconcileQuery]:
    """Return the queries of a batch by their keys; raise for every problem in them."""
    data = _parse_object("queries", text)
    limit = reconciliation.MAX_BATCH_QUERIES
    if len(data) > limit:
        raise HTTPProblem(413, f"A batch must have at most {limit} queries, not {len(data)}; send several batches.")
    problems = _Problems()
    queries = {key: _parse_query(service, key, value, problems) for key, value in data.items()}
    problems.raise_if_any("Invalid queries.")
    return queries


def parse_extension(service: ReconcileService, text: str) -> tuple[list[str], list[Property]]:
    """Return the ids of the records to extend, and the properties; raise for every problem."""
    data = _parse_object("extend", text)
    problems = _Problems()
    ids, items = data.get("ids"), data.get("properties")
    if not isinstance(ids, list) or not all(isinstance(item, str) for item in ids):
        problems.add("ids", "must be an array of IDs.")
        ids = []
    elif len(ids) > MAX_EXTENDED_RECORDS:
        detail = f"`ids` must have at most {MAX_EXTENDED_RECORDS:,} records, not {len(ids)}"
        raise HTTPProblem(413, f"{detail}; send several requests.")
    if not isinstance(items, list):
        problems.add("properties", "must be an array of objects, each with an `id`.")
        items = []
    properties: dict[str, Property] = {}
    for index, item in enumerate(items):
        property_id = item.get("id") if isinstance(item, dict) else None
        if isinstance(property_id, str) and property_id in service.properties:
            properties[property_id] = service.properties[property_id]
        else:
            problems.add(f"properties/{index}/id", _describe_properties(service))
    problems.raise_if_any("Invalid extend request.")
    return ids, list(properties.values())


class ReconcileParameters:
    """Parameters of a URL. Unknown ones are ignored: clients add their own."""

    def __init__(self, service: ReconcileService, values: Mapping[str, str]) -> None:
        self._service = service
        self._values = values
        self._problems = _Problems()

    def text(self, name: str) -> str:
        """Return a required parameter, which may be empty."""
        if name not in self._values:
            self._problems.add(name, "is missing.")
        return self._values.get(name, "")

    def types(self, default: tuple[str, ...]) -> tuple[str, ...]:
        """Return the collection of the type, or the default ones."""
        requested = self._values.get("type", "")
        types = self._service.find_types(requested)
        if requested and not types:
            self._problems.add("type", _describe_types(self._service))
        return types if requested else default

    def integer(self, name: str, minimum: int, maximum: int, default: int) -> int:
        """Return an integer within bounds."""
        text = self._values.get(name, "") or str(default)
        if text.isascii() and text.isdecimal() and len(text) < 10 and minimum <= int(text) <= maximum:
            return int(text)
        self._problems.add(name, f"must be a whole number from {minimum} to {maximum:,}.")
        return default

    def raise_problems(self) -> None:
        """Raise `InvalidInput` where a parameter was wrong."""
        self._problems.raise_if_any("Invalid request.")


def _parse_object(name: str, text: str) -> dict[str, Any]:
    try:
        data = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise HTTPProblem(400, f"`{name}` is not valid JSON: {error}.") from None
    if not isinstance(data, dict):
        raise HTTPProblem(400, f"`{name}` must be a JSON object.")
    return data


def _parse_query(service: ReconcileService, key: str, data: Any, problems: _Problems) -> ReconcileQuery:
    if not isinstance(data, dict):
        problems.add(key, "must be an object.")
        return ReconcileQuery()
    count_before = len(problems)
    for name in data:
        if name not in _QUERY_FIELDS:
            problems.add(f"{key}/{name}", f"is not a query field; valid: {', '.join(_QUERY_FIELDS)}.")
    text, items = data.get("query", ""), data.get("properties", [])
    if not isinstance(text, str):
        problems.add(f"{key}/query", "must be text.")
    if not isinstance(items, list):
        problems.add(f"{key}/properties", "must be an array of objects, each with `pid` and `v`.")
        items = []
    elif len(items) > _MAX_PROPERTIES:
        problems.add(f"{key}/properties", f"must be at most {_MAX_PROPERTIES}, not {len(items)}.")
        items = []
    elif "query" not in data and not items:
        problems.add(key, "must have a `query`, or `properties`.")
    strictness = data.get("type_strict", "any")
    if strictness not in _TYPE_STRICT_VALUES:
        problems.add(f"{key}/type_strict", f"must be one of {', '.join(_TYPE_STRICT_VALUES)}.")
    properties = [
        _parse_property(service, f"{key}/properties/{index}", item, problems) for index, item in enumerate(items)
    ]
    collections = _parse_collections(service, f"{key}/type", data.get("type", []), problems)
    limit = _parse_limit(f"{key}/limit", data.get("limit", 10), problems)
    # No record is of two types.
    is_impossible = strictness == "all" and len(collections) > 1 and data.get("type")
    if len(problems) > count_before or is_impossible:
        return ReconcileQuery()
    return ReconcileQuery(text, collections, limit, tuple(item for item in properties if item and item.texts))


def _parse_collections(service: ReconcileService, pointer: str, value: Any, problems: _Problems) -> tuple[str, ...]:
    types = [value] if isinstance(value, str) else value
    if not isinstance(types, list) or not all(isinstance(name, str) for name in types):
        problems.add(pointer, "must be a type or an array of types.")
        return ()
    requested = dict.fromkeys(name for name in types if name)
    collections = [service.find_types(name) for name in requested]
    if not all(collections):
        problems.add(pointer, _describe_types(service))
    return tuple(name for names in collections for name in names) or service.scope.searched_collections


def _parse_limit(pointer: str, value: Any, problems: _Problems) -> int:
    if isinstance(value, (int, float)) and not isinstance(value, bool) and value >= 1 and value == int(value):
        return min(int(value), reconciliation.MAX_CANDIDATES)
    problems.add(pointer, "must be a whole number from 1 on.")
    return 1


def _parse_property(
    service: ReconcileService, pointer: str, data: Any, problems: _Problems
) -> PropertyConstraint | None:
    pid = data.get("pid") if isinstance(data, dict) else None
    if not isinstance(pid, str) or pid not in service.properties:
        problems.add(f"{pointer}/pid", _describe_properties(service))
        return None
    values = data.get("v") if isinstance(data.get("v"), list) else [data.get("v")]
    if len(values) > _MAX_VALUES:
        problems.add(f"{pointer}/v", f"must have at most {_MAX_VALUES} values, not {len(values)}.")
        return None
    texts = [_value_to_text(value) for value in values]
    if None in texts:
        problems.add(f"{pointer}/v", "must be text, a number, true, false, or an object with an `id`.")
    return PropertyConstraint(service.properties[pid], [text for text in texts if text is not None])


def _value_to_text(value: Any) -> str | None:
    if isinstance(value, dict):
        value = value.get("id")
        return value if isinstance(value, str) else None
    if isinstance(value, str):
        return value
    return orjson.dumps(value).decode() if isinstance(value, (bool, int, float)) else None
