"""Fixtures for tests of imports."""

import pytest

from lexarium.store.database import Database
from tests.support.imports import Curator


@pytest.fixture
def curator(database: Database) -> Curator:
    return Curator(database)
