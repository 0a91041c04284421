"""Relevance of the first hits for the queries that were written for the sample."""

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from benchmarks.relevance.catalogues import SAMPLE, IndexedCatalogue, open_catalogue
from benchmarks.relevance.engines import Fts5Search, LexariumSearch, PostgresSearch, SearchEngine
from benchmarks.relevance.measure import ALL_KINDS, run_queries, summarize
from benchmarks.relevance.queries import RelevanceQuery, generate_queries, load_sample_queries

pytestmark = pytest.mark.full

ROOT = Path(__file__).parents[2]
# MRR by kind. Raise these when the ranking gets better.
REACHED = {
    "exact name": 1.0,
    "alias": 1.0,
    "one typo": 1.0,
    "several typos": 1.0,
    "acronym": 1.0,
    "partial": 0.98,
    "question": 0.893,
    "other language": 1.0,
    "number": 0.96,
    "prefix": 1.0,
    "order, plural or spelling": 1.0,
    "definition": 1.0,
    ALL_KINDS: 0.986,
}
# One query of a kind may be lost, and three of all.
KIND_MARGIN, MARGIN = 0.041, 0.011
WORKING_MEMORY = "trm_606958d85e21c"


@pytest.fixture(scope="module")
def catalogue() -> Iterator[IndexedCatalogue]:
    with open_catalogue(SAMPLE) as indexed_catalogue:
        yield indexed_catalogue


def test_every_written_query_expects_searchable_records(catalogue: IndexedCatalogue) -> None:
    queries = load_sample_queries()
    assert Counter(query.kind for query in queries) == dict.fromkeys(set(REACHED) - {ALL_KINDS}, 25)
    searched = {record.id for record in catalogue.records}
    assert all(query.expected and query.expected <= searched for query in queries)


def test_the_relevance_of_each_kind_of_query_does_not_decrease(catalogue: IndexedCatalogue) -> None:
    figures = summarize(run_queries(LexariumSearch(catalogue), load_sample_queries()))
    lost = {
        kind: figures[kind].mrr
        for kind, reached in REACHED.items()
        if figures[kind].mrr < reached - (MARGIN if kind == ALL_KINDS else KIND_MARGIN)
    }
    assert not lost


def test_mean_reciprocal_rank_and_recall_are_computed_by_kind() -> None:
    class FixedSearch:
        def search(self, text: str) -> list[str]:
            return ["a", "b", "c", "d", "e", "f"]

    queries = [
        RelevanceQuery("x", "second and fourth", frozenset("bd")),
        RelevanceQuery("x", "sixth", frozenset("f")),
        RelevanceQuery("y", "absent", frozenset("z")),
    ]
    figures = summarize(run_queries(FixedSearch(), queries))
    assert list(figures) == ["x", "y", ALL_KINDS]
    assert figures["x"].mrr == pytest.approx((1 / 2 + 1 / 6) / 2)
    assert figures["x"].recall == pytest.approx(1 / 2)
    assert (figures["y"].mrr, figures[ALL_KINDS].queries) == (0, 3)


def test_generated_queries_are_deterministic_and_expect_existing_records(catalogue: IndexedCatalogue) -> None:
    queries = generate_queries(catalogue.records)
    assert queries == generate_queries(catalogue.records)
    assert {query.kind for query in queries} <= set(REACHED)
    searched = {record.id for record in catalogue.records}
    assert all(query.expected and query.expected <= searched for query in queries)
    exact_names = [query for query in queries if query.kind == "exact name"]
    assert summarize(run_queries(LexariumSearch(catalogue), exact_names))[ALL_KINDS].mrr == 1


def test_compared_engines_search_for_all_words_then_for_any(catalogue: IndexedCatalogue, postgres_server: str) -> None:
    with psycopg.connect(postgres_server) as connection:
        engines: list[SearchEngine] = [
            Fts5Search(catalogue.records),
            PostgresSearch(connection, catalogue.records),
        ]
        for engine in engines:
            assert WORKING_MEMORY in engine.search("working memories")
            assert WORKING_MEMORY in engine.search("qzxjk working memory")
            assert not engine.search("qzxjk")
            assert not engine.search("?")


def test_the_command_prints_figures_of_each_engine_as_json() -> None:
    command = [sys.executable, "-m", "benchmarks.relevance", "--catalogues", SAMPLE, "--json"]
    completed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert "\\u001f" not in completed.stdout
    [report] = json.loads(completed.stdout)
    assert set(report["figures"]) == {"Lexarium", "FTS5", "PostgreSQL"}
    assert report["figures"]["FTS5"][ALL_KINDS]["queries"] == 300
    assert {miss["kind"] for miss in report["misses"]} <= set(REACHED)
    assert len(report["targets"]) == 2
