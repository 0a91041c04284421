"""Poll until a condition holds."""

import time
from collections.abc import Callable
from typing import TypeVar

# Only a failing test waits this long, so it allows for very slow machines.
DEADLINE_SECONDS = 200.0
_POLL_SECONDS = 0.02

Result = TypeVar("Result")


def wait_until(
    condition: Callable[..., Result], *args: object, describe: Callable[[], str] = lambda: "a condition"
) -> Result:
    """Return the first true result of a condition; raise AssertionError at the deadline."""
    end = time.monotonic() + DEADLINE_SECONDS
    while not (result := condition(*args)):
        assert time.monotonic() < end, f"waited in vain for {describe()}"
        time.sleep(_POLL_SECONDS)
    return result
