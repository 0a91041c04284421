"""Progress of long tasks."""

from collections.abc import Callable

# Called with the task, the amount done and the total.
ProgressCallback = Callable[[str, int, int], None]


def ignore_progress(task: str, done: int, total: int) -> None:
    """Do nothing."""
