"""Writes that wait are done together: a savepoint each, one commit, and so one wait for the disk, for all."""

import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import AbstractContextManager
from typing import Any, TypeVar

from sqlalchemy.exc import SQLAlchemyError

from lexarium.domain.errors import DatabaseUnavailable, StoreError
from lexarium.store.transaction import Transaction

Result = TypeVar("Result")
WriteTask = Callable[[Transaction], Result]

_MAX_QUEUED = 1_000
"""How many writes may wait; one more is refused, so that a queue never grows without end."""
_MIN_GROUP_SECONDS = 0.002
"""In seconds: for how long writes are taken together at least. Otherwise for as long as the last commit took: so
neither the disk nor the first of those that wait is kept waiting for much longer than the other."""


QueuedWrite = tuple[WriteTask[Any], "Future[Any]"]
"""A write that waits, and the promise of its result."""


class WriteQueue:
    """The one writer of a process. Its thread starts with the first write."""

    def __init__(
        self,
        begin: Callable[[], AbstractContextManager[Transaction]],
        translate_errors: Callable[[], AbstractContextManager[None]],
    ) -> None:
        self._begin = begin
        self._translate_errors = translate_errors
        self._queue: queue.Queue[QueuedWrite | None] = queue.Queue(_MAX_QUEUED)
        self._thread: threading.Thread | None = None
        self._start_lock = threading.Lock()
        self._commit_seconds = 0.0

    def submit(self, task: WriteTask[Result]) -> "Future[Result]":
        """Have this work done in a writing transaction: its result, once that is committed.

        What the work raises is the future's error, and nothing of it is kept.
        """
        self._start()
        future: Future[Result] = Future()
        try:
            self._queue.put_nowait((task, future))
        except queue.Full:
            raise DatabaseUnavailable("Too many writes are waiting.") from None
        return future

    @property
    def size(self) -> int:
        """How many writes wait for their turn, about."""
        return self._queue.qsize()

    def close(self) -> None:
        """Finish what waits, then stop."""
        if self._thread is not None:
            self._queue.put(None)
            self._thread.join()
            self._thread = None

    def _start(self) -> None:
        with self._start_lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="lexarium-writer", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        is_running = True
        while is_running:
            is_running = self._commit_group(self._queue.get())

    def _commit_group(self, first: QueuedWrite | None) -> bool:
        """Do the first write and those that wait, in one transaction. False where it was told to stop."""
        item = first
        done: list[tuple[Future[Any], Any]] = []
        try:
            if item is not None:
                with self._begin() as transaction:
                    # From when its turn has come: what has waited meanwhile, for another node say, goes along.
                    deadline = time.monotonic() + max(self._commit_seconds, _MIN_GROUP_SECONDS)
                    while item is not None:
                        self._run_task(transaction, *item, done)
                        if self._queue.empty() or time.monotonic() > deadline:
                            break
                        item = self._queue.get_nowait()
                    commit_start = time.monotonic()
                self._commit_seconds = time.monotonic() - commit_start
        except Exception as error:
            _fail_all([item[1]] if item else [], error)
            # Where no turn was to be had, each that waits would wait as long again, and in vain.
            _fail_all([future for future, _ in done] or self._drain(), error)
        else:
            for future, result in done:
                future.set_result(result)
        return item is not None

    def _run_task(
        self,
        transaction: Transaction,
        task: WriteTask[Any],
        future: "Future[Any]",
        done: list[tuple["Future[Any]", Any]],
    ) -> None:
        if not future.set_running_or_notify_cancel():
            return  # whoever asked for it has left
        transaction.begin_write()
        try:
            with self._translate_errors():
                result = task(transaction)
        except Exception as error:
            if transaction.is_broken or not _try_rollback(transaction):
                raise
            future.set_exception(error)
        else:
            transaction.end_write()
            done.append((future, result))

    def _drain(self) -> list["Future[Any]"]:
        """Take away all that waits now, but for the word to stop."""
        items = [self._queue.get_nowait() for _ in range(self._queue.qsize())]
        if None in items:
            self._queue.put(None)
        return [item[1] for item in items if item is not None]


def _try_rollback(transaction: Transaction) -> bool:
    """Whether a write was undone by itself. Where a disk is full, the engine has undone the whole transaction."""
    try:
        transaction.rollback_write()
    except (SQLAlchemyError, StoreError):
        return False
    return True


def _fail_all(futures: list["Future[Any]"], error: Exception) -> None:
    for future in futures:
        if not future.done() and (future.running() or future.set_running_or_notify_cancel()):
            future.set_exception(error)
