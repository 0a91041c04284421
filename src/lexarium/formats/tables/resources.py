"""Read a table of any vocabulary as resources: each row is what it says of a record, and nothing else of it."""

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from io import BufferedReader

from lexarium.domain.record import ALIAS_PREDICATES, SOURCE, RecordState, get_alias_predicate
from lexarium.domain.schema.collections import Collection
from lexarium.domain.schema.linkml import load_builtin_schema
from lexarium.domain.schema.predicates import SlotRole
from lexarium.domain.statement import Node, Reference, Statement, Text
from lexarium.domain.text.characters import name_key
from lexarium.domain.text.languages import find_tag_problem, format_tag
from lexarium.domain.vocabulary import Vocabulary
from lexarium.formats.parsed import ParseError, WarningCounter
from lexarium.formats.resources import ParsedResource, ResourceOptions, SourceDescription
from lexarium.formats.tables.cells import split_aliases, split_values
from lexarium.formats.tables.columns import (
    COLLECTION,
    ID,
    IRI,
    NAME,
    REFERENCE,
    REPLACED_BY,
    RESERVED,
    STATE,
    ColumnTitle,
    build_value,
    find_inverse,
    find_slot,
    infer_kind,
    is_mapping,
    is_single,
    list_names,
    split_title,
)
from lexarium.formats.tables.header import BROADER, OBSOLETE, TITLE_SYNONYMS, normalize_title
from lexarium.formats.tables.rows import FALSE_VALUES, TRUE_VALUES
from lexarium.formats.tables.table_file import (
    TableFile,
    TableRow,
    name_property,
    parse_id,
    parse_predicate,
    parse_state,
)

# Kinds of columns: those of `RESERVED`, and these.
_SLOT, _PREDICATE, _ALIASES, _SOURCES = "slot", "predicate", "aliases", "sources"
# Meaning of a column that becomes a property of its own.
_PROPERTY = "property"
_WORDS = {
    normalize_title(word): meaning
    for meaning, words in TITLE_SYNONYMS.items()
    if meaning.partition("/")[0] in (*RESERVED, NAME, "definition", _ALIASES, _SOURCES, BROADER, OBSOLETE)
    for word in words.split(",")
}
_SLOT_NAMES = {
    name: {slot for item in load_builtin_schema(name).main_collections.values() for slot in item.slots}
    - {*RESERVED, NAME}
    for name in ("skos", "obo")
}
_NO_PARTS = ColumnTitle("")


@dataclass(frozen=True)
class _Column:
    """Column with a known meaning."""

    index: int
    title: str
    kind: str
    # Slot name or predicate, and the language or datatype of values.
    parts: ColumnTitle = _NO_PARTS
    # Of aliases.
    scope: str = "exact"


def open_document(stream: BufferedReader, options: ResourceOptions) -> "VocabularyTable":
    """Read the titles of a table; raise ParseError."""
    return VocabularyTable(stream, options)


class VocabularyTable:
    """Records of a vocabulary, row by row."""

    def __init__(self, stream: BufferedReader, options: ResourceOptions) -> None:
        self.warnings = WarningCounter()
        self._options = options
        self._table = TableFile(stream, self._is_known)
        self.close = self._table.close
        # Predicates that the table has columns for, each with a language; None: any.
        self._covered: set[tuple[str, str | None]] = set()

    def _is_known(self, title: str) -> bool:
        name = split_title(title).name
        return name in RESERVED or title in self._options.column_mapping or normalize_title(name) in _WORDS

    def describe(self) -> SourceDescription:
        """Return the schema and the languages of the titles. A table says nothing else of its vocabulary."""
        titles = [split_title(title) for title in self._table.titles]
        tags = dict.fromkeys(title.lang for title in titles if title.lang)
        has_default = any(_WORDS.get(normalize_title(title.name)) == NAME and not title.lang for title in titles)
        languages = tuple(dict.fromkeys(("en", *tags))) if has_default else tuple(tags)
        # The schema that has most of the columns.
        names = {title.name for title in titles}
        schema = max(("skos", "obo"), key=lambda name: len(names & _SLOT_NAMES[name]))
        return SourceDescription("", "", schema, "", languages=languages, kind="table")

    def covers(self, statement: Statement) -> bool:
        """Return whether the table has a column for a statement."""
        lang = statement.value.lang if isinstance(statement.value, Text) else ""
        predicate = statement.predicate
        is_covered = (predicate, lang) in self._covered or (predicate, None) in self._covered
        return is_covered and not isinstance(statement.value, Node)

    @property
    def titles(self) -> Sequence[str]:
        """Titles of the columns."""
        return self._table.titles

    def iter_ids(self, vocabulary: Vocabulary) -> Iterator[str]:
        """Yield the ids of rows as the vocabulary has them, whether or not it knows the other columns."""
        columns, _ = _Header(self._table, vocabulary, self._options).match()
        indexes = [column.index for kind in (ID, IRI) for column in columns if column.kind == kind]
        for row in self._table.iter_rows():
            text = next(filter(None, (row.cells[index].strip() for index in indexes)), "")
            if text:
                yield parse_id(text, vocabulary)

    def iter_resources(self, vocabulary: Vocabulary) -> Iterator[ParsedResource]:
        """Yield a resource for each row, and one for each record that a row relates to itself."""
        header = _Header(self._table, vocabulary, self._options)
        columns, problems = header.match()
        for title in self._options.column_mapping:
            if title not in self._table.titles:
                self.warnings.add(f"there is no column {title}, which --map names")
        if problems:
            yield ParsedResource(self._table.title_line, "", "", problems=problems)
            return
        parser = _RowParser(self._table, vocabulary, columns, header.default_collection, self._covered)
        for row in self._table.iter_rows():
            yield from parser.parse(row)


