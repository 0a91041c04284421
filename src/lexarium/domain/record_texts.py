"""Texts of a record in all languages: its names, definitions, notes and notations, as shown, chosen and edited."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from lexarium.domain.record import Record
from lexarium.domain.schema.collections import Collection
from lexarium.domain.schema.predicates import STANDARD_ROLES, TRANSLATION_SOURCE, SlotRole
from lexarium.domain.statement import Statement, Text
from lexarium.domain.text.languages import choose_language

# Roles of texts, by the key that v1 and drafts have them under.
TEXT_ROLES = {
    "names": SlotRole.NAME,
    "definitions": SlotRole.DEFINITION,
    "notes": SlotRole.NOTE,
    "notations": SlotRole.NOTATION,
}
_NOTATION = "skos:notation"


class RecordText(NamedTuple):
    """Text of a record that has a role."""

    # Name of the field or slot, or the predicate if there is none.
    field: str
    # Tag; that of the default language for a text without one.
    lang: str
    text: str
    # None for an empty text that no statement has.
    statement: Statement | None = None
    role: SlotRole | None = None
    # Whether it translates a text that has changed since.
    is_outdated: bool = False

    @property
    def is_complete(self) -> bool:
        """Return whether field, language and text are all that the statement says."""
        value, qualifiers = (self.statement.value, self.statement.qualifiers) if self.statement else (None, ())
        has_datatype = isinstance(value, Text) and bool(value.datatype)
        return not has_datatype and all(item.predicate == TRANSLATION_SOURCE for item in qualifiers)

    def dump(self) -> Any:
        """Return the text as JSON: notations as texts, notes with their type, others with their language."""
        if self.role is SlotRole.NOTATION:
            return self.text
        content = {"text": self.text, "lang": self.lang}
        return {"type": self.field, **content} if self.role is SlotRole.NOTE else content


def list_texts(record: Record) -> list[RecordText]:
    """Return the texts of a record that have a role, in order of the statements. Nodes are left out."""
    language, predicates = record.collection.language, record.collection.text_predicates
    texts = []
    for statement in record.own_statements:
        predicate, value, _ = statement
        if predicate in predicates and isinstance(value, Text):
            (role, field), (text, lang, _) = predicates[predicate], value
            texts.append(RecordText(field, lang or language, text, statement, role))
    if not any(text.lang != language for text in texts):
        return texts
    originals = {text.field: text.text for text in reversed(texts) if text.lang == language}
    return [text._replace(is_outdated=_is_outdated(text, language, originals.get(text.field))) for text in texts]


def _is_outdated(text: RecordText, language: str, original: str | None) -> bool:
    if original is None or text.lang == language or text.statement is None:
        return False
    sources = (item.value for item in text.statement.qualifiers if item.predicate == TRANSLATION_SOURCE)
    return any(isinstance(source, Text) and source.text != original for source in sources)


def list_language_texts(record: Record) -> list[RecordText]:
    """Return the names and definitions of a record, the first of each in each language, in order of the statements."""
    first_texts: dict[tuple[str, str], RecordText] = {}
    for text in list_texts(record):
        if text.field in record.collection.translated_fields:
            first_texts.setdefault((text.field, text.lang), text)
    return list(first_texts.values())


def list_languages(record: Record) -> list[str]:
    """Return the languages of a record's names, definitions and aliases, the default one first if it has that."""
    default = record.collection.language
    tags = {text.lang for text in list_language_texts(record)} | {alias.lang for alias in record.stored_aliases}
    return sorted(tags, key=lambda tag: (tag != default, tag))


def choose_text(record: Record, field: str, wanted: Sequence[str]) -> RecordText:
    """Return the name or definition of a record that suits a reader best; an empty text if it has none."""
    default = record.collection.language
    texts = {text.lang: text for text in list_language_texts(record) if text.field == field}
    lang = choose_language(texts, wanted, default)
    return RecordText(field, default, record.fields.get(field) or "") if lang is None else texts[lang]


