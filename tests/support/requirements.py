"""What a test needs of the machine, and does not find."""

import os
from typing import NoReturn

import pytest

NO_SKIPS_VARIABLE = "LEXARIUM_TEST_NO_SKIPS"
"""The variable that, where it says anything, makes a failure of a skip."""


def skip_or_fail(reason: str) -> NoReturn:
    """Skip a test of a fault that cannot be made here; fail it, where none may be skipped."""
    if os.environ.get(NO_SKIPS_VARIABLE):
        pytest.fail(f"{reason}, and {NO_SKIPS_VARIABLE} is set", pytrace=False)
    pytest.skip(reason)
