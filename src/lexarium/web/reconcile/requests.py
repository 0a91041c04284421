"""What a client asks, read from JSON and parameters: all that is wrong with it is told at once."""

from collections.abc import Mapping
from typing import Any

import orjson

from lexarium.domain.collections import COLLECTIONS, SEARCHED
from lexarium.domain.errors import Invalid, Problem
from lexarium.service.properties import PROPERTIES, Property
from lexarium.service.reconciling import BATCH_SIZE, MOST_CANDIDATES, Given, Query
from lexarium.store.records import BATCH
from lexarium.web.problems import HttpProblem

_FIELDS = ("query", "type", "limit", "properties", "type_strict")
_STRICTNESS = ("any", "should", "all")
_TYPES = f"should be among the types {', '.join(COLLECTIONS)}."
_KNOWN = f"should be among the properties {', '.join(PROPERTIES)}."
_MOST_PROPERTIES = 50
_MOST_VALUES = 100
MOST_SKIPPED = 1_000
"""How far one may go in suggestions."""


def read_queries(text: str) -> dict[str, Query]:
    """The queries of a batch, by the keys that the client gave them."""
    given = _object("queries", text)
    if len(given) > BATCH_SIZE:
        raise HttpProblem(413, f"A batch has at most {BATCH_SIZE} queries, not {len(given)}: send several batches.")
    problems: list[Problem] = []
    queries = {key: _query(key, each, problems) for key, each in given.items()}
    if problems:
        raise Invalid("These queries cannot be answered.", problems)
    return queries


def read_extension(text: str) -> tuple[list[str], list[Property]]:
    """The records that are to be extended, and by which properties."""
    given = _object("extend", text)
    problems: list[Problem] = []
    ids, wanted = given.get("ids"), given.get("properties")
    if not isinstance(ids, list) or not all(isinstance(each, str) for each in ids):
        problems.append(Problem("ids", "should be an array of identifiers."))
    elif len(ids) > BATCH:
        raise HttpProblem(
            413, f"At most {BATCH:,} records are extended at once, not {len(ids)}: send several requests."
        )
    if not isinstance(wanted, list):
        problems.append(Problem("properties", "should be an array of objects, each with an `id`."))
        wanted = []
    found: dict[str, Property] = {}
    for place, each in enumerate(wanted):
        identifier = each.get("id") if isinstance(each, dict) else None
        if isinstance(identifier, str) and identifier in PROPERTIES:
            found[identifier] = PROPERTIES[identifier]
        else:
            problems.append(Problem(f"properties/{place}/id", _KNOWN))
    if problems:
        raise Invalid("This cannot be extended.", problems)
    assert isinstance(ids, list)
    return ids, list(found.values())


class Parameters:
    """The parameters of an address. Those that it does not know are passed over: clients add their own."""

    def __init__(self, given: Mapping[str, str]) -> None:
        self._given = given
        self._problems: list[Problem] = []

    def text(self, name: str) -> str:
        """A text that must be given, if only an empty one."""
        if name not in self._given:
            self._problems.append(Problem(name, "is missing."))
        return self._given.get(name, "")

    def types(self, usual: tuple[str, ...]) -> tuple[str, ...]:
        """The type that is asked for, or the usual ones."""
        given = self._given.get("type", "")
        if given and given not in COLLECTIONS:
            self._problems.append(Problem("type", _TYPES))
        return (given,) if given else usual

    def number(self, name: str, least: int, most: int, usual: int) -> int:
        """A whole number."""
        given = self._given.get(name, "") or str(usual)
        if given.isascii() and given.isdecimal() and len(given) < 10 and least <= int(given) <= most:
            return int(given)
        self._problems.append(Problem(name, f"should be a whole number from {least} to {most:,}."))
        return usual

    def check(self) -> None:
        """Raise `Invalid` where something was wrong."""
        if self._problems:
            raise Invalid("This cannot be answered.", self._problems)


