"""Writes that wait are done together: a savepoint each, one commit, and so one wait for the disk, for all."""

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import AbstractContextManager
from typing import Any, TypeVar

from lexarium.domain.errors import Unavailable
from lexarium.store.transaction import Transaction

Result = TypeVar("Result")
Work = Callable[[Transaction], Result]

_WAITING = 1_000
"""How many writes may wait; one more is refused, so that a queue never grows without end."""
_TOGETHER = 200
"""How many writes share a commit at most, so that the first of them need not wait long."""


class Writer:
    """The one writer of a process. Its thread starts with the first write."""

    def __init__(self, begin: Callable[[], AbstractContextManager[Transaction]]) -> None:
        self._begin = begin
        self._waiting: queue.Queue[tuple[Work[Any], Future[Any]] | None] = queue.Queue(_WAITING)
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()

    def run(self, work: Work[Result]) -> Result:
        """Do this work in a writing transaction and return its result once that is committed.

        What the work raises is raised here, and nothing of it is kept.
        """
        self._start()
        future: Future[Result] = Future()
        try:
            self._waiting.put_nowait((work, future))
        except queue.Full:
            raise Unavailable("Too many writes are waiting.") from None
        return future.result()

    def close(self) -> None:
        """Finish what waits, then stop."""
        if self._thread is not None:
            self._waiting.put(None)
            self._thread.join()
            self._thread = None

    def _start(self) -> None:
        with self._starting:
            if self._thread is None:
                self._thread = threading.Thread(target=self._serve, name="lexarium-writer", daemon=True)
                self._thread.start()

    def _serve(self) -> None:
        while (first := self._waiting.get()) is not None:
            if not self._together(first):
                return

    def _together(self, first: tuple[Work[Any], Future[Any]]) -> bool:
        """Do the first write and those that wait, in one transaction. False where it was told to stop."""
        going_on = True
        done: list[tuple[Future[Any], Any]] = []
        current: Future[Any] | None = first[1]
        try:
            with self._begin() as transaction:
                item: tuple[Work[Any], Future[Any]] | None = first
                while item is not None:
                    work, current = item
                    self._one(transaction, work, current, done)
                    current = None
                    item = None
                    if len(done) < _TOGETHER and not self._waiting.empty():
                        item = self._waiting.get_nowait()
                        going_on = item is not None
        except Exception as error:
            for future in [*(future for future, _ in done), *([current] if current else [])]:
                future.set_exception(error)
        else:
            for future, result in done:
                future.set_result(result)
        return going_on

    def _one(
        self, transaction: Transaction, work: Work[Any], future: Future[Any], done: list[tuple[Future[Any], Any]]
    ) -> None:
        revision = transaction.revision
        savepoint = transaction.connection.begin_nested()
        transaction.batch = revision + 1
        try:
            result = work(transaction)
        except Exception as error:
            savepoint.rollback()
            transaction.revision = revision
            future.set_exception(error)
        else:
            savepoint.commit()
            done.append((future, result))
