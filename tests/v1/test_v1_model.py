"""After any sequence of writes, records, history and relations are those of a simple model."""

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from lexarium.domain.account import Role
from lexarium.services.access.accounts import add_account
from lexarium.services.access.permissions import Caller
from lexarium.store.maintenance.upgrade import open_database
from tests.support.databases import DatabaseUrlFactory
from tests.support.write_machine import WriteMachine


@pytest.fixture
def catalogue(request: pytest.FixtureRequest, new_url: DatabaseUrlFactory) -> Iterator[type[WriteMachine]]:
    database = open_database(new_url(request.param))

    class DatabaseWriteMachine(WriteMachine):
        pass

    DatabaseWriteMachine.database = database
    DatabaseWriteMachine.caller = Caller(add_account(database, "Ada", Role.CURATOR), Role.CURATOR, "tok_test")
    yield DatabaseWriteMachine
    database.close()


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("catalogue", "runs"),
    [
        pytest.param("sqlite", 1, marks=pytest.mark.short),
        pytest.param("sqlite", 3, marks=pytest.mark.full),
        ("postgres", 2),
    ],
    indirect=["catalogue"],
)
def test_any_sequence_of_writes_matches_the_model(catalogue: type[WriteMachine], runs: int) -> None:
    run_state_machine_as_test(
        catalogue,
        settings=settings(
            max_examples=runs,
            stateful_step_count=30,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
