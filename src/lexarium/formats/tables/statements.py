"""Write the records of any vocabulary as a table: the reverse of `resources`."""

from collections.abc import Iterable, Iterator
from tempfile import SpooledTemporaryFile

import orjson

from lexarium.domain.identifiers import get_local_id
from lexarium.domain.record import Record
from lexarium.domain.schema.collections import Collection
from lexarium.domain.statement import Node
from lexarium.domain.vocabulary import Vocabulary
from lexarium.formats.tables.cells import escape_formula, format_line, join_values
from lexarium.formats.tables.columns import (
    COLLECTION,
    DEFINITION,
    ID,
    IRI,
    NAME,
    REPLACED_BY,
    STATE,
    format_name,
    format_title,
    is_single,
    list_names,
    split_title,
)

_MAX_MEMORY_BYTES = 8 << 20


def write_statements(records: Iterable[Record], delimiter: str, vocabulary: Vocabulary) -> Iterator[bytes]:
    """Yield a table with a row per record, line by line.

    Nested nodes and qualifiers have no column. A title occurs as often as a record has texts below it.
    """
    writer = _RowFormatter(vocabulary)
    with SpooledTemporaryFile(_MAX_MEMORY_BYTES) as rows:
        for record in records:
            rows.write(orjson.dumps(writer.format_row(record), option=orjson.OPT_APPEND_NEWLINE))
        rows.seek(0)
        sorted_titles = sorted(writer.widths, key=writer.get_order)
        titles = [title for title in sorted_titles for _ in range(writer.widths[title])]
        first_columns = {title: titles.index(title) for title in sorted_titles}
        empty_row = [""] * len(titles)
        yield format_line(titles, delimiter)
        for line in rows:
            row = empty_row.copy()
            for title, cells in orjson.loads(line).items():
                column = first_columns[title]
                row[column : column + len(cells)] = cells
            yield format_line(row, delimiter)


class _RowFormatter:
    """Format the cells of records, and remember the titles that they need."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        # Columns with each title.
        self.widths: dict[str, int] = {COLLECTION: 1, ID: 1}
        self._places: dict[str, int] = {}
        self._collections: set[Collection] = set()
        # Name of the columns of a predicate, and whether their cells are lists.
        self._columns: dict[tuple[Collection, str], tuple[str, bool]] = {}

    def format_row(self, record: Record) -> dict[str, list[str]]:
        """Return the cells of a record by title."""
        values: dict[str, list[str]] = {}
        lists: set[str] = set()
        collection = record.collection
        for predicate, value, _ in record.own_statements:
            if isinstance(value, Node) or not value[0].strip():
                continue
            column = self._columns.get((collection, predicate)) or self._add_column(collection, predicate)
            title = format_title(column[0], predicate, value, collection)
            texts = values.setdefault(title, [])
            # Statements that differ in their qualifiers are one value here.
            if value[0] not in texts:
                texts.append(value[0])
            if column[1]:
                lists.add(title)
        cells = {title: [join_values(texts)] if title in lists else texts for title, texts in values.items()}
        row = {COLLECTION: [collection.local_name], ID: [record.local_id], **cells, STATE: [str(record.state)]}
        if record.iri is not None:
            row[IRI] = [record.iri]
        if record.replaced_by is not None:
            row[REPLACED_BY] = [get_local_id(record.replaced_by)]
        self._add_titles(collection, row)
        return {title: [*map(escape_formula, texts)] for title, texts in row.items()}

    def _add_titles(self, collection: Collection, row: dict[str, list[str]]) -> None:
        if collection not in self._collections:
            self._collections.add(collection)
            for place, name in enumerate(list_names(collection)):
                self._places.setdefault(name, place)
        for title, texts in row.items():
            if len(texts) > self.widths.get(title, 0):
                self.widths[title] = len(texts)

    def _add_column(self, collection: Collection, predicate: str) -> tuple[str, bool]:
        column = format_name(predicate, collection, self._vocabulary), not is_single(predicate, collection)
        self._columns[collection, predicate] = column
        return column

    def get_order(self, title: str) -> tuple[int, int, str]:
        """Return the place of a title: ids, names, definitions, other slots, other predicates, state."""
        name = split_title(title).name
        first = (COLLECTION, ID, IRI, NAME, DEFINITION)
        if name in first:
            return first.index(name), 0, title
        if title in (STATE, REPLACED_BY):
            return len(first) + 1, 0, "" if title == STATE else title
        return len(first), self._places.get(name, len(self._places)), title