class _Header:
    """Match the titles of a table with a vocabulary."""

    def __init__(self, table: TableFile, vocabulary: Vocabulary, options: ResourceOptions) -> None:
        self._table = table
        self._vocabulary = vocabulary
        self._mapping = options.column_mapping
        self._has_collection = COLLECTION in map(str.casefold, table.titles)
        collections = vocabulary.collections
        self._main = [item for item in collections if not item.is_auxiliary] or collections
        self._auxiliary = [item for item in collections if item not in self._main]
        named = [item for item in collections if item.local_name == options.collection]
        if options.collection and not named:
            known = ", ".join(item.local_name for item in collections)
            raise ParseError(f"the collection {options.collection} is not one of {known}", table.title_line, 1)
        self.default_collection = (named or self._main)[0]

    def match(self) -> tuple[list[_Column], list[tuple[int, str]]]:
        """Return the columns that are read, and all problems, each with its column."""
        columns: list[_Column] = []
        problems: list[tuple[int, str]] = []
        for index, title in enumerate(self._table.titles):
            meaning = self._mapping.get(title)
            if not title or meaning == "":
                continue
            column = self._match_column(index, title, meaning)
            if column is not None:
                columns.append(column)
            elif meaning is not None:
                problems.append(
                    (index + 1, f"{title} should mean {meaning!r}, which is neither a slot nor a predicate")
                )
            else:
                keep, skip = shlex.quote(f"{title}=property"), shlex.quote(f"{title}=")
                remedies = f"keep it with --map {keep}, or a slot or predicate instead of `property`"
                message = f"the column {title} is not known: {remedies}; skip it with --map {skip}"
                problems.append((index + 1, message))
        if not problems and not {ID, IRI} & {column.kind for column in columns}:
            problems.append((1, "no column has the id of a record, such as `id` or `iri`; an import mints no ids"))
        return columns, problems or self._find_duplicates(columns)

    @staticmethod
    def _find_duplicates(columns: list[_Column]) -> list[tuple[int, str]]:
        """Return the columns that mean the same as others with another title."""
        seen: dict[tuple[str, ColumnTitle], _Column] = {}
        problems = []
        for column in columns:
            if column.kind in (_ALIASES, _SOURCES, BROADER):
                continue
            other = seen.setdefault((column.kind, column.parts), column)
            if other.title != column.title:
                message = f"the columns {other.title} and {column.title} have the same meaning"
                remedy = f"skip one with --map {shlex.quote(f'{column.title}=')}"
                problems.append((column.index + 1, f"{message}: {remedy}"))
        return problems

    def _match_column(self, index: int, title: str, meaning: str | None) -> _Column | None:
        own = split_title(title)
        if meaning == _PROPERTY:
            return _Column(index, title, _PREDICATE, own._replace(name=name_property(own.name, self._vocabulary)))
        parts = split_title(meaning or title)
        if meaning and not parts.lang and not parts.kind:
            parts = own._replace(name=parts.name)
        name = parts.name
        if name.casefold() in RESERVED:
            return _Column(index, title, name.casefold())
        if name.startswith("<") and name.endswith(">"):
            return _Column(index, title, _PREDICATE, parts._replace(name=name[1:-1]))
        # Rows of several collections may have the slots of any of them.
        if any(name in list_names(item) for item in (*self._main, *(self._auxiliary if self._has_collection else ()))):
            return _Column(index, title, _SLOT, parts)
        predicate = parse_predicate(name, self._vocabulary) or (name if meaning and ":" in name else None)
        if predicate is not None:
            return _Column(index, title, _PREDICATE, parts._replace(name=predicate))
        return self._match_words(index, title, parts)

    def _match_words(self, index: int, title: str, parts: ColumnTitle) -> _Column | None:
        key = normalize_title(parts.name)
        slot = self._slot_names.get(key)
        if slot is not None:
            return _Column(index, title, _SLOT, parts._replace(name=slot))
        word, _, scope = _WORDS.get(key, "").partition("/")
        if word in (NAME, "definition"):
            return _Column(index, title, _SLOT, parts._replace(name=word))
        if word:
            return _Column(index, title, word, parts._replace(name=""), scope or "exact")
        if any(parts.name in list_names(item) for item in self._auxiliary):
            return _Column(index, title, _SLOT, parts)
        return None

    @cached_property
    def _slot_names(self) -> dict[str, str]:
        """Names of the slots of records, by their names and labels without case and spaces."""
        slots = [slot for item in reversed(self._main) for slot in item.schema_class.slots.values()]
        slots = [slot for slot in slots if not slot.identifier and slot.name not in RESERVED]
        return {normalize_title(text): slot.name for slot in slots for text in (slot.label, slot.name) if text}


