"""Search records, and complete labels while a user types."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple

from lexarium.domain.errors import FieldProblem, IndexNotReady, InvalidInput
from lexarium.domain.identifiers import get_local_id, has_prefix, qualify_id, split_id
from lexarium.domain.record import Record, RecordState
from lexarium.domain.schema.collections import COLLECTIONS, CONCEPT_CLASS
from lexarium.domain.text.characters import find_control_char, find_unstorable_char, name_key
from lexarium.search.documents import list_identifiers, list_texts
from lexarium.search.executor import IndexHit, NearestName, QueryExecutor, SearchDepth, matches_language
from lexarium.search.index import IndexCorrupt, IndexPosition, IndexSnapshot
from lexarium.search.near_names import find_near_records
from lexarium.search.queries import SearchFilter
from lexarium.search.query_parser import ParsedQuery
from lexarium.search.ranking import EXACT_TIERS, TextSpan, Tier
from lexarium.search.snippets import build_snippet
from lexarium.services.search.indexer import Indexer
from lexarium.services.vocabularies.access import ReadScope, get_read_scope
from lexarium.store import change_log, records
from lexarium.store.database import Database
from lexarium.store.dependencies import depend_on_index
from lexarium.store.engine.position_queries import read_position
from lexarium.store.position import Position

MAX_QUERY_CHARS = 10_000
# Last hit that a page may reach.
MAX_DEPTH = 2_000
# Hits of a download.
MAX_DOWNLOADED = 10_000
_MAX_NEAR_NAMES = 6
# Names that are offered where no record has all words.
_MAX_NEAREST = 5

Facets = dict[str, dict[str, int]]
"""Hits per value of `vocabulary`, `collection`, `class`, `language` (in lower case) and `state`.

