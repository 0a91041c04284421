"""The live streams of one worker: how many there are, and when they end."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from lexarium.web.problems import HttpProblem

_LONGEST_SECONDS = 15 * 60


class Streams:
    """Counts the live streams. They are asked now and then whether they may go on."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._open = 0
        self._ending = False

    def refuse_more(self) -> None:
        """Raise a 503 where there are as many as there may be."""
        if self._open >= self._most:
            raise HttpProblem(503, "There are too many live streams here. Try again, or ask without a stream.")

    @contextmanager
    def opened(self) -> Iterator["Stream"]:
        """One more, until the block ends."""
        self._open += 1
        try:
            yield Stream(self)
        finally:
            self._open -= 1

    @property
    def open(self) -> int:
        """How many there are."""
        return self._open

    @property
    def ending(self) -> bool:
        """Whether all are to end."""
        return self._ending

    def end(self) -> None:
        """Have all of them end soon: the server stops."""
        self._ending = True


class Stream:
    """One live stream. It ends in time, so that none is kept for a client that has left without a word."""

    def __init__(self, streams: Streams) -> None:
        self._streams = streams
        self._end = time.monotonic() + _LONGEST_SECONDS

    @property
    def goes_on(self) -> bool:
        """Whether it may; its client comes back where it may not."""
        return not self._streams.ending and time.monotonic() < self._end
