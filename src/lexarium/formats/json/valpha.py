"""JSON of a v-alpha server: the list shape, and the `?id=` shape with relations."""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from operator import itemgetter
from typing import Any, BinaryIO

import orjson

from lexarium.domain.identifiers import MAX_ID_BYTES, get_local_id, has_prefix, is_id_too_long
from lexarium.domain.record import RelatedRecord, Relation
from lexarium.domain.schema.collections import MAIN_COLLECTIONS, SEARCH_HIT_NUMBER_KEY, Collection, Fields
from lexarium.domain.schema.relation_types import RelationList
from lexarium.domain.text.characters import find_unstorable_char
from lexarium.domain.text.nouns import add_article
from lexarium.domain.text.timestamps import is_timestamp
from lexarium.formats.column_mapping import rename_keys
from lexarium.formats.json.stream import iter_objects
from lexarium.formats.parsed import ParsedRecord, ReadOptions, WriteOptions

_MIN_INT64, _MAX_INT64 = -(2**63), 2**63 - 1
_TYPE_NAMES = {str: "text", int: "a whole number"}
# Fields of the list shape and their types. A collection without a list shape has all of its fields.
_FIELD_TYPES: dict[str, dict[str, type]] = {
    name: {field: collection.field_types[field] for field in collection.valpha_field_names or collection.fields}
    for name, collection in MAIN_COLLECTIONS.items()
}
# For each collection: its fields in order, without values; their types; the names of integer fields.
_FIELD_TEMPLATES: dict[str, tuple[Fields, list[type], list[str]]] = {
    name: (
        dict.fromkeys(field_types),
        list(field_types.values()),
        [field for field, field_type in field_types.items() if field_type is int],
    )
    for name, field_types in _FIELD_TYPES.items()
}
# All dates but the 29th of February, which a pattern cannot check.
_MONTH_DAY_PATTERN = "(?:(?:0[1-9]|1[0-2])-(?:0[1-9]|1\\d|2[0-8])|(?:0[13-9]|1[0-2])-(?:29|30)|(?:0[13578]|1[02])-31)"
_TIMESTAMP_PATTERN = f"\\d{{4}}-{_MONTH_DAY_PATTERN}T(?:[01]\\d|2[0-3])(?::[0-5]\\d){{2}}"


def _build_valid_pattern(collection: Collection) -> tuple[Callable[[Fields], Any], re.Pattern[str]]:
    """Return a getter of the fields with a form, and a pattern for their values; faster than to check each."""
    patterns = {"id": f"(?:{'|'.join(collection.id_prefixes)})_[0-9A-Za-z]+"}
    fields = _FIELD_TYPES[collection.name]
    prefixes = collection.id_fields
    patterns |= {name: f"(?:{prefixes[name]}_[0-9A-Za-z]+)?" for name in fields if name in prefixes}
    patterns |= {name: _TIMESTAMP_PATTERN for name in fields if name in collection.timestamp_fields}
    patterns["name"] = "(?s:.+)"
    return itemgetter(*patterns), re.compile("\n".join(patterns.values()), re.ASCII)


_VALID_PATTERNS = {name: _build_valid_pattern(collection) for name, collection in MAIN_COLLECTIONS.items()}


def read(stream: BinaryIO, options: ReadOptions) -> Iterator[ParsedRecord]:
    """Yield the records of a document."""
    for line, document in iter_objects(stream):
        yield parse_object(line, document, options)


def parse_object(line: int, document: dict[str, Any], options: ReadOptions) -> ParsedRecord:
    """Parse the record that an object is."""
    record = ParsedRecord(line, targets_are_ids=True)
    if options.column_mapping:
        document = rename_keys(document, options.column_mapping)
    collection = options.collection or options.parse_collection("type", document.get("type"), record)
    if collection is not None:
        record.collection = collection.name
        # Indicators have a field of this name.
        if "type" in _FIELD_TYPES[collection.name] and document.get("type") == collection.name:
            document = {key: value for key, value in document.items() if key != "type"}
        parse_fields(collection, document, record)
    return record


def render_detail(collection: Collection, body: bytes, related: Sequence[RelatedRecord]) -> bytes:
    """Return the `?id=` shape: a rendered record, its type and its relations."""
    return body[:-1] + (_render_relations(collection, related) if related else _render_no_relations(collection))


def _render_relations(collection: Collection, related: Sequence[RelatedRecord]) -> bytes:
    suffix: dict[str, Any] = {"type": collection.local_name}
    for relation_list in collection.relation_lists.values():
        suffix[relation_list.key] = [
            _build_entry(relation_list, target)
            for target in related
            if (path := relation_list.paths.get((target.type_name, target.side))) is not None
            and (target.collection is None or target.collection in path.collections)
        ]
    return b"," + orjson.dumps(suffix)[1:]


@lru_cache(1_000)
def _render_no_relations(collection: Collection) -> bytes:
    return _render_relations(collection, ())


def write(documents: Iterable[bytes], options: WriteOptions) -> Iterator[bytes]:
    """Join rendered records to one JSON array, each on a line of its own."""
    separator = b"[\n"
    for document in documents:
        yield separator + document
        separator = b",\n"
    yield b"[]\n" if separator == b"[\n" else b"\n]\n"


