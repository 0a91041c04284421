"""Writes that wait are done together: a savepoint each, one commit, and so one wait for the disk, for all."""

import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import AbstractContextManager
from typing import Any, TypeVar

from sqlalchemy.exc import SQLAlchemyError

from lexarium.domain.errors import StoreError, Unavailable
from lexarium.store.transaction import Transaction

Result = TypeVar("Result")
Work = Callable[[Transaction], Result]

_WAITING = 1_000
"""How many writes may wait; one more is refused, so that a queue never grows without end."""
_SHORTEST_TURN = 0.002
"""In seconds: for how long writes are taken together at least. Otherwise for as long as the last commit took: so
neither the disk nor the first of those that wait is kept waiting for much longer than the other."""


Item = tuple[Work[Any], "Future[Any]"]
"""A write that waits, and the promise of its result."""


class Writer:
    """The one writer of a process. Its thread starts with the first write."""

    def __init__(
        self,
        begin: Callable[[], AbstractContextManager[Transaction]],
        explained: Callable[[], AbstractContextManager[None]],
    ) -> None:
        self._begin = begin
        self._explained = explained
        self._waiting: queue.Queue[Item | None] = queue.Queue(_WAITING)
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()
        self._commit_took = 0.0

    def submit(self, work: Work[Result]) -> "Future[Result]":
        """Have this work done in a writing transaction: its result, once that is committed.

        What the work raises is the future's error, and nothing of it is kept.
        """
        self._start()
        future: Future[Result] = Future()
        try:
            self._waiting.put_nowait((work, future))
        except queue.Full:
            raise Unavailable("Too many writes are waiting.") from None
        return future

    @property
    def waiting(self) -> int:
        """How many writes wait for their turn, about."""
        return self._waiting.qsize()

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
        going_on = True
        while going_on:
            going_on = self._together(self._waiting.get())

    def _together(self, first: Item | None) -> bool:
        """Do the first write and those that wait, in one transaction. False where it was told to stop."""
        item = first
        done: list[tuple[Future[Any], Any]] = []
        try:
            if item is not None:
                with self._begin() as transaction:
                    # From when its turn has come: what has waited meanwhile, for another node say, goes along.
                    until = time.monotonic() + max(self._commit_took, _SHORTEST_TURN)
                    while item is not None:
                        self._one(transaction, *item, done)
                        if self._waiting.empty() or time.monotonic() > until:
                            break
                        item = self._waiting.get_nowait()
                    committing = time.monotonic()
                self._commit_took = time.monotonic() - committing
        except Exception as error:
            _fail([item[1]] if item else [], error)
            # Where no turn was to be had, each that waits would wait as long again, and in vain.
            _fail([future for future, _ in done] or self._given_up(), error)
        else:
            for future, result in done:
                future.set_result(result)
        return item is not None

    def _one(
        self, transaction: Transaction, work: Work[Any], future: "Future[Any]", done: list[tuple["Future[Any]", Any]]
    ) -> None:
        if not future.set_running_or_notify_cancel():
            return  # whoever asked for it has left
        transaction.begin()
        try:
            with self._explained():
                result = work(transaction)
        except Exception as error:
            if transaction.broken or not _undone(transaction):
                raise
            future.set_exception(error)
        else:
            transaction.end()
            done.append((future, result))

    def _given_up(self) -> list["Future[Any]"]:
        """Take away all that waits now, but for the word to stop."""
        taken = [self._waiting.get_nowait() for _ in range(self._waiting.qsize())]
        if None in taken:
            self._waiting.put(None)
        return [item[1] for item in taken if item is not None]


def _undone(transaction: Transaction) -> bool:
    """Whether a write was undone by itself. Where a disk is full, the engine has undone the whole transaction."""
    try:
        transaction.undo()
    except (SQLAlchemyError, StoreError):
        return False
    return True


def _fail(futures: list["Future[Any]"], error: Exception) -> None:
    for future in futures:
        if not future.done() and (future.running() or future.set_running_or_notify_cancel()):
            future.set_exception(error)
