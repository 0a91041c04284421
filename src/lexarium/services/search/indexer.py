"""Keep the search index in step with the change log.

One process per node holds the index writer; the others reload what it commits.
"""

import errno
import hashlib
import logging
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path

from lexarium.domain.change import Change
from lexarium.domain.errors import IndexNotReady, LexariumError, StoreError
from lexarium.domain.identifiers import MAIN_VOCABULARY, format_record_id, qualify_id, split_id
from lexarium.domain.progress import ProgressCallback, ignore_progress
from lexarium.domain.schema.collections import COLLECTIONS
from lexarium.domain.vocabulary import VOCABULARIES
from lexarium.search import index as search_index
from lexarium.search.index import IndexedVocabulary
from lexarium.services.files import sidecar_path
from lexarium.store import records, revisions, vocabularies
from lexarium.store.database import Database
from lexarium.store.engine.base import PositionWatcher
from lexarium.store.engine.position_queries import read_position
from lexarium.store.position import Position, Snapshot

logger = logging.getLogger(__name__)

_POLL_SECONDS = 0.02
# After a round with this many changes, the thread pauses for a multiple of the time it took: many writes are then
# indexed together, and are not slowed down.
_BUSY_CHANGES = 5
_PAUSE_FACTOR = 5
_MAX_PAUSE_SECONDS = 1.0
_RETRY_SECONDS = 1.0
_BATCH_SIZE = 2_000
# A search waits this long for the index to reach its position, unless the index lags too far behind.
_WAIT_SECONDS = 2.0
MAX_WAIT_LAG = 2_000
_FIRST_BUILD_WAIT_SECONDS = 3.0
_SHORT_BUILD_RECORDS = 20_000
# A mistake of the program may concern every record.
_MAX_LOGGED_SKIPS = 1_000
_PERMISSION_ERRNOS = (errno.EACCES, errno.EPERM, errno.EROFS)
_PERMISSION_MESSAGE = "Cannot read or write the search index folder."


def index_folder(database: Database, setting: str) -> Path:
    """Return the folder of the index: the setting, or by default a folder beside the database."""
    return Path(setting) if setting != "auto" else sidecar_path(database, "search")


