"""Rows of text: which signs part and quote their cells is found out, and where each row begins is told."""

import csv
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, TextIO

from lexarium.formats.parsed import ParseError

MAX_CELL_CHARS = 16 << 20
"""In characters: past this a quote is taken to be one that nobody closed."""
MAX_ROW_CHARS = 32 << 20
"""In characters, of all the lines that a row has."""
MAX_ROW_CELLS = 1_000_000
"""And so many lines, or signs between cells, may be in one row: each takes many times its own size in memory."""
# Of the whole process, but no other part of it reads such rows.
csv.field_size_limit(MAX_CELL_CHARS)

SAMPLE_CHARS = 1 << 16
"""How many characters are looked at to find the signs out."""
_MAX_SAMPLE_ROWS = 200
_DELIMITERS = ",;\t|"
_SEP_LINE = re.compile(r"\s*\"?sep=(.)\"?[ \t]*(\r\n|\r|\n|\Z)", re.IGNORECASE)
_UNCLOSED_QUOTE_ERROR = "unexpected end of data"

HeaderScorer = Callable[[Sequence[str]], int]
"""Tells how many of these are names of columns."""


@dataclass(frozen=True)
class CsvDialect:
    """How cells are parted and quoted."""

    delimiter: str
    quote: str = '"'
    escape: str | None = None
    """What stands before a quote within a cell; None: such a quote is written twice."""
    skip_initial_space: bool = False
    """Whether a space follows each delimiter."""
    has_sep_line: bool = False
    """Whether the first line says only what the delimiter is, as spreadsheets have it."""

    def make_reader(self, lines: Iterator[str]) -> Any:
        """What reads rows so."""
        return csv.reader(
            lines,
            delimiter=self.delimiter,
            quotechar=self.quote,
            doublequote=self.escape is None,
            escapechar=self.escape,
            skipinitialspace=self.skip_initial_space,
            strict=True,
        )


def detect_dialect(sample: str, default_delimiter: str, count_known_titles: HeaderScorer) -> CsvDialect:
    """The signs by which the first `SAMPLE` characters of a table read best.

    They do where the first row names columns, and the others are as wide. Nothing is guessed from letters, or from
    what is frequent: cells may hold any text.
    """
    sep_line = _SEP_LINE.match(sample)
    is_truncated = len(sample) == SAMPLE_CHARS
    sample = sample[sep_line.end() :] if sep_line else sample
    delimiters = sep_line.group(1) if sep_line else default_delimiter + _DELIMITERS.replace(default_delimiter, "")
    styles = [CsvDialect(default_delimiter)]
    if '\\"' in sample:
        styles.append(CsvDialect(default_delimiter, escape="\\"))
    if sample.lstrip().startswith("'"):
        styles.insert(0, CsvDialect(default_delimiter, quote="'"))
    candidates = [
        replace(style, delimiter=delimiter, has_sep_line=bool(sep_line)) for delimiter in delimiters for style in styles
    ]
    # The first of those that are equally good.
    best = max(candidates, key=lambda dialect: _score_dialect(dialect, sample, is_truncated, count_known_titles))
    header = next(iter(_sample_rows(best, sample, is_truncated)[0]), [])
    return replace(best, skip_initial_space=len(header) > 1 and all(cell.startswith(" ") for cell in header[1:]))


def _score_dialect(
    dialect: CsvDialect, sample: str, is_truncated: bool, count_known_titles: HeaderScorer
) -> tuple[int, bool, float, int]:
    rows, is_valid = _sample_rows(dialect, sample, is_truncated)
    header = rows[0] if rows else []
    same_width = sum(len(row) == len(header) for row in rows) / len(rows) if rows else 0
    # What still holds a delimiter is more likely several names.
    titles = [title for title in header if not any(delimiter in title for delimiter in _DELIMITERS)]
    return count_known_titles(titles), is_valid, same_width, len(header)


