"""The search index on disk: a directory with the current index, and the next one while it is built.

One process writes at a time; the others read, and see a commit once they reload.
"""

import fcntl
import json
import os
import shutil
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, Self, TypeVar
from weakref import finalize

from tantivy import Document, Index, Query, Schema, Searcher

from lexarium.domain.change import Change
from lexarium.domain.identifiers import has_prefix, mint_id
from lexarium.search import documents
from lexarium.search.analysis.languages import ENGLISH, STEMMED_LANGUAGES

T = TypeVar("T")

_MEGABYTE = 1_000_000
_UPDATE_HEAP_BYTES = 30 * _MEGABYTE
_BUILD_HEAP_BYTES = 400 * _MEGABYTE
_MAX_CACHED_RESULTS = 500
# Documents per record that a check reads: an index should hold a record once.
_MAX_DUPLICATES = 10
# Files that do not belong to one segment.
_MUTABLE_SUFFIXES = (".json", ".lock")
_MAX_HELD_FILES = 250
# More files than a commit removes.
_CLOSE_BATCH_SIZE = 16
_POINTER_FILE = "current"
_BUILD_DIRECTORY = "next"
_INDEX_PREFIX = "index"
_LOCK_FILE = "building.lock"
# Raised by tantivy on a panic. It does not derive from `Exception` and cannot be imported.
_PANIC_CLASS_NAME = "PanicException"
# The term of the one document that holds the position of the index, of placeholders for records that could not be
# indexed, and a term that no document has.
_POSITION_TERM, _SKIPPED_TERM, _UNUSED_TERM = "here", "skipped", "nowhere"


class IndexCorrupt(Exception):
    """The index cannot be read and must be rebuilt."""


class IndexLocked(Exception):
    """Another process writes to the index."""


class IndexPosition(NamedTuple):
    """The epoch, the revision and the number of changes to vocabularies that an index has reached."""

    epoch: str
    revision: int
    vocabularies: int = 0


class IndexedVocabulary(NamedTuple):
    """The state of a vocabulary that its documents were built from."""

    # Another value means that its documents must be rebuilt.
    version: str
    collections: tuple[str, ...]


class IndexedRecord(NamedTuple):
    """The stored fields of a record's document."""

    version: int
    collection: str
    state: str
    labels: documents.StoredLabels

    @classmethod
    def from_change(cls, change: Change) -> Self:
        """Return the fields that the document of a changed record should have."""
        record = change.to_record()
        return cls(change.version, change.collection, record.state, documents.store_labels(record))


def read_labels(document: Document) -> documents.StoredLabels:
    """Return the labels of a document."""
    languages = document.get_first("languages")
    return documents.StoredLabels(str(document.get_first("labels")), str(languages or ""))


class IndexSnapshot(NamedTuple):
    """One unchanging state of an index."""

    schema: Schema
    searcher: Searcher
    position: IndexPosition
    # By slug. The index has no documents of others.
    vocabularies: Mapping[str, IndexedVocabulary]
    # Number of documents by collection, deleted ones included; filled on first use.
    collection_sizes: dict[str, int]
    result_cache: dict[Hashable, Any]
    # Languages that words are stemmed in; filled on first use.
    stemmed_languages: list[str]
    # Names of concept classes by id; None if there is no such class.
    class_name_cache: dict[str, str | None]
    # Number of records that could not be indexed.
    skipped_count: int

    def get_cached(self, key: Hashable, compute: Callable[[], T]) -> T:
        """Return the cached result for a key; compute and cache it if there is none."""
        result: T | None = self.result_cache.get(key)
        if result is None:
            if len(self.result_cache) >= _MAX_CACHED_RESULTS:
                self.result_cache.clear()
            result = self.result_cache[key] = compute()
        return result

    def get_collection_sizes(self) -> dict[str, int]:
        """Return the approximate number of documents of each collection that has any."""
        if not self.collection_sizes:
            names = [name for item in self.vocabularies.values() for name in item.collections]
            with translated_errors:
                sizes = {name: self.searcher.doc_freq("collection", name) for name in names}
            self.collection_sizes.update({name: size for name, size in sizes.items() if size})
        return self.collection_sizes

    def get_stemmed_languages(self) -> list[str]:
        """Return the languages that words of the index are stemmed in."""
        if not self.stemmed_languages:
            with translated_errors:
                self.stemmed_languages[:] = [
                    tag for tag in STEMMED_LANGUAGES if self.searcher.doc_freq("stemmed", tag)
                ] or [ENGLISH]
        return self.stemmed_languages

    @property
    def record_count(self) -> int:
        """The number of documents of records; one more document holds the position."""
        with translated_errors:
            return self.searcher.num_docs - 1 - self.skipped_count

    def list_skipped(self) -> set[str]:
        """Return the ids of the records that could not be indexed."""
        with translated_errors:
            hits = self.searcher.search(_query_skipped(self.schema), self.searcher.num_docs, count=False).hits
            return {str(self.searcher.doc(address).get_first("record")) for _, address in hits}

    def find_records(self, record_ids: Sequence[str]) -> dict[str, list[IndexedRecord]]:
        """Return the documents of records, by record id."""
        indexed: dict[str, list[IndexedRecord]] = {}
        if not record_ids:
            return indexed
        query = Query.term_set_query(self.schema, "record", list(record_ids))
        with translated_errors:
            for _, address in self.searcher.search(query, _MAX_DUPLICATES * len(record_ids), count=False).hits:
                document = self.searcher.doc(address)
                if document.get_first("position"):
                    continue  # It is the placeholder of a record that could not be indexed.
                collection, state = (str(document.get_first(name)) for name in ("collection", "state"))
                version = int(document.get_first("version") or 0)
                indexed_record = IndexedRecord(version, collection, state, read_labels(document))
                indexed.setdefault(str(document.get_first("record")), []).append(indexed_record)
        return indexed


