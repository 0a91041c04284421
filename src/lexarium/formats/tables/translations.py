"""Read tables of translations, such as Babelon: each row is a name, definition or other text in a language."""

from collections.abc import Iterator
from io import BufferedReader

from lexarium.domain.identity.prefixes import OBO_BASE
from lexarium.domain.schema.predicates import STANDARD_ROLES, TRANSLATION_SOURCE, SlotRole
from lexarium.domain.statement import Reference, Statement, Text
from lexarium.domain.text.languages import canonicalize_tag, find_tag_problem
from lexarium.domain.vocabulary import Vocabulary
from lexarium.formats.parsed import ParseError, WarningCounter
from lexarium.formats.resources import ParsedResource, ResourceOptions, SourceDescription
from lexarium.formats.tables.table_file import (
    TableFile,
    TableRow,
    find_columns,
    fold_title,
    name_property,
    parse_id,
    parse_predicate,
)

_ID, _PREDICATE, _SOURCE_LANG, _SOURCE_TEXT, _LANG, _TEXT = (
    *("id", "predicate", "source language", "source text", "language", "text"),
)
# Titles by meaning; the first are those of Babelon.
_TITLES = {
    _ID: "subject_id source_id term_id class_id concept_id record_id id identifier curie iri uri",
    _PREDICATE: "predicate_id predicate property",
    _SOURCE_LANG: "source_language source_lang",
    _SOURCE_TEXT: "source_value source_text source_label",
    _LANG: "translation_language translation_lang target_language target_lang language lang",
    _TEXT: "translation_value translation_text translation target_value target_text translated_value translated_text",
}
_KNOWN = {title: meaning for meaning, titles in _TITLES.items() for title in titles.split()}
_SYNONYM_TYPE = "synonym_type"
# Predicates of other columns, which are qualifiers.
_QUALIFIERS = {
    **{
        name: f"babelon:{name}"
        for name in (
            *("source", "source_version", "translator", "translator_expertise", "translation_type", "translation_date"),
            *("translation_provider", "translation_precision", "translation_confidence", "translation_status"),
        )
    },
    "status": "babelon:translation_status",
    "date": "babelon:translation_date",
    "comment": "rdfs:comment",
    _SYNONYM_TYPE: "oboInOwl:hasSynonymType",
}
_ROLES = {
    **dict.fromkeys(("name", "label", "preferred_label", "pref_label", "term"), SlotRole.NAME),
    **dict.fromkeys(("definition", "def", "description"), SlotRole.DEFINITION),
    **dict.fromkeys(("synonym", "exact_synonym", "alias", "alt_label"), SlotRole.ALIAS),
}
_OBO_PREFIX = "obo:"


def open_document(stream: BufferedReader, options: ResourceOptions) -> "TranslationTable":
    """Read the titles of a table of translations; raise ParseError."""
    return TranslationTable(stream, options)