def _build_entry(relation_list: RelationList, related_record: RelatedRecord) -> dict[str, str]:
    entry = {relation_list.id_key: get_local_id(related_record.id), "name": related_record.name or ""}
    if relation_list.shows_relationship:
        entry["relationship"] = related_record.type_name
    if relation_list.directions:
        entry["direction"] = relation_list.directions[related_record.side]
    return entry


def parse_fields(collection: Collection, values: dict[str, Any], record: ParsedRecord) -> None:
    """Set the fields and relations of a record; add its problems and warnings."""
    record_id = values.get("id")
    if not isinstance(record_id, str) or not record_id or is_id_too_long(record_id):
        record.problems.append(f"it has no id of 1 to {MAX_ID_BYTES} bytes")
        return
    if not _parse_fields_fast(collection, values, record):
        _parse_fields_slow(collection, values, record)
    if record.problems:
        return
    _add_format_warnings(collection, record)
    field_types = _FIELD_TYPES[collection.name]
    if len(values) == len(field_types) == len(record.fields):
        return
    for key, value in values.items():
        if key in collection.relation_lists:
            _parse_relations(collection.relation_lists[key], record_id, value, record)
        elif key not in field_types and key not in ("type", SEARCH_HIT_NUMBER_KEY):
            record.warn(f"{key} of {record_id} is not a field of {collection.name}; it was skipped", is_loss=True)


def _parse_fields_fast(collection: Collection, values: dict[str, Any], record: ParsedRecord) -> bool:
    """Set the fields of a record that has all of them, of the right types; return False for others.

    Most records do, and this is several times as fast.
    """
    template, types, integer_fields = _FIELD_TEMPLATES[collection.name]
    fields = template | values
    if len(fields) > len(template):
        fields = {name: fields[name] for name in template}
    if [*map(type, fields.values())] != types:
        return False
    for name in integer_fields:
        if not _MIN_INT64 <= fields[name] <= _MAX_INT64:
            return False
    record.fields = fields
    return True


def _parse_fields_slow(collection: Collection, values: dict[str, Any], record: ParsedRecord) -> None:
    for name, expected in _FIELD_TYPES[collection.name].items():
        value = values.get(name)
        if value is None:
            if name in collection.valpha_field_names:
                record.warn(f"{values['id']} has no {name}; it was filled")
            continue
        problem = _check_type(value, expected)
        if problem:
            record.problems.append(f"{name} of {values['id']} {problem}")
        else:
            record.fields[name] = value


def _check_type(value: Any, expected: type) -> str | None:
    if expected is int and isinstance(value, int | float) and (value < _MIN_INT64 or value > _MAX_INT64):
        return "is too large a number"
    # In Python bool is a subclass of int.
    return None if type(value) is expected else f"is not {_TYPE_NAMES[expected]}"


def _add_format_warnings(collection: Collection, record: ParsedRecord) -> None:
    """Warn about values that a v-alpha server may hold, but users may not enter."""
    fields = record.fields
    get_values, pattern = _VALID_PATTERNS[collection.name]
    if len(fields) == len(_FIELD_TYPES[collection.name]) and pattern.fullmatch("\n".join(get_values(fields))):
        return
    record_id = fields["id"]
    if not has_prefix(record_id, collection.id_prefixes):
        record.warn(f"the id {record_id} does not have the form of {add_article(collection.name)}'s")
    if fields.get("name") == "":
        record.warn(f"{record_id} has an empty name")
    for name, prefix in collection.id_fields.items():
        value = fields.get(name)
        if value and not has_prefix(value, (prefix,)):
            record.warn(f"{name} of {record_id} does not have the form {prefix}_…: {value}")
    for name in collection.timestamp_fields:
        value = fields.get(name)
        if value is not None and not is_timestamp(value):
            record.warn(f"{name} of {record_id} does not have the form YYYY-MM-DDThh:mm:ss: {value}")


def _parse_relations(relation_list: RelationList, record_id: str, value: Any, record: ParsedRecord) -> None:
    if not isinstance(value, list):
        record.problems.append(f"{relation_list.key} of {record_id} is not a list")
        return
    if relation_list.is_derived:
        return
    for entry in value:
        relation = _parse_relation(relation_list, record_id, entry)
        if relation is None:
            text = json.dumps(entry, ensure_ascii=False)[:200]
            record.problems.append(f"{relation_list.key} of {record_id} has an entry that cannot be read: {text}")
        else:
            record.relations.append(relation)
    record.complete_relations += relation_list.paths


def _parse_relation(relation_list: RelationList, record_id: str, entry: Any) -> Relation | None:
    if not isinstance(entry, dict):
        return None
    target = entry.get(relation_list.id_key)
    if not isinstance(target, str) or not target or find_unstorable_char(target) or is_id_too_long(target):
        return None
    relationship, direction = entry.get("relationship"), entry.get("direction")
    for type_name, side in relation_list.paths:
        if relation_list.shows_relationship and type_name != relationship:
            continue
        if not relation_list.directions or relation_list.directions[side] == direction:
            return (
                Relation(record_id, type_name, target) if side == "source" else Relation(target, type_name, record_id)
            )
    return None
