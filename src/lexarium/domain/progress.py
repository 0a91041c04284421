"""How whoever waits is told of work that takes long."""

from collections.abc import Callable

ProgressCallback = Callable[[str, int, int], None]
"""Called as work goes on: what is being done, how much is done, of how much."""


def ignore_progress(task: str, done: int, total: int) -> None:
    """Progress that nobody watches."""
