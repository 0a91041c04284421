"""Run functions in the background, in a thread that does not keep the process from ending."""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any, TypeVar

Result = TypeVar("Result")


class DaemonExecutor:
    """Runs functions one after another in a daemon thread, which starts on first use.

    The process can end meanwhile. It would wait for the threads of an executor of the standard library.
    """

    def __init__(self, thread_name: str) -> None:
        self._tasks: SimpleQueue[tuple[Future[Any], Callable[[], Any]]] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name=thread_name, daemon=True)
        self._start_lock = threading.Lock()

    def submit(self, function: Callable[[], Result]) -> Future[Result]:
        """Return a future of the result of a function."""
        future: Future[Result] = Future()
        self._tasks.put((future, function))
        with self._start_lock:
            if self._thread.ident is None:
                self._thread.start()
        return future

    def _run(self) -> None:
        while True:
            future, function = self._tasks.get()
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(function())
                except Exception as error:
                    future.set_exception(error)