Collections and classes have unique names. A record counts for each language of its names and aliases.
"""


@dataclass(frozen=True)
class SearchQuery:
    """Text to search for, filters and page."""

    text: str
    # Unique names. Empty: those that are not auxiliary; all collections if the text is an identifier.
    collections: tuple[str, ...] = ()
    # Identifier or name of a concept class.
    class_ref: str | None = None
    states: tuple[RecordState, ...] = (RecordState.PUBLISHED,)
    limit: int = 10
    offset: int = 0
    explain: bool = False
    # Vocabularies to search. None: all that everyone may read.
    scope: ReadScope | None = None
    # Languages of the reader, best first. Hits in the first one come first, and names are shown in these.
    languages: tuple[str, ...] = ()
    # Only records with a name or alias in one of these languages; empty: in any.
    label_languages: tuple[str, ...] = ()


@dataclass(frozen=True)
class RecordHit:
    """A record that matches, and the text that matched."""

    # Unique in the database, as are the names of collections.
    id: str
    name: str
    collection: str
    state: RecordState
    replaced_by: str | None
    # From 1 for an exact match towards 0, falling from hit to hit.
    score: float
    tier: Tier
    # `id`, `name`, `alias`, `definition` or `note`.
    field: str
    # The identifier or label, or a snippet of the definition or note.
    text: str
    highlight: tuple[TextSpan, ...]
    # Language of the text; None for an identifier.
    language: str | None = None
    explanation: str | None = None

    @property
    def vocabulary(self) -> str:
        """Slug of its vocabulary."""
        return split_id(self.id)[0]

    @property
    def local_id(self) -> str:
        """Id in its vocabulary."""
        return get_local_id(self.id)

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
    # True if no record has all words: the hits are those with most of them.
    is_partial: bool = False
    # Records with names that are spelled nearly so, if no record has all words.
    nearest: list[NearestName] = field(default_factory=list)


@dataclass(frozen=True)
class LabelSuggestion:
    """A record, and the name or alias that completes a prefix."""

    id: str
    name: str
    collection: str
    text: str
    language: str | None
    highlight: tuple[TextSpan, ...] = ()


@dataclass(frozen=True)
class NearName:
    """A record with a name or alias that equals another name or is near it."""

    # Unique in the database, as is the name of the collection.
    id: str
    name: str
    collection: str
    # `name` or `alias`, and its text.
    field: str
    text: str
    # The name that it was compared with.
    given: str
    # They are equal once folded.
    is_same: bool


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
        queries = [_resolve_scope(query) for query in queries]
        for query in queries:
            _require_valid(query)
        with self._handle_broken_index():
            index_snapshot = self._get_snapshot(position)
            return [index_snapshot.get_cached(query, partial(self._run, index_snapshot, query)) for query in queries]

    def search_all(self, query: SearchQuery, position: Position | None = None) -> SearchResult:
        """Return all hits from the offset on, up to MAX_DOWNLOADED; raise InvalidInput."""
        query = _resolve_scope(query)
        _require_valid(query)
        with self._handle_broken_index():
            # Not cached, since they are many.
            return self._run(self._get_snapshot(position), replace(query, limit=MAX_DOWNLOADED))

    def count_facets(self, queries: Sequence[SearchQuery]) -> list[Facets]:
        """Count the hits of queries per facet, which costs less than the hits; raise InvalidInput."""
        queries = [_resolve_scope(query) for query in queries]
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

    def find_near_names(
        self, names: Sequence[str], collection: str, exclude: str | None = None, *, waits: bool = True
    ) -> list[NearName]:
        """Return records that have one of these names or nearly so, those that have it first.

        Compared are the names and aliases of published records of the vocabulary: of the collection, which the caller
        has to be allowed to read, and of all that are not auxiliary. While there is no index, only names that are equal
        but for case are found. Changes that are not indexed yet are waited for unless `waits` is false.
        """
        names = [
            name for name in dict.fromkeys(names) if 0 < len(name) <= MAX_QUERY_CHARS and not find_unstorable_char(name)
        ]
        if not names:
            return []
        slug = COLLECTIONS[collection].vocabulary
        compared = [name for name in COLLECTIONS.list_names(slug) if not COLLECTIONS[name].is_auxiliary]
        compared = list(dict.fromkeys([collection, *compared]))
        near: dict[str, NearName] = {}
        with self._database.read() as snapshot:
            position = read_position(snapshot)
            keys = {name_key(name): name for name in reversed(names)}
            for row in records.find_by_name_keys(snapshot, compared, list(keys), _MAX_NEAR_NAMES + 1):
                near[row.id] = NearName(row.id, row.name, row.collection, "name", row.name, keys[row.name_key], True)
        with suppress(IndexNotReady):
            for found in self._find_indexed(
                names, SearchFilter(tuple(compared), vocabularies=(slug,)), position, waits
            ):
                near.setdefault(found.id, found)
        near.pop(exclude or "", None)
        return sorted(near.values(), key=lambda item: not item.is_same)[:_MAX_NEAR_NAMES]

    def _find_indexed(
        self, names: Sequence[str], search_filter: SearchFilter, position: Position, waits: bool
    ) -> Iterator[NearName]:
        if self._indexer.lag(position) is None:
            return
        with self._handle_broken_index():
            index_snapshot = self._get_snapshot(position if waits else position._replace(revision=0))
            for name in names:
                for found in find_near_records(index_snapshot, name, search_filter):
                    field = "name" if found.label.is_name else "alias"
                    yield NearName(
                        found.record_id, found.name, found.collection, field, found.label.text, name, found.is_same
                    )

    def get_index_lag(self, position: Position) -> int | None:
        """Return the number of changes that are not indexed; None without an index."""
        return self._indexer.lag(position)

    def suggest(  # noqa: PLR0913, PLR0917 (a query, and when it is answered)
        self,
        prefix: str,
        collections: Sequence[str] = (),
        limit: int = 10,
        position: Position | None = None,
        scope: ReadScope | None = None,
        languages: tuple[str, ...] = (),
    ) -> list[LabelSuggestion]:
        """Return the best completions of a prefix in some collections, or all of a scope; raise InvalidInput."""
        query = _resolve_scope(SearchQuery(prefix, tuple(collections), limit=limit, scope=scope, languages=languages))
        _require_valid(query, "prefix")
        with self._handle_broken_index():
            index_snapshot = self._get_snapshot(position)
            return index_snapshot.get_cached(("suggest", query), lambda: _complete(index_snapshot, query))

    def search_ids(self, text: str, collections: Sequence[str]) -> tuple[IndexPosition, Iterator[str]]:
        """Return the ids of all hits, best first, and the position of the index, which may lag behind."""
        index_snapshot = self._get_snapshot(None)
        slugs = tuple({COLLECTIONS[name].vocabulary for name in collections})
        search_filter = SearchFilter(tuple(collections), vocabularies=slugs)
        search = QueryExecutor(index_snapshot, text[:MAX_QUERY_CHARS], search_filter, depth=SearchDepth.ALL_WORDS)
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
            raise IndexNotReady("Search index is damaged and is being rebuilt; try again in a few seconds.") from error

    def _get_snapshot(self, position: Position | None) -> IndexSnapshot:
        if position is None:
            position = self._database.run_read(read_position)
        index_snapshot = self._indexer.get_snapshot(position)
        depend_on_index(index_snapshot.position.revision)
        return index_snapshot

    def _build_search(self, index_snapshot: IndexSnapshot, query: SearchQuery) -> QueryExecutor:
        assert query.scope is not None
        class_ids = None if query.class_ref is None else self._resolve_class(query.class_ref, query.scope)
        tags = tuple(map(str.lower, query.label_languages))
        search_filter = SearchFilter(query.collections, query.states, class_ids, query.scope.slugs, tags)
        return QueryExecutor(index_snapshot, query.text, search_filter, language=_get_first_language(query))

    def _load_facets(self, index_snapshot: IndexSnapshot, query: SearchQuery) -> Facets:
        return self._build_search(index_snapshot, query).count_facets().counts

    def _run(self, index_snapshot: IndexSnapshot, query: SearchQuery) -> SearchResult:
        search = self._build_search(index_snapshot, query)
        page = search.get_page(query.offset, query.offset + query.limit)
        hits = [hit.show_label(search.parsed_query) for hit in page]
        facets = search.count_facets()
        found_ids = {hit.record_id for hit in hits}
        is_incomplete = search.is_partial or not facets.total
        nearest = search.find_nearest(_MAX_NEAREST) if is_incomplete and not query.offset else []
        # The index has neither definitions nor replacements.
        ids_to_load = [
            hit.record_id
            for hit in hits
            if hit.grade.field in ("id", "definition") or hit.state != RecordState.PUBLISHED
        ]
        loaded = self._load_records(ids_to_load) if ids_to_load else {}
        return SearchResult(
            hits=[_to_hit(hit, loaded.get(hit.record_id), search.parsed_query, query) for hit in hits],
            total=facets.total,
            facets=facets.counts,
            class_names=self._load_class_names(index_snapshot, facets.counts["class"]),
            did_you_mean=search.did_you_mean,
            exact_count=sum(hit.grade.tier in EXACT_TIERS for hit in search.ranked_hits),
            is_partial=search.is_partial,
            nearest=[name for name in nearest if name.record_id not in found_ids],
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

    def _resolve_class(self, class_ref: str, scope: ReadScope) -> tuple[str, ...]:
        """Return the ids of the classes with an id or a name in the vocabularies of a scope."""
        members = [COLLECTIONS[name] for name in scope.collections if COLLECTIONS[name].class_field]
        names = dict.fromkeys(item.class_fields[item.class_field] for item in members if item.class_field)
        collections = [COLLECTIONS[name] for name in names]
        is_id = not find_control_char(class_ref) and not find_unstorable_char(class_ref)
        ids = [qualify_id(item.vocabulary, class_ref) for item in collections] if is_id else []
        if has_prefix(class_ref, CONCEPT_CLASS.id_prefixes):
            return tuple(ids)
        with self._database.read() as snapshot:
            class_ids = tuple(item for item, name in records.find_collections(snapshot, ids).items() if name in names)
            rows = [records.find_by_name(snapshot, item, class_ref) for item in collections if is_id and not class_ids]
        class_ids += tuple(row.id for row in rows if row is not None)
        if not class_ids:
            problem = FieldProblem("class", "must be the ID or name of a class.")
            raise InvalidInput("Invalid query.", [problem])
        return class_ids


def _resolve_scope(query: SearchQuery) -> SearchQuery:
    """Return the query with the vocabularies that it is about now, which caches have to know."""
    return query if query.scope is not None else replace(query, scope=get_read_scope(None))


def _get_first_language(query: SearchQuery) -> str | None:
    return query.languages[0] if query.languages else None


def _complete(index_snapshot: IndexSnapshot, query: SearchQuery) -> list[LabelSuggestion]:
    assert query.scope is not None
    search_filter = SearchFilter(query.collections or query.scope.collections, vocabularies=query.scope.slugs)
    language = _get_first_language(query)
    search = QueryExecutor(index_snapshot, query.text, search_filter, depth=SearchDepth.LABELS, language=language)
    suggestions = []
    for hit in search.get_completions(query.limit):
        grade = hit.grade_with_label(search.parsed_query)
        name = hit.choose_name(query.languages)
        suggestions.append(
            LabelSuggestion(hit.record_id, name, hit.collection, grade.text, grade.language, grade.highlight)
        )
    return suggestions


def _require_valid(query: SearchQuery, parameter: str = "q") -> None:
    """Raise InvalidInput with all problems of a query; `parameter` is the name of its text in the API."""
    problems = []
    if len(query.text) > MAX_QUERY_CHARS:
        message = f"must have at most {MAX_QUERY_CHARS} characters, not {len(query.text)}."
        problems.append(FieldProblem(parameter, message))
    assert query.scope is not None
    known = query.scope.collections if query.collections else ()
    unknown = [name for name in query.collections if name not in known]
    if unknown:
        message = f"must be among {', '.join(known)}, not {', '.join(unknown)}."
        problems.append(FieldProblem("collection", message))
    if query.offset + query.limit > MAX_DEPTH:
        message = f"plus limit must be at most {MAX_DEPTH:,}."
        problems.append(FieldProblem("offset", message))
    if problems:
        raise InvalidInput("Invalid query.", problems)


def _to_hit(hit: IndexHit, record: Record | None, parsed_query: ParsedQuery, query: SearchQuery) -> RecordHit:
    matched = _find_matched_text(hit, record, parsed_query, query.languages)
    return RecordHit(
        id=hit.record_id,
        name=hit.choose_name(query.languages),
        collection=hit.collection,
        state=RecordState(hit.state),
        replaced_by=record.replaced_by if record else None,
        score=round(hit.score, 4),
        tier=hit.grade.tier,
        field=matched.field,
        text=matched.text,
        highlight=matched.highlight,
        language=matched.language,
        explanation=f"{hit.grade.tier.api_name}: {hit.grade.explanation}" if query.explain else None,
    )


class _MatchedText(NamedTuple):
    """The field that matched, its text or a snippet, the parts to highlight, and the language."""

    field: str
    text: str
    highlight: tuple[TextSpan, ...]
    language: str | None


def _find_matched_text(
    hit: IndexHit, record: Record | None, parsed_query: ParsedQuery, languages: Sequence[str]
) -> _MatchedText:
    if hit.grade.field == "id":
        local_id = get_local_id(hit.record_id)
        own_ids = [local_id] if record is None else list_identifiers(record)
        text = next((own_id for own_id in own_ids if own_id.casefold() == parsed_query.identifier), local_id)
        return _MatchedText("id", text, (TextSpan(0, len(text)),), None)
    if hit.grade.field == "definition" and record is not None:
        snippets = [
            _MatchedText(role, *build_snippet(text.text, parsed_query, text.lang), text.lang)
            for role, text in list_texts(record)
        ]
        best = max(snippets, key=lambda item: _rate_snippet(item, languages), default=None)
        if best is not None and best.highlight:
            return best
    grade = hit.grade_with_label(parsed_query)
    return _MatchedText(grade.field, grade.text, grade.highlight, grade.language)


def _rate_snippet(snippet: _MatchedText, languages: Sequence[str]) -> tuple[bool, bool, int]:
    is_preferred = bool(languages) and snippet.language is not None and matches_language(snippet.language, languages[0])
    return bool(snippet.highlight), is_preferred, len(snippet.highlight)
