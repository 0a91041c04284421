"""The JSON of a v-alpha server: the list shape, and the `?id=` shape with relations."""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import itemgetter
from typing import Any, BinaryIO

import orjson

from lexarium.domain.collections import COLLECTIONS, HIT_NUMBER, Collection
from lexarium.domain.identifiers import LONGEST, has_prefix, is_too_long
from lexarium.domain.records import Fields
from lexarium.domain.relations import Edge, Related, RelationView
from lexarium.domain.stamps import is_stamp
from lexarium.domain.text import unstorable
from lexarium.exchange.incoming import Incoming, Reading, no_collection
from lexarium.exchange.json_stream import objects

_LEAST, _MOST = -(2**63), 2**63 - 1
_TYPE_NAMES = {str: "text", int: "a whole number"}
_FORMS: dict[str, tuple[Fields, list[type], list[str]]] = {
    name: (
        dict.fromkeys(collection.names),
        list(collection.types.values()),
        [field for field, kind in collection.types.items() if kind is int],
    )
    for name, collection in COLLECTIONS.items()
}
"""The fields of a record in their order, without values; their types; which of them are numbers."""
# But for the 29th of February, which takes more than a form to tell.
_DAY = "(?:(?:0[1-9]|1[0-2])-(?:0[1-9]|1\\d|2[0-8])|(?:0[13-9]|1[0-2])-(?:29|30)|(?:0[13578]|1[02])-31)"
_MOMENT = f"\\d{{4}}-{_DAY}T(?:[01]\\d|2[0-3])(?::[0-5]\\d){{2}}"


def _doubtless(collection: Collection) -> tuple[Callable[[Fields], Any], re.Pattern[str]]:
    """Which fields leave no doubt where they have a form, one after the other; faster than to look at each."""
    forms = {"id": f"(?:{'|'.join(collection.prefixes)})_[0-9A-Za-z]+"}
    forms |= {name: f"(?:{refers.prefix}_[0-9A-Za-z]+)?" for name, refers in collection.references.items()}
    forms |= dict.fromkeys(collection.moments, _MOMENT)
    forms["name"] = "(?s:.+)"
    return itemgetter(*forms), re.compile("\n".join(forms.values()), re.ASCII)


_DOUBTLESS = {name: _doubtless(collection) for name, collection in COLLECTIONS.items()}


def read(stream: BinaryIO, reading: Reading) -> Iterator[Incoming]:
    """The records of a document. `reading.collection` is what they are, else their `type` tells, else its fallback."""
    for line, found in objects(stream):
        yield taken(line, found, reading)


def taken(line: int, found: dict[str, Any], reading: Reading) -> Incoming:
    """The record that an object is."""
    incoming = Incoming(line, only_ids=True)
    given = {reading.map.get(key, key): value for key, value in found.items()} if reading.map else found
    kind = reading.collection or _kind(given, reading.fallback, incoming)
    if kind is not None:
        incoming.collection = kind.name
        _take(kind, given, incoming)
    return incoming


def shape(collection: Collection, body: bytes, related: Sequence[Related]) -> bytes:
    """The `?id=` shape: a rendered record, its type and its relations."""
    return body[:-1] + (_shown(collection, related) if related else _UNRELATED[collection.name])


def _shown(collection: Collection, related: Sequence[Related]) -> bytes:
    """What the shape has after a record's fields."""
    extra: dict[str, Any] = {"type": collection.name}
    for view in collection.views:
        extra[view.key] = [
            _entry(view, other) for other in related if other.relation in view.names and other.side in view.sides
        ]
    return b"," + orjson.dumps(extra)[1:]


_UNRELATED = {name: _shown(collection, ()) for name, collection in COLLECTIONS.items()}


def join(shapes: Iterable[bytes]) -> Iterator[bytes]:
    """One JSON array of records, each on a line of its own."""
    before = b"[\n"
    for each in shapes:
        yield before + each
        before = b",\n"
    yield b"[]\n" if before == b"[\n" else b"\n]\n"


def _entry(view: RelationView, other: Related) -> dict[str, str]:
    entry = {view.id_key: other.id, "name": other.name or ""}
    if view.named:
        entry["relationship"] = other.relation
    if view.directions:
        entry["direction"] = view.directions[other.side]
    return entry


def _kind(given: dict[str, Any], fallback: Collection | None, incoming: Incoming) -> Collection | None:
    told = given.get("type")
    if told is None:
        if fallback is None:
            raise no_collection(incoming.line)
        return fallback
    kind = COLLECTIONS.get(told) if isinstance(told, str) else None
    if kind is None:
        incoming.problems.append(f"its type is {told!r}, which is none of {', '.join(COLLECTIONS)}")
    return kind


