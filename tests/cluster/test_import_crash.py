"""Short run of `torture.import_crash`: kill an import."""

import random
from pathlib import Path

import pytest

from lexarium.store.maintenance.upgrade import open_database
from torture.import_crash import ENGINES, provide_databases, run

THESAURUS = """@prefix skos: <http://www.w3.org/2004/02/skos/core#> .
<https://example.org/t> a skos:ConceptScheme .
""" + "\n".join(
    f'<https://example.org/t/{n}> a skos:Concept ; skos:inScheme <https://example.org/t> ; skos:prefLabel "term {n}" .'
    for n in range(200)
)


@pytest.mark.parametrize("engine", ["sqlite", pytest.param("postgres", marks=pytest.mark.full)])
def test_a_killed_import_of_a_vocabulary_has_stored_all_or_nothing(engine: str, tmp_path: Path) -> None:
    assert engine in ENGINES
    file = tmp_path / "thesaurus.ttl"
    file.write_text(THESAURUS)
    with provide_databases(engine, tmp_path) as copy:
        url = copy(None)
        open_database(url).close()
        outcome = run(url, file, 3, random.Random(1), copy)
    assert outcome.problems == []
    assert outcome.kills == 3