class TranslationTable:
    """Translations, row by row."""

    def __init__(self, stream: BufferedReader, options: ResourceOptions) -> None:
        self.warnings = WarningCounter()
        self._table = TableFile(stream, lambda title: fold_title(title) in _KNOWN | _QUALIFIERS)
        self.close = self._table.close
        self._language = canonicalize_tag(options.language) if options.language else ""
        self._columns = find_columns(self._table.titles, _KNOWN)
        for meaning in (_ID, _TEXT):
            if meaning not in self._columns:
                raise ParseError(
                    f"no column has the {meaning}, such as {_TITLES[meaning].split()[0]}", self._table.title_line, 1
                )
        if _LANG not in self._columns and not self._language:
            message = "no column has the language, such as translation_language: set it with --lang"
            raise ParseError(message, self._table.title_line, 1)
        # What the table has texts of, as predicate and language.
        self._stated: set[tuple[str, str]] = set()
        # Predicates of the vocabulary, by those of the table.
        self._predicates: dict[str, str | None] = {}

    def describe(self) -> SourceDescription:
        """Return the description of a file that is about existing records."""
        return SourceDescription("", "", "", "", kind="translation")

    def covers(self, statement: Statement) -> bool:
        """Return whether the table has texts of a predicate in a language."""
        value = statement.value
        return isinstance(value, Text) and (statement.predicate, value.lang) in self._stated

    def iter_resources(self, vocabulary: Vocabulary) -> Iterator[ParsedResource]:
        """Yield a resource for each row that has a translation."""
        self._stated.clear()
        self._predicates.clear()
        ignored = set(self._columns.values())
        qualifiers = {
            index: _QUALIFIERS.get(fold_title(title)) or name_property(title, vocabulary)
            for index, title in enumerate(self._table.titles)
            if title and index not in ignored
        }
        for row in self._table.iter_rows():
            resource = self._parse_row(row, vocabulary, qualifiers)
            if resource.problems or resource.statements:
                yield resource

    def _get(self, row: TableRow, meaning: str) -> str:
        index = self._columns.get(meaning)
        return "" if index is None else row.cells[index]

    def _parse_row(self, row: TableRow, vocabulary: Vocabulary, qualifiers: dict[int, str]) -> ParsedResource:
        record_id = parse_id(self._get(row, _ID), vocabulary)
        resource = ParsedResource(row.line, record_id, "", is_update=True)
        problems = resource.problems
        if row.problem:
            problems.append((len(self._table.titles) + 1, row.problem))
            return resource
        if not record_id:
            problems.append((self._columns[_ID] + 1, "the row does not say which record it is about"))
        lang = self._parse_language(row, record_id, problems)
        predicate = self._parse_predicate(row, record_id, vocabulary, problems)
        text = self._get(row, _TEXT)
        if problems:
            return resource
        if not text.strip():
            self.warnings.add(
                "a row has no translation and was skipped", f"{record_id} on line {row.line}", is_loss=True
            )
            return resource
        details = [
            self._state_qualifier(qualifiers[index], row.cells[index], vocabulary)
            for index in qualifiers
            if row.cells[index].strip()
        ]
        details += self._state_source(row, vocabulary)
        self._stated.add((predicate, lang))
        resource.statements.append(Statement(predicate, Text(text, lang), tuple(details)))
        return resource

    def _parse_language(self, row: TableRow, record_id: str, problems: list[tuple[int, str]]) -> str:
        tag = self._get(row, _LANG).strip() or self._language
        problem = find_tag_problem(tag) if tag else "its row has no language; set one with --lang."
        if problem:
            problems.append((self._columns.get(_LANG, 0) + 1, f"{record_id[:100]}: {problem}"))
            return ""
        return canonicalize_tag(tag)

    def _parse_predicate(
        self, row: TableRow, record_id: str, vocabulary: Vocabulary, problems: list[tuple[int, str]]
    ) -> str:
        text = self._get(row, _PREDICATE).strip()
        if text not in self._predicates:
            self._predicates[text] = self._find_predicate(text, vocabulary)
        predicate = self._predicates[text]
        if predicate is None:
            message = f"{record_id[:100]}: {text[:100]!r} is not a predicate, such as rdfs:label"
            problems.append((self._columns[_PREDICATE] + 1, message))
        return predicate or ""

    @staticmethod
    def _find_predicate(text: str, vocabulary: Vocabulary) -> str | None:
        """Return the predicate that a text means: the vocabulary's own instead of a common one that it lacks."""
        predicate = parse_predicate(text, vocabulary)
        role = STANDARD_ROLES.get(predicate) if predicate else _ROLES.get(fold_title(text or "name"))
        if predicate is None and role is None:
            return None
        declared = [slot for item in vocabulary.collections for slot in item.schema_class.slots.values()]
        if predicate is not None and (role is None or any(slot.predicate == predicate for slot in declared)):
            return predicate
        own = (slot.predicate for slot in declared if slot.role is role and not slot.is_node)
        return next(own, predicate)

    @staticmethod
    def _state_qualifier(predicate: str, text: str, vocabulary: Vocabulary) -> Statement:
        if predicate != _QUALIFIERS[_SYNONYM_TYPE]:
            return Statement(predicate, Text(text))
        name = text.strip()
        iri = OBO_BASE + name.removeprefix(_OBO_PREFIX) if name.startswith(_OBO_PREFIX) else name
        return Statement(predicate, Reference(vocabulary.contract_iri(iri)))

    def _state_source(self, row: TableRow, vocabulary: Vocabulary) -> list[Statement]:
        """Return the text that was translated. In the default language, it shows whether the text has changed since."""
        text, tag = self._get(row, _SOURCE_TEXT), self._get(row, _SOURCE_LANG).strip()
        if not text:
            return []
        lang = vocabulary.language if not tag else tag if find_tag_problem(tag) else canonicalize_tag(tag)
        if lang == vocabulary.language:
            return [Statement(TRANSLATION_SOURCE, Text(text))]
        return [Statement("babelon:source_value", Text(text, "" if find_tag_problem(lang) else lang))]
