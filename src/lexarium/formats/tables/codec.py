"""CSV and TSV: read any dialect, write RFC 4180."""

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import BinaryIO, TextIO

from lexarium.domain.record import Record
from lexarium.domain.schema.collections import (
    ALIAS_FIELDS,
    DEFINITION_FIELDS,
    MAIN_COLLECTIONS,
    MAIN_RELATION_TYPES,
    RELATION_TYPES,
)
from lexarium.domain.vocabulary import Vocabulary
from lexarium.formats.foreign_ids import format_id
from lexarium.formats.parsed import ParsedRecord, ParseError, ReadOptions, WriteOptions
from lexarium.formats.reading import open_seekable
from lexarium.formats.tables.cells import EMPTY_TEXT, escape_formula, join_aliases, join_values
from lexarium.formats.tables.dialect import SAMPLE_CHARS, detect_dialect, iter_rows
from lexarium.formats.tables.header import DEFINITION, count_known_titles, match_columns
from lexarium.formats.tables.rows import TableParser

_DELIMITERS = {"csv": ",", "tsv": "\t"}
# Spreadsheets read a CSV file as UTF-8 only with a byte order mark.
_BOM = {"csv": "\ufeff", "tsv": ""}
_CHUNK_CHARS = 1 << 16

_LEADING_COLUMNS = ("collection", "id", "name", DEFINITION, "alias", "aliases", "sources")
_FIELDS = [
    name
    for name in dict.fromkeys(name for collection in MAIN_COLLECTIONS.values() for name in collection.core_fields)
    if name not in _LEADING_COLUMNS and name not in DEFINITION_FIELDS | ALIAS_FIELDS
]
EXPORT_COLUMNS = [*_LEADING_COLUMNS, *_FIELDS, *MAIN_RELATION_TYPES, "state", "replaced_by"]


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
    columns, warnings = match_columns(titles, options.column_mapping, line)
    parser = TableParser(options, columns, titles)
    references = parser.collect_row_references(rows)
    if references:
        *_, rows = rewind()
        parser.index_referenced_rows(references, rows)
    *_, rows = rewind()
    for line_number, row in rows:
        yield parser.parse_row(line_number, row)
    yield from parser.warnings.to_parsed_records(*warnings)


def write(records: Iterable[Record], options: WriteOptions) -> Iterator[bytes]:
    """Yield a table in UTF-8 with a row per record."""
    buffer = io.StringIO(newline="")
    buffer.write(_BOM[options.format.name])
    writer = csv.writer(buffer, delimiter=_DELIMITERS[options.format.name], lineterminator="\r\n")
    writer.writerow(EXPORT_COLUMNS)
    for record in records:
        writer.writerow(_format_row(record, options.vocabulary))
        if buffer.tell() > _CHUNK_CHARS:
            yield buffer.getvalue().encode()
            buffer.seek(0)
            buffer.truncate()
    yield buffer.getvalue().encode()


def _format_row(record: Record, vocabulary: Vocabulary) -> Sequence[str | int]:
    fields, targets_by_relation = record.fields, record.relation_targets
    leading_texts = (
        format_id(record.id, vocabulary),
        fields["name"],
        record.definition,
        "" if record.stored_aliases else fields.get(record.collection.alias_field or "", ""),
        join_aliases(record.aliases if record.stored_aliases else (), vocabulary.language),
        join_values(record.sources),
    )
    targets = (_format_targets(name, targets_by_relation.get(name, ()), vocabulary) for name in MAIN_RELATION_TYPES)
    return [
        record.collection.name,
        *map(escape_formula, leading_texts),
        *(_format_field(record, name) for name in _FIELDS),
        *map(escape_formula, targets),
        record.state,
        escape_formula(format_id(record.replaced_by, vocabulary)) if record.replaced_by is not None else "",
    ]


def _format_field(record: Record, name: str) -> str | int:
    value: str | int | None = record.fields[name] if name in record.collection.core_fields else None
    if value is None or isinstance(value, int):
        return "" if value is None else value
    # For fields that the server sets, an empty cell states nothing, so that rows can be added by hand.
    return escape_formula(value) if value or name in record.collection.editable_fields else EMPTY_TEXT


def _format_targets(relation: str, targets: Iterable[str], vocabulary: Vocabulary) -> str:
    is_external = RELATION_TYPES[relation].is_mapping
    return join_values(target if is_external else format_id(target, vocabulary) for target in targets)
