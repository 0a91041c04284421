"""Finding the terms of the catalogue in text."""

import gc
import threading
import time
from concurrent.futures import Future
from queue import SimpleQueue
from sys import intern

from lexarium.search.annotator import Annotator, DictionaryTerm
from lexarium.store import revisions
from lexarium.store.database import Database
from lexarium.store.position import Position, read_position

_BATCH_SIZE = 200
"""How many records are read at a time: the work of a few milliseconds, after which other threads have their turn."""
_MIN_REBUILD_CHANGES = 100_000
"""So many changes are always followed one by one; what is dropped meanwhile leaves a little memory behind."""


class AnnotatorCache:
    """The names of a process's catalogue, kept in memory by a thread of its own. None is read before the first use."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._annotator = Annotator()
        self._position = Position("", 0, 0, 0)
        self._changes_applied = 0
        self._is_frozen = False
        """Whether the collector of garbage has been told that the names stay."""
        self._requests: SimpleQueue[Future[Annotator]] = SimpleQueue()
        self._start_lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def get_current(self) -> Future[Annotator]:
        """The names as they stand now, once they are there.

        The first time all are read, which takes a while; after that, what has changed since.
        """
        future: Future[Annotator] = Future()
        self._requests.put(future)
        with self._start_lock:
            if self._thread is None:
                # A daemon: a process that ends does not wait for names to be read.
                self._thread = threading.Thread(target=self._run, name="lexarium-annotator", daemon=True)
                self._thread.start()
        return future

    def _run(self) -> None:
        while True:
            future = self._requests.get()
            if future.set_running_or_notify_cancel():
                try:
                    self._catch_up()
                except Exception as error:
                    future.set_exception(error)
                else:
                    future.set_result(self._annotator)

    def _catch_up(self) -> None:
        with self._database.read() as snapshot:
            current = read_position(snapshot)
        if self._position.epoch != current.epoch or self._needs_rebuild(current.revision):
            self._annotator, self._position, self._changes_applied = Annotator(), current._replace(revision=0), 0
            self._is_frozen = False
        while self._position.revision < current.revision:
            self._apply_changes(current)
        if self._annotator and not self._is_frozen:
            gc.freeze()  # To look for garbage among a million names would hold up everyone for a second.
            self._is_frozen = True

    def _needs_rebuild(self, revision: int) -> bool:
        """Whether to read all names anew: it takes no longer, and leaves nothing behind of those that are gone."""
        self._changes_applied += revision - self._position.revision
        return self._changes_applied > max(_MIN_REBUILD_CHANGES, len(self._annotator))

    def _apply_changes(self, current: Position) -> None:
        """Go a little further, in a transaction of its own: what fails later goes on from here."""
        with self._database.read() as snapshot:
            batch = revisions.list_changed_labels(snapshot, self._position.revision, current.revision, _BATCH_SIZE)
        for _, record_id, collection, labels in batch:
            if labels:
                self._annotator.add(DictionaryTerm(record_id, labels[0], intern(collection)), labels)
            else:
                self._annotator.remove(record_id)
        self._position = current._replace(revision=batch[-1].seq) if batch else current
        time.sleep(0)
