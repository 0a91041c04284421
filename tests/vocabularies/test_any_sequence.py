"""Any sequence of writes to several vocabularies matches a simple model, for every reader."""

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.support.databases import DatabaseUrlFactory
from tests.support.vocabulary_machine import VocabularyMachine


@pytest.fixture
def machine(request: pytest.FixtureRequest, new_url: DatabaseUrlFactory) -> type[VocabularyMachine]:
    engine: str = request.param

    class EngineVocabularyMachine(VocabularyMachine):
        pass

    EngineVocabularyMachine.new_url = staticmethod(lambda: new_url(engine))
    return EngineVocabularyMachine


@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    ("machine", "runs"),
    [
        pytest.param("sqlite", 1, marks=pytest.mark.short),
        pytest.param("sqlite", 2, marks=pytest.mark.full),
        ("postgres", 1),
    ],
    indirect=["machine"],
)
def test_every_reader_sees_what_the_model_predicts_after_any_sequence_of_writes(
    machine: type[VocabularyMachine], runs: int
) -> None:
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=runs,
            stateful_step_count=25,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            print_blob=True,
        ),
    )
