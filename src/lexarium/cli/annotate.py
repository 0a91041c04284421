"""`lexarium annotate`"""

import codecs
import shutil
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from tempfile import TemporaryFile
from typing import Annotated, BinaryIO

import orjson
import typer
from rich.table import Table
from rich.text import Text

from lexarium.cli.support.options import (
    CollectionsOption,
    DatabaseOption,
    VocabulariesOption,
    open_database,
    open_scope,
)
from lexarium.cli.support.output import OutputOption, write_output
from lexarium.cli.support.terminal import err, out, progress_bar
from lexarium.domain.errors import FieldProblem, InvalidInput
from lexarium.domain.identifiers import get_local_id
from lexarium.domain.progress import ProgressCallback
from lexarium.domain.schema.collections import COLLECTIONS
from lexarium.formats.tables.cells import format_csv
from lexarium.search.annotator import Annotator, DictionaryTerm, Mention
from lexarium.services.search.annotator_cache import AnnotatorCache
from lexarium.services.serializers import iter_annotations
from lexarium.services.vocabularies.access import resolve_collections
from lexarium.settings import Settings

_CHUNK_BYTES = 1 << 16
_COLUMNS = ("document", "id", "name", "collection", "count", "vocabulary")

# Name of a document, and its mentions in batches as they are found.
AnnotatedDocument = tuple[str, Iterator[list[Mention]]]


def run(
    files: Annotated[list[Path], typer.Argument(metavar="FILE", help="Text files; - is standard input.")],
    json_output: Annotated[
        bool, typer.Option("--json", help="Print every mention as JSON Lines, one line per document.")
    ] = False,
    csv_output: Annotated[bool, typer.Option("--csv", help="Print CSV, even on a terminal.")] = False,
    output: OutputOption = None,
    collection: CollectionsOption = None,
    vocabulary: VocabulariesOption = None,
    database: DatabaseOption = None,
) -> None:
    """Count terms mentioned in text files. Prints CSV, one row per document and term.

    Searches all collections that are not auxiliary (such as concepts, tasks and disorders), or those named with
    --collection. On a terminal, prints a table.
    """
    _require_readable(files)
    store = open_database(database, must_exist=True)
    scope = open_scope(store, vocabulary)
    collections = resolve_collections(scope, collection or ()) or scope.searched_collections
    annotator_cache = AnnotatorCache(store, Settings.from_environment().index)
    annotator = annotator_cache.get_current().result()
    # A bar on the terminal that shows the output would get between its lines.
    bar = progress_bar() if output is not None or not out.is_terminal else nullcontext(lambda step, done, total: None)
    documents = _iter_documents(annotator, files, collections, bar)
    if json_output:
        write_output(output, _iter_json_lines(documents))
    elif csv_output or output is not None or not out.is_terminal:
        write_output(output, _iter_csv(documents))
    else:
        _print_tables(documents)
    annotator_cache.get_current().result()  # once the names are in their file, for the next run


def _require_readable(files: Sequence[Path]) -> None:
    problems = []
    for file in files:
        if file.is_fifo():
            continue  # It can be read only once.
        try:
            with _open_bytes(file):
                pass
        except OSError as error:
            problems.append(FieldProblem(str(file), f"cannot be read: {error.strerror or error}"))
    if problems:
        raise InvalidInput("Nothing was annotated.", problems)


def _iter_documents(
    annotator: Annotator,
    files: Sequence[Path],
    collections: Sequence[str],
    bar: AbstractContextManager[ProgressCallback],
) -> Iterator[AnnotatedDocument]:
    with bar as progress:
        for number, file in enumerate(files):
            progress("reading", number, len(files))
            name = "standard input" if str(file) == "-" else str(file)
            with _open_bytes(file) as stream:
                yield name, annotator.find_mentions(_iter_text(stream, file), collections)
        progress("reading", len(files), len(files))


def _open_bytes(file: Path) -> AbstractContextManager[BinaryIO]:
    return nullcontext(sys.stdin.buffer) if str(file) == "-" else file.open("rb")


def _iter_text(stream: BinaryIO, file: Path) -> Iterator[str]:
    """Yield the text of a file. The file is read twice, because an encoding error may occur at its very end."""
    with TemporaryFile() as copy:
        if not stream.seekable():
            shutil.copyfileobj(stream, copy)
            stream = copy
            stream.seek(0)
        encoding = "utf-8"
        try:
            for _ in _iter_decoded(stream, encoding):
                pass
        except UnicodeDecodeError:
            encoding = "cp1252"
            err.print(f"Warning: {file} is not UTF-8; reading it as Windows-1252.", style="yellow")
        stream.seek(0)
        yield from _iter_decoded(stream, encoding)


def _iter_decoded(stream: BinaryIO, encoding: str) -> Iterator[str]:
    chunks = iter(lambda: stream.read(_CHUNK_BYTES), b"")
    return codecs.iterdecode(chunks, encoding, "strict" if encoding == "utf-8" else "replace")


def _count_terms(mentions: Iterator[list[Mention]]) -> list[tuple[DictionaryTerm, int]]:
    """Return the terms of a text with their counts, the most frequent first, then by name."""
    counts = Counter(term for batch in mentions for mention in batch for term in mention.terms)
    return sorted(counts.items(), key=lambda item: (-item[1], item[0].name.casefold(), item[0].id))


def _iter_csv(documents: Iterator[AnnotatedDocument]) -> Iterator[bytes]:
    yield format_csv([_COLUMNS]).encode()
    for name, mentions in documents:
        rows = (
            [name, get_local_id(term.id), term.name, COLLECTIONS[term.collection].local_name, count, vocabulary]
            for term, count in _count_terms(mentions)
            for vocabulary in (COLLECTIONS[term.collection].vocabulary,)
        )
        yield format_csv(rows).encode(errors="surrogateescape")


def _iter_json_lines(documents: Iterator[AnnotatedDocument]) -> Iterator[bytes]:
    for name, mentions in documents:
        readable_name = name.encode(errors="surrogateescape").decode(errors="replace")
        prefix = b'{"document":%b,"annotations":[' % orjson.dumps(readable_name)
        for batch in mentions:
            annotations = list(iter_annotations(batch))
            if annotations:
                yield prefix + orjson.dumps(annotations)[1:-1]
                prefix = b","
        yield (b"" if prefix == b"," else prefix) + b"]}\n"


def _print_tables(documents: Iterator[AnnotatedDocument]) -> None:
    for name, mentions in documents:
        table = Table("count", "term", "vocabulary", "collection", "id", box=None, pad_edge=False)
        table.columns[0].justify = "right"
        for term, count in _count_terms(mentions):
            owner = COLLECTIONS[term.collection]
            table.add_row(f"{count:,}", Text(term.name), owner.vocabulary, owner.local_name, get_local_id(term.id))
        out.print(Text(name, "bold"))
        out.print(table if table.row_count else "No terms found.")
