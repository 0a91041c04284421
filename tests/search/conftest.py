"""Fixtures of reconciliation."""

import pytest

from tests.support.reconciliation_schemas import SpecificationSchemas, load_schemas


@pytest.fixture(scope="session")
def schemas() -> SpecificationSchemas:
    """JSON schemas of the specification."""
    return load_schemas()