def get_translated_fields(collection: Collection) -> dict[str, str]:
    """Return the keys of drafts that hold texts in other languages, each with the field that it translates."""
    fields = {"names": "name", "definitions": collection.definition_field}
    return {key: field for key, field in fields.items() if field in collection.translated_fields}


def get_note_types(collection: Collection) -> dict[str, str]:
    """Return the predicates of notes by type, fields aside: the name of a slot, or a standard predicate."""
    slots = collection.schema_class.slots_by_role.get(SlotRole.NOTE, ())
    standard = {predicate: predicate for predicate, role in STANDARD_ROLES.items() if role is SlotRole.NOTE}
    types = {**{slot.name: slot.predicate for slot in slots}, **standard}
    return {name: predicate for name, predicate in types.items() if name not in collection.fields}


def list_draft_texts(record: Record) -> dict[str, list[RecordText]]:
    """Return the texts that a draft has besides fields, by key: translations, notes and notations."""
    collection, texts = record.collection, list_texts(record)
    predicates = collection.field_predicates
    groups: dict[str, list[RecordText]] = {
        key: [text for text in texts if _get_predicate(text) == predicates[field] and text.lang != collection.language]
        for key, field in get_translated_fields(collection).items()
    }
    others = [text for text in texts if _get_predicate(text) not in predicates.values()]
    groups |= {key: [text for text in others if text.role is TEXT_ROLES[key]] for key in ("notes", "notations")}
    return groups


def _get_predicate(text: RecordText) -> str:
    return text.statement.predicate if text.statement else ""


def apply_texts(record: Record, draft: Mapping[str, Any]) -> Record:
    """Return a record with the texts of a validated draft. Statements of those that stay are kept."""
    if all(draft.get(key) is None for key in TEXT_ROLES):
        return record
    for key, existing in list_draft_texts(record).items():
        if draft.get(key) is not None:
            before = [text.statement for text in existing if text.statement]
            after = list(_iter_statements(record, key, draft[key], existing))
            if before != after:
                record = record.replace_statements(before, after)
    return record


def _iter_statements(
    record: Record, key: str, items: Sequence[str | Mapping[str, str]], existing: Sequence[RecordText]
) -> Iterator[Statement]:
    remaining, language = list(existing), record.collection.language
    for item in items:
        given = {"text": item} if isinstance(item, str) else item
        same = next((text for text in remaining if _is_same(text, given)), None)
        if same is not None and same.statement:
            remaining.remove(same)
            yield same.statement
        else:
            lang = given.get("lang", language)
            tag = lang if lang != language else record.collection.text_tag if key == "notes" else ""
            value = Text(given["text"], tag)
            yield Statement(_find_predicate(record, key, given), value, _state_source(record, key, given))


def _is_same(text: RecordText, given: Mapping[str, str]) -> bool:
    """Return whether an entry of a draft is a text. One that names its source is another translation."""
    shown = {"text": text.text, "lang": text.lang, "type": text.field}
    return all(shown.get(name) == value for name, value in given.items() if value is not None)


def _find_predicate(record: Record, key: str, given: Mapping[str, str]) -> str:
    collection = record.collection
    if "type" in given:
        return get_note_types(collection)[given["type"]]
    if key == "notations":
        slots = collection.schema_class.slots_by_role.get(SlotRole.NOTATION, ())
        return next((slot.predicate for slot in slots if slot.name not in collection.fields), _NOTATION)
    return collection.field_predicates[get_translated_fields(collection)[key]]


def _state_source(record: Record, key: str, given: Mapping[str, str]) -> tuple[Statement, ...]:
    """Return the qualifiers of a new text. A translation names the text that it translates."""
    field = get_translated_fields(record.collection).get(key)
    if field is None:
        return ()
    original = choose_text(record, field, ())
    default = original.text if original.lang == record.collection.language else ""
    source = default if given.get("source") is None else given["source"]
    return (Statement(TRANSLATION_SOURCE, Text(source)),) if source else ()
