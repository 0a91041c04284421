"""The short form of `make torture`: a server is killed in the middle of its writes."""

import pytest

from tests.conftest import ENGINES
from torture.crash import run


@pytest.mark.parametrize("engine", ENGINES)
def test_a_killed_server_has_lost_nothing_it_acknowledged_and_kept_nothing_in_part(engine: str) -> None:
    ledger, problems = run(engine, workers=1, kills=2, seed=1)
    assert not problems
    assert ledger.acknowledged
