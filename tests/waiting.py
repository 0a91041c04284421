"""Waiting for what must come, however slow the machine is."""

import time
from collections.abc import Callable

DEADLINE = 60.0
"""In seconds: how long a test waits for what must come."""


def wait_until(holds: Callable[..., bool], *given: object) -> None:
    end = time.monotonic() + DEADLINE
    while not holds(*given):
        assert time.monotonic() < end, "what was waited for did not come"
        time.sleep(0.02)