class SearchIndex:
    """An index, open for reading."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with translated_errors:
            self._index = Index.open(str(path))
            documents.register_tokenizers(self._index)
            # We reload when the position changes; tantivy need not poll.
            self._index.config_reader("manual")
        self._held_files: dict[str, int] = {}
        self._removed_files: list[int] = []
        finalize(self, _close_all, self._held_files, self._removed_files).atexit = False
        self.reload()

    def reload(self) -> None:
        """Load the last commit."""
        with translated_errors:
            self._index.reload()
            searcher = self._index.searcher()
            position, vocabularies = _read_position(searcher, self._index.schema)
            skipped: Any = searcher.search(_query_skipped(self._index.schema), 1)  # The stubs lack `count`.
            self.snapshot = IndexSnapshot(
                self._index.schema, searcher, position, vocabularies, {}, {}, [], {}, skipped.count
            )
            self._hold_files()

    def _hold_files(self) -> None:
        """Hold each file open, so that a removed one is freed by `close_removed_files`, which releases the GIL.

        Otherwise it is freed with the last searcher that maps it, while all threads wait: that may take a millisecond
        per file, and a merge removes dozens.
        """
        with suppress(OSError):
            names = {name for name in os.listdir(self.path) if not name.endswith(_MUTABLE_SUFFIXES)}
            self._removed_files += [self._held_files.pop(name) for name in self._held_files.keys() - names]
            free_slots = max(0, _MAX_HELD_FILES - len(self._held_files) - len(self._removed_files))
            for name in islice(names - self._held_files.keys(), free_slots):
                self._held_files[name] = os.open(self.path / name, os.O_RDONLY)

    def close_removed_files(self) -> None:
        """Close some removed files, the oldest first: no snapshot uses them any more."""
        batch, self._removed_files[:_CLOSE_BATCH_SIZE] = self._removed_files[:_CLOSE_BATCH_SIZE], []
        _close_all({}, batch)

    def open_writer(self) -> "SearchIndexWriter":
        """Open the writer; raise IndexLocked if another process has it."""
        return SearchIndexWriter(self._index, _UPDATE_HEAP_BYTES, self.snapshot.vocabularies)


class SearchIndexWriter:
    """The only writer of an index, until it is closed."""

    def __init__(
        self, index: Index, heap_bytes: int, vocabularies: Mapping[str, IndexedVocabulary] | None = None
    ) -> None:
        # What the next commit says of them.
        self.vocabularies = vocabularies or {}
        try:
            with translated_errors:
                self._writer: Any = index.writer(heap_bytes, 1)  # None once closed
                # Files left by a killed process may have the names that come next.
                self._writer.garbage_collect_files()
                # tantivy continues from the stamp of the last commit, and a merge may lose a deletion that has this
                # very stamp. So the first deletion deletes nothing.
                self._writer.delete_documents_by_term("position", _UNUSED_TERM)
        except IndexCorrupt as error:
            if "LockBusy" in str(error):
                raise IndexLocked from None
            raise

    def replace(self, change: Change) -> Exception | None:
        """Replace the document of the changed record, as `add` does."""
        with translated_errors:
            self._writer.delete_documents_by_term("record", change.record_id)
        return self.add(change)

    def add(self, change: Change) -> Exception | None:
        """Add the changed record, of which the index has no document.

        If none can be built, add a placeholder and return the error.
        """
        error = None
        try:
            document = documents.build_document(change.to_record(), change.version)
        except MemoryError:
            raise
        except Exception as build_error:
            error = build_error
            document = _build_placeholder(change)
        with translated_errors:
            self._writer.add_document(document)
        return error

    def delete_collections(self, names: Iterable[str]) -> None:
        """Delete the documents of collections."""
        with translated_errors:
            for name in names:
                self._writer.delete_documents_by_term("collection", name)
                self._writer.delete_documents_by_term("position", _get_skipped_term(name))

    def clear(self) -> None:
        """Delete all documents."""
        with translated_errors:
            self._writer.delete_all_documents()

    def commit(self, position: IndexPosition) -> None:
        """Commit all documents together with the position of the index."""
        document = Document()
        document.add_text("position", _POSITION_TERM)
        document.add_text("labels", json.dumps([*position, self.vocabularies]))
        with translated_errors:
            self._writer.delete_documents_by_term("position", _POSITION_TERM)
            self._writer.add_document(document)
            self._writer.commit()

    def close(self, *, wait_for_merges: bool = False) -> None:
        """Release the lock; optionally after all merges are done. May be called again."""
        if self._writer is not None and wait_for_merges:
            with translated_errors:
                self._writer.wait_merging_threads()
        self._writer = None


class IndexDirectory:
    """The directory of a catalogue's index. It need not exist."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._pointer = str(path / _POINTER_FILE)
        # Content of the pointer file when it was last parsed, and the path of the index then.
        self._current: tuple[bytes, Path | None] = (b"", None)

    def current_path(self) -> Path | None:
        """Return the path of the current index; None if there is none of this format."""
        # Servers ask 50 times a second. Without `Path`, and parsed only after a change, this takes a third of the time.
        try:
            with open(self._pointer, "rb", buffering=0) as file:
                content = file.read()
        except OSError:
            return None
        current = self._current
        if content != current[0]:
            index_format, _, name = content.decode(errors="replace").partition(" ")
            is_readable = index_format == str(documents.INDEX_FORMAT) and bool(name)
            self._current = current = content, self.path / name if is_readable else None
        return current[1]

    @contextmanager
    def build_next(self, expected_current: Path | None) -> Iterator[SearchIndexWriter]:
        """Build the next index, which becomes the current one when the block ends without an exception.

        Raise IndexLocked if another process builds one, or has built one since.
        """
        path = self.path / _BUILD_DIRECTORY
        path.mkdir(parents=True, exist_ok=True)
        with hold_lock(self.path / _LOCK_FILE):
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
                shutil.rmtree(path, ignore_errors=True)

    def _publish(self, path: Path) -> None:
        old_directories = [entry for entry in self.path.iterdir() if has_prefix(entry.name, (_INDEX_PREFIX,))]
        new_directory = path.rename(self.path / mint_id(_INDEX_PREFIX))
        pointer = self.path / f"{_POINTER_FILE}.new"
        pointer.write_text(f"{documents.INDEX_FORMAT} {new_directory.name}")
        pointer.replace(self.path / _POINTER_FILE)
        for directory in old_directories:
            shutil.rmtree(directory, ignore_errors=True)


