"""`lexarium annotate`"""

import codecs
import csv
import io
import shutil
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from tempfile import TemporaryFile
from typing import Annotated, BinaryIO

import orjson
import typer
from rich.table import Table
from rich.text import Text

from lexarium.cli.options import CollectionsOption, DatabaseOption, opened
from lexarium.cli.output import OutputOption, write
from lexarium.cli.terminal import err, out, progress_bar
from lexarium.domain.collections import SEARCHED
from lexarium.domain.errors import Invalid, Problem
from lexarium.domain.progress import Progress
from lexarium.search.annotator import Annotator, Mention, Term
from lexarium.service.annotating import Annotating
from lexarium.service.views import annotation_views

app = typer.Typer(add_completion=False)

_PIECE = 1 << 16
_COLUMNS = ("document", "id", "name", "collection", "count")
_RUN = ("=", "+", "-", "@", "\t", "\r")
"""What a cell begins with that a spreadsheet would run."""

Document = tuple[str, Iterator[list[Mention]]]
"""The name of a text, and its mentions as they are found."""


@app.command()
def annotate(
    files: Annotated[list[Path], typer.Argument(metavar="FILE", help="Text files; - is standard input.")],
    json_output: Annotated[
        bool, typer.Option("--json", help="Print every mention: a line of JSON a document.")
    ] = False,
    csv_output: Annotated[bool, typer.Option("--csv", help="Print CSV also on a terminal.")] = False,
    output: OutputOption = None,
    collection: CollectionsOption = None,
    database: DatabaseOption = None,
) -> None:
    """Count the terms that texts mention by name or alias: CSV, a row a document and term.

    Terms are concepts, tasks and disorders, unless a collection is named. On a terminal a table is printed.
    """
    _refuse_unreadable(files)
    annotator = Annotating(opened(database, reading=True)).current().result()
    # A bar on the terminal that is written to would get between the lines.
    bar = progress_bar() if output is not None or not out.is_terminal else nullcontext(lambda what, done, total: None)
    documents = _documents(annotator, files, [each.name for each in collection or ()] or SEARCHED, bar)
    if json_output:
        write(output, _json_lines(documents))
    elif csv_output or output is not None or not out.is_terminal:
        write(output, _csv_rows(documents))
    else:
        _tell(documents)


def _refuse_unreadable(files: Sequence[Path]) -> None:
    problems = []
    for file in files:
        if file.is_fifo():
            continue  # Whoever writes to it writes once.
        try:
            with _bytes_of(file):
                pass
        except OSError as error:
            problems.append(Problem(str(file), f"cannot be read: {error.strerror or error}"))
    if problems:
        raise Invalid("Nothing was annotated.", problems)


def _documents(
    annotator: Annotator, files: Sequence[Path], collections: Sequence[str], bar: AbstractContextManager[Progress]
) -> Iterator[Document]:
    with bar as progress:
        for number, file in enumerate(files):
            progress("reading", number, len(files))
            with _bytes_of(file) as stream:
                yield (
                    "standard input" if str(file) == "-" else str(file),
                    annotator.mentions(_text(stream, file), collections),
                )
        progress("reading", len(files), len(files))


@contextmanager
def _bytes_of(file: Path) -> Iterator[BinaryIO]:
    if str(file) == "-":
        yield sys.stdin.buffer
    else:
        with file.open("rb") as stream:
            yield stream


def _text(stream: BinaryIO, file: Path) -> Iterator[str]:
    """The text of a file, which is read twice: only its end tells whether it is UTF-8."""
    with TemporaryFile() as copy:
        if not stream.seekable():
            shutil.copyfileobj(stream, copy)
            stream = copy
            stream.seek(0)
        encoding = "utf-8"
        try:
            for _ in _decoded(stream, encoding):
                pass
        except UnicodeDecodeError:
            encoding = "cp1252"
            err.print(f"Warning: {file} is not UTF-8; it is read as Windows-1252.", style="yellow", markup=False)
        stream.seek(0)
        yield from _decoded(stream, encoding)


def _decoded(stream: BinaryIO, encoding: str) -> Iterator[str]:
    decoder = codecs.getincrementaldecoder(encoding)("strict" if encoding == "utf-8" else "replace")
    while piece := stream.read(_PIECE):
        yield decoder.decode(piece)
    yield decoder.decode(b"", final=True)


def _counted(mentions: Iterator[list[Mention]]) -> list[tuple[Term, int]]:
    """The terms of a text with how often they are mentioned, the most frequent first, then by name."""
    counts = Counter(term for some in mentions for mention in some for term in mention.terms)
    return sorted(counts.items(), key=lambda item: (-item[1], item[0].name.casefold(), item[0].id))


def _csv_rows(documents: Iterator[Document]) -> Iterator[bytes]:
    yield _csv([_COLUMNS])
    for name, mentions in documents:
        yield _csv([name, term.id, term.name, term.collection, str(count)] for term, count in _counted(mentions))


def _csv(rows: Iterator[Sequence[str]] | Sequence[Sequence[str]]) -> bytes:
    text = io.StringIO(newline="")
    csv.writer(text).writerows([f"'{cell}" if cell.startswith(_RUN) else cell for cell in row] for row in rows)
    return text.getvalue().encode(errors="surrogateescape")


def _json_lines(documents: Iterator[Document]) -> Iterator[bytes]:
    for name, mentions in documents:
        readable = name.encode(errors="surrogateescape").decode(errors="replace")
        before = b'{"document":%b,"annotations":[' % orjson.dumps(readable)
        for some in mentions:
            found = list(annotation_views(some))
            if found:
                yield before + orjson.dumps(found)[1:-1]
                before = b","
        yield (b"" if before == b"," else before) + b"]}\n"


def _tell(documents: Iterator[Document]) -> None:
    for name, mentions in documents:
        table = Table("count", "term", "collection", "id", box=None, pad_edge=False)
        table.columns[0].justify = "right"
        for term, count in _counted(mentions):
            table.add_row(f"{count:,}", Text(term.name), term.collection, term.id)
        out.print(Text(name, "bold"))
        out.print(table if table.row_count else "No terms were found.")
