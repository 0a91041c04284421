"""Corrupted RDF and OBO files of a vocabulary are imported or rejected, and a rejected one changes nothing."""

import random
from pathlib import Path

import pytest

from lexarium.domain.errors import LexariumError
from lexarium.domain.vocabulary import VOCABULARIES
from lexarium.formats.registry import FORMATS
from lexarium.services.transfer.export import export_records
from lexarium.services.transfer.file_import import run_import
from lexarium.services.transfer.import_request import ImportRequest
from lexarium.store.database import Database
from lexarium.store.engine.position_queries import read_position
from tests.formats.test_obo_round_trip import EVERY_CLAUSE
from tests.formats.test_vocabulary_import import THESAURUS
from torture.import_fuzz import OWL_SAMPLE
from torture.mutations import mutate

ORIGINALS = {"obo": EVERY_CLAUSE.encode(), "skos": THESAURUS.encode(), "owl": OWL_SAMPLE}


def import_corrupted(database: Database, folder: Path, format: str, rounds: int) -> None:
    rng = random.Random(f"{format} {rounds}")
    path = folder / f"made{FORMATS[format].extensions[0]}"
    for _ in range(rounds):
        path.write_bytes(mutate(ORIGINALS[format], rng))
        before = database.run_read(read_position)
        try:
            report = run_import(database, ImportRequest([path], "made", FORMATS[format]))
        except LexariumError:
            assert database.run_read(read_position) == before
            continue
        vocabulary = VOCABULARIES[report.vocabulary]
        assert b"".join(export_records(database, vocabulary, FORMATS[format], vocabulary.collections))


@pytest.mark.parametrize(
    "rounds", [pytest.param(15, marks=pytest.mark.short), pytest.param(60, marks=pytest.mark.full)]
)
@pytest.mark.parametrize("format", ORIGINALS)
def test_a_corrupted_file_is_imported_or_rejected(database: Database, tmp_path: Path, format: str, rounds: int) -> None:
    import_corrupted(database, tmp_path, format, rounds)
