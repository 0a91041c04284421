"""The index on disk: a folder that holds one finished index, and perhaps the next one while it is made.

One process at a time writes; all others read, and see what was committed once they reload.
"""

import fcntl
import os
import shutil
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, TypeVar
from weakref import finalize

from tantivy import Document, Index, IndexWriter, Query, Schema, Searcher

from lexarium.domain.change import Change
from lexarium.domain.identifiers import has_prefix, mint_id
from lexarium.search.documents import INDEX_FORMAT, build_document, build_schema, register_tokenizers

T = TypeVar("T")

_MEGABYTE = 1_000_000
_UPDATE_HEAP_BYTES = 30 * _MEGABYTE
_BUILD_HEAP_BYTES = 400 * _MEGABYTE
_MAX_CACHED_RESULTS = 500
_MUTABLE_SUFFIXES = (".json", ".lock")
"""How files are called that do not stay with a part of the index."""
_MAX_HELD_FILES = 250
"""How many files of an index are held open."""
_CLOSE_BATCH_SIZE = 16
"""How many files are freed at a time: more than a commit brings."""
_POINTER_FILE = "current"
_BUILD_DIRECTORY = "next"
_INDEX_PREFIX = "index"
"""What the names of finished indexes begin with."""
_LOCK_FILE = "building.lock"
_PANIC_CLASS_NAME = "PanicException"
"""What tantivy raises where it does not know how to go on; it is no `Exception`, and cannot be imported."""
_POSITION_TERM = "here"
"""The one term of the document that says where the index stands."""
_UNUSED_TERM = "nowhere"
"""A term that no document has."""


class IndexCorrupt(Exception):
    """The index cannot be read. It is to be made anew."""


class IndexLocked(Exception):
    """Another process writes to the index."""


class IndexPosition(NamedTuple):
    """What an index holds: which catalogue, and the last change that is in it."""

    epoch: str
    revision: int


class IndexSnapshot(NamedTuple):
    """One unchanging state of an index."""

    schema: Schema
    searcher: Searcher
    position: IndexPosition
    result_cache: dict[Hashable, Any]
    """Answers that hold as long as this state is the last, by what was asked: what one types, many type."""
    class_name_cache: dict[str, str | None]
    """The same for the names of classes, by identifier: None where there is no such class."""

    def get_cached(self, key: Hashable, compute: Callable[[], T]) -> T:
        """The answer to what is asked, kept from before where it can be."""
        result: T | None = self.result_cache.get(key)
        if result is None:
            if len(self.result_cache) >= _MAX_CACHED_RESULTS:
                self.result_cache.clear()
            result = self.result_cache[key] = compute()
        return result


