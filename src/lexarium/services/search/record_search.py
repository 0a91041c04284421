"""Search records, and complete labels while a user types."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial

from lexarium.domain.errors import FieldProblem, IndexNotReady, InvalidInput
from lexarium.domain.identifiers import has_prefix
from lexarium.domain.record import Record, RecordState
from lexarium.domain.schema.collections import COLLECTIONS, CONCEPT_CLASS
from lexarium.domain.text.characters import find_unstorable_char
from lexarium.search.documents import list_identifiers
from lexarium.search.executor import IndexHit, QueryExecutor
from lexarium.search.index import IndexCorrupt, IndexPosition, IndexSnapshot
from lexarium.search.queries import SearchFilter
from lexarium.search.query_parser import ParsedQuery
from lexarium.search.ranking import EXACT_TIERS, TextSpan, Tier
from lexarium.search.snippets import build_snippet
from lexarium.services.search.indexer import Indexer
from lexarium.store import change_log, records
from lexarium.store.database import Database
from lexarium.store.engine.position_queries import read_position
from lexarium.store.position import Position

MAX_QUERY_CHARS = 10_000
# Last hit that a page may reach.
MAX_DEPTH = 2_000
_MAX_SIMILAR = 6
# Hits searched for similar names: others may match with words of several labels.
_SIMILAR_CANDIDATES = 50
_SIMILAR_TIERS = EXACT_TIERS - {Tier.ID} | {Tier.TYPO}

Facets = dict[str, dict[str, int]]
"""Hits per value of `collection`, `class` and `state`."""


@dataclass(frozen=True)
class SearchQuery:
    """Text to search for, filters and page."""

    text: str
    # Empty: concept, task and disorder; all collections if the text is an identifier.
    collections: tuple[str, ...] = ()
    # Identifier or name of a concept class.
    class_ref: str | None = None
    states: tuple[RecordState, ...] = (RecordState.PUBLISHED,)
    limit: int = 10
    offset: int = 0
    explain: bool = False


@dataclass(frozen=True)
class RecordHit:
    """A record that matches, and the text that matched."""

    id: str
    name: str
    collection: str
    state: RecordState
    replaced_by: str | None
    # From 1 for an exact match towards 0, falling from hit to hit.
    score: float
    tier: Tier
    # `id`, `name`, `alias` or `definition`.
    field: str
    # The identifier or label, or a snippet of the definition.
    text: str
    highlight: tuple[TextSpan, ...]
    explanation: str | None = None

    @property
    def is_exact(self) -> bool:
        """True if the query equals the record's identifier, name or an alias, folded."""
        return self.tier in EXACT_TIERS


@dataclass(frozen=True)
class SearchResult:
    """One page of hits, with figures for all of them."""

    hits: list[RecordHit]
    total: int
    facets: Facets = field(default_factory=dict)
    class_names: dict[str, str] = field(default_factory=dict)
    # A label close to the query, if none equals it.
    did_you_mean: str | None = None
    # Records that have the query as identifier, name or alias.
    exact_count: int = 0


@dataclass(frozen=True)
class LabelSuggestion:
    """A record, and the name or alias that completes a prefix."""

    id: str
    name: str
    collection: str
    text: str
    highlight: tuple[TextSpan, ...] = ()


