"""Values that v-alpha needs and no statement gives."""

from collections.abc import Callable
from typing import Any

from lexarium.domain.identifiers import mint_id
from lexarium.domain.record import Record
from lexarium.domain.schema.collections import Fields
from lexarium.domain.text.timestamps import format_timestamp, parse_timestamp


def assign_defaults(record: Record, now: int) -> Record:
    """Return a record with values for the fields that v-alpha needs and that it does not have."""
    stated = {statement.predicate for statement in record.own_statements}
    collection = record.collection
    missing = [
        name
        for name in _DEFAULTS
        if name in collection.assigned_fields
        and collection.field_predicates[name] not in stated
        and name not in record.assigned
    ]
    if not missing:
        return record
    known = {name: value for name, value in record.fields.items() if name not in missing}
    return record.assign_fields({name: _DEFAULTS[name](known, now) for name in missing})


def _default_creation_time(values: Fields, now: int) -> int:
    if values.get("creation_time") is not None:
        return int(values["creation_time"])
    timestamp = parse_timestamp(values["event_stamp"]) if "event_stamp" in values else None
    return now if timestamp is None else timestamp


def _default_timestamp(values: Fields, now: int) -> str:
    return format_timestamp(_default_creation_time(values, now))


_DEFAULTS: dict[str, Callable[[Fields, int], Any]] = {
    "event_stamp": _default_timestamp,
    "def_id": lambda values, now: mint_id("def"),
    "def_event_stamp": _default_timestamp,
    "creation_time": _default_creation_time,
    "last_updated": _default_creation_time,
}
