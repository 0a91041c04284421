"""Short run of `torture.crash`: kill a server during writes."""

import pytest

from tests.support.databases import ENGINES
from torture.crash import run


@pytest.mark.parametrize("workers", [1, pytest.param(3, marks=pytest.mark.full)])
@pytest.mark.parametrize("engine", ENGINES)
def test_a_killed_server_keeps_all_acknowledged_writes_and_no_partial_ones(engine: str, workers: int) -> None:
    outcome = run(engine, workers, kills=3, seed=1)
    assert outcome.problems == []
    assert outcome.kills == 3
    assert outcome.acknowledged > 0