class Indexer:
    """The index of one catalogue, as opened by one process."""

    def __init__(self, database: Database, setting: str, is_overloaded: Callable[[], bool] = lambda: False) -> None:
        """Follow a database. While `is_overloaded` returns true, searches do not wait for new changes."""
        self._is_overloaded = is_overloaded
        self._database = database
        self._setting = setting
        self._index: search_index.SearchIndex | None = None
        self._writer: search_index.SearchIndexWriter | None = None
        self._advanced = threading.Condition()
        self._wake_event = threading.Event()
        self._is_broken = False
        # While the last round failed, the thread tries again once a second, whatever the number of searches.
        self._is_failing = False
        # An error that does not pass by itself.
        self.error: str | None = None
        # Failed writes since the last success.
        self._failures = 0
        # Versions of records that could not be indexed, as far as the log says so.
        self._logged_skips: set[tuple[str, int]] = set()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="lexarium-indexer", daemon=True)

    @cached_property
    def _folder(self) -> search_index.IndexDirectory:
        return search_index.IndexDirectory(index_folder(self._database, self._setting))

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Finish the current commit and release the writer."""
        self._stopping.set()
        self._wake_event.set()
        if self._thread.is_alive():
            self._thread.join()
        self._release_writer()

    def get_snapshot(self, position: Position) -> search_index.IndexSnapshot:
        """Return the index at a position if it gets there soon, or else as it is; raise IndexNotReady."""
        index_snapshot = self._get_current(position)
        if index_snapshot is None or (_is_worth_waiting(index_snapshot, position) and not self._is_overloaded()):
            index_snapshot = self._wait_for_snapshot(position)
        if index_snapshot is None:
            raise IndexNotReady(self.error or "Search index is being built; try again in a few seconds.")
        return index_snapshot

    def lag(self, position: Position) -> int | None:
        """Return the number of changes up to a position that are not indexed; None without an index."""
        index_snapshot = self._get_current(position)
        return None if index_snapshot is None else max(0, position.revision - index_snapshot.position.revision)

    def count_skipped(self) -> int:
        """Return the number of records that could not be indexed."""
        index = self._index
        return 0 if index is None else index.snapshot.skipped_count

    def mark_broken(self) -> None:
        """Have the index rebuilt, because it could not be read."""
        self._is_broken = True
        self._wake_event.set()

    def advance_to(self, position: Position, progress: ProgressCallback = ignore_progress) -> int:
        """Bring the index to a position, unless another process writes it; return the number of changes applied."""
        path = self._folder.current_path()
        self._open(path)
        index = self._index
        must_rebuild = self._is_broken or path is None
        if index is None or must_rebuild or index.snapshot.position.epoch != position.epoch:
            self._rebuild_unless_busy(progress)
        elif _is_behind(index.snapshot, position):
            return self._apply_log(index, progress)
        return 0

    def catch_up(self, progress: ProgressCallback = ignore_progress) -> bool:
        """Bring the index to the current position, in a process without the thread; return whether it is there.

        Wait for a short time if another process has the writer.
        """
        position = self._database.run_read(read_position)
        with self._translate_errors():
            self.advance_to(position, progress)
            deadline = time.monotonic() + _WAIT_SECONDS
            while self.lag(position) != 0 and time.monotonic() < deadline:
                time.sleep(_POLL_SECONDS)
                self.advance_to(position, progress)
        return self.lag(position) == 0

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        try:
            yield
        except (OSError, search_index.IndexCorrupt) as error:
            raise StoreError(f"Cannot write the search index in {self._folder.path}: {error}.") from error

    def rebuild(self, progress: ProgressCallback = ignore_progress) -> int:
        """Rebuild the index, in a process without the thread; return the number of records."""
        with self._translate_errors():
            return self._rebuild(progress)

    def _rebuild(self, progress: ProgressCallback = ignore_progress) -> int:
        try:
            with self._folder.build_next(self._folder.current_path()) as writer:
                done = self._index_all(writer, progress)
        except search_index.IndexLocked:
            raise IndexNotReady("Another process is building the search index.") from None
        self._is_broken = False
        self._open(self._folder.current_path())
        return done

    def _index_all(self, writer: search_index.SearchIndexWriter, progress: ProgressCallback) -> int:
        with self._database.read() as snapshot:
            self._database.follow_vocabularies(snapshot)
            position = read_position(snapshot)
            writer.vocabularies = describe_vocabularies(snapshot)
            total = records.count(snapshot)
        done, seen = 0, 0
        # Short transactions: changes made meanwhile are applied from the log afterwards.
        for batch in self._iter_current(""):
            done += sum(self._add(writer, change) for change in batch)
            seen += len(batch)
            progress("Indexing", seen, max(seen, total))
        writer.commit(search_index.IndexPosition(position.epoch, position.revision, position.vocabularies))
        return done

    def _iter_current(self, after: str) -> Iterator[list[Change]]:
        """Yield the last changes of all records from an id on in batches, until the server stops."""
        while batch := self._database.run_read(revisions.list_current, after, _BATCH_SIZE):
            yield batch
            after = batch[-1].record_id
            if self._stopping.is_set():
                raise IndexNotReady("Server stopped while building the search index.")

    def _run(self) -> None:
        # Nobody can search without an index. On a busy machine, a thread of low priority would take ten times as long.
        has_low_priority = not self._is_first_build_short()
        if has_low_priority:
            lower_priority()
        watch: PositionWatcher | None = None
        is_busy = False
        while not self._stopping.is_set():
            started_at = time.monotonic()
            try:
                watch = watch or self._database.backend.start_watcher()
                if self._index is not None:
                    self._index.close_removed_files()
                is_busy = self.advance_to(watch.get_position()) >= _BUSY_CHANGES
                self._is_failing, self.error = False, None
                if not has_low_priority:
                    lower_priority()
                    has_low_priority = True
            except Exception as error:
                if not self._is_failing and not self._stopping.is_set():
                    _log_error(error)
                self._is_failing, self.error = True, _PERMISSION_MESSAGE if _is_forbidden(error) else None
                self._release_writer()  # A writer does not work after an error.
                self._notify_waiters()
            # A waiting search ends the pause.
            pause = min(_MAX_PAUSE_SECONDS, _PAUSE_FACTOR * (time.monotonic() - started_at)) if is_busy else 0.0
            self._wake_event.wait(_RETRY_SECONDS if self._is_failing else max(_POLL_SECONDS, pause))
            self._wake_event.clear()
        if watch is not None:
            watch.close()

    def _is_first_build_short(self) -> bool:
        """Return whether there is no index, and making one takes a few seconds."""
        try:
            return (
                self._folder.current_path() is None and self._database.run_read(records.count) <= _SHORT_BUILD_RECORDS
            )
        except LexariumError:
            return False

    def _open(self, path: Path | None) -> None:
        """Open the current index, at this path, if it was replaced."""
        if path is None or (self._index is not None and self._index.path == path):
            return
        self._release_writer()
        try:
            self._index = search_index.SearchIndex(path)
        except search_index.IndexCorrupt as error:
            self._replace_corrupt(path, "Cannot read the search index, rebuilding it: %s", error)
        self._notify_waiters()

    def _apply_log(self, index: search_index.SearchIndex, progress: ProgressCallback) -> int:
        done = 0
        try:
            self._writer = self._writer or index.open_writer()
            index.reload()  # Another process may have written before.
            is_complete = False
            while not is_complete and not self._stopping.is_set():
                with self._database.read() as snapshot:
                    self._database.follow_vocabularies(snapshot)
                    position, current = read_position(snapshot), describe_vocabularies(snapshot)
                    batch = revisions.list_since(snapshot, index.snapshot.position.revision, _BATCH_SIZE)
                if not _is_behind(index.snapshot, position):
                    break
                self._update_vocabularies(self._writer, index.snapshot.vocabularies, current)
                for change in {change.record_id: change for change in batch}.values():
                    if change.collection in COLLECTIONS:
                        self._log_skip(change, self._writer.replace(change))
                # Leave newer changes to the next round: under steady writes this one would not end.
                is_complete = len(batch) < _BATCH_SIZE
                # The last changes may have been deleted with their vocabulary.
                revision = position.revision if is_complete else batch[-1].seq
                self._writer.commit(search_index.IndexPosition(position.epoch, revision, position.vocabularies))
                index.reload()
                self._notify_waiters()
                done += len(batch)
                progress("Indexing", done, done + position.revision - revision)
                index.close_removed_files()
        except search_index.IndexLocked:
            index.reload()
            self._notify_waiters()
        except search_index.IndexCorrupt as error:
            self._release_writer()
            self._failures += 1
            if self._failures == 1:
                self._index = None  # Reopening may help: a full disk may have room by now.
            else:
                self._replace_corrupt(index.path, "Search index is damaged, rebuilding it: %s", error)
        else:
            self._failures = 0
        return done

    def _update_vocabularies(
        self,
        writer: search_index.SearchIndexWriter,
        indexed: Mapping[str, IndexedVocabulary],
        current: dict[str, IndexedVocabulary],
    ) -> None:
        """Delete the documents of removed vocabularies, and rebuild those whose schema has changed."""
        for slug in indexed.keys() | current.keys():
            if indexed.get(slug) == current.get(slug):
                continue
            if slug in indexed:
                writer.delete_collections(indexed[slug].collections)
            if slug in current:
                self._index_vocabulary(writer, slug)
        writer.vocabularies = current

    def _index_vocabulary(self, writer: search_index.SearchIndexWriter, slug: str) -> None:
        # Records of other vocabularies than the main one stand together.
        is_main = slug == MAIN_VOCABULARY
        for batch in self._iter_current("" if is_main else qualify_id(slug, "")):
            own_changes = [change for change in batch if split_id(change.record_id)[0] == slug]
            for change in own_changes:
                self._add(writer, change)
            if len(own_changes) < len(batch) and not is_main:
                break

    def _add(self, writer: search_index.SearchIndexWriter, change: Change) -> bool:
        """Add a record, unless it describes a vocabulary, or belongs to a removed one; return whether it was added."""
        if change.collection not in COLLECTIONS:
            return False
        error = writer.add(change)
        self._log_skip(change, error)
        return error is None

    def _log_skip(self, change: Change, error: Exception | None) -> None:
        """Log once that a version of a record could not be indexed."""
        key = change.record_id, change.version
        if error is not None and key not in self._logged_skips and len(self._logged_skips) < _MAX_LOGGED_SKIPS:
            self._logged_skips.add(key)
            record = format_record_id(change.record_id)
            logger.error("Cannot index %s; search will not find it", record, exc_info=error)

    def _rebuild_unless_busy(self, progress: ProgressCallback = ignore_progress) -> None:
        with suppress(IndexNotReady):  # Another process does it.
            logger.info("Search index rebuilt (records: %s)", self._rebuild(progress))

    def _replace_corrupt(self, path: Path, message: str, error: search_index.IndexCorrupt) -> None:
        """Rebuild the index at a path, unless another process has replaced it."""
        if self._folder.current_path() == path:
            if not self._is_failing:  # Not at each retry.
                logger.warning(message, error)
            self._rebuild_unless_busy()

    def _get_current(self, position: Position) -> search_index.IndexSnapshot | None:
        """Return the current snapshot; None if there is no index of this epoch."""
        index = self._index
        return None if index is None or index.snapshot.position.epoch != position.epoch else index.snapshot

    def _wait_for_snapshot(self, position: Position) -> search_index.IndexSnapshot | None:
        deadline = time.monotonic() + (_FIRST_BUILD_WAIT_SECONDS if self._index is None else _WAIT_SECONDS)
        self._wake_thread()
        with self._advanced:
            while True:
                index_snapshot = self._get_current(position)
                remaining = deadline - time.monotonic()
                is_current = index_snapshot is not None and not _is_worth_waiting(index_snapshot, position)
                if remaining <= 0 or self.error or is_current:
                    return index_snapshot
                # Another process does not notify this one, so that it has to poll.
                if not self._advanced.wait(min(remaining, _POLL_SECONDS)):
                    self._wake_thread()

    def _wake_thread(self) -> None:
        if not self._is_failing:
            self._wake_event.set()

    def _notify_waiters(self) -> None:
        with self._advanced:
            self._advanced.notify_all()

    def _release_writer(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None


def describe_vocabularies(snapshot: Snapshot) -> dict[str, IndexedVocabulary]:
    """Return the vocabularies to index, each with what its documents depend on."""
    # One that was purged and created again has other records.
    created = vocabularies.find_creation_seqs(snapshot)
    described = {}
    for slug, vocabulary in VOCABULARIES.items():
        if not vocabulary.is_removed:
            # The main vocabulary is there before its head record.
            seq = 0 if slug == MAIN_VOCABULARY else created.get(slug)
            parts = f"{seq}\n{vocabulary.language}\n{vocabulary.schema_source}"
            version = hashlib.sha256(parts.encode()).hexdigest()[:16]
            described[slug] = IndexedVocabulary(version, tuple(COLLECTIONS.list_names(slug)))
    return described


def _is_behind(index_snapshot: search_index.IndexSnapshot, position: Position) -> bool:
    indexed = index_snapshot.position
    return indexed.revision < position.revision or indexed.vocabularies < position.vocabularies


def lower_priority() -> None:
    """Give this thread, and threads that it starts, less CPU time than those that serve requests."""
    with suppress(OSError, AttributeError):
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 10)


def _is_worth_waiting(index_snapshot: search_index.IndexSnapshot, position: Position) -> bool:
    return 0 < position.revision - index_snapshot.position.revision <= MAX_WAIT_LAG


def _is_forbidden(error: Exception) -> bool:
    return isinstance(error, OSError) and error.errno in _PERMISSION_ERRNOS


def _log_error(error: Exception) -> None:
    if _is_forbidden(error):
        logger.warning("%s Make the user of the server its owner. Retrying: %s", _PERMISSION_MESSAGE, error)
    elif isinstance(error, LexariumError | OSError):
        logger.warning("Cannot update the search index, retrying: %s", error)
    else:
        logger.exception("Cannot update the search index, retrying")
