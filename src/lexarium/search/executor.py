"""Run the queries of a search, the best first, and collect the hits.

The order of hits depends only on the query, never on the size of the page: a fixed number of the first hits is ranked
by how they match; the others follow in the order of their queries.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import IntEnum
from functools import cached_property, partial
from itertools import islice
from typing import Any, NamedTuple

from tantivy import DocAddress, Document, Order, Query

from lexarium.domain.identifiers import MAIN_VOCABULARY, get_local_id, qualify_id
from lexarium.domain.labels import DEFAULT_LANGUAGE
from lexarium.domain.schema.collections import COLLECTIONS
from lexarium.domain.text.languages import choose_language, get_primary_subtag
from lexarium.search.analysis.folding import fold_key
from lexarium.search.analysis.languages import get_stop_words
from lexarium.search.documents import GROUP_SEPARATOR, LABEL_SEPARATOR, LANGUAGE_SEPARATOR, MANY_LANGUAGES, Label
from lexarium.search.index import IndexSnapshot, read_labels, translated_errors
from lexarium.search.queries import QueryBuilder, SearchFilter, any_of
from lexarium.search.query_parser import ParsedQuery, QueryWord, max_edits, parse_query
from lexarium.search.ranking import (
    MatchGrade,
    MatchSource,
    Tier,
    add_best_label,
    demote_acronym,
    grade_identifier,
    grade_match,
    has_written_word,
)

# Hits that are ranked by how they match. The queries themselves give most of the order.
_MAX_RANKED = 30
_MAX_RANKED_PARTIAL = 20
# If fewer hits in labels are expected, one query finds all of them.
_FEW_HITS = 100
_MAX_FACET_VALUES = 100
_GROUP_FACETS = ("vocabulary", "collection", "class", "language")
# Collections, languages and classes together.
_MAX_GROUPS = 50_000
# A fuzzy word takes milliseconds. In longer queries, typing mistakes are looked for only in words that no label has.
_MAX_FUZZY_WORDS = 3
_MAX_ACRONYMS = 10
# Letters of an acronym that may be only its beginning.
_MIN_ACRONYM_START = 3
# Hits among which the nearest names are looked for.
_NEAREST_CANDIDATES = 30
# Share of common trigrams, at most one half.
_MIN_SIMILARITY = 0.15


class SearchDepth(IntEnum):
    """Words that a record must have to be found."""

    # All words in its name and aliases.
    LABELS = 0
    # All words, definitions and notes included.
    ALL_WORDS = 1
    # Most of the words, if no record has all of them.
    MOST_WORDS = 2


class IndexHit(NamedTuple):
    """A matching record, and how it matched."""

    record_id: str
    collection: str
    state: str
    labels: Sequence[Label]
    grade: MatchGrade
    score: float

    @property
    def sort_key(self) -> tuple[float, int, str, str]:
        """Best first; of equal hits the shorter name."""
        name = self.labels[0].text
        return -self.score, len(name), name.casefold(), self.record_id

    def choose_name(self, languages: Sequence[str]) -> str:
        """Return the name in the first of these languages that it has one in, else the one that is shown by default."""
        names = {label.language: label.text for label in reversed(self.labels) if label.is_name}
        default = self.labels[0]
        return names[choose_language(names, languages, default.language) or default.language]

    def grade_with_label(self, parsed_query: ParsedQuery) -> MatchGrade:
        """Return the grade with the label that matches best."""
        has_label = self.grade.is_single_label or self.grade.word_positions
        return self.grade if has_label else add_best_label(self.grade, parsed_query, self.labels)

    def show_label(self, parsed_query: ParsedQuery) -> "IndexHit":
        """Return the hit with the label that matches best if it is partial and a label has one of the words."""
        grade = self.grade_with_label(parsed_query) if self.grade.tier is Tier.PARTIAL else self.grade
        return self._replace(grade=grade) if grade.word_positions else self


class NearestName(NamedTuple):
    """The name of a record that is spelled like the query."""

    name: str
    record_id: str


class FacetCounts(NamedTuple):
    """The number of hits, in total and by facet (vocabulary, collection, class, language, state) and value."""

    total: int
    counts: dict[str, dict[str, int]]


class _QueryStep(NamedTuple):
    """One way to match: its query, and the tier of most of its hits."""

    tier: Tier
    source: MatchSource
    query: Query

    @property
    def uses_bm25(self) -> bool:
        """True if hits are ordered by BM25; else all match alike, and the shorter name is first."""
        return self.source in (MatchSource.DEFINITION, MatchSource.PARTIAL) or self.tier is Tier.TYPO_WORDS

    def get_score(self, grade: MatchGrade) -> float:
        """Return the score of an unranked hit: it must not rise from one hit to the next."""
        is_graded = self.source in (MatchSource.DEFINITION, MatchSource.PARTIAL)
        return grade.score if is_graded else (len(Tier) - 1 - self.tier) / len(Tier)


class _RawHit(NamedTuple):
    address: DocAddress
    weight: float
    step: _QueryStep


# By segment and document number.
_RawHits = dict[tuple[int, int], _RawHit]


class QueryExecutor:
    """Run one search in one snapshot of the index."""

    def __init__(
        self,
        snapshot: IndexSnapshot,
        text: str,
        search_filter: SearchFilter,
        *,
        depth: SearchDepth = SearchDepth.MOST_WORDS,
        language: str | None = None,
    ) -> None:
        """Prepare a search. Within a tier, hits whose matching text is in `language` come first."""
        self._searcher = snapshot.searcher
        self.parsed_query: ParsedQuery = parse_query(text, get_stop_words(search_filter.languages))
        self._filter = search_filter
        self._builder = QueryBuilder(snapshot, self.parsed_query, search_filter)
        self._depth = depth
        self._language = language

    @cached_property
    def ranked_hits(self) -> list[IndexHit]:
        """The first hits, ranked by how their names and aliases match."""
        _, fuzzy_hits = self._fuzzy
        found = self._label_matches.keys()
        new_hits = [raw_hit for doc_key, raw_hit in fuzzy_hits.items() if doc_key not in found]
        hits = [*self._label_hits, *map(self._build_hit, new_hits)]
        if self._language is not None:
            hits = _prefer_language(hits, self._language)
        return sorted(hits, key=lambda hit: hit.sort_key)

    @property
    def did_you_mean(self) -> str | None:
        """The best name or alias with a typing mistake; None if the words occur as they are."""
        texts = (hit.grade.text for hit in self.ranked_hits if hit.grade.tier in (Tier.TYPO, Tier.TYPO_WORDS))
        return next((" ".join(text.split()) for text in texts), None)

    @cached_property
    def is_partial(self) -> bool:
        """True if no record has all words, and the hits are those with most of them."""
        steps, _ = self._partial
        return bool(steps)

    def find_nearest(self, limit: int) -> list[NearestName]:
        """Return records with the names nearest to the text in spelling, whatever they have in common."""
        query = self._builder.match_close_word(self._missing_words)
        if query is None:
            return []
        raw_hits = self._run_steps([_QueryStep(Tier.TYPO_WORDS, MatchSource.FUZZY, query)], _NEAREST_CANDIDATES)
        own_trigrams = _list_trigrams(self.parsed_query.key)
        nearest: list[tuple[float, NearestName]] = []
        for raw_hit in raw_hits.values():
            document = self._get_document(raw_hit)
            name = str(document.get_first("labels")).partition(LABEL_SEPARATOR)[0]
            trigrams = _list_trigrams(fold_key(name))
            similarity = len(trigrams & own_trigrams) / (len(trigrams) + len(own_trigrams))
            if similarity > _MIN_SIMILARITY:
                nearest.append((-similarity, NearestName(name, str(document.get_first("record")))))
        return [name for _, name in sorted(nearest)[:limit]]

    def get_page(self, start: int, end: int) -> list[IndexHit]:
        """Return the hits from `start` up to `end`."""
        ranked = self._hits_above_definitions or self._partial_hits
        max_score = ranked[-1].score if ranked else 1.0
        return [
            hit if isinstance(hit, IndexHit) else self._build_hit(hit, max_score)
            for hit in self._collect(end)[start:end]
        ]

    def get_completions(self, limit: int) -> list[IndexHit]:
        """Return the first hits for autocompletion: the default collections first within a tier."""
        ordered = sorted(
            self.ranked_hits,
            key=lambda hit: (hit.grade.tier, hit.collection not in COLLECTIONS.searched, hit.sort_key),
        )
        return ordered[:limit] + self.get_page(len(ordered), limit)

    def iter_record_ids(self) -> Iterator[str]:
        """Yield the record ids of all hits, the best first."""
        for hit in self._collect(self._searcher.num_docs):
            yield hit.record_id if isinstance(hit, IndexHit) else str(self._get_document(hit).get_first("record"))

    def count_facets(self) -> FacetCounts:
        """Count the hits, in total and by vocabulary, collection, class, language of names and aliases, and state."""
        if not self.ranked_hits and not self.is_partial and not self._has_definition_hits:
            return FacetCounts(0, {name: {} for name in (*_GROUP_FACETS, "state")})
        fields = {"group": _MAX_GROUPS}
        # A facet with only one possible value is not counted: counting is most of the cost of a search.
        if len(self._filter.states) > 1:
            fields["state"] = _MAX_FACET_VALUES
        query = any_of(self._list_hit_queries())
        buckets = self._count_values(query, fields)
        total = sum(buckets["group"].values())
        buckets["group"].pop("", None)
        counts: dict[str, defaultdict[str, int]] = {name: defaultdict(int) for name in _GROUP_FACETS}
        for group, count in buckets["group"].items():
            for facet, value in _split_group(group):
                counts[facet][value] += count
        if MANY_LANGUAGES in counts["language"]:
            many_languages = self._builder.match_many_languages(query)
            languages = self._count_values(many_languages, {"language": _MAX_FACET_VALUES})["language"]
            for language, count in languages.items():
                counts["language"][language] += count
        for tag in (MANY_LANGUAGES, ""):
            counts["language"].pop(tag, None)
        states = buckets.get("state", {str(self._filter.states[0]): total} if total else {})
        facets = {
            name: dict(Counter(values).most_common(_MAX_FACET_VALUES))
            for name, values in (*counts.items(), ("state", states))
        }
        return FacetCounts(total, facets)

    def _list_hit_queries(self) -> list[Query]:
        """Return queries that together match all hits. Match the ranked hits by id if they are all hits in labels.

        Looking for typing mistakes or partial matches a second time would cost more than all else.
        """
        steps, hits = self._partial
        ranked_hits, definition_steps = self._partial_hits, list[_QueryStep]()
        is_complete = len(hits) < _MAX_RANKED_PARTIAL
        if not steps:
            fuzzy_steps, fuzzy_hits = self._fuzzy
            steps = [*self._exact_steps, *self._acronym_steps, *self._all_words_steps, *fuzzy_steps]
            ranked_hits, definition_steps = self.ranked_hits, self._definition_steps
            is_complete = not self._has_more_label_hits and len(fuzzy_hits) < _MAX_RANKED
        if not is_complete:
            return [step.query for step in (*steps, *definition_steps)]
        ranked_queries = [self._builder.match_ids([hit.record_id for hit in ranked_hits])] if ranked_hits else []
        return ranked_queries + [step.query for step in definition_steps]

    def _count_values(self, query: Query, sizes: Mapping[str, int]) -> dict[str, dict[str, int]]:
        """Count hits by the values of fields, of each as many as given; the empty value stands for the others."""
        aggregations = {name: {"terms": {"field": name, "size": size}} for name, size in sizes.items()}
        with translated_errors:
            aggregated = self._searcher.aggregate(query, aggregations)
        values: dict[str, dict[str, int]] = {}
        for name in aggregations:
            counted = aggregated[name]
            values[name] = {str(bucket["key"]): int(bucket["doc_count"]) for bucket in counted["buckets"]}
            if others := int(counted["sum_other_doc_count"]):
                values[name][""] = others
        return values

    @cached_property
    def _hits_above_definitions(self) -> list[IndexHit]:
        """The ranked hits that come before those in definitions."""
        return [hit for hit in self.ranked_hits if hit.grade.tier < Tier.DEFINITION_WORDS]

    def _collect(self, limit: int) -> list[IndexHit | _RawHit]:
        """Return the first hits: the ranked ones, then the others in the order of their queries."""
        hits: list[IndexHit | _RawHit]
        if len(self._hits_above_definitions) >= limit:
            return [*self._hits_above_definitions[:limit]]
        partial_steps, _ = self._partial
        if partial_steps:
            hits = [*self._partial_hits]
            if limit > len(hits) >= _MAX_RANKED_PARTIAL:
                hits += islice(self._run_steps(partial_steps, limit).values(), len(hits), None)
            return hits[:limit]
        if not self.ranked_hits and not self._has_definition_hits:
            return []
        fuzzy_steps, fuzzy_hits = self._fuzzy
        steps: list[_QueryStep] = []
        if self._has_more_label_hits:
            steps = [*self._exact_steps, *self._acronym_steps, *self._iter_word_steps()]
        steps += fuzzy_steps if len(fuzzy_hits) == _MAX_RANKED else []
        seen = self._label_matches.keys() | fuzzy_hits.keys()
        hits = [*self._hits_above_definitions]

        def extend(steps: Sequence[_QueryStep]) -> None:
            if len(hits) < limit and steps:
                raw_hits = self._run_steps(steps, limit + len(seen))
                hits.extend(raw_hit for doc_key, raw_hit in raw_hits.items() if doc_key not in seen)
                seen.update(raw_hits)

        extend([step for step in steps if step.tier < Tier.DEFINITION_WORDS])
        extend(self._definition_steps)
        hits += self.ranked_hits[len(self._hits_above_definitions) :]
        extend([step for step in steps if step.tier > Tier.DEFINITION_WORDS])
        return hits[:limit]

    @cached_property
    def _label_hits(self) -> list[IndexHit]:
        hits = [*map(self._build_hit, self._label_matches.values())]
        if self.parsed_query.is_upper or not any(hit.grade.tier is Tier.ACRONYM for hit in hits):
            return hits
        # "cat" is a word if a label has it as one, and the initials of another name are less likely meant.
        words = (Tier.BEGINNING, Tier.NAME_WORDS, Tier.ALIAS_WORDS)
        if not any(hit.grade.tier in words and has_written_word(hit.grade) for hit in hits):
            return hits
        grades = [demote_acronym(hit.grade) for hit in hits]
        return [hit._replace(grade=grade, score=grade.score) for hit, grade in zip(hits, grades, strict=True)]

    @cached_property
    def _label_matches(self) -> _RawHits:
        """The first hits with all words in name and aliases, and those that the query abbreviates."""
        found = self._run_steps(self._exact_steps, _MAX_RANKED)
        return {**self._find_words(found), **self._acronym_matches, **found}

    @property
    def _has_more_label_hits(self) -> bool:
        """True if there may be more hits like the first."""
        return len(self._label_matches) >= _MAX_RANKED or len(self._acronym_matches) == _MAX_ACRONYMS

    @cached_property
    def _acronym_matches(self) -> _RawHits:
        return self._run_steps(self._acronym_steps, _MAX_ACRONYMS)

    def _find_words(self, raw_hits: _RawHits) -> _RawHits:
        """Return the first hits and those with all words in name and aliases."""
        if self._builder.estimate_hits(self.parsed_query.significant_words) < _FEW_HITS:
            # They are few: rank all of them.
            all_hits = self._run_steps(self._all_words_steps, _MAX_RANKED, raw_hits)
            if len(all_hits) < _MAX_RANKED:
                return all_hits
        return self._run_steps(self._iter_word_steps(), _MAX_RANKED, raw_hits)

    @cached_property
    def _fuzzy(self) -> tuple[list[_QueryStep], _RawHits]:
        """The steps that allow for typing mistakes, if no label has all words, and their first hits."""
        if not self.parsed_query.has_quotes and not any(hit.grade.is_single_label for hit in self._label_hits):
            for steps in self._iter_fuzzy_steps():
                raw_hits = self._run_steps(steps, _MAX_RANKED)
                if raw_hits:
                    return steps, raw_hits
        return [], {}

    @cached_property
    def _partial(self) -> tuple[list[_QueryStep], _RawHits]:
        """The step that matches most of the words, if nothing matches all of them, and its first hits."""
        if self._depth < SearchDepth.MOST_WORDS or self.parsed_query.has_quotes:
            return [], {}
        if self.ranked_hits or self._has_definition_hits:
            return [], {}
        for query in self._builder.match_some_words(self._missing_words):
            step = _QueryStep(Tier.PARTIAL, MatchSource.PARTIAL, query)
            raw_hits = self._run_steps([step], _MAX_RANKED_PARTIAL)
            if raw_hits:
                return [step], raw_hits
        return [], {}

    @cached_property
    def _missing_words(self) -> frozenset[QueryWord]:
        """The words that no label has, nor any word that is close to them."""
        unknown = self._unknown_words
        if not unknown or not self._has_close_label(unknown):
            return frozenset(unknown)
        return frozenset(word for word in unknown if len(unknown) > 1 and not self._has_close_label([word]))

    @cached_property
    def _unknown_words(self) -> list[QueryWord]:
        """The words that no label has."""
        words = dict.fromkeys(self.parsed_query.significant_words)
        return [word for word in words if not self._builder.is_known(word)]

    @property
    def _is_mistake_unlikely(self) -> bool:
        """True if labels have all words, or none of two or more. A misspelled name usually has some correct words."""
        words = set(self.parsed_query.significant_words)
        return not self._unknown_words or 1 < len(words) == len(self._unknown_words)

    def _has_close_label(self, words: Sequence[QueryWord]) -> bool:
        query = self._builder.match_close_label(words)
        return bool(self._run_steps([_QueryStep(Tier.TYPO_WORDS, MatchSource.FUZZY, query)], 1))

    @cached_property
    def _partial_hits(self) -> list[IndexHit]:
        """The first partial hits, ranked by how much of a label they match too."""
        _, raw_hits = self._partial
        return sorted(map(self._build_hit, raw_hits.values()), key=lambda hit: hit.sort_key)

    @cached_property
    def _has_definition_hits(self) -> bool:
        return bool(self._run_steps(self._definition_steps, 1))

    @cached_property
    def _definition_steps(self) -> list[_QueryStep]:
        query = self._builder.match_text() if self._depth > SearchDepth.LABELS else None
        return [] if query is None else [_QueryStep(Tier.DEFINITION_WORDS, MatchSource.DEFINITION, query)]

    @cached_property
    def _exact_steps(self) -> list[_QueryStep]:
        """Match a whole identifier or label."""
        builder = self._builder
        steps = [_QueryStep(Tier.ID, MatchSource.ID, builder.match_identifier())]
        if self.parsed_query.key:
            steps.append(_QueryStep(Tier.FOLDED, MatchSource.EXACT, builder.match_key("name_key")))
            steps.append(_QueryStep(Tier.ALIAS, MatchSource.EXACT, builder.match_key("alias_key")))
        return steps

    @cached_property
    def _acronym_steps(self) -> list[_QueryStep]:
        if not self.parsed_query.acronym or self.parsed_query.has_quotes:
            return []
        return [_QueryStep(Tier.ACRONYM, MatchSource.ACRONYM, self._builder.match_acronym())]

    @cached_property
    def _all_words_steps(self) -> list[_QueryStep]:
        """Match words of labels, in one query."""
        words = self.parsed_query.significant_words
        if not words:
            return []
        query = self._builder.match_label("label", words, whole_words=False)
        return [_QueryStep(Tier.ALIAS_WORDS, MatchSource.WORDS, query)]

    def _iter_word_steps(self) -> Iterator[_QueryStep]:
        """Match words of labels, the best first."""
        builder, parsed_query = self._builder, self.parsed_query
        if not parsed_query.words:
            return
        # Labels with the stop words come before those without.
        word_sets = dict.fromkeys([parsed_query.words, parsed_query.significant_words])
        tiers = (
            (Tier.BEGINNING, builder.match_name_start),
            (Tier.NAME_WORDS, partial(builder.match_label, "name")),
            (Tier.ALIAS_WORDS, partial(builder.match_label, "alias")),
        )
        for tier, build in tiers:
            for words in word_sets:
                for whole_words in (True, False):
                    yield _QueryStep(tier, MatchSource.WORDS, build(words, whole_words=whole_words))
        yield from self._all_words_steps

    def _iter_fuzzy_steps(self) -> Iterator[list[_QueryStep]]:
        key, words = self.parsed_query.key, self.parsed_query.significant_words
        # The last words of a name, such as "task", are often left out of its acronym.
        if self.parsed_query.is_upper and len(self.parsed_query.acronym) >= _MIN_ACRONYM_START:
            yield [_QueryStep(Tier.ACRONYM, MatchSource.ACRONYM, self._builder.match_acronym_start())]
        key_edits = max_edits(key, is_key=True)
        if key_edits > 1 and not self._label_matches and self._is_mistake_unlikely:
            # Usually nothing matches even at the larger distance: one search then replaces several.
            key_edits = key_edits if self._run_steps(self._fuzzy_key_steps(key_edits), 1) else 0
        if key_edits:
            yield self._fuzzy_key_steps(1)
        # If name and aliases together have all words, a less similar label was hardly meant.
        if self._label_matches:
            return
        fuzzy_words = self._builder.match_fuzzy_words(_MAX_FUZZY_WORDS)
        if fuzzy_words is not None and self._missing_words.isdisjoint(words):
            yield [_QueryStep(Tier.TYPO_WORDS, MatchSource.FUZZY, fuzzy_words)]
        if key_edits > 1:
            yield self._fuzzy_key_steps(2)

    def _fuzzy_key_steps(self, distance: int) -> list[_QueryStep]:
        queries = [self._builder.match_fuzzy_key(field, distance) for field in ("name_key", "alias_key")]
        return [_QueryStep(Tier.TYPO, MatchSource.FUZZY, query) for query in queries]

    def _run_steps(self, steps: Iterable[_QueryStep], limit: int, previous: _RawHits | None = None) -> _RawHits:
        """Return the previous hits and those of the steps, in order, up to the limit."""
        raw_hits = dict(previous or {})
        for step in steps if len(raw_hits) < limit else ():
            order: dict[str, Any] = {} if step.uses_bm25 else {"order_by_field": "order", "order": Order.Asc}
            with translated_errors:
                hits = self._searcher.search(step.query, limit, count=False, **order).hits
            for weight, address in hits:
                raw_hits.setdefault((address.segment_ord, address.doc), _RawHit(address, weight, step))
                if len(raw_hits) >= limit:
                    return raw_hits
        return raw_hits

    def _build_hit(self, raw_hit: _RawHit, max_score: float | None = None) -> IndexHit:
        """Build a hit; with `max_score`, an unranked one that scores no more than that."""
        document = self._get_document(raw_hit)
        record_id, collection = (str(document.get_first(name)) for name in ("record", "collection"))
        registered = COLLECTIONS.get(collection)
        labels = read_labels(document).parse(registered.language if registered else DEFAULT_LANGUAGE)
        source = raw_hit.step.source
        if source is MatchSource.ID:
            grade = grade_identifier(get_local_id(record_id))
        else:
            grade = grade_match(self.parsed_query, labels, raw_hit.weight, source)
        return IndexHit(
            record_id=record_id,
            collection=collection,
            state=str(document.get_first("state")),
            labels=labels,
            grade=grade,
            score=grade.score if max_score is None else min(max_score, raw_hit.step.get_score(grade)),
        )

    def _get_document(self, raw_hit: _RawHit) -> Document:
        with translated_errors:
            return self._searcher.doc(raw_hit.address)


def _split_group(group: str) -> Iterator[tuple[str, str]]:
    """Yield the facets that the hits of a group are counted by, and their values."""
    collection, languages, class_id = group.split(GROUP_SEPARATOR, 2)
    vocabulary = collection.rpartition("/")[0] or MAIN_VOCABULARY
    yield "vocabulary", vocabulary
    yield "collection", collection
    if not languages and collection in COLLECTIONS:
        languages = COLLECTIONS[collection].language.lower()
    for language in languages.split(LANGUAGE_SEPARATOR):
        yield "language", language
    if class_id:
        yield "class", qualify_id(vocabulary, class_id)


def _list_trigrams(key: str) -> set[str]:
    padded = f" {key} "
    return {padded[start : start + 3] for start in range(len(padded) - 2)}


def _prefer_language(hits: list[IndexHit], language: str) -> list[IndexHit]:
    """Return the hits with scores that put those in a language first within each tier, if there are any."""

    def is_preferred(hit: IndexHit) -> bool:
        return hit.grade.language is None or matches_language(hit.grade.language, language)

    preferred = [is_preferred(hit) for hit in hits]
    if all(preferred) or not any(preferred):
        return hits
    graded = []
    for hit, is_first in zip(hits, preferred, strict=True):
        grade = hit.grade._replace(quality=(hit.grade.quality + is_first) / 2)
        graded.append(hit._replace(grade=grade, score=grade.score))
    return graded


def matches_language(tag: str, language: str) -> bool:
    """Return whether a text is in a language, or in a kind of it."""
    return get_primary_subtag(tag) == get_primary_subtag(language)
