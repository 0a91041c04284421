"""Default values for missing fields of a record."""

from collections.abc import Callable

from lexarium.domain.identifiers import mint_id
from lexarium.domain.schema.collections import Collection
from lexarium.domain.schema.fields import Fields
from lexarium.domain.timestamps import format_timestamp, parse_timestamp


def fill_defaults(collection: Collection, values: Fields, now: int) -> Fields:
    """Return all fields of a collection in order, with defaults for those that are missing."""
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
