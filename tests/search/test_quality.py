"""Quality of the first hits, on the sample and on the real catalogue if present."""

import random
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from lexarium.domain.record import Record
from lexarium.domain.schema.collections import COLLECTIONS
from lexarium.search import executor
from lexarium.search.analysis.folding import fold
from lexarium.search.index import IndexSnapshot
from lexarium.search.queries import SearchFilter
from lexarium.services.search.indexer import Indexer
from lexarium.services.search.record_search import RecordSearch, SearchQuery
from lexarium.services.transfer.field_import.importer import import_files
from lexarium.store import revisions
from lexarium.store.engine.position_queries import read_position
from lexarium.store.maintenance.upgrade import open_database

ACCENTS = str.maketrans("aeouinc", "áéöüïñç")
ALPHABET = "abcdefghijklmnopqrstuvwxyz"
REAL_FILES = ("concept.full.json", "task.full.json", "disorder.full.json", "concept_class.json")


@dataclass
class IndexedCatalogue:
    finder: RecordSearch
    records: list[Record]
    snapshot: IndexSnapshot

    def find_rank(self, query: str, record: Record) -> int:
        """Return the rank of the record, or of another with its name, among the hits."""
        key = fold(record.fields["name"]).key
        hits = self.finder.search(SearchQuery(query)).hits
        return next((rank for rank, hit in enumerate(hits) if fold(hit.name).key == key), 1_000)

    def measure_share(self, query: Callable[[str], str], first: int) -> float:
        """Return the share of records found among the first hits."""
        results = [self.find_rank(query(record.fields["name"]), record) < first for record in self.records]
        return sum(results) / len(results)


@pytest.fixture(scope="module", params=["sample", pytest.param("real", marks=pytest.mark.full)])
def indexed_catalogue(
    request: pytest.FixtureRequest, sample_paths: list[Path], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[IndexedCatalogue]:
    if request.param == "real":
        folder: Path = request.getfixturevalue("real_catalogue")
        paths = [folder / name for name in REAL_FILES]
    else:
        paths = sample_paths
    database = open_database(f"sqlite:///{tmp_path_factory.mktemp('quality')}/catalogue.db")
    import_files(database, paths)
    indexer = Indexer(database, "auto")
    indexer.catch_up()
    with database.read() as snapshot:
        index_snapshot = indexer.get_snapshot(read_position(snapshot))
        all_records = [change.to_record() for change in revisions.list_current(snapshot, "", 10_000)]
    collection_names = {COLLECTIONS[name].name for name in COLLECTIONS.searched}
    searchable_records = [
        record
        for record in all_records
        if record.collection.name in collection_names and fold(record.fields["name"]).words
    ]
    yield IndexedCatalogue(RecordSearch(database, indexer), searchable_records, index_snapshot)
    indexer.stop()
    database.close()


def swap_case_and_accents(text: str) -> str:
    return unicodedata.normalize("NFC", text).swapcase().translate(ACCENTS)


def test_an_exact_name_ranks_first_ignoring_case_and_accents(indexed_catalogue: IndexedCatalogue) -> None:
    assert indexed_catalogue.measure_share(swap_case_and_accents, 1) == 1


def test_an_exact_alias_ranks_first_after_exact_names(indexed_catalogue: IndexedCatalogue) -> None:
    aliases = [
        alias.text
        for record in indexed_catalogue.records
        for alias in record.aliases
        if fold(alias.text).number_key not in ("", fold(record.fields["name"]).number_key)
    ]
    assert aliases
    for alias in aliases:
        key = fold(alias).number_key
        hits = indexed_catalogue.finder.search(SearchQuery(swap_case_and_accents(alias), limit=50)).hits
        first = next(hit for hit in hits if fold(hit.name).number_key != key)
        assert (first.is_exact, fold(first.text).number_key) == (True, key)


def test_one_random_edit_is_corrected(indexed_catalogue: IndexedCatalogue) -> None:
    rng = random.Random(11)

    def add_typo(name: str) -> str:
        index = rng.randrange(len(name))
        before, replaced, after = name[:index], name[index : index + 1], name[index + 1 :]
        letter = rng.choice(ALPHABET)
        return rng.choice(
            [
                before + letter + replaced + after,
                before + letter + after,
                before + after,
                before + after[:1] + replaced + after[1:],
            ]
        )

    assert indexed_catalogue.measure_share(add_typo, 1) >= 0.97


def test_the_first_three_fifths_of_a_name_find_it_among_the_top_five(indexed_catalogue: IndexedCatalogue) -> None:
    assert indexed_catalogue.measure_share(lambda name: name[: max(1, -(-len(name) * 3 // 5))], 5) >= 0.95


def test_hits_do_not_depend_on_the_estimated_number_of_hits(
    indexed_catalogue: IndexedCatalogue, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = [" ".join(word[:4] for word in record.fields["name"].split()) for record in indexed_catalogue.records[:300]]

    def list_hits(few_hits: float) -> list[list[tuple[str, float]]]:
        monkeypatch.setattr(executor, "_FEW_HITS", few_hits)
        pages = [
            executor.QueryExecutor(indexed_catalogue.snapshot, text, SearchFilter()).get_page(0, 50) for text in texts
        ]
        return [[(hit.record_id, hit.score) for hit in page] for page in pages]

    assert list_hits(0) == list_hits(float("inf"))
