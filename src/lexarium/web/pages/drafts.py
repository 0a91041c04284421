"""Fields of a draft as the fields of a form, and back: lists stand one a line."""

from collections.abc import Mapping
from typing import Any

from lexarium.domain.aliases import DEFAULT_LANGUAGE
from lexarium.web.pages.fields import Typed, text, whole_number

_BETWEEN = " | "
LINES = {
    "aliases": "One a line. A language and a scope may follow: memoria | es | narrow",
    "sources": "One a line.",
    "relations": "One a line: KINDOF trm_123",
}
"""Fields that hold lists, and what to type there."""


def typed_of(draft: Mapping[str, Any]) -> dict[str, str]:
    """A draft as someone would type it."""
    return {name: _typed(name, value) for name, value in draft.items()}


def read(fields: Typed, name: str) -> Any:
    """What was typed as a field of a draft. What is not right stays as it is, for the rules to tell."""
    typed = text(fields, name)
    lines = [line.strip() for line in typed.splitlines() if line.strip()]
    if name == "aliases":
        return [_alias(line) for line in lines]
    if name == "sources":
        return lines
    if name == "relations":
        return _relations(lines)
    if name == "flag_for_curator":
        number = whole_number(fields, name)
        return typed if number is None else number
    if name == "replaced_by":
        return typed.strip() or None
    return typed


def _typed(name: str, value: Any) -> str:
    if name == "aliases":
        return "\n".join(_alias_line(each) for each in value)
    if name == "sources":
        return "\n".join(value)
    if name == "relations":
        return "\n".join(f"{relation} {target}" for relation, targets in value.items() for target in targets)
    return "" if value is None else str(value)


def _alias_line(alias: Mapping[str, str]) -> str:
    lang, scope = alias.get("lang", DEFAULT_LANGUAGE), alias.get("scope", "exact")
    if scope != "exact" or "|" in alias["text"]:
        return _BETWEEN.join([alias["text"], lang, scope])
    return alias["text"] if lang == DEFAULT_LANGUAGE else _BETWEEN.join([alias["text"], lang])


def _alias(line: str) -> dict[str, str]:
    parts = [part.strip() for part in line.rsplit("|", 2)]
    return dict(zip(("text", "lang", "scope"), parts, strict=False))


def _relations(lines: list[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for line in lines:
        name, _, target = line.partition(" ")
        found.setdefault(name, []).append(target.strip())
    return found
