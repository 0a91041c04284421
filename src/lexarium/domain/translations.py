"""Texts of a record by language, and translations of texts that have changed since."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from lexarium.domain.record import Record
from lexarium.domain.schema.predicates import TRANSLATION_SOURCE
from lexarium.domain.statement import Statement, Text
from lexarium.domain.text.languages import choose_language


class LanguageText(NamedTuple):
    """Name or definition of a record in one language."""

    # Name of the field.
    field: str
    # Tag; that of the default language for a text without one.
    lang: str
    text: str
    # Whether it translates a text that has changed since.
    is_outdated: bool = False


def list_language_texts(record: Record) -> list[LanguageText]:
    """Return the names and definitions of a record, the first of each in each language, in order of the statements."""
    texts: dict[tuple[str, str], LanguageText] = {}
    for field, statement, value in _iter_texts(record):
        lang = value.lang or record.collection.language
        outdated = lang != record.collection.language and _is_outdated(record, field, statement)
        texts.setdefault((field, lang), LanguageText(field, lang, value.text, outdated))
    return list(texts.values())


def list_outdated_texts(record: Record) -> list[LanguageText]:
    """Return the translations of texts that have changed since."""
    return [text for text in list_language_texts(record) if text.is_outdated]


def list_languages(record: Record) -> list[str]:
    """Return the languages of a record's names, definitions and aliases, the default one first if it has that."""
    default = record.collection.language
    tags = dict.fromkeys(value.lang or default for _, _, value in _iter_texts(record))
    tags |= dict.fromkeys(alias.lang for alias in record.stored_aliases)
    return sorted(tags, key=lambda tag: (tag != default, tag))


def _iter_texts(record: Record) -> Iterator[tuple[str, Statement, Text]]:
    collection = record.collection
    fields = {collection.field_predicates[name]: name for name in collection.translated_fields if name != "id"}
    fields |= dict.fromkeys(collection.name_predicates, "name")
    for statement in record.own_statements:
        field = fields.get(statement.predicate)
        if field is not None and isinstance(statement.value, Text):
            yield field, statement, statement.value


def _is_outdated(record: Record, field: str, statement: Statement) -> bool:
    sources = [item.value for item in statement.qualifiers if item.predicate == TRANSLATION_SOURCE]
    current = find_text(record, field, record.collection.language)
    return current is not None and any(isinstance(source, Text) and source.text != current for source in sources)


def find_text(record: Record, field: str, lang: str) -> str | None:
    """Return the name or definition of a record in a language, or None."""
    default = record.collection.language
    texts = (value.text for name, _, value in _iter_texts(record) if name == field and (value.lang or default) == lang)
    return next(texts, None)


def choose_text(record: Record, field: str, wanted: Sequence[str]) -> LanguageText:
    """Return the name or definition of a record that suits a reader best; an empty text if it has none."""
    default = record.collection.language
    texts = {item.lang: item for item in list_language_texts(record) if item.field == field}
    lang = choose_language(texts, wanted, default)
    return LanguageText(field, default, record.fields.get(field) or "") if lang is None else texts[lang]
