"""Group commit: waiting writes share a transaction, with a savepoint each, and so one wait for the disk."""

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

# More writes are refused, so that the queue stays bounded.
_MAX_QUEUED = 1_000
# Writes are grouped for as long as the last commit took, but at least this long: so neither the disk nor the first
# waiting write is delayed much.
_MIN_GROUP_SECONDS = 0.002


QueuedWrite = tuple[WriteTask[Any], "Future[Any]"]


class WriteQueue:
    """The single writer of a process. Its thread starts with the first write."""

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
        """Queue a task for a write transaction; return a future for its result after the commit.

        If the task raises, the future fails and nothing of the task is kept. Raises DatabaseUnavailable if the queue
        is full.
        """
        self._start()
        future: Future[Result] = Future()
        try:
            self._queue.put_nowait((task, future))
        except queue.Full:
            raise DatabaseUnavailable("Write queue is full; try again in a few seconds.") from None
        return future

    @property
    def size(self) -> int:
        """Approximate number of waiting writes."""
        return self._queue.qsize()

    def close(self) -> None:
        """Finish waiting writes, then stop."""
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
        """Run the first and all waiting writes in one transaction; return False at the end of the queue."""
        item = first
        done: list[tuple[Future[Any], Any]] = []
        try:
            if item is not None:
                with self._begin() as transaction:
                    # Measured from the lock on, so that writes which waited meanwhile join the group.
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
            # If the transaction did not even begin, all waiting writes fail, instead of each waiting as long again.
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
            return  # cancelled by the caller
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
        """Remove and return all waiting writes; the end marker stays."""
        items = [self._queue.get_nowait() for _ in range(self._queue.qsize())]
        if None in items:
            self._queue.put(None)
        return [item[1] for item in items if item is not None]


def _try_rollback(transaction: Transaction) -> bool:
    """Roll back one write; return False if that fails. On a full disk the engine has rolled back everything."""
    try:
        transaction.rollback_write()
    except (SQLAlchemyError, StoreError):
        return False
    return True


def _fail_all(futures: list["Future[Any]"], error: Exception) -> None:
    for future in futures:
        if not future.done() and (future.running() or future.set_running_or_notify_cancel()):
            future.set_exception(error)
