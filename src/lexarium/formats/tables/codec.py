"""Tables, CSV and TSV: read whatever program saved them, written so that every program reads them."""

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import BinaryIO, TextIO

from lexarium.domain.record import Record
from lexarium.domain.schema.collections import COLLECTIONS, DEFINITION_FIELDS
from lexarium.domain.schema.relation_types import RELATION_TYPES
from lexarium.domain.vocabulary import Vocabulary
from lexarium.formats.foreign_ids import format_id
from lexarium.formats.parsed import ParsedRecord, ParseError, ReadOptions
from lexarium.formats.reading import open_seekable
from lexarium.formats.registry import Format
from lexarium.formats.tables.cells import EMPTY_TEXT, escape_formula, join_aliases, join_values
from lexarium.formats.tables.dialect import SAMPLE_CHARS, CsvDialect, detect_dialect, iter_rows
from lexarium.formats.tables.header import DEFINITION, count_known_titles, match_columns
from lexarium.formats.tables.rows import TableParser

_DELIMITERS = {"csv": ",", "tsv": "\t"}
_BOM = {"csv": "\ufeff", "tsv": ""}
"""Spreadsheets take a CSV file for UTF-8 only where it begins with this mark."""
_CHUNK_CHARS = 1 << 16

_LEADING_COLUMNS = ("collection", "id", "name", DEFINITION, "alias", "aliases", "sources")
_FIELDS = [
    name
    for name in dict.fromkeys(name for collection in COLLECTIONS.values() for name in collection.fields)
    if name not in _LEADING_COLUMNS and name not in DEFINITION_FIELDS
]
EXPORT_COLUMNS = [*_LEADING_COLUMNS, *_FIELDS, *RELATION_TYPES, "state", "replaced_by"]
"""The columns that are written, of whichever collection the records are."""


def read(stream: BinaryIO, options: ReadOptions) -> Iterator[ParsedRecord]:
    """The records of a table, a row each, and last what is to be told of it as a whole.

    In memory are only the names by which rows name each other.
    """
    with open_seekable(stream) as file:
        text = io.TextIOWrapper(file, encoding="utf-8-sig", newline="")
        try:
            yield from _parse_table(text, options)
        finally:
            text.detach()


def _parse_table(text: TextIO, options: ReadOptions) -> Iterator[ParsedRecord]:
    default_delimiter = _DELIMITERS[options.format.name]
    dialect = detect_dialect(
        text.read(SAMPLE_CHARS), default_delimiter, partial(count_known_titles, column_mapping=options.column_mapping)
    )
    line, titles = next(_rewind_rows(text, dialect), (0, []))
    if not titles:
        raise ParseError("the file is empty; a line that names columns was expected", 1, 1)
    columns, warnings = match_columns(titles, options.column_mapping, line)
    parser = TableParser(options, columns, titles)
    references = parser.collect_row_references(_data_rows(text, dialect))
    if references:
        parser.index_referenced_rows(references, _data_rows(text, dialect))
    for line_number, row in _data_rows(text, dialect):
        yield parser.parse_row(line_number, row)
    if warnings := [*warnings, *parser.warnings.messages()]:
        yield ParsedRecord(0, warnings=warnings)


def _rewind_rows(text: TextIO, dialect: CsvDialect) -> Iterator[tuple[int, list[str]]]:
    text.seek(0)
    return iter_rows(text, dialect)


def _data_rows(text: TextIO, dialect: CsvDialect) -> Iterator[tuple[int, list[str]]]:
    rows = _rewind_rows(text, dialect)
    next(rows)
    return rows


def write(format: Format, vocabulary: Vocabulary, records: Iterable[Record]) -> Iterator[bytes]:
    """A table with a row a record, in UTF-8, as RFC 4180 has it."""
    buffer = io.StringIO(newline="")
    buffer.write(_BOM[format.name])
    writer = csv.writer(buffer, delimiter=_DELIMITERS[format.name], lineterminator="\r\n")
    writer.writerow(EXPORT_COLUMNS)
    for record in records:
        writer.writerow(_format_row(record, vocabulary))
        if buffer.tell() > _CHUNK_CHARS:
            yield buffer.getvalue().encode()
            buffer.seek(0)
            buffer.truncate()
    yield buffer.getvalue().encode()


def _format_row(record: Record, vocabulary: Vocabulary) -> Sequence[str | int]:
    fields, targets_by_relation = record.fields, record.relation_targets
    return [
        record.collection.name,
        escape_formula(format_id(record.id, vocabulary)),
        escape_formula(fields["name"]),
        escape_formula(fields.get(record.collection.definition_field or "", "")),
        escape_formula(fields.get("alias", "")) if record.stored_aliases is None else "",
        escape_formula(join_aliases(record.stored_aliases or (), vocabulary.language)),
        escape_formula(join_values(record.sources)),
        *(_format_field(record, name) for name in _FIELDS),
        *(
            escape_formula(_format_targets(name, targets_by_relation.get(name, ()), vocabulary))
            for name in RELATION_TYPES
        ),
        record.state,
        "" if record.replaced_by is None else escape_formula(format_id(record.replaced_by, vocabulary)),
    ]


def _format_field(record: Record, name: str) -> str | int:
    value: str | int | None = record.fields.get(name)
    if value is None or isinstance(value, int):
        return "" if value is None else value
    # Of the server's own fields an empty cell says nothing, so that rows can be added by hand.
    return escape_formula(value) if value or name in record.collection.editable_fields else EMPTY_TEXT


def _format_targets(relation: str, targets: Iterable[str], vocabulary: Vocabulary) -> str:
    is_external = RELATION_TYPES[relation].target_collection is None
    return join_values(target if is_external else format_id(target, vocabulary) for target in targets)
