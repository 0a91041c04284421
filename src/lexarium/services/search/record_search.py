"""Finding records: what is asked, what is found, and the use case that finds it."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

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
from lexarium.search.ranking import EXACT_TIERS, MatchGrade, TextSpan, Tier
from lexarium.search.snippets import build_snippet
from lexarium.services.search.indexer import Indexer
from lexarium.store import change_log, records
from lexarium.store.database import Database
from lexarium.store.position import Position, read_position

MAX_QUERY_CHARS = 10_000
"""How many characters a query may have."""
MAX_DEPTH = 2_000
"""How far one may page."""
_MAX_SIMILAR = 6
_SIMILAR_CANDIDATES = 50
"""How many hits are looked through for names that are alike: others may have the words in several labels."""
_SIMILAR_TIERS = EXACT_TIERS - {Tier.ID} | {Tier.TYPO}
"""Where what was asked is a whole name or alias, perhaps with a mistake."""


@dataclass(frozen=True)
class SearchQuery:
    """What is looked for, and where."""

    text: str
    """Any text: words, `"phrases"`, an identifier or a CURIE."""
    collections: tuple[str, ...] = ()
    """None: concept, task and disorder, and all of them for an identifier."""
    class_ref: str | None = None
    """The identifier or the name of a concept class."""
    states: tuple[RecordState, ...] = (RecordState.PUBLISHED,)
    limit: int = 10
    offset: int = 0
    explain: bool = False


@dataclass(frozen=True)
class RecordHit:
    """A record that was found, and why."""

    id: str
    name: str
    collection: str
    state: RecordState
    replaced_by: str | None
    """The record that stands in for one that is retired or merged."""
    score: float
    """From 1 for an exact match towards 0. It falls from hit to hit."""
    tier: Tier
    field: str
    """What matched: `id`, `name`, `alias` or `definition`."""
    text: str
    """The text that matched, as it is written: which alias, or the part of the definition."""
    highlight: tuple[TextSpan, ...]
    """The parts of `text` that were asked for."""
    explanation: str | None = None
    """How the score came about, where that was asked."""

    @property
    def is_exact(self) -> bool:
        """Whether the whole of what was asked is the record's identifier, name or alias, folded."""
        return self.tier in EXACT_TIERS


@dataclass(frozen=True)
class SearchResult:
    """What a search found."""

    hits: list[RecordHit]
    total: int
    facets: dict[str, dict[str, int]] = field(default_factory=dict)
    """How many hits there are in each `collection`, `class` and `state`."""
    class_names: dict[str, str] = field(default_factory=dict)
    """The names of those classes, by identifier."""
    did_you_mean: str | None = None
    """A name or alias close to what was asked, where no name or alias is it."""
    exact_count: int = 0
    """How many records have what was asked as their identifier, name or alias: more than one are ambiguous."""


@dataclass(frozen=True)
class LabelSuggestion:
    """A completion of what someone types."""

    id: str
    name: str
    collection: str
    text: str
    """The name or alias that completes it."""
    highlight: tuple[TextSpan, ...] = ()


class RecordSearch:
    """Finds records of one catalogue."""

    def __init__(self, database: Database, indexer: Indexer) -> None:
        self._database = database
        self._indexer = indexer

    def get_position(self) -> Position:
        """Where the catalogue stands, for what is asked next. To be called from the one thread that serves."""
        return self._database.get_position()

    def search(self, query: SearchQuery, position: Position | None = None) -> SearchResult:
        """The hits, best first, of the position that was seen or else is looked up. Raises `Invalid`."""
        return self.search_many([query], position)[0]

    def search_many(self, queries: Sequence[SearchQuery], position: Position | None = None) -> list[SearchResult]:
        """The same for many queries, all of one state of the index."""
        for query in queries:
            _require_valid(query)
        with self._handle_broken_index():
            index_snapshot = self._get_snapshot(position)
            return [index_snapshot.get_cached(query, partial(self._run, index_snapshot, query)) for query in queries]

    def count_facets(self, queries: Sequence[SearchQuery]) -> list[dict[str, dict[str, int]]]:
        """How many hits many queries have, by `collection`, `class` and `state`: for less than the hits cost."""
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
        """Records with one of these names, or but for case, accents or a typing mistake; none while there is no index.

        `but` is the one that is to have them itself.
        """
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
        """How many changes the index has yet to take in; None where there is no index."""
        return self._indexer.lag(position)

    def suggest(
        self, prefix: str, collections: Sequence[str] = (), limit: int = 10, position: Position | None = None
    ) -> list[LabelSuggestion]:
        """The few best completions of what someone types, over the names and aliases of these collections, or all."""
        _require_valid(SearchQuery(prefix, tuple(collections)), "prefix")
        search_filter = SearchFilter(tuple(collections) or tuple(COLLECTIONS))
        with self._handle_broken_index():
            index_snapshot = self._get_snapshot(position)
            return index_snapshot.get_cached(
                (prefix, search_filter, limit), lambda: _complete(index_snapshot, prefix, search_filter, limit)
            )

    def search_ids(self, text: str, collections: Sequence[str]) -> tuple[IndexPosition, Iterator[str]]:
        """The identifiers of every hit, best first, and when it was so: a little ago, where the index is behind."""
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
            with self._database.read() as snapshot:
                position = read_position(snapshot)
        return self._indexer.get_snapshot(position)

    def _build_search(self, index_snapshot: IndexSnapshot, query: SearchQuery) -> QueryExecutor:
        return QueryExecutor(
            index_snapshot,
            query.text,
            SearchFilter(query.collections, query.states, self._resolve_class(query.class_ref)),
        )

    def _load_facets(self, index_snapshot: IndexSnapshot, query: SearchQuery) -> dict[str, dict[str, int]]:
        return self._build_search(index_snapshot, query).count_facets().counts

    def _run(self, index_snapshot: IndexSnapshot, query: SearchQuery) -> SearchResult:
        search = self._build_search(index_snapshot, query)
        candidates = search.get_page(query.offset, query.offset + query.limit)
        facets = search.count_facets()
        ids_to_load = [candidate.record_id for candidate in candidates if _needs_record(candidate)]
        records_by_id = self._load_records(ids_to_load) if ids_to_load else {}
        return SearchResult(
            hits=[
                _to_hit(candidate, records_by_id.get(candidate.record_id), search.parsed_query, explain=query.explain)
                for candidate in candidates
            ],
            total=facets.total,
            facets=facets.counts,
            class_names=self._load_class_names(index_snapshot, facets.counts["class"]),
            did_you_mean=search.did_you_mean,
            exact_count=sum(candidate.grade.tier in EXACT_TIERS for candidate in search.ranked_hits),
        )

    def _load_records(self, record_ids: Sequence[str]) -> dict[str, Record]:
        with self._database.read() as snapshot:
            return {
                record_id: change.to_record()
                for record_id, change in change_log.find_latest(snapshot, record_ids).items()
            }

    def _load_class_names(self, index_snapshot: IndexSnapshot, class_ids: Iterable[str]) -> dict[str, str]:
        """The names of classes, each looked up once for a state of the index."""
        unknown = sorted(set(class_ids) - index_snapshot.class_name_cache.keys())
        if unknown:
            with self._database.read() as snapshot:
                index_snapshot.class_name_cache.update(
                    {**dict.fromkeys(unknown), **records.find_names(snapshot, unknown)}
                )
        names = ((class_id, index_snapshot.class_name_cache[class_id]) for class_id in sorted(class_ids))
        return {class_id: name for class_id, name in names if name is not None}

    def _resolve_class(self, class_ref: str | None) -> str | None:
        """The identifier of a class that is told by that or by its name. Raises `Invalid` where it is neither."""
        if class_ref is None or has_prefix(class_ref, CONCEPT_CLASS.id_prefixes):
            return class_ref
        with self._database.read() as snapshot:
            row = None if find_unstorable_char(class_ref) else records.find_by_name(snapshot, CONCEPT_CLASS, class_ref)
        if row is None:
            raise InvalidInput(
                "This cannot be looked for.",
                [FieldProblem("class", "should be the identifier or the name of a class.")],
            )
        return row.id


