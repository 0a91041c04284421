"""Record type of the read interface, and JSON output."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import TypeAlias

Record: TypeAlias = dict[str, str | int]

TEXT_FIELDS = (
    "id",
    "name",
    "alias",
    "definition_text",
    "id_concept_class",
    "id_user",
    "event_stamp",
    "def_id",
    "def_id_user",
    "def_event_stamp",
)
NUMBER_FIELDS = ("creation_time", "last_updated")
FIELDS = TEXT_FIELDS + NUMBER_FIELDS


def to_json(value: object) -> bytes:
    """Serialize as compact UTF-8 JSON."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def write_array(records: Iterable[Record], path: Path) -> None:
    """Write the records as one JSON array, with one record at a time in memory."""
    with path.open("wb") as file:
        separator = b"["
        for record in records:
            file.write(separator + to_json(record))
            separator = b",\n"
        file.write(b"[]" if separator == b"[" else b"]")
