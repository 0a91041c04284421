"""How whoever waits is told of work that takes long."""

from collections.abc import Callable

Progress = Callable[[str, int, int], None]
"""Called as work goes on: what is being done, how much is done, of how much."""


def silent(what: str, done: int, total: int) -> None:
    """Progress that nobody watches."""
