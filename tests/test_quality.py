"""How good the first hits are: measured on the sample, and on the real catalogue where it is there."""

import random
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from lexarium.domain.changes import Whole
from lexarium.domain.collections import COLLECTIONS, SEARCHED
from lexarium.search import gathering
from lexarium.search.folding import fold
from lexarium.search.index import View
from lexarium.search.queries import Filter
from lexarium.service.finding import Asked, Finder
from lexarium.service.importing import import_files
from lexarium.service.indexing import Indexer
from lexarium.store import versions
from lexarium.store.backend import read_position
from lexarium.store.migrate import open_database

ACCENTS = str.maketrans("aeouinc", "áéöüïñç")
ALPHABET = "abcdefghijklmnopqrstuvwxyz"
REAL_FILES = ("concept.full.json", "task.full.json", "disorder.full.json", "concept_class.json")


@dataclass
class Catalogue:
    finder: Finder
    records: list[Whole]
    view: View

    def place(self, query: str, record: Whole) -> int:
        """Where the record, or another of its name, is among the hits."""
        key = fold(record.fields["name"]).key
        hits = self.finder.search(Asked(query)).hits
        return next((place for place, hit in enumerate(hits) if fold(hit.name).key == key), 1_000)

    def share(self, query: Callable[[str], str], first: int) -> float:
        """How many of all records are among so many first hits."""
        found = [self.place(query(record.fields["name"]), record) < first for record in self.records]
        return sum(found) / len(found)


@pytest.fixture(scope="module", params=["sample", pytest.param("real", marks=pytest.mark.full)])
def searched(
    request: pytest.FixtureRequest, sample_paths: list[Path], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Catalogue]:
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
        view = indexer.at(read_position(snapshot))
        wholes = [change.whole() for change in versions.newest(snapshot, "", 10_000)]
    searched = {COLLECTIONS[name].name for name in SEARCHED}
    named = [whole for whole in wholes if whole.collection.name in searched and fold(whole.fields["name"]).words]
    yield Catalogue(Finder(database, indexer), named, view)
    indexer.stop()
    database.close()


def flipped(text: str) -> str:
    return unicodedata.normalize("NFC", text).swapcase().translate(ACCENTS)


def test_an_exact_name_comes_first_whatever_its_case_and_accents(searched: Catalogue) -> None:
    assert searched.share(flipped, 1) == 1


def test_an_exact_alias_comes_first_but_for_names(searched: Catalogue) -> None:
    aliases = [
        alias.text
        for record in searched.records
        for alias in record.alias_list
        if fold(alias.text).key not in ("", fold(record.fields["name"]).key)
    ]
    assert aliases
    for alias in aliases:
        key = fold(alias).key
        hits = searched.finder.search(Asked(flipped(alias), limit=50)).hits
        first = next(hit for hit in hits if fold(hit.name).key != key)
        assert (first.exact, fold(first.text).key) == (True, key)


def test_one_random_edit_is_forgiven(searched: Catalogue) -> None:
    draw = random.Random(11)

    def mistyped(name: str) -> str:
        place = draw.randrange(len(name))
        before, at, after = name[:place], name[place : place + 1], name[place + 1 :]
        letter = draw.choice(ALPHABET)
        return draw.choice(
            [before + letter + at + after, before + letter + after, before + after, before + after[:1] + at + after[1:]]
        )

    assert searched.share(mistyped, 1) >= 0.97


def test_the_first_three_fifths_of_a_name_bring_it_among_the_first_five(searched: Catalogue) -> None:
    assert searched.share(lambda name: name[: max(1, -(-len(name) * 3 // 5))], 5) >= 0.95


def test_hits_are_the_same_whether_few_or_many_were_expected(
    searched: Catalogue, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = [" ".join(word[:4] for word in record.fields["name"].split()) for record in searched.records[:300]]

    def hits(few: float) -> list[list[tuple[str, float]]]:
        monkeypatch.setattr(gathering, "_FEW", few)
        found = [gathering.Search(searched.view, text, Filter()).page(0, 50) for text in texts]
        return [[(each.record, each.score) for each in page] for page in found]

    assert hits(0) == hits(float("inf"))
