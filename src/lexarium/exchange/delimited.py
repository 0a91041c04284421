"""Rows of text: which signs part and quote their cells is found out, and where each row begins is told."""

import csv
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, TextIO

from lexarium.exchange.incoming import Malformed

LONGEST_CELL = 16 << 20
"""In characters: past this a quote is taken to be one that nobody closed."""
LONGEST_ROW = 32 << 20
"""In characters, of all the lines that a row has."""
MOST_CELLS = 1_000_000
"""And so many lines, or signs between cells, may be in one row: each takes many times its own size in memory."""
# Of the whole process, but no other part of it reads such rows.
csv.field_size_limit(LONGEST_CELL)

SAMPLE = 1 << 16
"""How many characters are looked at to find the signs out."""
_SAMPLED_ROWS = 200
_DELIMITERS = ",;\t|"
_TOLD = re.compile(r"\s*\"?sep=(.)\"?[ \t]*(\r\n|\r|\n|\Z)", re.IGNORECASE)
_UNFINISHED = "unexpected end of data"

Count = Callable[[Sequence[str]], int]
"""Tells how many of these are names of columns."""


@dataclass(frozen=True)
class Signs:
    """How cells are parted and quoted."""

    delimiter: str
    quote: str = '"'
    escape: str | None = None
    """What stands before a quote within a cell; None: such a quote is written twice."""
    spaced: bool = False
    """Whether a space follows each delimiter."""
    told: bool = False
    """Whether the first line says only what the delimiter is, as spreadsheets have it."""

    def reader(self, lines: Iterator[str]) -> Any:
        """What reads rows so."""
        return csv.reader(
            lines,
            delimiter=self.delimiter,
            quotechar=self.quote,
            doublequote=self.escape is None,
            escapechar=self.escape,
            skipinitialspace=self.spaced,
            strict=True,
        )


def signs_of(sample: str, usual: str, known: Count) -> Signs:
    """The signs by which the first `SAMPLE` characters of a table read best.

    They do where the first row names columns, and the others are as wide. Nothing is guessed from letters, or from
    what is frequent: cells may hold any text.
    """
    told = _TOLD.match(sample)
    cut = len(sample) == SAMPLE
    sample = sample[told.end() :] if told else sample
    delimiters = told.group(1) if told else usual + _DELIMITERS.replace(usual, "")
    styles = [Signs(usual)]
    if '\\"' in sample:
        styles.append(Signs(usual, escape="\\"))
    if sample.lstrip().startswith("'"):
        styles.insert(0, Signs(usual, quote="'"))
    candidates = [replace(style, delimiter=each, told=bool(told)) for each in delimiters for style in styles]
    # The first of those that are equally good.
    best = max(candidates, key=lambda signs: _score(signs, sample, cut, known))
    header = next(iter(_rows_of(best, sample, cut)[0]), [])
    return replace(best, spaced=len(header) > 1 and all(cell.startswith(" ") for cell in header[1:]))


def _score(signs: Signs, sample: str, cut: bool, known: Count) -> tuple[int, bool, float, int]:
    rows, sound = _rows_of(signs, sample, cut)
    header = rows[0] if rows else []
    alike = sum(len(row) == len(header) for row in rows) / len(rows) if rows else 0
    # What still holds a delimiter is more likely several names.
    titles = [title for title in header if not any(sign in title for sign in _DELIMITERS)]
    return known(titles), sound, alike, len(header)


def _rows_of(signs: Signs, sample: str, cut: bool) -> tuple[list[list[str]], bool]:
    """The first rows of a sample, and whether they could be read."""
    rows: list[list[str]] = []
    lines = re.findall(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+", sample)
    try:
        for row in islice(signs.reader(iter(lines)), _SAMPLED_ROWS):
            if any(row):
                rows.append(row)
    except csv.Error as error:
        return rows, cut and str(error) == _UNFINISHED
    return rows, True


def rows(text: TextIO, signs: Signs) -> Iterator[tuple[int, list[str]]]:
    """Every row with the line on which it begins, but for rows without a word. Raises `Malformed`."""
    lines = _Lines(text, signs.delimiter)
    if signs.told:
        next(lines)
    reader = signs.reader(lines)
    while True:
        lines.begin()
        try:
            row = next(reader, None)
        except csv.Error as error:
            raise lines.malformed(signs, str(error)) from None
        if row is None:
            return
        if any(row):
            yield lines.first, row


class _Lines:
    """The lines of a text, and of those the ones that the present row is made of."""

    def __init__(self, text: TextIO, delimiter: str) -> None:
        self._text = text
        self._delimiter = delimiter
        self._row: list[str] = []
        self._length = self._cells = 0
        self._number = 0
        self.first = 1
        """The line on which the present row begins."""

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = self._text.readline(LONGEST_CELL)
        if not line:
            raise StopIteration
        self._number += 1
        if len(line) == LONGEST_CELL:
            raise Malformed(f"the line has more than {LONGEST_CELL:,} characters", self._number, 1)
        self._row.append(line)
        self._length += len(line)
        self._cells += line.count(self._delimiter)
        if self._length > LONGEST_ROW or max(self._cells, len(self._row)) > MOST_CELLS:
            what = f"a row has more than {LONGEST_ROW:,} characters, or {MOST_CELLS:,} lines or cells"
            raise Malformed(f"{what}; perhaps a quote in it is never closed", self.first, 1)
        return line

    def begin(self) -> None:
        """What follows is another row."""
        self._row.clear()
        self._length = self._cells = 0
        self.first = self._number + 1

    def malformed(self, signs: Signs, error: str) -> Malformed:
        """The error in the present row, at the quote that made it."""
        place, closed = _culprit("".join(self._row), signs)
        line = self.first
        for text in self._row:
            if place < len(text):
                break
            place -= len(text)
            line += 1
        if closed:
            within = "twice" if signs.escape is None else f"as {signs.escape}{signs.quote}"
            what = (
                f"the end of the cell was expected after its closing quote; a quote within a cell is written {within}"
            )
        elif error == _UNFINISHED:
            what = "the quote that begins here is never closed"
        else:
            what = (
                f"a cell has more than {LONGEST_CELL:,} characters; perhaps the quote that begins here is never closed"
            )
        return Malformed(what, line, place + 1)


def _culprit(row: str, signs: Signs) -> tuple[int, bool]:
    """Where a row goes wrong: after a quote that closes a cell, else at one that is not closed."""
    quote, delimiter = re.escape(signs.quote), re.escape(signs.delimiter)
    within = rf"[^{quote}]|{quote}{quote}" if signs.escape is None else rf"[^{quote}\\]|\\."
    cell = re.compile(rf"(?:{quote}(?:{within})*+{quote}|(?!{quote})[^{delimiter}\r\n]*)", re.DOTALL)
    place = 0
    while match := cell.match(row, place):
        place = match.end()
        if row[place : place + 1] != signs.delimiter:
            return place, True
        place += 1
    return place, False