@contextmanager
def hold_lock(path: Path) -> Iterator[None]:
    """Lock a file until the block or the process ends; raise IndexLocked if another process has the lock."""
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise IndexLocked from None
        yield


def _create_index(path: Path) -> Index:
    try:
        index = Index(documents.build_schema(), str(path))
    except (ValueError, OSError):
        # Left by another format, or by a killed process.
        shutil.rmtree(path, ignore_errors=True)
        path.mkdir(parents=True, exist_ok=True)
        index = Index(documents.build_schema(), str(path))
    documents.register_tokenizers(index)
    return index


def _build_placeholder(change: Change) -> Document:
    """Return a document that no search finds. It goes when the record is indexed, or its collection deleted."""
    document = Document()
    document.add_text("record", change.record_id)
    for term in (_SKIPPED_TERM, _get_skipped_term(change.collection)):
        document.add_text("position", term)
    return document


def _query_skipped(schema: Schema) -> Query:
    return Query.term_query(schema, "position", _SKIPPED_TERM, "basic")


def _get_skipped_term(collection: str) -> str:
    return f"{_SKIPPED_TERM} {collection}"


def _read_position(searcher: Searcher, schema: Schema) -> tuple[IndexPosition, dict[str, IndexedVocabulary]]:
    hits = searcher.search(Query.term_query(schema, "position", _POSITION_TERM, "basic"), 1).hits
    if not hits:
        raise IndexCorrupt("The index has no revision.")
    *position, vocabularies = json.loads(str(searcher.doc(hits[0][1]).get_first("labels")))
    indexed = {slug: IndexedVocabulary(version, tuple(names)) for slug, (version, names) in vocabularies.items()}
    return IndexPosition(*position), indexed


def _close_all(held_files: dict[str, int], removed_files: Iterable[int]) -> None:
    for file in (*held_files.values(), *removed_files):
        with suppress(OSError):
            os.close(file)


class _ErrorTranslator:
    """Raise IndexCorrupt for the errors of tantivy, which has no exception classes of its own.

    One instance serves all, since it is entered for every hit and must be fast.
    """

    def __enter__(self) -> None:
        pass

    def __exit__(self, error_type: type[BaseException] | None, error: BaseException | None, traceback: object) -> None:
        if isinstance(error, (ValueError, OSError, RuntimeError)) or type(error).__name__ == _PANIC_CLASS_NAME:
            raise IndexCorrupt(str(error)) from error


translated_errors = _ErrorTranslator()
