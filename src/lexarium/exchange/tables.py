"""Tables, CSV and TSV: read whatever program saved them, written so that every program reads them."""

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import BinaryIO, TextIO

from lexarium.domain.about import About
from lexarium.domain.changes import Whole
from lexarium.domain.collections import COLLECTIONS, DEFINITIONS
from lexarium.domain.relations import RELATIONS
from lexarium.exchange.cells import EMPTY, guarded, joined, joined_aliases
from lexarium.exchange.columns import DEFINITION, columns_of, known_among
from lexarium.exchange.delimited import SAMPLE, Signs, rows, signs_of
from lexarium.exchange.formats import Format
from lexarium.exchange.incoming import Incoming, Malformed, Reading
from lexarium.exchange.notions import told_id
from lexarium.exchange.table_rows import Table
from lexarium.exchange.twice import kept

_DELIMITERS = {"csv": ",", "tsv": "\t"}
_MARK = {"csv": "\ufeff", "tsv": ""}
"""Spreadsheets take a CSV file for UTF-8 only where it begins with this mark."""
_PIECE = 1 << 16

_FIRST = ("collection", "id", "name", DEFINITION, "alias", "aliases", "sources")
_FIELDS = [
    name
    for name in dict.fromkeys(name for collection in COLLECTIONS.values() for name in collection.fields)
    if name not in _FIRST and name not in DEFINITIONS
]
HEADER = [*_FIRST, *_FIELDS, *RELATIONS, "state", "replaced_by"]
"""The columns that are written, of whichever collection the records are."""


def read(stream: BinaryIO, reading: Reading) -> Iterator[Incoming]:
    """The records of a table, a row each, and last what is to be told of it as a whole.

    In memory are only the names by which rows name each other.
    """
    with kept(stream) as file:
        text = io.TextIOWrapper(file, encoding="utf-8-sig", newline="")
        try:
            yield from _records(text, reading)
        finally:
            text.detach()


def _records(text: TextIO, reading: Reading) -> Iterator[Incoming]:
    usual = _DELIMITERS[reading.format.name]
    signs = signs_of(text.read(SAMPLE), usual, partial(known_among, map=reading.map))
    line, titles = next(_again(text, signs), (0, []))
    if not titles:
        raise Malformed("the file is empty; a line that names columns was expected", 1, 1)
    columns, warnings = columns_of(titles, reading.map, line)
    table = Table(reading, columns, titles)
    wanted = table.wanted(_body(text, signs))
    if wanted:
        table.find(wanted, _body(text, signs))
    for number, row in _body(text, signs):
        yield table.incoming(number, row)
    if warnings := [*warnings, *table.remarks.sentences()]:
        yield Incoming(0, warnings=warnings)


def _again(text: TextIO, signs: Signs) -> Iterator[tuple[int, list[str]]]:
    text.seek(0)
    return rows(text, signs)


def _body(text: TextIO, signs: Signs) -> Iterator[tuple[int, list[str]]]:
    body = _again(text, signs)
    next(body)
    return body


def write(format: Format, about: About, wholes: Iterable[Whole]) -> Iterator[bytes]:
    """A table with a row a record, in UTF-8, as RFC 4180 has it."""
    piece = io.StringIO(newline="")
    piece.write(_MARK[format.name])
    writer = csv.writer(piece, delimiter=_DELIMITERS[format.name], lineterminator="\r\n")
    writer.writerow(HEADER)
    for whole in wholes:
        writer.writerow(_row(whole, about))
        if piece.tell() > _PIECE:
            yield piece.getvalue().encode()
            piece.seek(0)
            piece.truncate()
    yield piece.getvalue().encode()


def _row(whole: Whole, about: About) -> Sequence[str | int]:
    fields, related = whole.fields, whole.relations
    return [
        whole.collection.name,
        guarded(told_id(whole.id, about)),
        guarded(fields["name"]),
        guarded(fields.get(whole.collection.definition or "", "")),
        guarded(fields.get("alias", "")) if whole.aliases is None else "",
        guarded(joined_aliases(whole.aliases or (), about.language)),
        guarded(joined(whole.sources)),
        *(_field(whole, name) for name in _FIELDS),
        *(guarded(_targets(name, related.get(name, ()), about)) for name in RELATIONS),
        whole.state,
        "" if whole.replaced_by is None else guarded(told_id(whole.replaced_by, about)),
    ]


def _field(whole: Whole, name: str) -> str | int:
    value: str | int | None = whole.fields.get(name)
    if value is None or isinstance(value, int):
        return "" if value is None else value
    # Of the server's own fields an empty cell says nothing, so that rows can be added by hand.
    return guarded(value) if value or name in whole.collection.written else EMPTY


def _targets(relation: str, targets: Iterable[str], about: About) -> str:
    outside = RELATIONS[relation].target is None
    return joined(target if outside else told_id(target, about) for target in targets)