class RecordSearch:
    """Search over the index and the database of one catalogue."""

    def __init__(self, database: Database, indexer: Indexer) -> None:
        self._database = database
        self._indexer = indexer

    def get_position(self) -> Position:
        """Return the current position of the catalogue. Call it from the serving thread only."""
        return self._database.get_position()

    def search(self, query: SearchQuery, position: Position | None = None) -> SearchResult:
        """Return the hits, best first, at a position or the current one; raise InvalidInput."""
        return self.search_many([query], position)[0]

    def search_many(self, queries: Sequence[SearchQuery], position: Position | None = None) -> list[SearchResult]:
        """Run several searches in one snapshot of the index; raise InvalidInput."""
        for query in queries:
            _require_valid(query)
        with self._handle_broken_index():
            index_snapshot = self._get_snapshot(position)
            return [index_snapshot.get_cached(query, partial(self._run, index_snapshot, query)) for query in queries]

    def count_facets(self, queries: Sequence[SearchQuery]) -> list[Facets]:
        """Count the hits of queries per facet, which costs less than the hits; raise InvalidInput."""
        for query in queries:
            _require_valid(query)
        if not queries:
            return []
        with self._handle_broken_index():
            index_snapshot = self._get_snapshot(None)
            return [
                index_snapshot.get_cached(("facets", query), partial(self._load_facets, index_snapshot, query))
                for query in queries
            ]

    def find_similar_names(self, names: Sequence[str], collection: str, exclude: str | None = None) -> list[RecordHit]:
        """Return records with one of these names, ignoring case, accents and a typo; none while there is no index."""
        queries = [
            SearchQuery(name, (collection,), limit=_SIMILAR_CANDIDATES)
            for name in names
            if 0 < len(name) <= MAX_QUERY_CHARS
        ]
        try:
            hits = [hit for result in self.search_many(queries) for hit in result.hits]
        except IndexNotReady:
            return []
        similar = {hit.id: hit for hit in hits if hit.tier in _SIMILAR_TIERS and hit.id != exclude}
        return list(similar.values())[:_MAX_SIMILAR]

    def get_index_lag(self, position: Position) -> int | None:
        """Return the number of changes that are not indexed; None without an index."""
        return self._indexer.lag(position)

    def suggest(
        self, prefix: str, collections: Sequence[str] = (), limit: int = 10, position: Position | None = None
    ) -> list[LabelSuggestion]:
        """Return the best completions of a prefix in some collections, or all; raise InvalidInput."""
        _require_valid(SearchQuery(prefix, tuple(collections)), "prefix")
        search_filter = SearchFilter(tuple(collections) or tuple(COLLECTIONS))
        with self._handle_broken_index():
            index_snapshot = self._get_snapshot(position)
            return index_snapshot.get_cached(
                (prefix, search_filter, limit), lambda: _complete(index_snapshot, prefix, search_filter, limit)
            )

    def search_ids(self, text: str, collections: Sequence[str]) -> tuple[IndexPosition, Iterator[str]]:
        """Return the ids of all hits, best first, and the position of the index, which may lag behind."""
        index_snapshot = self._get_snapshot(None)
        search = QueryExecutor(index_snapshot, text[:MAX_QUERY_CHARS], SearchFilter(tuple(collections)))
        return index_snapshot.position, self._guard_iterator(search.iter_record_ids())

    def _guard_iterator(self, record_ids: Iterator[str]) -> Iterator[str]:
        with self._handle_broken_index():
            yield from record_ids

    @contextmanager
    def _handle_broken_index(self) -> Iterator[None]:
        try:
            yield
        except IndexCorrupt as error:
            self._indexer.mark_broken()
            raise IndexNotReady("The search index is broken, and is made anew. Try again in a moment.") from error

    def _get_snapshot(self, position: Position | None) -> IndexSnapshot:
        if position is None:
            position = self._database.run_read(read_position)
        return self._indexer.get_snapshot(position)

    def _build_search(self, index_snapshot: IndexSnapshot, query: SearchQuery) -> QueryExecutor:
        search_filter = SearchFilter(query.collections, query.states, self._resolve_class(query.class_ref))
        return QueryExecutor(index_snapshot, query.text, search_filter)

    def _load_facets(self, index_snapshot: IndexSnapshot, query: SearchQuery) -> Facets:
        return self._build_search(index_snapshot, query).count_facets().counts

    def _run(self, index_snapshot: IndexSnapshot, query: SearchQuery) -> SearchResult:
        search = self._build_search(index_snapshot, query)
        hits = search.get_page(query.offset, query.offset + query.limit)
        facets = search.count_facets()
        # The index has neither definitions nor replacements.
        ids_to_load = [
            hit.record_id
            for hit in hits
            if hit.grade.field in ("id", "definition") or hit.state != RecordState.PUBLISHED
        ]
        loaded = self._load_records(ids_to_load) if ids_to_load else {}
        return SearchResult(
            hits=[_to_hit(hit, loaded.get(hit.record_id), search.parsed_query, explain=query.explain) for hit in hits],
            total=facets.total,
            facets=facets.counts,
            class_names=self._load_class_names(index_snapshot, facets.counts["class"]),
            did_you_mean=search.did_you_mean,
            exact_count=sum(hit.grade.tier in EXACT_TIERS for hit in search.ranked_hits),
        )

    def _load_records(self, record_ids: Sequence[str]) -> dict[str, Record]:
        changes = self._database.run_read(change_log.find_latest, record_ids)
        return {record_id: change.to_record() for record_id, change in changes.items()}

    def _load_class_names(self, index_snapshot: IndexSnapshot, class_ids: Iterable[str]) -> dict[str, str]:
        cache = index_snapshot.class_name_cache
        unknown = sorted(set(class_ids) - cache.keys())
        if unknown:
            with self._database.read() as snapshot:
                cache.update({**dict.fromkeys(unknown), **records.find_names(snapshot, unknown)})
        return {class_id: name for class_id in sorted(class_ids) if (name := cache[class_id]) is not None}

    def _resolve_class(self, class_ref: str | None) -> str | None:
        if class_ref is None or has_prefix(class_ref, CONCEPT_CLASS.id_prefixes):
            return class_ref
        with self._database.read() as snapshot:
            row = None if find_unstorable_char(class_ref) else records.find_by_name(snapshot, CONCEPT_CLASS, class_ref)
        if row is None:
            problem = FieldProblem("class", "should be the identifier or the name of a class.")
            raise InvalidInput("This cannot be looked for.", [problem])
        return row.id


