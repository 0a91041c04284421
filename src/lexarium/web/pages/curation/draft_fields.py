"""Convert draft fields to form text and back. A list has one item per line."""

import re
from collections.abc import Mapping
from typing import Any

from lexarium.domain.labels import DEFAULT_LANGUAGE
from lexarium.domain.schema.collections import Collection
from lexarium.web.pages.form_fields import FormValues, get_text

_SEPARATOR = " | "
_INTEGER = re.compile(r"-?[0-9]{1,16}")
LIST_FIELD_HINTS = {
    "aliases": "One a line. A language and a scope may follow: memoria | es | narrow",
    "sources": "One a line.",
    "relations": "One a line: KINDOF trm_123",
}


def to_form_values(draft: Mapping[str, Any]) -> dict[str, str]:
    """Return a draft as form text."""
    return {name: _format_field(name, value) for name, value in draft.items()}


def parse_field(collection: Collection, fields: FormValues, name: str) -> Any:
    """Parse a form field into a draft field; invalid input is left for validation to report."""
    value = get_text(fields, name)
    lines = [line.strip() for line in value.splitlines() if line.strip()]
    if name == "aliases":
        parts = ((part.strip() for part in line.rsplit("|", 2)) for line in lines)
        return [dict(zip(("text", "lang", "scope"), alias_parts, strict=False)) for alias_parts in parts]
    if name == "sources":
        return lines
    if name == "relations":
        targets_by_type: dict[str, list[str]] = {}
        for type_name, _, target in (line.partition(" ") for line in lines):
            targets_by_type.setdefault(type_name, []).append(target.strip())
        return targets_by_type
    if collection.field_types.get(name) is int:
        return _parse_integer(value.strip(), collection.field_defaults[name])
    if name == "replaced_by":
        return value.strip() or None
    return value


def _parse_integer(text: str, default: Any) -> Any:
    """Return a number; nothing for an empty text where a record need not have one; else the text."""
    if not text and default is None:
        return None
    return int(text) if _INTEGER.fullmatch(text) else text


def _format_field(name: str, value: Any) -> str:
    if name == "aliases":
        return "\n".join(_format_alias(alias) for alias in value)
    if name == "sources":
        return "\n".join(value)
    if name == "relations":
        return "\n".join(f"{type_name} {target}" for type_name, targets in value.items() for target in targets)
    return "" if value is None else str(value)


def _format_alias(alias: Mapping[str, str]) -> str:
    lang, scope = alias.get("lang", DEFAULT_LANGUAGE), alias.get("scope", "exact")
    if scope != "exact" or "|" in alias["text"]:
        return _SEPARATOR.join([alias["text"], lang, scope])
    return alias["text"] if lang == DEFAULT_LANGUAGE else _SEPARATOR.join([alias["text"], lang])
