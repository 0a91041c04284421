"""Which processor core the server has to itself, and which the load."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass(frozen=True)
class CoreAssignment:
    """None where there are too few cores to give each side its own."""

    server: int | None
    load: int | None


def choose_cores() -> CoreAssignment:
    """The first core for the server and the last for the load: neighbours may be two threads of one core."""
    allowed = sorted(os.sched_getaffinity(0))
    return CoreAssignment(allowed[0], allowed[-1]) if len(allowed) > 1 else CoreAssignment(None, None)


@contextmanager
def pin_to_core(core: int | None) -> Iterator[None]:
    """Processes started inside run on this core alone; this thread does too until the block ends."""
    if core is None:
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {core})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
