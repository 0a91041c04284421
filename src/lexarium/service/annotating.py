"""Finding the terms of the catalogue in text."""

import gc
import threading
import time
from concurrent.futures import Future
from queue import SimpleQueue
from sys import intern

from lexarium.search.annotator import Annotator, Term
from lexarium.store import versions
from lexarium.store.backend import Position, read_position
from lexarium.store.database import Database

_AT_ONCE = 200
"""How many records are read at a time: the work of a few milliseconds, after which other threads have their turn."""
_LEAST_FOLLOWED = 100_000
"""So many changes are always followed one by one; what is dropped meanwhile leaves a little memory behind."""


class Annotating:
    """The names of a process's catalogue, kept in memory by a thread of its own. None is read before the first use."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._annotator = Annotator()
        self._position = Position("", 0, 0, 0)
        self._followed = 0
        self._stays = False
        """Whether the collector of garbage has been told that the names stay."""
        self._asked: SimpleQueue[Future[Annotator]] = SimpleQueue()
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None

    def current(self) -> Future[Annotator]:
        """The names as they stand now, once they are there.

        The first time all are read, which takes a while; after that, what has changed since.
        """
        asked: Future[Annotator] = Future()
        self._asked.put(asked)
        with self._starting:
            if self._thread is None:
                # A daemon: a process that ends does not wait for names to be read.
                self._thread = threading.Thread(target=self._serve, name="lexarium-annotator", daemon=True)
                self._thread.start()
        return asked

    def _serve(self) -> None:
        while True:
            asked = self._asked.get()
            if asked.set_running_or_notify_cancel():
                try:
                    self._catch_up()
                except Exception as error:
                    asked.set_exception(error)
                else:
                    asked.set_result(self._annotator)

    def _catch_up(self) -> None:
        with self._database.read() as snapshot:
            now = read_position(snapshot)
        if self._position.epoch != now.epoch or self._is_far(now.revision):
            self._annotator, self._position, self._followed = Annotator(), now._replace(revision=0), 0
            self._stays = False
        while self._position.revision < now.revision:
            self._follow(now)
        if self._annotator and not self._stays:
            gc.freeze()  # To look for garbage among a million names would hold up everyone for a second.
            self._stays = True

    def _is_far(self, revision: int) -> bool:
        """Whether to read all names anew: it takes no longer, and leaves nothing behind of those that are gone."""
        self._followed += revision - self._position.revision
        return self._followed > max(_LEAST_FOLLOWED, len(self._annotator))

    def _follow(self, now: Position) -> None:
        """Go a little further, in a transaction of its own: what fails later goes on from here."""
        with self._database.read() as snapshot:
            changed = versions.labelled(snapshot, self._position.revision, now.revision, _AT_ONCE)
        for _, identifier, collection, labels in changed:
            if labels:
                self._annotator.put(Term(identifier, labels[0], intern(collection)), labels)
            else:
                self._annotator.drop(identifier)
        self._position = now._replace(revision=changed[-1].seq) if changed else now
        time.sleep(0)
