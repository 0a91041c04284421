"""Fixtures for tests of HTTP."""

from collections.abc import Iterator

import pytest

from tests.support.databases import DatabaseUrlFactory
from tests.support.server import Server


@pytest.fixture(scope="module")
def short_timeout_server(new_url: DatabaseUrlFactory) -> Iterator[Server]:
    """Server that waits three seconds for the rest of a request."""
    with Server(new_url("sqlite"), LEXARIUM_BODY_SECONDS="3") as running:
        yield running
