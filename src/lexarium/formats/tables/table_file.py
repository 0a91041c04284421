"""Tables that are read as resources: rows by line, cells by title."""

import io
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import BinaryIO, NamedTuple

from lexarium.domain.identity.prefixes import load_bundled
from lexarium.domain.record import RecordState
from lexarium.domain.schema.predicates import NAMESPACES, contract_predicate
from lexarium.domain.vocabulary import Vocabulary
from lexarium.formats.parsed import ParseError
from lexarium.formats.reading import copy_seekable
from lexarium.formats.tables.cells import unescape_formula
from lexarium.formats.tables.dialect import SAMPLE_CHARS, detect_dialect, iter_rows

# Lines before the header that begin with it hold metadata.
_COMMENT = "#"
_MAX_COMMENT_CHARS = 1 << 20
_WORD_SEPARATORS = re.compile(r"\W+")


class TableRow(NamedTuple):
    """Row of a table, with a cell for each column; those that are missing at its end are empty."""

    line: int
    cells: list[str]
    # Why its cells cannot be read, if they cannot.
    problem: str = ""


class TableFile:
    """Table that can be read several times."""

    def __init__(self, stream: BinaryIO, is_known: Callable[[str], bool], *, has_comments: bool = False) -> None:
        """Read the titles of a table, given which ones are known; raise ParseError."""
        self._text = io.TextIOWrapper(copy_seekable(stream), encoding="utf-8-sig", newline="")
        self.close = self._text.close
        # Text of the comments, without the sign that begins them.
        self.comments = ""
        self._first_line = 0
        self._start = 0
        if has_comments:
            self._read_comments()
        sample = self._text.read(SAMPLE_CHARS)
        self._dialect = detect_dialect(sample, ",", lambda titles: sum(map(is_known, map(str.strip, titles))))
        self.title_line, titles = next(self._iter_rows(), (0, []))
        if not titles:
            raise ParseError("the file is empty; a line that names columns was expected", self._first_line + 1, 1)
        self.titles: Sequence[str] = [title.strip() for title in titles]

    def _read_comments(self) -> None:
        lines: list[str] = []
        size = 0
        while (line := self._text.readline(_MAX_COMMENT_CHARS)).startswith(_COMMENT):
            lines.append(line.removeprefix(_COMMENT))
            size += len(line)
            if size > _MAX_COMMENT_CHARS:
                raise ParseError(f"the metadata have more than {_MAX_COMMENT_CHARS:,} characters", len(lines), 1)
            self._start = self._text.tell()
        self.comments, self._first_line = "".join(lines), len(lines)
        self._text.seek(self._start)

    def _iter_rows(self) -> Iterator[tuple[int, list[str]]]:
        self._text.seek(self._start)
        try:
            for line, row in iter_rows(self._text, self._dialect):
                yield line + self._first_line, row
        except ParseError as error:
            raise ParseError(error.reason, error.line + self._first_line, error.column) from None

    def iter_rows(self) -> Iterator[TableRow]:
        """Yield the rows below the titles; raise ParseError."""
        width = len(self.titles)
        rows = self._iter_rows()
        next(rows)
        for line, cells in rows:
            problem = ""
            if any(cells[width:]):
                problem = f"{cells[0][:100]}: the row has {len(cells)} cells, but the first line names {width} columns"
            yield TableRow(line, [unescape_formula(cell) for cell in cells] + [""] * (width - len(cells)), problem)


def find_columns(titles: Sequence[str], known: Mapping[str, str]) -> dict[str, int]:
    """Return the first column of each meaning, given the meanings by title in lower case with underscores."""
    columns: dict[str, int] = {}
    for index, title in enumerate(titles):
        meaning = known.get(fold_title(title))
        if meaning is not None:
            columns.setdefault(meaning, index)
    return columns


def fold_title(title: str) -> str:
    """Return a title in lower case with underscores."""
    return _WORD_SEPARATORS.sub("_", title.strip().casefold())


def parse_id(text: str, vocabulary: Vocabulary) -> str:
    """Return the id of a record in a vocabulary, given as an id or an IRI."""
    text = text.strip()
    own_id = vocabulary.parse_record_iri(text)
    return own_id if own_id is not None else vocabulary.contract_iri(text) if "://" in text else text


def parse_predicate(text: str, vocabulary: Vocabulary) -> str | None:
    """Return a predicate, given as an IRI or as a CURIE with a known prefix; None if it is neither."""
    text = text.strip()
    prefix, colon, local = text.partition(":")
    if not colon or not local:
        return None
    if local.startswith("//") or prefix.lower() == "urn":
        return contract_predicate(text)
    if prefix in NAMESPACES:
        return text
    namespace = vocabulary.prefixes.get(prefix) or load_bundled().find_namespace(prefix)
    return None if namespace is None else contract_predicate(namespace + local)


def name_property(title: str, vocabulary: Vocabulary) -> str:
    """Return the predicate of a column that nothing else has, in the namespace of a vocabulary."""
    own = vocabulary.base if vocabulary.has_base else f"urn:lexarium:vocabulary:{vocabulary.slug}:"
    namespace = next(iter(vocabulary.prefixes.values()), own)
    return contract_predicate(namespace + _WORD_SEPARATORS.sub("_", title.strip()).strip("_"))


def parse_state(text: str) -> RecordState | None:
    """Return the state that a text names, or None."""
    folded = text.strip().casefold()
    return RecordState(folded) if folded in [*RecordState] else None
