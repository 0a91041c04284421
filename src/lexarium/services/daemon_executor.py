"""Run a function in the background, in a thread that does not keep the process from ending."""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Generic, TypeVar

Result = TypeVar("Result")


class DaemonExecutor(Generic[Result]):
    """Runs one function, once per request, in a daemon thread, which starts on first use.

    Requests that wait at the same time share one run. The process can end meanwhile: it would wait for the threads of
    an executor of the standard library.
    """

    def __init__(
        self, thread_name: str, function: Callable[[], Result], follow_up: Callable[[], None] = lambda: None
    ) -> None:
        """Run a function for requests; and another after it, for which they do not wait."""
        self._function = function
        self._follow_up = follow_up
        self._requests: SimpleQueue[Future[Result]] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name=thread_name, daemon=True)
        self._start_lock = threading.Lock()

    def submit(self) -> Future[Result]:
        """Return a future of the result of a run that begins from now on."""
        future: Future[Result] = Future()
        self._requests.put(future)
        with self._start_lock:
            if self._thread.ident is None:
                self._thread.start()
        return future

    def _run(self) -> None:
        while True:
            futures = [self._requests.get()]
            while not self._requests.empty():
                futures.append(self._requests.get())
            futures = [future for future in futures if future.set_running_or_notify_cancel()]
            if not futures:
                continue
            try:
                result = self._function()
            except Exception as error:
                for future in futures:
                    future.set_exception(error)
            else:
                for future in futures:
                    future.set_result(result)
                self._follow_up()