class _RowParser:
    """Parse rows; resolve references between them."""

    def __init__(
        self,
        table: TableFile,
        vocabulary: Vocabulary,
        columns: list[_Column],
        default_collection: Collection,
        covered: set[tuple[str, str | None]],
    ) -> None:
        self._vocabulary = vocabulary
        self._columns = columns
        self._width = len(table.titles)
        self._default_collection = default_collection
        self._covered = covered
        self._collections = {item.local_name: item for item in vocabulary.collections}
        self._indexes = {column.kind: column.index for column in reversed(columns)}
        self._ids: set[str] = set()
        self._ids_by_name: dict[str, set[str]] = {}
        is_name = [column.kind == _SLOT and column.parts.name == NAME and not column.parts.kind for column in columns]
        names = [column.index for column, found in zip(columns, is_name, strict=True) if found]
        for row in table.iter_rows():
            record_id = self._get_id(row)
            self._ids.add(record_id)
            for index in names:
                self._ids_by_name.setdefault(name_key(row.cells[index].strip()), set()).add(record_id)

    def _get(self, row: TableRow, kind: str) -> str:
        index = self._indexes.get(kind)
        return "" if index is None else row.cells[index].strip()

    def _get_id(self, row: TableRow) -> str:
        return parse_id(self._get(row, ID) or self._get(row, IRI), self._vocabulary)

    def parse(self, row: TableRow) -> Iterator[ParsedResource]:
        """Yield the record of a row, and those at the other ends of inverse relations."""
        collection = self._collections.get(self._get(row, COLLECTION) or self._default_collection.local_name)
        resource = ParsedResource(row.line, self._get_id(row), collection.schema_class.uri if collection else "")
        others = self._fill(resource, row, collection)
        yield resource
        for target, statement in others:
            yield ParsedResource(row.line, target, "", [statement], is_update=True)

    def _fill(
        self, resource: ParsedResource, row: TableRow, collection: Collection | None
    ) -> list[tuple[str, Statement]]:
        """Add what a row says to a resource; return what it says about others, each with the id."""
        problems = resource.problems
        if row.problem:
            problems.append((self._width + 1, row.problem))
            return []
        if not resource.id:
            problems.append(
                (self._indexes.get(ID, 0) + 1, "the row has neither an id nor an iri; an import mints no ids")
            )
        if collection is None:
            message = f"{self._get(row, COLLECTION)[:100]!r} is not one of {', '.join(self._collections)}"
            problems.append((self._indexes[COLLECTION] + 1, f"the collection of {resource.id[:100]}, {message}"))
            return []
        resource.iri = self._find_iri(row, resource.id)
        self._parse_state(row, resource)
        return [other for column in self._columns for other in self._parse_cell(column, row, resource, collection)]

    def _find_iri(self, row: TableRow, record_id: str) -> str | None:
        text = self._get(row, IRI) or self._get(row, ID)
        return text if "://" in text and (text != record_id or self._get(row, IRI)) else None

    def _parse_state(self, row: TableRow, resource: ParsedResource) -> None:
        text, obsolete = self._get(row, STATE), self._get(row, OBSOLETE).casefold()
        replacement = self._get(row, REPLACED_BY)
        if obsolete in TRUE_VALUES:
            resource.state = RecordState.RETIRED
        elif obsolete and obsolete not in FALSE_VALUES:
            message = f"{obsolete[:50]!r} of {resource.id[:100]} is neither yes nor no"
            resource.problems.append((self._indexes[OBSOLETE] + 1, message))
        if text:
            resource.state = parse_state(text)
            if resource.state is None:
                message = (
                    f"the state of {resource.id[:100]} is {text[:50]!r}, which is not one of {', '.join(RecordState)}"
                )
                resource.problems.append((self._indexes[STATE] + 1, message))
        if replacement:
            resource.replaced_by = parse_id(replacement, self._vocabulary)
            resource.state = resource.state or RecordState.RETIRED

    def _parse_cell(
        self, column: _Column, row: TableRow, resource: ParsedResource, collection: Collection
    ) -> list[tuple[str, Statement]]:
        """Add the statements of a cell to a resource; return those that belong to others, each with the id."""
        cell = row.cells[column.index]
        if column.kind == _ALIASES:
            self._parse_aliases(column, cell, row, resource, collection)
            return []
        predicate = self._find_predicate(column, collection)
        if predicate is None:
            return []
        title = column.parts
        langs = (title.lang,) if title.lang else ("", collection.language)
        self._covered.update((predicate, lang) for lang in langs)
        if not cell.strip():
            return []
        inverse = find_inverse(predicate, collection) if column.kind == _SLOT else None
        if inverse is not None:
            self._covered.add((inverse, ""))
        others = []
        for text in self._split(cell, predicate, title, collection):
            value = build_value(predicate, text, title, collection)
            if isinstance(value, Reference) and not is_mapping(predicate, collection):
                target = self._resolve(text, column, resource)
                value = Reference(target)
                if inverse is not None:
                    others.append((target, Statement(inverse, Reference(resource.id))))
                    continue
            resource.statements.append(Statement(predicate, value))
        return others

    def _find_predicate(self, column: _Column, collection: Collection) -> str | None:
        if column.kind == _PREDICATE:
            return column.parts.name
        if column.kind == _SOURCES:
            return SOURCE
        if column.kind == BROADER:
            slots = collection.schema_class.slots.values()
            return next((slot.predicate for slot in slots if slot.hierarchical), "skos:broader")
        if column.kind != _SLOT:
            return None
        candidates = (collection, self._default_collection, *self._collections.values())
        found = (list_names(item).get(column.parts.name) for item in candidates)
        return next(filter(None, found), None)

    @staticmethod
    def _split(cell: str, predicate: str, title: ColumnTitle, collection: Collection) -> list[str]:
        if is_single(predicate, collection):
            return [cell]
        slot = find_slot(predicate, collection)
        is_alias = slot is not None and slot.role is SlotRole.ALIAS
        kind = title.kind or ("" if title.lang else infer_kind(predicate, "", collection))
        # Other texts are sentences, which have semicolons.
        return split_values(cell, bars_only=not is_alias and kind != REFERENCE)

    def _parse_aliases(
        self, column: _Column, cell: str, row: TableRow, resource: ParsedResource, collection: Collection
    ) -> None:
        predicates = {scope: get_alias_predicate(collection, scope) for scope in ALIAS_PREDICATES}
        self._covered.update((predicate, None) for predicate in predicates.values())
        for alias in split_aliases(cell, column.parts.lang, column.scope):
            if alias.lang and find_tag_problem(alias.lang):
                message = f"{resource.id[:100]}: {find_tag_problem(alias.lang)}"
                resource.problems.append((column.index + 1, message))
            else:
                value = Text(alias.text, format_tag(alias.lang) if alias.lang else "")
                resource.statements.append(Statement(predicates[alias.scope], value))

    def _resolve(self, text: str, column: _Column, resource: ParsedResource) -> str:
        """Return the id that a reference means: that of a row with this name, if it is no id."""
        record_id = parse_id(text, self._vocabulary)
        if record_id in self._ids or ":" in text:
            return record_id
        ids = self._ids_by_name.get(name_key(text), set())
        if len(ids) > 1:
            message = f"{resource.id[:100]}: several rows have the name {text[:100]!r}; use an id"
            resource.problems.append((column.index + 1, message))
        return next(iter(ids), record_id)
