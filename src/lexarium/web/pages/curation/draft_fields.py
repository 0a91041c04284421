"""Convert draft fields to form text and back. A list has one item per line."""

import re
from collections.abc import Mapping
from typing import Any

from lexarium.domain.editing.edit import get_target
from lexarium.domain.labels import DEFAULT_LANGUAGE
from lexarium.domain.schema.collections import Collection
from lexarium.web.pages.form_fields import FormValues, get_text

_SEPARATOR = " | "
_INTEGER = re.compile(r"-?[0-9]{1,16}")
LIST_FIELD_HINTS = {
    "aliases": "One a line. A language and a scope may follow: memoria | es | narrow",
    "sources": "One a line.",
    "relations": "One a line: KINDOF trm_123",
    "names": "One a line, with its language: memoria | es",
    "definitions": "One a line, with its language: la facultad de recordar | es",
}
# Stands for a line break in a text on one line.
_LINE_BREAK = " ⏎ "


def to_form_values(draft: Mapping[str, Any], language: str = DEFAULT_LANGUAGE) -> dict[str, str]:
    """Return a draft as form text; aliases in the language are shown without it."""
    return {name: _format_field(name, value, language) for name, value in draft.items()}


def parse_field(collection: Collection, fields: FormValues, name: str) -> Any:
    """Parse a form field into a draft field; invalid input is left for validation to report."""
    value = get_text(fields, name)
    if name in LIST_FIELD_HINTS:
        return _parse_lines(collection, name, [line.strip() for line in value.splitlines() if line.strip()])
    if collection.field_types.get(name) is int:
        return _parse_integer(value.strip(), collection.field_defaults[name])
    if name == "replaced_by":
        return value.strip() or None
    return value


def _parse_lines(collection: Collection, name: str, lines: list[str]) -> Any:
    if name == "sources":
        return lines
    if name == "aliases":
        parts = ((part.strip() for part in line.rsplit("|", 2)) for line in lines)
        default = {} if collection.language == DEFAULT_LANGUAGE else {"lang": collection.language}
        return [{**default, **dict(zip(("text", "lang", "scope"), items, strict=False))} for items in parts]
    if name == "relations":
        targets_by_type: dict[str, list[str]] = {}
        for type_name, _, target in (line.partition(" ") for line in lines):
            targets_by_type.setdefault(type_name, []).append(target.strip())
        return targets_by_type
    pairs = (line.rpartition("|") for line in lines)
    return [{"text": text.strip().replace(_LINE_BREAK, "\n"), "lang": lang.strip()} for text, _, lang in pairs]


def _parse_integer(text: str, default: Any) -> Any:
    """Return a number; nothing for an empty text where a record need not have one; else the text."""
    if not text and default is None:
        return None
    return int(text) if _INTEGER.fullmatch(text) else text


def _format_field(name: str, value: Any, language: str) -> str:
    if name == "aliases":
        return "\n".join(_format_alias(alias, language) for alias in value)
    if name in ("names", "definitions"):
        return "\n".join(
            _SEPARATOR.join([item["text"].replace("\n", _LINE_BREAK), item["lang"]]) for item in value or ()
        )
    if name == "sources":
        return "\n".join(value)
    if name == "relations":
        return "\n".join(
            f"{type_name} {get_target(target)}" for type_name, targets in value.items() for target in targets
        )
    return "" if value is None else str(value)


def _format_alias(alias: Mapping[str, str], language: str) -> str:
    lang, scope = alias.get("lang", language), alias.get("scope", "exact")
    if scope != "exact" or "|" in alias["text"]:
        return _SEPARATOR.join([alias["text"], lang, scope])
    return alias["text"] if lang == language else _SEPARATOR.join([alias["text"], lang])