def _take(collection: Collection, given: dict[str, Any], incoming: Incoming) -> None:
    identifier = given.get("id")
    if not isinstance(identifier, str) or not identifier or is_too_long(identifier):
        incoming.problems.append(f"it has no id of 1 to {LONGEST} bytes")
        return
    if not _take_whole(collection, given, incoming):
        _take_each(collection, given, incoming)
    if incoming.problems:
        return
    _doubt(collection, incoming)
    if len(given) == len(collection.types) == len(incoming.fields):
        return
    for key, value in given.items():
        if key in collection.views_by_key:
            _relate(collection.views_by_key[key], identifier, value, incoming)
        elif key not in collection.types and key not in ("type", HIT_NUMBER):
            incoming.warnings.append(f"{key} of {identifier} is not a field of {collection.name}; it was left out")


def _take_whole(collection: Collection, given: dict[str, Any], incoming: Incoming) -> bool:
    """Take the fields of a record that has them all, as they should be: most do, and this is several times as fast."""
    blank, types, numbers = _FORMS[collection.name]
    fields = blank | given
    if len(fields) > len(blank):
        fields = {name: fields[name] for name in blank}
    if [*map(type, fields.values())] != types:
        return False
    for name in numbers:
        if not _LEAST <= fields[name] <= _MOST:
            return False
    incoming.fields = fields
    return True


def _take_each(collection: Collection, given: dict[str, Any], incoming: Incoming) -> None:
    for name, expected in collection.types.items():
        value = given.get(name)
        if value is None:
            if name != "id":
                incoming.warnings.append(f"{given['id']} has no {name}; it was filled")
            continue
        problem = _problem(value, expected)
        if problem:
            incoming.problems.append(f"{name} of {given['id']} {problem}")
        else:
            incoming.fields[name] = value


def _problem(value: Any, expected: type) -> str | None:
    if expected is int and isinstance(value, int | float) and (value < _LEAST or value > _MOST):
        return "is too large a number"
    # Exactly: a truth value is an integer to Python, but not to anyone else.
    return None if type(value) is expected else f"is not {_TYPE_NAMES[expected]}"


def _doubt(collection: Collection, incoming: Incoming) -> None:
    """Warn of what people could not write, though a server holds it."""
    fields = incoming.fields
    get, form = _DOUBTLESS[collection.name]
    if len(fields) == len(collection.types) and form.fullmatch("\n".join(get(fields))):
        return
    identifier = fields["id"]
    if not has_prefix(identifier, collection.prefixes):
        incoming.warnings.append(f"the id {identifier} does not have the form of a {collection.name}'s")
    if fields.get("name") == "":
        incoming.warnings.append(f"{identifier} has an empty name")
    for name, refers in collection.references.items():
        value = fields.get(name)
        if value and not has_prefix(value, (refers.prefix,)):
            incoming.warnings.append(f"{name} of {identifier} does not have the form {refers.prefix}_…: {value}")
    for name in collection.moments:
        value = fields.get(name)
        if value is not None and not is_stamp(value):
            incoming.warnings.append(f"{name} of {identifier} does not have the form YYYY-MM-DDThh:mm:ss: {value}")


def _relate(view: RelationView, identifier: str, value: Any, incoming: Incoming) -> None:
    if not isinstance(value, list):
        incoming.problems.append(f"{view.key} of {identifier} is not a list")
        return
    for entry in value:
        edge = _edge(view, identifier, entry)
        if edge is None:
            incoming.problems.append(f"{view.key} of {identifier} has an entry that cannot be read: {_json(entry)}")
        else:
            incoming.edges.append(edge)
    incoming.told += [(relation.name, side) for relation in view.relations for side in view.sides]


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)[:200]


def _edge(view: RelationView, identifier: str, entry: Any) -> Edge | None:
    if not isinstance(entry, dict):
        return None
    other = entry.get(view.id_key)
    if not isinstance(other, str) or not other or unstorable(other) or is_too_long(other):
        return None
    name = entry.get("relationship") if view.named else view.relations[0].name
    if name not in view.names:
        return None
    side = view.sides[0]
    if view.directions:
        sides = [side for side, direction in view.directions.items() if direction == entry.get("direction")]
        if not sides:
            return None
        side = sides[0]
    return Edge(identifier, name, other) if side == "source" else Edge(other, name, identifier)