def _complete(
    index_snapshot: IndexSnapshot, prefix: str, search_filter: SearchFilter, limit: int
) -> list[LabelSuggestion]:
    search = QueryExecutor(index_snapshot, prefix, search_filter, search_definitions=False)
    return [
        _to_suggestion(candidate, candidate.grade_with_label(search.parsed_query))
        for candidate in search.get_completions(limit)
    ]


def _to_suggestion(candidate: IndexHit, grade: MatchGrade) -> LabelSuggestion:
    return LabelSuggestion(candidate.record_id, candidate.labels[0], candidate.collection, grade.text, grade.highlight)


def _require_valid(query: SearchQuery, parameter: str = "q") -> None:
    """Raise `Invalid`, with every problem, for what cannot be asked; `text` is what the caller calls that."""
    problems = []
    if len(query.text) > MAX_QUERY_CHARS:
        problems.append(
            FieldProblem(parameter, f"should have at most {MAX_QUERY_CHARS} characters, not {len(query.text)}.")
        )
    unknown = [name for name in query.collections if name not in COLLECTIONS]
    if unknown:
        problems.append(
            FieldProblem("collection", f"should be among {', '.join(COLLECTIONS)}, not {', '.join(unknown)}.")
        )
    if query.offset + query.limit > MAX_DEPTH:
        problems.append(
            FieldProblem("offset", f"should lead to no further than the {MAX_DEPTH:,}th hit, limit included.")
        )
    if problems:
        raise InvalidInput("This cannot be looked for.", problems)


def _needs_record(candidate: IndexHit) -> bool:
    """Whether a hit needs more of its record than the index holds."""
    return candidate.grade.field in ("id", "definition") or candidate.state != RecordState.PUBLISHED


def _to_hit(candidate: IndexHit, record: Record | None, parsed_query: ParsedQuery, *, explain: bool) -> RecordHit:
    grade = candidate.grade
    matched = _find_matched_text(candidate, record, parsed_query)
    return RecordHit(
        id=candidate.record_id,
        name=candidate.labels[0],
        collection=candidate.collection,
        state=RecordState(candidate.state),
        replaced_by=record.replaced_by if record else None,
        score=round(candidate.score, 4),
        tier=grade.tier,
        field=matched.field,
        text=matched.text,
        highlight=matched.highlight,
        explanation=f"{grade.tier.api_name}: {grade.explanation}" if explain else None,
    )


class _MatchedText(NamedTuple):
    field: str
    text: str
    highlight: tuple[TextSpan, ...]


def _find_matched_text(candidate: IndexHit, record: Record | None, parsed_query: ParsedQuery) -> _MatchedText:
    """The text that shows why a record was found."""
    grade = candidate.grade
    if grade.field == "id":
        own_ids = [candidate.record_id] if record is None else list_identifiers(record)
        text = next((own_id for own_id in own_ids if own_id.casefold() == parsed_query.identifier), candidate.record_id)
        return _MatchedText("id", text, (TextSpan(0, len(text)),))
    if grade.field == "definition":
        text, highlight = build_snippet(record.definition if record is not None else "", parsed_query)
        if highlight:
            return _MatchedText("definition", text, highlight)
    grade = candidate.grade_with_label(parsed_query)
    return _MatchedText(grade.field, grade.text, grade.highlight)
