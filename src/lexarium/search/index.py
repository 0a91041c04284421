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

from lexarium.domain.changes import Change
from lexarium.domain.identifiers import has_prefix, mint
from lexarium.search.documents import FORMAT, document_of, register, schema

T = TypeVar("T")

_MEGABYTE = 1_000_000
_FOLLOWING_HEAP = 30 * _MEGABYTE
_BUILDING_HEAP = 400 * _MEGABYTE
_MOST_ANSWERS = 500
_REPLACED = (".json", ".lock")
"""How files are called that do not stay with a part of the index."""
_MOST_HELD = 250
"""How many files of an index are held open."""
_FREED = 16
"""How many files are freed at a time: more than a commit brings."""
_POINTER = "current"
_NEXT = "next"
_FINISHED = "index"
"""What the names of finished indexes begin with."""
_LOCK = "building.lock"
_PANIC = "PanicException"
"""What tantivy raises where it does not know how to go on; it is no `Exception`, and cannot be imported."""
_HERE = "here"
"""The one term of the document that says where the index stands."""
_NOWHERE = "nowhere"
"""A term that no document has."""


class Broken(Exception):
    """The index cannot be read. It is to be made anew."""


class Busy(Exception):
    """Another process writes to the index."""


class Standing(NamedTuple):
    """What an index holds: which catalogue, and the last change that is in it."""

    epoch: str
    revision: int


class View(NamedTuple):
    """One unchanging state of an index."""

    schema: Schema
    searcher: Searcher
    standing: Standing
    answers: dict[Hashable, Any]
    """Answers that hold as long as this state is the last, by what was asked: what one types, many type."""
    class_names: dict[str, str | None]
    """The same for the names of classes, by identifier: None where there is no such class."""

    def answer(self, asked: Hashable, make: Callable[[], T]) -> T:
        """The answer to what is asked, kept from before where it can be."""
        found: T | None = self.answers.get(asked)
        if found is None:
            if len(self.answers) >= _MOST_ANSWERS:
                self.answers.clear()
            found = self.answers[asked] = make()
        return found


