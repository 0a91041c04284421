"""Wait for what must come, however slow the machine is."""

import time
from collections.abc import Callable

DEADLINE_SECONDS = 200.0
"""Seconds that a test waits for what must come. Only a failure takes that long, so it is generous."""


def wait_until(condition: Callable[..., bool], *args: object) -> None:
    """Return as soon as a condition holds; raise AssertionError at the deadline."""
    end = time.monotonic() + DEADLINE_SECONDS
    while not condition(*args):
        assert time.monotonic() < end, "what was waited for did not come"
        time.sleep(0.02)
