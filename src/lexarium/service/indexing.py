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

from lexarium.domain.changes import Change
from lexarium.domain.errors import LexariumError, StoreError, Unready
from lexarium.domain.progress import Progress, silent
from lexarium.search.index import Broken, Busy, IndexFolder, OpenIndex, Standing, View, Writing
from lexarium.store import records, versions
from lexarium.store.backend import Position, Watch, read_position
from lexarium.store.database import Database

log = logging.getLogger(__name__)

_LOOK_SECONDS = 0.02
_MANY = 5
"""From how many changes at a time on the follower rests."""
_REST = 5
"""How many times as long as it worked it rests then, so that many writes are indexed together and not held up."""
_LONGEST_REST = 1.0
_TROUBLE_SECONDS = 1.0
_CHANGES = 2_000
"""How many changes are read, and committed to the index, at a time."""
_WAIT_SECONDS = 2.0
"""How long a search waits for what is written already."""
FAR_BEHIND = 2_000
"""How far behind the index may be for a search to wait: past that it would wait in vain."""
_FIRST_SECONDS = 3.0
"""How long a search waits where there is no index yet."""
_FORBIDDEN = (errno.EACCES, errno.EPERM, errno.EROFS)
_KEPT_OUT = "The search index cannot be kept: the server may not read or write its folder."


def index_folder(database: Database, setting: str) -> Path:
    """Where the index of a catalogue is kept: where the setting says, else beside the file, else here by its epoch."""
    if setting != "auto":
        return Path(setting)
    if database.backend.file is not None:
        return database.backend.file.with_name(f"{database.backend.file.name}-search")
    with database.read() as snapshot:
        return Path(f"lexarium-search-{read_position(snapshot).epoch}")


