"""Figures of relevance: mean reciprocal rank and recall, by kind of query."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean

from benchmarks.relevance.engines import SearchEngine
from benchmarks.relevance.queries import RelevanceQuery

ALL_KINDS = "all"
_RECALL_HITS = 5


@dataclass(frozen=True)
class QueryResult:
    """A query, and the ids of its first hits."""

    query: RelevanceQuery
    hits: Sequence[str]

    @property
    def reciprocal_rank(self) -> float:
        """1 divided by the rank of the first hit that is right, or 0."""
        return next((1 / rank for rank, hit in enumerate(self.hits, 1) if hit in self.query.expected), 0.0)

    @property
    def recall(self) -> float:
        """Share of the right records, of at most five, that are among the first five hits."""
        found = self.query.expected.intersection(self.hits[:_RECALL_HITS])
        return len(found) / min(_RECALL_HITS, len(self.query.expected))


@dataclass(frozen=True)
class RelevanceFigures:
    """Means over the queries of one kind."""

    queries: int
    mrr: float
    recall: float


def run_queries(engine: SearchEngine, queries: Iterable[RelevanceQuery]) -> list[QueryResult]:
    """Search for each query."""
    return [QueryResult(query, engine.search(query.text)) for query in queries]


def summarize(results: Iterable[QueryResult]) -> dict[str, RelevanceFigures]:
    """Return the figures of each kind, and of all queries."""
    results_by_kind: dict[str, list[QueryResult]] = {}
    for result in results:
        for kind in (result.query.kind, ALL_KINDS):
            results_by_kind.setdefault(kind, []).append(result)
    results_by_kind[ALL_KINDS] = results_by_kind.pop(ALL_KINDS)  # last
    return {
        kind: RelevanceFigures(
            len(group), fmean(result.reciprocal_rank for result in group), fmean(result.recall for result in group)
        )
        for kind, group in results_by_kind.items()
    }
