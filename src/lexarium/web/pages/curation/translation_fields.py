"""Parts of a record form that hold names and definitions in other languages than the default one.

A field is called `name-fr`, or `definition_text-fr` after the field that it translates. Aliases have their language
beside them in a field of their own.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lexarium.domain.record import Record
from lexarium.domain.schema.collections import Collection
from lexarium.domain.text.languages import find_tag_problem, format_tag
from lexarium.domain.translations import LanguageText, list_language_texts
from lexarium.domain.vocabulary import VOCABULARIES
from lexarium.web.pages.form_fields import FormValues, get_text

# Keys of drafts that hold texts in all languages.
DRAFT_KEYS = ("names", "definitions")
_SEPARATOR = "-"
# Field with a language to add.
_NEW_LANGUAGE = "new_language"


@dataclass(frozen=True)
class LanguagePart:
    """Fields of one language in a form."""

    lang: str
    # Name of the form field and value, by name of the field.
    fields: Mapping[str, tuple[str, str]]

    @property
    def is_filled(self) -> bool:
        return any(value for _, value in self.fields.values())


def _list_translated(collection: Collection) -> dict[str, str]:
    """Return the fields that may be there in several languages, by key of drafts."""
    fields = {"names": "name", "definitions": collection.definition_field}
    return {key: field for key, field in fields.items() if field and field in collection.translated_fields}


def is_translation(name: str) -> bool:
    """Return whether a form field holds a translation."""
    _, separator, lang = name.partition(_SEPARATOR)
    return bool(separator) and find_tag_problem(lang) is None


def to_values(record: Record) -> dict[str, str]:
    """Return the translations of a record as form fields."""
    return {f"{text.field}{_SEPARATOR}{text.lang}": text.text for text in _list_translations(record)}


def _list_translations(record: Record) -> list[LanguageText]:
    return [text for text in list_language_texts(record) if text.lang != record.collection.language]


def list_parts(collection: Collection, values: Mapping[str, str], fields: FormValues) -> list[LanguagePart]:
    """Return the languages of a form: those it has values of, those of the vocabulary, and one to be added."""
    translated = _list_translated(collection).values()
    if not translated:
        return []
    given = [name.partition(_SEPARATOR)[2] for name in values if is_translation(name)]
    added = get_text(fields, _NEW_LANGUAGE).strip()
    added_tags = [format_tag(added)] if added and find_tag_problem(added) is None else []
    tags = dict.fromkeys((*VOCABULARIES[collection.vocabulary].languages, *sorted(given), *added_tags))
    names = {tag: {field: f"{field}{_SEPARATOR}{tag}" for field in translated} for tag in tags}
    return [
        LanguagePart(tag, {field: (name, values.get(name, "")) for field, name in names[tag].items()})
        for tag in tags
        if tag != collection.language
    ]


def parse_texts(
    collection: Collection, fields: FormValues, draft: Mapping[str, Any], base: Record | None
) -> dict[str, list[dict[str, str]]]:
    """Return names and definitions in all languages as a draft has them, of those that a user changed.

    An empty text removes a language.
    """
    before = to_values(base) if base is not None else {}
    texts: dict[str, list[dict[str, str]]] = {}
    for key, field in _list_translated(collection).items():
        start = f"{field}{_SEPARATOR}"
        shown = {name: text for name, text in before.items() if name.startswith(start)}
        sent = {name: get_text(fields, name) for name in fields if name.startswith(start) and is_translation(name)}
        changed = {name: text.strip() for name, text in sent.items() if text.strip() != shown.get(name, "").strip()}
        if changed:
            own = [{"text": draft[field], "lang": collection.language}] if draft.get(field) else []
            merged = {**shown, **changed}
            others = [{"text": text, "lang": name.removeprefix(start)} for name, text in merged.items() if text]
            texts[key] = own + others
    return texts