class Indexer:
    """The index of one catalogue, as one process has it."""

    def __init__(self, database: Database, setting: str, hurried: Callable[[], bool] = lambda: False) -> None:
        """`hurried` tells whether more is asked than can be done: then no search waits for what is new."""
        self._hurried = hurried
        self._database = database
        self._setting = setting
        self._index: OpenIndex | None = None
        self._writing: Writing | None = None
        self._moved = threading.Condition()
        self._wanted = threading.Event()
        self._distrusted = False
        self.trouble: str | None = None
        """Why the index cannot be kept, where that does not pass by itself."""
        self._failures = 0
        """How often writing has failed since it last went well."""
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._serve, name="lexarium-indexer", daemon=True)

    @cached_property
    def _folder(self) -> IndexFolder:
        return IndexFolder(index_folder(self._database, self._setting))

    def start(self) -> None:
        """Begin to follow the log."""
        self._thread.start()

    def stop(self) -> None:
        """Finish what is under way, and let another process write."""
        self._stopping.set()
        self._wanted.set()
        if self._thread.is_alive():
            self._thread.join()
        self._let_go()

    def at(self, position: Position) -> View:
        """The index as it is at a position, where that can be had soon; else as it is. Raises where there is none."""
        view = self._view(position)
        if view is None or (_worth_waiting(view, position) and not self._hurried()):
            view = self._waited(position)
        if view is None:
            raise Unready(self.trouble or "The search index is being built. Try again in a moment.")
        return view

    def lag(self, position: Position) -> int | None:
        """How many changes the index is behind a position; None where there is no index."""
        view = self._view(position)
        return None if view is None else max(0, position.revision - view.standing.revision)

    def distrust(self) -> None:
        """Hear that the index could not be read: it is made anew."""
        self._distrusted = True
        self._wanted.set()

    def follow(self, position: Position) -> int:
        """Bring the index to a position, as far as that is this process's to do: how many changes it took."""
        self._open()
        index = self._index
        useless = self._distrusted or self._folder.current() is None
        if index is None or useless or index.view.standing.epoch != position.epoch:
            self._make_anew()
        elif index.view.standing.revision < position.revision:
            return self._follow_log(index)
        return 0

    def catch_up(self) -> None:
        """Bring the index to where the catalogue stands: for a process that does not serve.

        Where another process writes to it, that is waited for, but not for long.
        """
        with self._database.read() as snapshot:
            position = read_position(snapshot)
        deadline = time.monotonic() + _WAIT_SECONDS
        with self._troubles_told():
            self.follow(position)
            while not self._is_at(position) and time.monotonic() < deadline:
                time.sleep(_LOOK_SECONDS)
                self.follow(position)

    @contextmanager
    def _troubles_told(self) -> Iterator[None]:
        try:
            yield
        except (OSError, Broken) as error:
            raise StoreError(f"The search index in {self._folder.path} cannot be kept: {error}.") from error

    def _is_at(self, position: Position) -> bool:
        view = self._view(position)
        return view is not None and view.standing.revision >= position.revision

    def rebuild(self, told: Progress = silent) -> int:
        """Make the index anew while the old one serves: how many records it has. For a process that does not serve."""
        with self._troubles_told():
            return self._rebuild(told)

    def _rebuild(self, told: Progress = silent) -> int:
        try:
            with self._folder.building(self._folder.current()) as writing:
                done = self._fill(writing, told)
        except Busy:
            raise Unready("Another process is building the search index.") from None
        self._distrusted = False
        self._open()
        return done

    def _fill(self, writing: Writing, told: Progress) -> int:
        """Put every record into an empty index."""
        with self._database.read() as snapshot:
            position = read_position(snapshot)
            total = records.total(snapshot)
        done, after = 0, ""
        # Each batch in a short transaction of its own. What changes meanwhile is applied from the log afterwards.
        while batch := self._newest(after):
            for change in batch:
                writing.add(change)
            done, after = done + len(batch), batch[-1].record
            told("Indexing", done, max(done, total))
            if self._stopping.is_set():
                raise Unready("The search index was being built when the server stopped.")
        writing.commit(Standing(position.epoch, position.revision))
        return done

    def _serve(self) -> None:
        """Never ends by an error: what cannot be indexed now can be later."""
        lower_priority()
        watch: Watch | None = None
        troubled = many = False
        while not self._stopping.is_set():
            began = time.monotonic()
            try:
                watch = watch or self._database.backend.watch()
                if self._index is not None:
                    self._index.free()
                many = self.follow(watch.current()) >= _MANY
                troubled, self.trouble = False, None
            except Exception as error:
                if not troubled and not self._stopping.is_set():
                    _tell(error)
                troubled, self.trouble = True, _KEPT_OUT if _is_forbidden(error) else None
                self._let_go()  # A writer that has failed once does nothing any more.
                self._tell_moved()
            # A search that waits ends the rest at once.
            rest = min(_LONGEST_REST, _REST * (time.monotonic() - began)) if many else 0.0
            self._wanted.wait(_TROUBLE_SECONDS if troubled else max(_LOOK_SECONDS, rest))
            self._wanted.clear()
        if watch is not None:
            watch.close()

    def _open(self) -> None:
        """Open the current index where it is another than before."""
        path = self._folder.current()
        if path is None or (self._index is not None and self._index.path == path):
            return
        self._let_go()
        try:
            self._index = OpenIndex(path)
        except Broken as error:
            if self._folder.current() == path:
                self._warn("The search index cannot be read, and is made anew: %s", error)
                self._make_anew()
        self._tell_moved()

    def _follow_log(self, index: OpenIndex) -> int:
        done = 0
        try:
            self._writing = self._writing or index.write()
            index.reload()  # Another process may have written before this one had the writer.
            while batch := self._since(index.view.standing.revision):
                for change in {change.record: change for change in batch}.values():
                    self._writing.put(change)
                self._writing.commit(Standing(index.view.standing.epoch, batch[-1].seq))
                index.reload()
                self._tell_moved()
                done += len(batch)
                # What came meanwhile is left for the next turn: under steady writes there would be no end, and no rest.
                if len(batch) < _CHANGES or self._stopping.is_set():
                    break
                index.free()
        except Busy:
            index.reload()
            self._tell_moved()
        except Broken as error:
            self._let_go()
            self._failures += 1
            if self._failures == 1:
                self._index = None  # Opened again, it may do: a disk that was full may have room now.
            elif self._folder.current() == index.path:
                self._warn("The search index is broken, and is made anew: %s", error)
                self._make_anew()
        else:
            self._failures = 0
        return done

    def _make_anew(self) -> None:
        with suppress(Unready):  # then another process does
            log.info("The search index was made anew (records: %s)", self._rebuild())

    def _warn(self, message: str, error: Broken) -> None:
        """Tell what is wrong; but not each time that it is tried again."""
        if self.trouble is None:
            log.warning(message, error)

    def _newest(self, after: str) -> list[Change]:
        with self._database.read() as snapshot:
            return versions.newest(snapshot, after, _CHANGES)

    def _since(self, seq: int) -> list[Change]:
        with self._database.read() as snapshot:
            return versions.since(snapshot, seq, _CHANGES)

    def _view(self, position: Position) -> View | None:
        """The index as it is; None where there is none of this catalogue."""
        index = self._index
        return None if index is None or index.view.standing.epoch != position.epoch else index.view

    def _waited(self, position: Position) -> View | None:
        deadline = time.monotonic() + (_FIRST_SECONDS if self._index is None else _WAIT_SECONDS)
        if self.trouble is None:  # else it is tried again once a second, however many ask
            self._wanted.set()
        with self._moved:
            while True:
                view = self._view(position)
                left = deadline - time.monotonic()
                # Where the index cannot be kept, to wait is in vain.
                if left <= 0 or self.trouble or (view is not None and not _worth_waiting(view, position)):
                    return view
                # Where another process writes, only looking again tells; but not at once, over and over.
                if not self._moved.wait(min(left, _LOOK_SECONDS)):
                    self._wanted.set()

    def _tell_moved(self) -> None:
        with self._moved:
            self._moved.notify_all()

    def _let_go(self) -> None:
        if self._writing is not None:
            self._writing.close()
            self._writing = None


def lower_priority() -> None:
    """Let this thread, and those that it starts, run only when those that serve and write leave time."""
    with suppress(OSError, AttributeError):
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 10)


def _worth_waiting(view: View, position: Position) -> bool:
    return 0 < position.revision - view.standing.revision <= FAR_BEHIND


def _is_forbidden(error: Exception) -> bool:
    return isinstance(error, OSError) and error.errno in _FORBIDDEN


def _tell(error: Exception) -> None:
    if _is_forbidden(error):
        log.warning("%s Give it to the user that the server runs as; it is tried again: %s", _KEPT_OUT, error)
    elif isinstance(error, LexariumError | OSError):
        log.warning("The search index cannot be kept now, trying again: %s", error)
    else:
        log.exception("The search index cannot be kept now, trying again")
