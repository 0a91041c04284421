"""Making a record whole: every field of its collection has a value, whatever was left out."""

from collections.abc import Callable

from lexarium.domain.collections import Collection
from lexarium.domain.identifiers import mint
from lexarium.domain.records import Fields
from lexarium.domain.stamps import milliseconds_of, text_of


def complete(collection: Collection, given: Fields, at: int) -> Fields:
    """The fields given and, for each that is missing, what the contract's form needs. `at` is the present."""
    fields: Fields = {}
    for name, info in collection.fields.items():
        if name in given:
            fields[name] = given[name]
        elif name in _FILLERS:
            fields[name] = _FILLERS[name](given, at)
        else:
            fields[name] = info.get_default()
    return fields


def _created(given: Fields, at: int) -> int:
    if "creation_time" in given:
        return int(given["creation_time"])
    stamp = milliseconds_of(given["event_stamp"]) if "event_stamp" in given else None
    return at if stamp is None else stamp


def _created_text(given: Fields, at: int) -> str:
    return text_of(_created(given, at))


_FILLERS: dict[str, Callable[[Fields, int], str | int]] = {
    "name": lambda given, at: "",
    "event_stamp": _created_text,
    "def_id": lambda given, at: mint("def"),
    "def_event_stamp": _created_text,
    "creation_time": _created,
    "last_updated": _created,
}
