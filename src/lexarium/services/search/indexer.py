"""Keeps the search index: follows the log, in the one process of a node that holds the writer; others only reload."""

import errno
import logging
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path

from lexarium.domain.change import Change
from lexarium.domain.errors import IndexNotReady, LexariumError, StoreError
from lexarium.domain.progress import ProgressCallback, ignore_progress
from lexarium.search.index import (
    IndexCorrupt,
    IndexDirectory,
    IndexLocked,
    IndexPosition,
    IndexSnapshot,
    SearchIndex,
    SearchIndexWriter,
)
from lexarium.store import records, revisions
from lexarium.store.database import Database
from lexarium.store.engine.base import PositionWatcher
from lexarium.store.position import Position, read_position

logger = logging.getLogger(__name__)

_POLL_SECONDS = 0.02
_BUSY_CHANGES = 5
"""From how many changes at a time on the follower rests."""
_PAUSE_FACTOR = 5
"""How many times as long as it worked it rests then, so that many writes are indexed together and not held up."""
_MAX_PAUSE_SECONDS = 1.0
_RETRY_SECONDS = 1.0
_BATCH_SIZE = 2_000
"""How many changes are read, and committed to the index, at a time."""
_WAIT_SECONDS = 2.0
"""How long a search waits for what is written already."""
MAX_WAIT_LAG = 2_000
"""How far behind the index may be for a search to wait: past that it would wait in vain."""
_FIRST_BUILD_WAIT_SECONDS = 3.0
"""How long a search waits where there is no index yet."""
_PERMISSION_ERRNOS = (errno.EACCES, errno.EPERM, errno.EROFS)
_PERMISSION_MESSAGE = "The search index cannot be kept: the server may not read or write its folder."


def index_folder(database: Database, setting: str) -> Path:
    """Where the index of a catalogue is kept: where the setting says, else beside the file, else here by its epoch."""
    if setting != "auto":
        return Path(setting)
    if database.backend.path is not None:
        return database.backend.path.with_name(f"{database.backend.path.name}-search")
    with database.read() as snapshot:
        return Path(f"lexarium-search-{read_position(snapshot).epoch}")


