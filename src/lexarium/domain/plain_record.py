"""Versions of records whose values are all plain, read from JSON without building statements.

Most versions of a large import are. The results are those of `Record`, in a fraction of the time.
"""

from typing import Any, NamedTuple

import orjson

from lexarium.domain.identifiers import MAX_TARGET_BYTES, get_local_id
from lexarium.domain.record import ALIAS_SCOPES, ALTERNATIVE_ID, TEXT_MAPPINGS, RecordState
from lexarium.domain.schema.collections import Collection, Fields
from lexarium.domain.statement import MAX_STATEMENTS, check_predicate
from lexarium.domain.text.characters import find_unstorable_char

_PUBLISHED = RecordState.PUBLISHED.value
# What a document may have besides an id, a state, statements and assigned values.
_FURTHER_KEYS = frozenset(("iri", "replaced_by", "proposed", "summary"))
# Predicates of texts that are more than fields.
_FURTHER_PREDICATES = TEXT_MAPPINGS | {ALTERNATIVE_ID, *ALIAS_SCOPES}
# Longer integers may be written as texts.
_MAX_INTEGER = 10**14


class PlainRecord(NamedTuple):
    """Published record with one plain value for each predicate."""

    fields: Fields
    document: bytes
    # Whether it may have relations or alternative ids.
    is_linked: bool


def parse_plain_record(collection: Collection, data: dict[str, Any]) -> PlainRecord | None:
    """Return the record of JSON with statements; None if it is not plain, lacks assigned fields, or is not valid."""
    record_id, statements, assigned = data.get("id"), data["statements"], data.get("assigned", {})
    if not isinstance(record_id, str) or record_id != get_local_id(record_id):
        return None
    if not data.keys().isdisjoint(_FURTHER_KEYS) or data.get("state") != _PUBLISHED:
        return None
    if type(statements) is not dict or type(assigned) is not dict or len(statements) > MAX_STATEMENTS:
        return None
    is_linked = not statements.keys() <= collection.stated_predicates or not _FURTHER_PREDICATES.isdisjoint(statements)
    if not _are_plain(statements) or (is_linked and not _are_predicates(statements)):
        return None
    fields = _read_fields(collection, record_id, statements, assigned)
    if not record_id or fields is None or not fields.get("name"):
        return None
    document: dict[str, Any] = {"id": record_id, "state": _PUBLISHED, "statements": statements}
    if assigned:
        document["assigned"] = assigned
    return PlainRecord(fields, orjson.dumps(document), is_linked)


def _are_plain(statements: dict[str, Any]) -> bool:
    """Return whether values are texts, integers and references that can be stored, as `pack_statements` has them."""
    texts = []
    for value in statements.values():
        if type(value) is str:
            texts.append(value)
        elif type(value) is dict:
            target = value.get("ref")
            if len(value) != 1 or type(target) is not str or not 0 < len(target) * 4 <= MAX_TARGET_BYTES:
                return False
            texts.append(target)
        elif type(value) is not int or not -_MAX_INTEGER < value < _MAX_INTEGER:
            return False
    return find_unstorable_char("".join(texts)) is None


def _are_predicates(statements: dict[str, Any]) -> bool:
    """Return whether predicates that are not those of fields are valid, and none is that of aliases."""
    try:
        for predicate in statements:
            check_predicate(predicate)
    except ValueError:
        return False
    return ALIAS_SCOPES.keys().isdisjoint(statements)


def _read_fields(
    collection: Collection, record_id: str, statements: dict[str, Any], assigned: dict[str, Any]
) -> Fields | None:
    """Return all fields; None if a value has another type than its field, or one that the server assigns is missing."""
    types = collection.field_types
    if assigned and not all(type(value) is types.get(name) for name, value in assigned.items()):
        return None
    fields: Fields = {"id": record_id}
    for name, predicate, field_type, default in collection.field_views:
        value = statements.get(predicate)
        if type(value) is field_type:
            fields[name] = value
        elif type(value) is dict and predicate in collection.id_predicates:
            fields[name] = value["ref"]
        elif value is None and (name in assigned or name not in collection.assigned_fields):
            fields[name] = assigned.get(name, default)
        else:
            return None
    return fields