class SearchIndex:
    """An index that is open for reading."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with translate_errors():
            self._index = Index.open(str(path))
            register_tokenizers(self._index)
            # It is reloaded when it is known to have moved, not by a thread of its own.
            self._index.config_reader("manual")
        self._held_files: dict[str, int] = {}
        self._removed_files: list[int] = []
        finalize(self, _close_all, self._held_files, self._removed_files).atexit = False
        self.reload()

    def reload(self) -> None:
        """See what was committed since."""
        with translate_errors():
            self._index.reload()
            searcher = self._index.searcher()
            self.snapshot = IndexSnapshot(self._index.schema, searcher, _read_position(searcher, self._index), {}, {})
            self._hold_files()

    def _hold_files(self) -> None:
        """Open each file, so that it is freed when it is closed here, which lets other threads go on.

        Else it were freed where the last view of it is dropped, while all wait: that may take a millisecond a file, and
        dozens are removed when parts of the index are merged. Where one cannot be opened, it is freed so.
        """
        with suppress(OSError):
            names = {name for name in os.listdir(self.path) if not name.endswith(_MUTABLE_SUFFIXES)}
            self._removed_files += [self._held_files.pop(name) for name in self._held_files.keys() - names]
            for name in islice(
                names - self._held_files.keys(),
                max(0, _MAX_HELD_FILES - len(self._held_files) - len(self._removed_files)),
            ):
                self._held_files[name] = os.open(self.path / name, os.O_RDONLY)

    def close_removed_files(self) -> None:
        """Close some files that are gone, those first that no view has any more by now."""
        batch, self._removed_files[:_CLOSE_BATCH_SIZE] = self._removed_files[:_CLOSE_BATCH_SIZE], []
        _close(batch)

    def open_writer(self) -> "SearchIndexWriter":
        """Begin to write to it. Raises `Busy` where another process does."""
        return SearchIndexWriter(self._index, _UPDATE_HEAP_BYTES)


class SearchIndexWriter:
    """The one writer of an index, until it is closed."""

    def __init__(self, index: Index, heap_bytes: int) -> None:
        try:
            with translate_errors():
                self._writer: IndexWriter | None = index.writer(heap_bytes, 1)
                # What a process that was killed has left behind stands in the way under the names that come next.
                self._writer.garbage_collect_files()
                # tantivy counts on from the number of the last commit, and may lose a deletion that has this number
                # itself when it merges: so the first of them is of nothing.
                self._writer.delete_documents_by_term("position", _UNUSED_TERM)
        except IndexCorrupt as error:
            if "LockBusy" in str(error):
                raise IndexLocked from None
            raise

    def replace(self, change: Change) -> None:
        """Put what a change made of its record in place of what the index has of it."""
        assert self._writer is not None
        with translate_errors():
            self._writer.delete_documents_by_term("record", change.record_id)
        self.add(change)

    def add(self, change: Change) -> None:
        """Add what a change made of its record, which the index does not have."""
        assert self._writer is not None
        with translate_errors():
            self._writer.add_document(build_document(change.to_record(), change.version))

    def clear(self) -> None:
        """Take everything out."""
        assert self._writer is not None
        with translate_errors():
            self._writer.delete_all_documents()

    def commit(self, position: IndexPosition) -> None:
        """Make all that was put durable, and where the index stands by it."""
        assert self._writer is not None
        document = Document()
        document.add_text("position", _POSITION_TERM)
        document.add_text("labels", f"{position.epoch} {position.revision}")
        with translate_errors():
            self._writer.delete_documents_by_term("position", _POSITION_TERM)
            self._writer.add_document(document)
            self._writer.commit()

    def close(self, *, wait_for_merges: bool = False) -> None:
        """Let another process write; `merged`: not before the index is in as few parts as it is going to be."""
        if self._writer is not None and wait_for_merges:
            with translate_errors():
                self._writer.wait_merging_threads()
        self._writer = None


class IndexDirectory:
    """Where a catalogue's index is kept. It need not be there."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def current_path(self) -> Path | None:
        """The finished index of this format; None where there is none."""
        try:
            index_format, _, name = (self.path / _POINTER_FILE).read_text().partition(" ")
        except (OSError, UnicodeDecodeError):
            return None
        return self.path / name if index_format == str(INDEX_FORMAT) and name else None

    @contextmanager
    def build_next(self, expected_current: Path | None) -> Iterator[SearchIndexWriter]:
        """Make the next index. It becomes the current one when the block ends, unless the block raises.

        The one before it serves until then. Raises `Busy` where another process is at it, or has been meanwhile.
        """
        path = self.path / _BUILD_DIRECTORY
        path.mkdir(parents=True, exist_ok=True)
        with _hold_lock(self.path / _LOCK_FILE):
            if self.current_path() != expected_current:
                raise IndexLocked
            writer = SearchIndexWriter(_create_index(path), _BUILD_HEAP_BYTES)
            try:
                writer.clear()
                yield writer
                writer.close(wait_for_merges=True)
                self._publish(path)
            finally:
                writer.close()
                shutil.rmtree(path, ignore_errors=True)  # It is there still where something failed.

    def _publish(self, path: Path) -> None:
        old_directories = [entry for entry in self.path.iterdir() if has_prefix(entry.name, (_INDEX_PREFIX,))]
        new_directory = path.rename(self.path / mint_id(_INDEX_PREFIX))
        pointer = self.path / f"{_POINTER_FILE}.new"
        pointer.write_text(f"{INDEX_FORMAT} {new_directory.name}")
        pointer.replace(self.path / _POINTER_FILE)
        for directory in old_directories:
            shutil.rmtree(directory, ignore_errors=True)


@contextmanager
def _hold_lock(path: Path) -> Iterator[None]:
    """Hold a lock that ends with the process, or raise `Busy`. It outlasts tantivy's own, until all is in place."""
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise IndexLocked from None
        yield


def _create_index(path: Path) -> Index:
    try:
        index = Index(build_schema(), str(path))
    except (ValueError, OSError):
        # Left by another format, or by a process that was killed.
        shutil.rmtree(path, ignore_errors=True)
        path.mkdir(parents=True, exist_ok=True)
        index = Index(build_schema(), str(path))
    register_tokenizers(index)
    return index


def _read_position(searcher: Searcher, index: Index) -> IndexPosition:
    hits = searcher.search(Query.term_query(index.schema, "position", _POSITION_TERM, "basic"), 1).hits
    if not hits:
        raise IndexCorrupt("The index does not say where it stands.")
    epoch, _, revision = str(searcher.doc(hits[0][1]).get_first("labels")).partition(" ")
    return IndexPosition(epoch, int(revision))


def _close(files: Iterable[int]) -> None:
    for file in files:
        with suppress(OSError):
            os.close(file)


def _close_all(held_files: dict[str, int], removed_files: list[int]) -> None:
    _close([*held_files.values(), *removed_files])


class _ErrorTranslator:
    """Makes `Broken` of what tantivy raises. A class, since it is entered for every hit."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, error_type: type[BaseException] | None, error: BaseException | None, traceback: object) -> None:
        if isinstance(error, (ValueError, OSError, RuntimeError)) or type(error).__name__ == _PANIC_CLASS_NAME:
            raise IndexCorrupt(str(error)) from error


_ERROR_TRANSLATOR = _ErrorTranslator()


def translate_errors() -> _ErrorTranslator:
    """What tantivy raises within becomes `Broken`: it has no errors of its own that tell more."""
    return _ERROR_TRANSLATOR