class Indexer:
    """The index of one catalogue, as one process has it."""

    def __init__(self, database: Database, setting: str, is_overloaded: Callable[[], bool] = lambda: False) -> None:
        """`hurried` tells whether more is asked than can be done: then no search waits for what is new."""
        self._is_overloaded = is_overloaded
        self._database = database
        self._setting = setting
        self._index: SearchIndex | None = None
        self._writer: SearchIndexWriter | None = None
        self._advanced = threading.Condition()
        self._wake_event = threading.Event()
        self._is_broken = False
        self.error: str | None = None
        """Why the index cannot be kept, where that does not pass by itself."""
        self._failures = 0
        """How often writing has failed since it last went well."""
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="lexarium-indexer", daemon=True)

    @cached_property
    def _folder(self) -> IndexDirectory:
        return IndexDirectory(index_folder(self._database, self._setting))

    def start(self) -> None:
        """Begin to follow the log."""
        self._thread.start()

    def stop(self) -> None:
        """Finish what is under way, and let another process write."""
        self._stopping.set()
        self._wake_event.set()
        if self._thread.is_alive():
            self._thread.join()
        self._release_writer()

    def get_snapshot(self, position: Position) -> IndexSnapshot:
        """The index as it is at a position, where that can be had soon; else as it is. Raises where there is none."""
        index_snapshot = self._get_current(position)
        if index_snapshot is None or (_is_worth_waiting(index_snapshot, position) and not self._is_overloaded()):
            index_snapshot = self._wait_for_snapshot(position)
        if index_snapshot is None:
            raise IndexNotReady(self.error or "The search index is being built. Try again in a moment.")
        return index_snapshot

    def lag(self, position: Position) -> int | None:
        """How many changes the index is behind a position; None where there is no index."""
        index_snapshot = self._get_current(position)
        return None if index_snapshot is None else max(0, position.revision - index_snapshot.position.revision)

    def mark_broken(self) -> None:
        """Hear that the index could not be read: it is made anew."""
        self._is_broken = True
        self._wake_event.set()

    def advance_to(self, position: Position) -> int:
        """Bring the index to a position, as far as that is this process's to do: how many changes it took."""
        self._open()
        index = self._index
        must_rebuild = self._is_broken or self._folder.current_path() is None
        if index is None or must_rebuild or index.snapshot.position.epoch != position.epoch:
            self._rebuild_unless_busy()
        elif index.snapshot.position.revision < position.revision:
            return self._apply_log(index)
        return 0

    def catch_up(self) -> None:
        """Bring the index to where the catalogue stands: for a process that does not serve.

        Where another process writes to it, that is waited for, but not for long.
        """
        with self._database.read() as snapshot:
            position = read_position(snapshot)
        deadline = time.monotonic() + _WAIT_SECONDS
        with self._translate_errors():
            self.advance_to(position)
            while not self._has_reached(position) and time.monotonic() < deadline:
                time.sleep(_POLL_SECONDS)
                self.advance_to(position)

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        try:
            yield
        except (OSError, IndexCorrupt) as error:
            raise StoreError(f"The search index in {self._folder.path} cannot be kept: {error}.") from error

    def _has_reached(self, position: Position) -> bool:
        index_snapshot = self._get_current(position)
        return index_snapshot is not None and index_snapshot.position.revision >= position.revision

    def rebuild(self, progress: ProgressCallback = ignore_progress) -> int:
        """Make the index anew while the old one serves: how many records it has. For a process that does not serve."""
        with self._translate_errors():
            return self._rebuild(progress)

    def _rebuild(self, progress: ProgressCallback = ignore_progress) -> int:
        try:
            with self._folder.build_next(self._folder.current_path()) as writer:
                done = self._index_all(writer, progress)
        except IndexLocked:
            raise IndexNotReady("Another process is building the search index.") from None
        self._is_broken = False
        self._open()
        return done

    def _index_all(self, writer: SearchIndexWriter, progress: ProgressCallback) -> int:
        """Put every record into an empty index."""
        with self._database.read() as snapshot:
            position = read_position(snapshot)
            total = records.count(snapshot)
        done, after = 0, ""
        # Each batch in a short transaction of its own. What changes meanwhile is applied from the log afterwards.
        while batch := self._load_newest(after):
            for change in batch:
                writer.add(change)
            done, after = done + len(batch), batch[-1].record_id
            progress("Indexing", done, max(done, total))
            if self._stopping.is_set():
                raise IndexNotReady("The search index was being built when the server stopped.")
        writer.commit(IndexPosition(position.epoch, position.revision))
        return done

    def _run(self) -> None:
        """Never ends by an error: what cannot be indexed now can be later."""
        lower_priority()
        watch: PositionWatcher | None = None
        is_failing = is_busy = False
        while not self._stopping.is_set():
            started_at = time.monotonic()
            try:
                watch = watch or self._database.backend.start_watcher()
                if self._index is not None:
                    self._index.close_removed_files()
                is_busy = self.advance_to(watch.get_position()) >= _BUSY_CHANGES
                is_failing, self.error = False, None
            except Exception as error:
                if not is_failing and not self._stopping.is_set():
                    _log_error(error)
                is_failing, self.error = True, _PERMISSION_MESSAGE if _is_forbidden(error) else None
                self._release_writer()  # A writer that has failed once does nothing any more.
                self._notify_waiters()
            # A search that waits ends the rest at once.
            pause = min(_MAX_PAUSE_SECONDS, _PAUSE_FACTOR * (time.monotonic() - started_at)) if is_busy else 0.0
            self._wake_event.wait(_RETRY_SECONDS if is_failing else max(_POLL_SECONDS, pause))
            self._wake_event.clear()
        if watch is not None:
            watch.close()

    def _open(self) -> None:
        """Open the current index where it is another than before."""
        path = self._folder.current_path()
        if path is None or (self._index is not None and self._index.path == path):
            return
        self._release_writer()
        try:
            self._index = SearchIndex(path)
        except IndexCorrupt as error:
            if self._folder.current_path() == path:
                self._warn("The search index cannot be read, and is made anew: %s", error)
                self._rebuild_unless_busy()
        self._notify_waiters()

    def _apply_log(self, index: SearchIndex) -> int:
        done = 0
        try:
            self._writer = self._writer or index.open_writer()
            index.reload()  # Another process may have written before this one had the writer.
            while batch := self._load_since(index.snapshot.position.revision):
                for change in {change.record_id: change for change in batch}.values():
                    self._writer.replace(change)
                self._writer.commit(IndexPosition(index.snapshot.position.epoch, batch[-1].seq))
                index.reload()
                self._notify_waiters()
                done += len(batch)
                # What came meanwhile is left for the next turn: under steady writes there would be no end, and no rest.
                if len(batch) < _BATCH_SIZE or self._stopping.is_set():
                    break
                index.close_removed_files()
        except IndexLocked:
            index.reload()
            self._notify_waiters()
        except IndexCorrupt as error:
            self._release_writer()
            self._failures += 1
            if self._failures == 1:
                self._index = None  # Opened again, it may do: a disk that was full may have room now.
            elif self._folder.current_path() == index.path:
                self._warn("The search index is broken, and is made anew: %s", error)
                self._rebuild_unless_busy()
        else:
            self._failures = 0
        return done

    def _rebuild_unless_busy(self) -> None:
        with suppress(IndexNotReady):  # then another process does
            logger.info("The search index was made anew (records: %s)", self._rebuild())

    def _warn(self, message: str, error: IndexCorrupt) -> None:
        """Tell what is wrong; but not each time that it is tried again."""
        if self.error is None:
            logger.warning(message, error)

    def _load_newest(self, after: str) -> list[Change]:
        with self._database.read() as snapshot:
            return revisions.list_current(snapshot, after, _BATCH_SIZE)

    def _load_since(self, seq: int) -> list[Change]:
        with self._database.read() as snapshot:
            return revisions.list_since(snapshot, seq, _BATCH_SIZE)

    def _get_current(self, position: Position) -> IndexSnapshot | None:
        """The index as it is; None where there is none of this catalogue."""
        index = self._index
        return None if index is None or index.snapshot.position.epoch != position.epoch else index.snapshot

    def _wait_for_snapshot(self, position: Position) -> IndexSnapshot | None:
        deadline = time.monotonic() + (_FIRST_BUILD_WAIT_SECONDS if self._index is None else _WAIT_SECONDS)
        if self.error is None:  # else it is tried again once a second, however many ask
            self._wake_event.set()
        with self._advanced:
            while True:
                index_snapshot = self._get_current(position)
                remaining = deadline - time.monotonic()
                # Where the index cannot be kept, to wait is in vain.
                if (
                    remaining <= 0
                    or self.error
                    or (index_snapshot is not None and not _is_worth_waiting(index_snapshot, position))
                ):
                    return index_snapshot
                # Where another process writes, only looking again tells; but not at once, over and over.
                if not self._advanced.wait(min(remaining, _POLL_SECONDS)):
                    self._wake_event.set()

    def _notify_waiters(self) -> None:
        with self._advanced:
            self._advanced.notify_all()

    def _release_writer(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None


def lower_priority() -> None:
    """Let this thread, and those that it starts, run only when those that serve and write leave time."""
    with suppress(OSError, AttributeError):
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 10)


def _is_worth_waiting(index_snapshot: IndexSnapshot, position: Position) -> bool:
    return 0 < position.revision - index_snapshot.position.revision <= MAX_WAIT_LAG


def _is_forbidden(error: Exception) -> bool:
    return isinstance(error, OSError) and error.errno in _PERMISSION_ERRNOS


def _log_error(error: Exception) -> None:
    if _is_forbidden(error):
        logger.warning(
            "%s Give it to the user that the server runs as; it is tried again: %s", _PERMISSION_MESSAGE, error
        )
    elif isinstance(error, LexariumError | OSError):
        logger.warning("The search index cannot be kept now, trying again: %s", error)
    else:
        logger.exception("The search index cannot be kept now, trying again")
