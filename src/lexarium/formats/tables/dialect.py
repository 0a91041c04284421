"""Detect the dialect of a table, and read its rows with their line numbers."""

import csv
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import TextIO

from lexarium.formats.parsed import ParseError

# A longer cell has a quote that is never closed.
MAX_CELL_CHARS = 16 << 20
MAX_ROW_CHARS = 32 << 20
# Lines or cells of one row: each takes many times its size in memory.
MAX_ROW_CELLS = 1_000_000
# This is global, but nothing else in the process reads such rows.
csv.field_size_limit(MAX_CELL_CHARS)

# The beginning of a table, from which the dialect is detected.
SAMPLE_CHARS = 1 << 16
_MAX_SAMPLE_ROWS = 200
_DELIMITERS = ",;\t|"
_SEP_LINE = re.compile(r"\s*\"?sep=(.)\"?[ \t]*(\r\n|\r|\n|\Z)", re.IGNORECASE)
_UNCLOSED_QUOTE_ERROR = "unexpected end of data"

# Counts the known column titles.
HeaderScorer = Callable[[Sequence[str]], int]


@dataclass(frozen=True)
class CsvDialect(csv.excel):
    """The delimiter and quoting of a table."""

    delimiter: str
    quotechar: str = '"'
    # Escapes a quote within a cell; None: such a quote is doubled.
    escapechar: str | None = None
    doublequote: bool = True
    # Whether a space follows each delimiter.
    skipinitialspace: bool = False
    strict: bool = True
    # Whether the first line only states the delimiter, as some spreadsheets write it.
    has_sep_line: bool = False


def detect_dialect(sample: str, default_delimiter: str, count_known_titles: HeaderScorer) -> CsvDialect:
    """Return the dialect that fits the first SAMPLE_CHARS characters of a table best.

    The best one gives known titles in the first row, and rows of the same width. Frequent characters are no evidence:
    cells may contain any text.
    """
    sep_line = _SEP_LINE.match(sample)
    is_truncated = len(sample) == SAMPLE_CHARS
    sample = sample[sep_line.end() :] if sep_line else sample
    delimiters = sep_line.group(1) if sep_line else default_delimiter + _DELIMITERS.replace(default_delimiter, "")
    styles = [CsvDialect(default_delimiter)]
    if '\\"' in sample:
        styles.append(CsvDialect(default_delimiter, escapechar="\\", doublequote=False))
    if sample.lstrip().startswith("'"):
        styles.insert(0, CsvDialect(default_delimiter, quotechar="'"))
    candidates = [
        replace(style, delimiter=delimiter, has_sep_line=bool(sep_line)) for delimiter in delimiters for style in styles
    ]
    best = max(candidates, key=lambda dialect: _score_dialect(dialect, sample, is_truncated, count_known_titles))
    header = next(iter(_sample_rows(best, sample, is_truncated)[0]), [])
    return replace(best, skipinitialspace=len(header) > 1 and all(cell.startswith(" ") for cell in header[1:]))


def _score_dialect(
    dialect: CsvDialect, sample: str, is_truncated: bool, count_known_titles: HeaderScorer
) -> tuple[int, bool, float, int]:
    rows, is_valid = _sample_rows(dialect, sample, is_truncated)
    header = rows[0] if rows else []
    same_width = sum(len(row) == len(header) for row in rows) / len(rows) if rows else 0
    # A title that contains a delimiter is probably several titles.
    titles = [title for title in header if not any(delimiter in title for delimiter in _DELIMITERS)]
    return count_known_titles(titles), is_valid, same_width, len(header)


def _sample_rows(dialect: CsvDialect, sample: str, is_truncated: bool) -> tuple[list[list[str]], bool]:
    """Return the first rows of a sample, and whether they are valid."""
    rows: list[list[str]] = []
    lines = re.findall(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+", sample)
    try:
        rows.extend(filter(any, islice(csv.reader(lines, dialect), _MAX_SAMPLE_ROWS)))
    except csv.Error as error:
        return rows, is_truncated and str(error) == _UNCLOSED_QUOTE_ERROR
    return rows, True


def iter_rows(text: TextIO, dialect: CsvDialect) -> Iterator[tuple[int, list[str]]]:
    """Yield each row that is not empty with the line on which it begins; raise ParseError."""
    lines = _LineSource(text, dialect.delimiter)
    if dialect.has_sep_line:
        next(lines)
    reader = csv.reader(lines, dialect)
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
    """The lines of a text; keeps those of the current row for error positions."""

    def __init__(self, text: TextIO, delimiter: str) -> None:
        self._text = text
        self._delimiter = delimiter
        self._row: list[str] = []
        self._length = self._cells = 0
        self._line_number = 0
        # The first line of the current row.
        self.first_line = 1

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
        """Begin a row with the next line."""
        self._row.clear()
        self._length = self._cells = 0
        self.first_line = self._line_number + 1

    def error(self, dialect: CsvDialect, error: str) -> ParseError:
        """Return the error of the current row, at the quote that caused it."""
        position, is_closed = _locate_quote_error("".join(self._row), dialect)
        line = self.first_line
        for text in self._row:
            if position < len(text):
                break
            position -= len(text)
            line += 1
        if is_closed:
            escaping = "twice" if dialect.doublequote else f"as {dialect.escapechar}{dialect.quotechar}"
            message = "the end of the cell was expected after its closing quote"
            message += f"; a quote within a cell is written {escaping}"
        elif error == _UNCLOSED_QUOTE_ERROR:
            message = "the quote that begins here is never closed"
        else:
            message = f"a cell has more than {MAX_CELL_CHARS:,} characters"
            message += "; perhaps the quote that begins here is never closed"
        return ParseError(message, line, position + 1)


def _locate_quote_error(row: str, dialect: CsvDialect) -> tuple[int, bool]:
    """Return the position of the error: after the closing quote of a cell (True), or at an unclosed one (False)."""
    quote, delimiter = re.escape(dialect.quotechar), re.escape(dialect.delimiter)
    content = rf"[^{quote}]|{quote}{quote}" if dialect.doublequote else rf"[^{quote}\\]|\\."
    cell = re.compile(rf"(?:{quote}(?:{content})*+{quote}|(?!{quote})[^{delimiter}\r\n]*)", re.DOTALL)
    position = 0
    while match := cell.match(row, position):
        position = match.end()
        if row[position : position + 1] != dialect.delimiter:
            return position, True
        position += 1
    return position, False
