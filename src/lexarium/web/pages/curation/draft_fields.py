"""Convert draft fields to form text and back. A list has one item per line."""

import re
from collections.abc import Iterable, Mapping
from typing import Any, get_args

from lexarium.domain.editing.edit import get_target
from lexarium.domain.labels import DEFAULT_LANGUAGE, AliasScope
from lexarium.domain.schema.collections import Collection
from lexarium.web.pages.form_fields import FormValues, get_text

_SEPARATOR = " | "
_INTEGER = re.compile(r"-?[0-9]{1,16}")
_SCOPES: tuple[str, ...] = get_args(AliasScope)
LIST_FIELD_HINTS = {
    "aliases": "One per line, optionally with language and scope: memoria | es | narrow",
    "sources": "One per line.",
    "relations": "One per line: KINDOF trm_123",
    "names": "One per line, with its language: memoria | es",
    "definitions": "One per line, with its language: la facultad de recordar | es",
    "notes": "One per line, after its type and language: scope_note | es | solo la humana",
    "notations": "One per line.",
}
SCOPE_HINT = "One per line, optionally with scope: memoria | narrow"
NOTE_HINT = "Separate notes with a line ---."
# Placeholder of a line break in a text on one line.
_LINE_BREAK = " ⏎ "
_BETWEEN_NOTES = re.compile(r"^[ \t]*---[ \t]*$", re.MULTILINE)


def to_form_values(draft: Mapping[str, Any], language: str = DEFAULT_LANGUAGE) -> dict[str, str]:
    """Return a draft as form text; aliases in the language are shown without it."""
    return {name: _format_field(name, value, language) for name, value in draft.items()}


def parse_field(collection: Collection, fields: FormValues, name: str) -> Any:
    """Parse a form field into a draft field; invalid input is left for validation to report."""
    value = get_text(fields, name)
    if name in LIST_FIELD_HINTS:
        return _parse_lines(collection, name, _split_lines(value))
    if collection.field_types.get(name) is int:
        return _parse_integer(value.strip(), collection.field_defaults[name])
    if name == "replaced_by":
        return value.strip() or None
    return value


def _split_lines(value: str) -> list[str]:
    return [line.strip() for line in value.splitlines() if line.strip()]


def _parse_lines(collection: Collection, name: str, lines: list[str]) -> Any:
    if name in ("sources", "notations"):
        return lines
    if name == "aliases":
        return [_parse_alias(line, collection.language) for line in lines]
    if name == "relations":
        targets_by_type: dict[str, list[str]] = {}
        for type_name, _, target in (line.partition(" ") for line in lines):
            targets_by_type.setdefault(type_name, []).append(target.strip())
        return targets_by_type
    if name == "notes":
        notes = (["", "", *line.split("|", 2)][-3:] for line in lines)
        return [
            {"type": type_name.strip(), "lang": lang.strip(), "text": _unfold(text)} for type_name, lang, text in notes
        ]
    pairs = (line.rpartition("|") for line in lines)
    return [{"text": _unfold(text), "lang": lang.strip()} for text, _, lang in pairs]


def _unfold(text: str) -> str:
    return text.strip().replace(_LINE_BREAK, "\n")


def _fold(text: str) -> str:
    return text.replace("\n", _LINE_BREAK)


def _parse_alias(line: str, language: str) -> dict[str, str]:
    text, *parts = (part.strip() for part in line.rsplit("|", 2))
    if len(parts) == 1 and parts[0] in _SCOPES:
        return {"text": text, "lang": language, "scope": parts[0]}
    return {"lang": language, "text": text, **dict(zip(("lang", "scope"), parts, strict=False))}


def _parse_integer(text: str, default: Any) -> Any:
    """Return a number; nothing for an empty text where a record need not have one; else the text."""
    if not text and default is None:
        return None
    return int(text) if _INTEGER.fullmatch(text) else text


def _format_field(name: str, value: Any, language: str) -> str:
    if name == "aliases":
        return "\n".join(_format_alias(alias, language) for alias in value)
    if name in ("names", "definitions"):
        return "\n".join(_SEPARATOR.join([_fold(item["text"]), item["lang"]]) for item in value or ())
    if name == "notes":
        return "\n".join(_SEPARATOR.join([item["type"], item["lang"], _fold(item["text"])]) for item in value or ())
    if name in ("sources", "notations"):
        return "\n".join(value or ())
    if name == "relations":
        return "\n".join(
            f"{type_name} {get_target(target)}" for type_name, targets in value.items() for target in targets
        )
    return "" if value is None else str(value)


def _format_alias(alias: Mapping[str, str], language: str) -> str:
    lang, scope, text = alias.get("lang", language), alias.get("scope", "exact"), alias["text"]
    if "|" in text or (lang != language and scope != "exact"):
        return _SEPARATOR.join([text, lang, scope])
    return _SEPARATOR.join([text, *([lang] if lang != language else []), *([scope] if scope != "exact" else [])])


def format_entries(key: str, entries: Iterable[Mapping[str, str]], language: str) -> str:
    """Return entries of a list in one language as the text of a field of their own."""
    if key == "aliases":
        return "\n".join(_format_alias(alias, language) for alias in entries)
    return "\n---\n".join(item["text"] for item in entries)


def parse_entries(key: str, value: str, entry: Mapping[str, str]) -> list[dict[str, str]]:
    """Parse the text of a field that has entries of a list with something in common."""
    if key == "aliases":
        return [_parse_alias(line, entry["lang"]) for line in _split_lines(value)]
    texts = _BETWEEN_NOTES.split(value) if key == "notes" else [value]
    return [{**entry, "text": text.strip()} for text in texts if text.strip()]
