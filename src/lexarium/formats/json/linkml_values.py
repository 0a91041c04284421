"""Values of slots as LinkML has them in JSON, and what such a plain value does not say about a statement.

Beside its slots, an object may have keys of ours, which begin with `@`. `@details` has, by slot, what plain values do
not say: language, datatype and qualifiers. `@statements` has all statements that are no plain values.
"""

import json
import math
import re
from typing import Any

from lexarium.domain.schema.model import Slot
from lexarium.domain.statement import (
    BOOLEAN,
    INTEGER,
    Node,
    Reference,
    Statement,
    Text,
    Value,
    dump_statements,
    parse_statements,
)
from lexarium.domain.vocabulary import Vocabulary

TYPE_KEY, IRI_KEY, STATE_KEY, REPLACED_BY_KEY = "@type", "@iri", "@state", "@replaced_by"
DETAILS_KEY, STATEMENTS_KEY = "@details", "@statements"
OWN_KEYS = frozenset({TYPE_KEY, IRI_KEY, STATE_KEY, REPLACED_BY_KEY, DETAILS_KEY, STATEMENTS_KEY})
# List of records of a document that is no container of its schema.
ENTRIES_KEY = "entries"

_MIN_INT64, _MAX_INT64 = -(2**63), 2**63 - 1
_ZONE = r"(Z|[+-]\d\d:\d\d)?"
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)
# Datatype and form of the texts of each LinkML type that is no string.
_TYPES: dict[str, tuple[str, re.Pattern[str]]] = {
    "integer": (INTEGER, re.compile(r"[+-]?\d+", re.ASCII)),
    "boolean": (BOOLEAN, re.compile("true|false|1|0")),
    "float": ("xsd:float", _NUMBER),
    "double": ("xsd:double", _NUMBER),
    "decimal": ("xsd:decimal", _NUMBER),
    "date": ("xsd:date", re.compile(rf"-?\d{{4,}}-\d\d-\d\d{_ZONE}", re.ASCII)),
    "datetime": (
        "xsd:dateTime",
        re.compile(rf"-?\d{{4,}}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?{_ZONE}", re.ASCII),
    ),
    "time": ("xsd:time", re.compile(rf"\d\d:\d\d:\d\d(\.\d+)?{_ZONE}", re.ASCII)),
}


def to_text(value: Any) -> str | None:
    """Return a text, number or truth value as text; None for anything else."""
    if isinstance(value, str):
        return value
    return json.dumps(value) if isinstance(value, int | float) else None


def has_form(slot: Slot, text: str) -> bool:
    """Return whether a text has the form that the range of a slot asks for."""
    return slot.range not in _TYPES or _TYPES[slot.range][1].fullmatch(text) is not None


def read_value(slot: Slot, text: str, vocabulary: Vocabulary) -> Text | Reference:
    """Return the value of a slot, given a plain value as text."""
    if slot.is_reference:
        return Reference(vocabulary.contract_iri(text))
    return Text(text, "", _TYPES[slot.range][0] if slot.range in _TYPES and has_form(slot, text) else "")


def to_plain(slot: Slot, value: Text | Reference) -> Any:
    """Return the plain value of a slot in JSON: a number or truth value where the range asks for one, else a text."""
    text = value[0]
    if slot.range == "boolean" and has_form(slot, text):
        return text in ("true", "1")
    if slot.range == "integer" and has_form(slot, text):
        number = int(text) if len(text) <= 20 else None
        return number if number is not None and _MIN_INT64 <= number <= _MAX_INT64 else text
    if slot.range in ("float", "double", "decimal") and has_form(slot, text):
        real = float(text)
        return text if not math.isfinite(real) else int(real) if text == str(int(real)) and len(text) < 16 else real
    return text


def to_details(statement: Statement, read: Value) -> dict[str, Any] | None:
    """Return what a plain value that is read as `read` does not say about a statement; None if it says all."""
    value, details = statement.value, dict[str, Any]()
    if isinstance(value, Reference):
        if value != read:
            details["ref"] = value.target
    elif isinstance(value, Text):
        if not isinstance(read, Text) or read.text != value.text:
            details["text"] = value.text
        if value.lang:
            details["lang"] = value.lang
        elif value.datatype != (read.datatype if isinstance(read, Text) else ""):
            details["type"] = value.datatype
    if statement.qualifiers:
        details["qualifiers"] = dump_statements(statement.qualifiers)
    return details or None


def apply_details(predicate: str, read: Value, details: Any) -> Statement:
    """Return the statement of a plain value and its details; raise ValueError, to follow a subject."""
    if not isinstance(details, dict):
        raise ValueError("is not an object")
    data: dict[str, Any]
    if isinstance(read, Node):
        data = {"node": {}, **details}
    elif "ref" in details or (isinstance(read, Reference) and "text" not in details):
        data = {"ref": read[0], **details}
    else:
        data = {"text": read[0], **details}
        if isinstance(read, Text) and read.datatype and "lang" not in data:
            data.setdefault("type", read.datatype)
    [statement] = parse_statements({predicate: [data]})
    return statement._replace(value=read) if isinstance(read, Node) else statement
