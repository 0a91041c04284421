"""Pin server and load to separate CPU cores."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass(frozen=True)
class CoreAssignment:
    """Cores of server and load; None if there are too few."""

    server: int | None
    load: int | None


def choose_cores() -> CoreAssignment:
    """Choose the first core for the server and the last for the load: neighbours may share a physical core."""
    allowed = sorted(os.sched_getaffinity(0))
    return CoreAssignment(allowed[0], allowed[-1]) if len(allowed) > 1 else CoreAssignment(None, None)


@contextmanager
def pin_to_core(core: int | None) -> Iterator[None]:
    """Pin this thread, and processes started inside the block, to a core."""
    if core is None:
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {core})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