def _sample_rows(dialect: CsvDialect, sample: str, is_truncated: bool) -> tuple[list[list[str]], bool]:
    """The first rows of a sample, and whether they could be read."""
    rows: list[list[str]] = []
    lines = re.findall(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+", sample)
    try:
        for row in islice(dialect.make_reader(iter(lines)), _MAX_SAMPLE_ROWS):
            if any(row):
                rows.append(row)
    except csv.Error as error:
        return rows, is_truncated and str(error) == _UNCLOSED_QUOTE_ERROR
    return rows, True


def iter_rows(text: TextIO, dialect: CsvDialect) -> Iterator[tuple[int, list[str]]]:
    """Every row with the line on which it begins, but for rows without a word. Raises `Malformed`."""
    lines = _LineSource(text, dialect.delimiter)
    if dialect.has_sep_line:
        next(lines)
    reader = dialect.make_reader(lines)
    while True:
        lines.start_row()
        try:
            row = next(reader, None)
        except csv.Error as error:
            raise lines.error(dialect, str(error)) from None
        if row is None:
            return
        if any(row):
            yield lines.first_line, row


class _LineSource:
    """The lines of a text, and of those the ones that the present row is made of."""

    def __init__(self, text: TextIO, delimiter: str) -> None:
        self._text = text
        self._delimiter = delimiter
        self._row: list[str] = []
        self._length = self._cells = 0
        self._line_number = 0
        self.first_line = 1
        """The line on which the present row begins."""

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = self._text.readline(MAX_CELL_CHARS)
        if not line:
            raise StopIteration
        self._line_number += 1
        if len(line) == MAX_CELL_CHARS:
            raise ParseError(f"the line has more than {MAX_CELL_CHARS:,} characters", self._line_number, 1)
        self._row.append(line)
        self._length += len(line)
        self._cells += line.count(self._delimiter)
        if self._length > MAX_ROW_CHARS or max(self._cells, len(self._row)) > MAX_ROW_CELLS:
            message = f"a row has more than {MAX_ROW_CHARS:,} characters, or {MAX_ROW_CELLS:,} lines or cells"
            raise ParseError(f"{message}; perhaps a quote in it is never closed", self.first_line, 1)
        return line

    def start_row(self) -> None:
        """What follows is another row."""
        self._row.clear()
        self._length = self._cells = 0
        self.first_line = self._line_number + 1

    def error(self, dialect: CsvDialect, error: str) -> ParseError:
        """The error in the present row, at the quote that made it."""
        position, is_closed = _locate_quote_error("".join(self._row), dialect)
        line = self.first_line
        for text in self._row:
            if position < len(text):
                break
            position -= len(text)
            line += 1
        if is_closed:
            escaping = "twice" if dialect.escape is None else f"as {dialect.escape}{dialect.quote}"
            message = (
                f"the end of the cell was expected after its closing quote; a quote within a cell is written {escaping}"
            )
        elif error == _UNCLOSED_QUOTE_ERROR:
            message = "the quote that begins here is never closed"
        else:
            message = (
                f"a cell has more than {MAX_CELL_CHARS:,} characters; perhaps the quote that begins here"
                f" is never closed"
            )
        return ParseError(message, line, position + 1)


def _locate_quote_error(row: str, dialect: CsvDialect) -> tuple[int, bool]:
    """Where a row goes wrong: after a quote that closes a cell, else at one that is not closed."""
    quote, delimiter = re.escape(dialect.quote), re.escape(dialect.delimiter)
    content = rf"[^{quote}]|{quote}{quote}" if dialect.escape is None else rf"[^{quote}\\]|\\."
    cell = re.compile(rf"(?:{quote}(?:{content})*+{quote}|(?!{quote})[^{delimiter}\r\n]*)", re.DOTALL)
    position = 0
    while match := cell.match(row, position):
        position = match.end()
        if row[position : position + 1] != dialect.delimiter:
            return position, True
        position += 1
    return position, False
