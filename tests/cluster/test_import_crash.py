"""Short run of `torture.import_crash`: kill an import."""

import random
from pathlib import Path

import pytest

from lexarium.store.maintenance.upgrade import open_database
from torture.import_crash import ENGINES, provide_databases, run, write_thesaurus


@pytest.mark.parametrize("engine", ["sqlite", pytest.param("postgres", marks=pytest.mark.full)])
def test_a_killed_import_of_a_vocabulary_is_stored_completely_or_not_at_all(engine: str, tmp_path: Path) -> None:
    assert engine in ENGINES
    file = write_thesaurus(tmp_path, 200)
    with provide_databases(engine, tmp_path) as copy:
        url = copy(None)
        open_database(url).close()
        outcome = run(url, file, 3, random.Random(1), copy)
    assert outcome.problems == []
    assert outcome.kills == 3