def _object(name: str, text: str) -> dict[str, Any]:
    try:
        given = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise HttpProblem(400, f"`{name}` is not JSON: {error}.") from None
    if not isinstance(given, dict):
        raise HttpProblem(400, f"`{name}` should be a JSON object.")
    return given


def _query(key: str, given: Any, problems: list[Problem]) -> Query:
    if not isinstance(given, dict):
        problems.append(Problem(key, "should be an object."))
        return Query()
    wrong = [
        Problem(f"{key}/{name}", f"is no field of a query; there are {', '.join(_FIELDS)}.")
        for name in given
        if name not in _FIELDS
    ]
    text = given.get("query", "")
    if not isinstance(text, str):
        wrong.append(Problem(f"{key}/query", "should be text."))
    known = given.get("properties", [])
    if not isinstance(known, list):
        wrong.append(Problem(f"{key}/properties", "should be an array of objects, each with `pid` and `v`."))
        known = []
    elif len(known) > _MOST_PROPERTIES:
        wrong.append(Problem(f"{key}/properties", f"should be at most {_MOST_PROPERTIES}, not {len(known)}."))
        known = []
    elif "query" not in given and not known:
        wrong.append(Problem(key, "should have a `query`, or `properties`."))
    strictness = given.get("type_strict", "any")
    if strictness not in _STRICTNESS:
        wrong.append(Problem(f"{key}/type_strict", f"should be one of {', '.join(_STRICTNESS)}."))
    properties = [_given(f"{key}/properties/{place}", each, wrong) for place, each in enumerate(known)]
    collections = _collections(f"{key}/type", given.get("type", []), wrong)
    limit = _limit(f"{key}/limit", given.get("limit", 10), wrong)
    if wrong:
        problems += wrong
        return Query()
    if strictness == "all" and len(collections) > 1 and given.get("type"):
        return Query()  # No record is of two types.
    return Query(text, collections, limit, tuple(each for each in properties if each is not None and each.texts))


def _collections(place: str, given: Any, problems: list[Problem]) -> tuple[str, ...]:
    types = [given] if isinstance(given, str) else given
    if not isinstance(types, list) or not all(isinstance(each, str) for each in types):
        problems.append(Problem(place, "should be a type or an array of types."))
        return SEARCHED
    wanted = tuple(dict.fromkeys(each for each in types if each))
    if any(each not in COLLECTIONS for each in wanted):
        problems.append(Problem(place, _TYPES))
    return wanted or SEARCHED


def _limit(place: str, given: Any, problems: list[Problem]) -> int:
    if isinstance(given, (int, float)) and not isinstance(given, bool) and given >= 1 and given == int(given):
        return min(int(given), MOST_CANDIDATES)
    problems.append(Problem(place, "should be a whole number from 1 on."))
    return 1


def _given(place: str, given: Any, problems: list[Problem]) -> Given | None:
    pid = given.get("pid") if isinstance(given, dict) else None
    if not isinstance(pid, str) or pid not in PROPERTIES:
        problems.append(Problem(f"{place}/pid", _KNOWN))
        return None
    values = given.get("v") if isinstance(given.get("v"), list) else [given.get("v")]
    if len(values) > _MOST_VALUES:
        problems.append(Problem(f"{place}/v", f"should have at most {_MOST_VALUES} values, not {len(values)}."))
        return None
    texts = [_text(value) for value in values]
    if None in texts:
        problems.append(Problem(f"{place}/v", "should be text, a number, true, false, or an object with an `id`."))
    return Given(PROPERTIES[pid], [text for text in texts if text is not None])


def _text(value: Any) -> str | None:
    """A value of a property as text; None where it is none."""
    if isinstance(value, dict):
        value = value.get("id")
        return value if isinstance(value, str) else None
    if isinstance(value, str):
        return value
    return orjson.dumps(value).decode() if isinstance(value, (bool, int, float)) else None
