"""Measure searches over several vocabularies in three languages beside those over one, in one process."""

import shutil
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.data.records import Record
from benchmarks.data.search_queries import QUERY_KINDS
from benchmarks.data.search_records import generate_search_records
from benchmarks.harness.report import ReportTable, build_page, build_target_table, compute_percentile
from benchmarks.harness.targets import TargetResult
from lexarium.domain.change import Action, Change
from lexarium.domain.identifiers import MAIN_VOCABULARY, qualify_id
from lexarium.domain.record import Record as StoredRecord
from lexarium.domain.schema.collections import COLLECTIONS
from lexarium.domain.schema.relation_types import qualify_name
from lexarium.domain.statement import Statement, Text
from lexarium.domain.vocabulary import Vocabulary, register_vocabularies
from lexarium.search.executor import QueryExecutor
from lexarium.search.index import IndexDirectory, IndexedVocabulary, IndexPosition, IndexSnapshot, SearchIndex
from lexarium.search.queries import SearchFilter

_MAX_UNFILTERED_RATIO, _MAX_FILTERED_RATIO = 1.2, 2.5
_PAGE_SIZE = 10
_LANGUAGES = ("en", "de", "fr")


def run_vocabularies(record_count: int, vocabulary_count: int, query_count: int) -> tuple[list[ReportTable], str]:
    """Measure one vocabulary, then several, unfiltered and filtered by one."""
    records = list(generate_search_records(record_count))
    queries = [text for kind in QUERY_KINDS for text in kind.generate_many(records, query_count)]
    slugs = [MAIN_VOCABULARY, *(f"v{number}" for number in range(1, vocabulary_count))]
    register_vocabularies(Vocabulary(slug=slug, languages=_LANGUAGES) for slug in slugs)
    with TemporaryDirectory(prefix="lexarium-benchmark-") as name:
        folder = Path(name)
        one = measure(build_index(folder, records, slugs[:1], _LANGUAGES[:1]), queries, SearchFilter())
        several = build_index(folder, records, slugs, _LANGUAGES)
        unfiltered = measure(several, queries, SearchFilter())
        filtered = measure(several, queries, SearchFilter(vocabularies=(slugs[-1],)))
    register_vocabularies([])
    rows = [
        (label, f"{compute_percentile(times, 50):.2f}", f"{compute_percentile(times, 99):.2f}")
        for label, times in (("one", one), ("all", unfiltered), ("filtered by one of them", filtered))
    ]
    ratios = [compute_percentile(times, 99) / compute_percentile(one, 99) for times in (unfiltered, filtered)]
    targets = [
        TargetResult(f"p99 {label}, at most {limit:g} times that of one vocabulary", f"{ratio:.2f}", ratio <= limit)
        for label, limit, ratio in zip(
            ("unfiltered", "filtered"), (_MAX_UNFILTERED_RATIO, _MAX_FILTERED_RATIO), ratios, strict=True
        )
    ]
    table = ReportTable("CPU time of a search, ms", ("vocabularies", "p50", "p99"), rows)
    method = (
        f"{record_count:,} generated records in one vocabulary and one language, then in {vocabulary_count}"
        f" vocabularies and {len(_LANGUAGES)} languages, searched in one process. A search has a page of hits and its"
        " facets. The time is that of the CPU, the better of two runs."
    )
    tables = [build_target_table(targets), table]
    return tables, build_page("search", method, tables, record_count)


def build_index(
    folder: Path, records: Sequence[Record], slugs: Sequence[str], languages: Sequence[str]
) -> IndexSnapshot:
    """Build an index of records, which are spread over vocabularies in turn."""
    path = folder / "index"
    shutil.rmtree(path, ignore_errors=True)
    directory = IndexDirectory(path)
    with directory.build_next(None) as writer:
        for change in _iter_changes(records, slugs, languages):
            writer.add(change)
        writer.vocabularies = {slug: IndexedVocabulary("", tuple(COLLECTIONS.list_names(slug))) for slug in slugs}
        writer.commit(IndexPosition("benchmark", len(records)))
    current_path = directory.current_path()
    assert current_path is not None
    return SearchIndex(current_path).snapshot


def _iter_changes(records: Iterable[Record], slugs: Sequence[str], languages: Sequence[str]) -> Iterator[Change]:
    for number, record in enumerate(records):
        slug = slugs[number % len(slugs)]
        collection = COLLECTIONS[qualify_name(slug, "concept")]
        predicates = collection.field_predicates
        statements = [
            Statement(predicates[field], Text(_translate(str(record[field]), language), language))
            for field in ("name", "definition_text")
            for language in languages
            if record[field]
        ]
        if record["alias"]:
            statements.append(Statement(predicates["alias"], Text(str(record["alias"]))))
        stored = StoredRecord(collection, qualify_id(slug, str(record["id"])), tuple(statements))
        yield Change(number + 1, 0, "", number + 1, Action.CREATE, collection.name, stored.id, 1, stored.to_document())


def _translate(text: str, language: str) -> str:
    return text if language == _LANGUAGES[0] else " ".join(f"{word[::-1]}{language}" for word in text.split())


def measure(snapshot: IndexSnapshot, queries: Sequence[str], search_filter: SearchFilter) -> list[float]:
    """Return the CPU time of each query in milliseconds."""
    rounds = [[_time_query(snapshot, text, search_filter) for text in queries] for _ in range(2)]
    return [min(times) for times in zip(*rounds, strict=True)]


def _time_query(snapshot: IndexSnapshot, text: str, search_filter: SearchFilter) -> float:
    start = time.thread_time()
    executor = QueryExecutor(snapshot, text, search_filter)
    executor.get_page(0, _PAGE_SIZE)
    executor.count_facets()
    return (time.thread_time() - start) * 1e3
