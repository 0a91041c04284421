"""Skip tests whose requirements the machine lacks."""

import os
from typing import NoReturn

import pytest

NO_SKIPS_VARIABLE = "LEXARIUM_TEST_NO_SKIPS"


def skip_or_fail(reason: str) -> NoReturn:
    """Skip a test, or fail it if LEXARIUM_TEST_NO_SKIPS is set."""
    if os.environ.get(NO_SKIPS_VARIABLE):
        pytest.fail(f"{reason}, and {NO_SKIPS_VARIABLE} is set", pytrace=False)
    pytest.skip(reason)