class OpenIndex:
    """An index that is open for reading."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with explained():
            self._index = Index.open(str(path))
            register(self._index)
            # It is reloaded when it is known to have moved, not by a thread of its own.
            self._index.config_reader("manual")
        self._held: dict[str, int] = {}
        self._gone: list[int] = []
        finalize(self, _close_all, self._held, self._gone).atexit = False
        self.reload()

    def reload(self) -> None:
        """See what was committed since."""
        with explained():
            self._index.reload()
            searcher = self._index.searcher()
            self.view = View(self._index.schema, searcher, _standing(searcher, self._index), {}, {})
            self._hold()

    def _hold(self) -> None:
        """Open each file, so that it is freed when it is closed here, which lets other threads go on.

        Else it were freed where the last view of it is dropped, while all wait: that may take a millisecond a file, and
        dozens are removed when parts of the index are merged. Where one cannot be opened, it is freed so.
        """
        with suppress(OSError):
            there = {name for name in os.listdir(self.path) if not name.endswith(_REPLACED)}
            self._gone += [self._held.pop(name) for name in self._held.keys() - there]
            for name in islice(there - self._held.keys(), max(0, _MOST_HELD - len(self._held) - len(self._gone))):
                self._held[name] = os.open(self.path / name, os.O_RDONLY)

    def free(self) -> None:
        """Close some files that are gone, those first that no view has any more by now."""
        some, self._gone[:_FREED] = self._gone[:_FREED], []
        _close(some)

    def write(self) -> "Writing":
        """Begin to write to it. Raises `Busy` where another process does."""
        return Writing(self._index, _FOLLOWING_HEAP)


class Writing:
    """The one writer of an index, until it is closed."""

    def __init__(self, index: Index, heap: int) -> None:
        try:
            with explained():
                self._writer: IndexWriter | None = index.writer(heap, 1)
                # What a process that was killed has left behind stands in the way under the names that come next.
                self._writer.garbage_collect_files()
                # tantivy counts on from the number of the last commit, and may lose a deletion that has this number
                # itself when it merges: so the first of them is of nothing.
                self._writer.delete_documents_by_term("position", _NOWHERE)
        except Broken as error:
            if "LockBusy" in str(error):
                raise Busy from None
            raise

    def put(self, change: Change) -> None:
        """Put what a change made of its record in place of what the index has of it."""
        assert self._writer is not None
        with explained():
            self._writer.delete_documents_by_term("record", change.record)
        self.add(change)

    def add(self, change: Change) -> None:
        """Add what a change made of its record, which the index does not have."""
        assert self._writer is not None
        with explained():
            self._writer.add_document(document_of(change.whole(), change.version))

    def clear(self) -> None:
        """Take everything out."""
        assert self._writer is not None
        with explained():
            self._writer.delete_all_documents()

    def commit(self, standing: Standing) -> None:
        """Make all that was put durable, and where the index stands by it."""
        assert self._writer is not None
        here = Document()
        here.add_text("position", _HERE)
        here.add_text("labels", f"{standing.epoch} {standing.revision}")
        with explained():
            self._writer.delete_documents_by_term("position", _HERE)
            self._writer.add_document(here)
            self._writer.commit()

    def close(self, *, merged: bool = False) -> None:
        """Let another process write; `merged`: not before the index is in as few parts as it is going to be."""
        if self._writer is not None and merged:
            with explained():
                self._writer.wait_merging_threads()
        self._writer = None


class IndexFolder:
    """Where a catalogue's index is kept. It need not be there."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def current(self) -> Path | None:
        """The finished index of this format; None where there is none."""
        try:
            form, _, name = (self.path / _POINTER).read_text().partition(" ")
        except (OSError, UnicodeDecodeError):
            return None
        return self.path / name if form == str(FORMAT) and name else None

    @contextmanager
    def building(self, before: Path | None) -> Iterator[Writing]:
        """Make the next index. It becomes the current one when the block ends, unless the block raises.

        The one before it serves until then. Raises `Busy` where another process is at it, or has been meanwhile.
        """
        path = self.path / _NEXT
        path.mkdir(parents=True, exist_ok=True)
        with _locked(self.path / _LOCK):
            if self.current() != before:
                raise Busy
            writing = Writing(_made(path), _BUILDING_HEAP)
            try:
                writing.clear()
                yield writing
                writing.close(merged=True)
                self._publish(path)
            finally:
                writing.close()
                shutil.rmtree(path, ignore_errors=True)  # It is there still where something failed.

    def _publish(self, path: Path) -> None:
        before = [entry for entry in self.path.iterdir() if has_prefix(entry.name, (_FINISHED,))]
        finished = path.rename(self.path / mint(_FINISHED))
        pointer = self.path / f"{_POINTER}.new"
        pointer.write_text(f"{FORMAT} {finished.name}")
        pointer.replace(self.path / _POINTER)
        for folder in before:
            shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold a lock that ends with the process, or raise `Busy`. It outlasts tantivy's own, until all is in place."""
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise Busy from None
        yield


def _made(path: Path) -> Index:
    try:
        index = Index(schema(), str(path))
    except (ValueError, OSError):
        # Left by another format, or by a process that was killed.
        shutil.rmtree(path, ignore_errors=True)
        path.mkdir(parents=True, exist_ok=True)
        index = Index(schema(), str(path))
    register(index)
    return index


def _standing(searcher: Searcher, index: Index) -> Standing:
    hits = searcher.search(Query.term_query(index.schema, "position", _HERE, "basic"), 1).hits
    if not hits:
        raise Broken("The index does not say where it stands.")
    epoch, _, revision = str(searcher.doc(hits[0][1]).get_first("labels")).partition(" ")
    return Standing(epoch, int(revision))


def _close(files: Iterable[int]) -> None:
    for file in files:
        with suppress(OSError):
            os.close(file)


def _close_all(held: dict[str, int], gone: list[int]) -> None:
    _close([*held.values(), *gone])


class _Explained:
    """Makes `Broken` of what tantivy raises. A class, since it is entered for every hit."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if isinstance(error, (ValueError, OSError, RuntimeError)) or type(error).__name__ == _PANIC:
            raise Broken(str(error)) from error


_EXPLAINED = _Explained()


def explained() -> _Explained:
    """What tantivy raises within becomes `Broken`: it has no errors of its own that tell more."""
    return _EXPLAINED
