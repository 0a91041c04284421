"""Making a record whole: every field of its collection has a value, whatever was left out."""

from collections.abc import Callable

from lexarium.domain.identifiers import mint_id
from lexarium.domain.schema.collections import Collection
from lexarium.domain.schema.fields import Fields
from lexarium.domain.timestamps import format_timestamp, parse_timestamp


def fill_defaults(collection: Collection, values: Fields, now: int) -> Fields:
    """The fields given and, for each that is missing, what the contract's form needs. `at` is the present."""
    fields: Fields = {}
    for name, info in collection.fields.items():
        if name in values:
            fields[name] = values[name]
        elif name in _DEFAULTS:
            fields[name] = _DEFAULTS[name](values, now)
        else:
            fields[name] = info.get_default()
    return fields


def _default_creation_time(values: Fields, now: int) -> int:
    if "creation_time" in values:
        return int(values["creation_time"])
    timestamp = parse_timestamp(values["event_stamp"]) if "event_stamp" in values else None
    return now if timestamp is None else timestamp


def _default_timestamp(values: Fields, now: int) -> str:
    return format_timestamp(_default_creation_time(values, now))


_DEFAULTS: dict[str, Callable[[Fields, int], str | int]] = {
    "name": lambda values, now: "",
    "event_stamp": _default_timestamp,
    "def_id": lambda values, now: mint_id("def"),
    "def_event_stamp": _default_timestamp,
    "creation_time": _default_creation_time,
    "last_updated": _default_creation_time,
}