def _complete(
    index_snapshot: IndexSnapshot, prefix: str, search_filter: SearchFilter, limit: int
) -> list[LabelSuggestion]:
    search = QueryExecutor(index_snapshot, prefix, search_filter, search_definitions=False)
    suggestions = []
    for hit in search.get_completions(limit):
        grade = hit.grade_with_label(search.parsed_query)
        suggestions.append(LabelSuggestion(hit.record_id, hit.labels[0], hit.collection, grade.text, grade.highlight))
    return suggestions


def _require_valid(query: SearchQuery, parameter: str = "q") -> None:
    """Raise InvalidInput with all problems of a query; `parameter` is the name of its text in the API."""
    problems = []
    if len(query.text) > MAX_QUERY_CHARS:
        message = f"should have at most {MAX_QUERY_CHARS} characters, not {len(query.text)}."
        problems.append(FieldProblem(parameter, message))
    unknown = [name for name in query.collections if name not in COLLECTIONS]
    if unknown:
        message = f"should be among {', '.join(COLLECTIONS)}, not {', '.join(unknown)}."
        problems.append(FieldProblem("collection", message))
    if query.offset + query.limit > MAX_DEPTH:
        message = f"should lead to no further than the {MAX_DEPTH:,}th hit, limit included."
        problems.append(FieldProblem("offset", message))
    if problems:
        raise InvalidInput("This cannot be looked for.", problems)


def _to_hit(hit: IndexHit, record: Record | None, parsed_query: ParsedQuery, *, explain: bool) -> RecordHit:
    matched_field, text, highlight = _find_matched_text(hit, record, parsed_query)
    return RecordHit(
        id=hit.record_id,
        name=hit.labels[0],
        collection=hit.collection,
        state=RecordState(hit.state),
        replaced_by=record.replaced_by if record else None,
        score=round(hit.score, 4),
        tier=hit.grade.tier,
        field=matched_field,
        text=text,
        highlight=highlight,
        explanation=f"{hit.grade.tier.api_name}: {hit.grade.explanation}" if explain else None,
    )


def _find_matched_text(
    hit: IndexHit, record: Record | None, parsed_query: ParsedQuery
) -> tuple[str, str, tuple[TextSpan, ...]]:
    """Return the field that matched, its text or a snippet, and the parts to highlight."""
    if hit.grade.field == "id":
        own_ids = [hit.record_id] if record is None else list_identifiers(record)
        text = next((own_id for own_id in own_ids if own_id.casefold() == parsed_query.identifier), hit.record_id)
        return "id", text, (TextSpan(0, len(text)),)
    if hit.grade.field == "definition":
        text, highlight = build_snippet(record.definition if record is not None else "", parsed_query)
        if highlight:
            return "definition", text, highlight
    grade = hit.grade_with_label(parsed_query)
    return grade.field, grade.text, grade.highlight
