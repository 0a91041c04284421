"""CSV and TSV: read any dialect, write RFC 4180."""

import codecs
import io
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache, partial
from typing import BinaryIO, TextIO

from lexarium.domain.identifiers import MAIN_VOCABULARY
from lexarium.domain.record import Record
from lexarium.domain.schema.collections import (
    ALIAS_FIELDS,
    DEFINITION_FIELDS,
    MAIN_COLLECTIONS,
    MAIN_RELATION_TYPES,
    RELATION_TYPES,
    Collection,
)
from lexarium.domain.vocabulary import Vocabulary
from lexarium.formats.foreign_ids import format_id
from lexarium.formats.parsed import ParsedRecord, ParseError, ReadOptions, WarningCounter, WriteOptions
from lexarium.formats.reading import open_seekable
from lexarium.formats.tables.cells import EMPTY_TEXT, escape_formula, format_line, join_aliases, join_values
from lexarium.formats.tables.dialect import SAMPLE_CHARS, detect_dialect, iter_rows
from lexarium.formats.tables.header import DEFINITION, count_known_titles, match_columns
from lexarium.formats.tables.rows import TableParser
from lexarium.formats.tables.statements import write_statements

_DELIMITERS = {"csv": ",", "tsv": "\t"}
# Spreadsheets read a CSV file as UTF-8 only with a byte order mark.
_BOM = {"csv": codecs.BOM_UTF8, "tsv": b""}

_LEADING_COLUMNS = ("collection", "id", "name", DEFINITION, "alias", "aliases", "sources")
_FIELDS = [
    name
    for name in dict.fromkeys(name for collection in MAIN_COLLECTIONS.values() for name in collection.core_fields)
    if name not in _LEADING_COLUMNS and name not in DEFINITION_FIELDS | ALIAS_FIELDS
]
EXPORT_COLUMNS = [*_LEADING_COLUMNS, *_FIELDS, *MAIN_RELATION_TYPES, "state", "replaced_by"]
_EMPTY_CELLS = [""] * (len(_FIELDS) + len(MAIN_RELATION_TYPES))
_RELATION_COLUMNS = {
    name: column for column, name in enumerate(MAIN_RELATION_TYPES, len(_LEADING_COLUMNS) + len(_FIELDS))
}


def read(stream: BinaryIO, options: ReadOptions) -> Iterator[ParsedRecord]:
    """Yield a record per row, and last the warnings about the whole table.

    Only the names by which rows refer to each other are kept in memory.
    """
    with open_seekable(stream) as file:
        text = io.TextIOWrapper(file, encoding="utf-8-sig", newline="")
        try:
            yield from _parse_table(text, options)
        finally:
            text.detach()


def _parse_table(text: TextIO, options: ReadOptions) -> Iterator[ParsedRecord]:
    count_titles = partial(count_known_titles, column_mapping=options.column_mapping)
    dialect = detect_dialect(text.read(SAMPLE_CHARS), _DELIMITERS[options.format.name], count_titles)

    def rewind() -> tuple[int, list[str], Iterator[tuple[int, list[str]]]]:
        text.seek(0)
        rows = iter_rows(text, dialect)
        return *next(rows, (0, [])), rows

    line, titles, rows = rewind()
    if not titles:
        raise ParseError("the file is empty; a line that names columns was expected", 1, 1)
    warnings = WarningCounter()
    columns = match_columns(titles, options.column_mapping, line, warnings)
    parser = TableParser(options, columns, titles, warnings)
    references = parser.collect_row_references(rows)
    if references:
        *_, rows = rewind()
        parser.index_referenced_rows(references, rows)
    *_, rows = rewind()
    for line_number, row in rows:
        yield parser.parse_row(line_number, row)
    yield from warnings.to_parsed_records()


def write(records: Iterable[Record], options: WriteOptions) -> Iterator[bytes]:
    """Yield a table in UTF-8 with a row per record."""
    bom, delimiter = _BOM[options.format.name], _DELIMITERS[options.format.name]
    if options.vocabulary.slug != MAIN_VOCABULARY:
        yield bom
        yield from write_statements(records, delimiter, options.vocabulary)
        return
    yield bom + format_line(EXPORT_COLUMNS, delimiter)
    for record in records:
        yield format_line(_format_row(record, options.vocabulary), delimiter)


def _format_row(record: Record, vocabulary: Vocabulary) -> Sequence[str]:
    fields = record.fields
    leading_texts = (
        format_id(record.id, vocabulary),
        fields["name"],
        record.definition,
        "" if record.stored_aliases else fields.get(record.collection.alias_field or "", ""),
        join_aliases(record.aliases if record.stored_aliases else (), vocabulary.language),
        join_values(record.sources),
    )
    row = [record.collection.local_name, *map(escape_formula, leading_texts), *_EMPTY_CELLS]
    for column, name, empty_text in _list_field_columns(record.collection):
        value: str | int | None = fields[name]
        if isinstance(value, str):
            row[column] = escape_formula(value) if value else empty_text
        elif value is not None:
            row[column] = str(value)
    for name, targets in record.relation_targets.items():
        if name in _RELATION_COLUMNS:
            row[_RELATION_COLUMNS[name]] = escape_formula(_format_targets(name, targets, vocabulary))
    replacement = "" if record.replaced_by is None else escape_formula(format_id(record.replaced_by, vocabulary))
    return [*row, record.state, replacement]


@lru_cache(maxsize=1_000)
def _list_field_columns(collection: Collection) -> list[tuple[int, str, str]]:
    """Return the columns of the fields that a collection has, their names, and the cells of empty texts."""
    # For fields that the server sets, an empty cell states nothing, so that rows can be added by hand.
    return [
        (column, name, "" if name in collection.editable_fields else EMPTY_TEXT)
        for column, name in enumerate(_FIELDS, len(_LEADING_COLUMNS))
        if name in collection.core_fields
    ]


def _format_targets(relation: str, targets: Iterable[str], vocabulary: Vocabulary) -> str:
    is_external = RELATION_TYPES[relation].is_mapping
    return join_values(target if is_external else format_id(target, vocabulary) for target in targets)
