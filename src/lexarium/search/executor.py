"""Run the queries of a search, the best first, and collect the hits.

The order of hits depends only on the query, never on the size of the page: a fixed number of the first hits is ranked
by how they match; the others follow in the order of their queries.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property, partial
from typing import Any, NamedTuple

from tantivy import DocAddress, Document, Order, Query

from lexarium.domain.identifiers import MAIN_VOCABULARY, get_local_id, qualify_id
from lexarium.domain.labels import DEFAULT_LANGUAGE
from lexarium.domain.schema.collections import COLLECTIONS
from lexarium.domain.text.languages import choose_language
from lexarium.search.documents import GROUP_SEPARATOR, Label
from lexarium.search.index import IndexSnapshot, read_labels, translated_errors
from lexarium.search.queries import QueryBuilder, SearchFilter, any_of
from lexarium.search.query_parser import ParsedQuery, max_edits, parse_query
from lexarium.search.ranking import MatchGrade, MatchSource, Tier, add_best_label, grade_identifier, grade_match

# Hits that are ranked by how they match. The queries themselves give most of the order.
_MAX_RANKED = 30
# If fewer hits in labels are expected, one query finds all of them.
_FEW_HITS = 100
_MAX_FACET_VALUES = 100
# Collections and classes together.
_MAX_GROUPS = 10_000
# In longer queries typing mistakes are not allowed for: a fuzzy word takes milliseconds.
_MAX_FUZZY_WORDS = 8


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
        return self.grade if self.grade.is_single_label else add_best_label(self.grade, parsed_query, self.labels)


class FacetCounts(NamedTuple):
    """The number of hits, in total and by facet (vocabulary, collection, class, state) and value."""

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
        return self.source is MatchSource.DEFINITION or self.tier is Tier.TYPO_WORDS

    def get_score(self, grade: MatchGrade) -> float:
        """Return the score of an unranked hit: it must not rise from one hit to the next."""
        return grade.score if self.source is MatchSource.DEFINITION else (len(Tier) - 1 - self.tier) / len(Tier)


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
        search_definitions: bool = True,
        language: str | None = None,
    ) -> None:
        """Prepare a search. Within a tier, hits whose matching text is in `language` come first."""
        self._searcher = snapshot.searcher
        self._collection_sizes = snapshot.get_collection_sizes()
        self.parsed_query: ParsedQuery = parse_query(text)
        self._filter = search_filter
        self._builder = QueryBuilder(
            snapshot.schema, snapshot.searcher, self.parsed_query, search_filter, self._collection_sizes
        )
        self._search_definitions = search_definitions
        self._language = language

    @cached_property
    def ranked_hits(self) -> list[IndexHit]:
        """The first hits, ranked by how their names and aliases match."""
        _, fuzzy_hits = self._fuzzy
        new_hits = [raw_hit for doc_key, raw_hit in fuzzy_hits.items() if doc_key not in self._label_matches]
        hits = [*self._label_hits, *map(self._build_hit, new_hits)]
        if self._language is not None:
            hits = _prefer_language(hits, self._language)
        return sorted(hits, key=lambda hit: hit.sort_key)

    @property
    def did_you_mean(self) -> str | None:
        """The best name or alias with a typing mistake; None if the words occur as they are."""
        texts = (hit.grade.text for hit in self.ranked_hits if hit.grade.tier in (Tier.TYPO, Tier.TYPO_WORDS))
        return next((" ".join(text.split()) for text in texts), None)

    def get_page(self, start: int, end: int) -> list[IndexHit]:
        """Return the hits from `start` up to `end`."""
        max_score = self._hits_above_definitions[-1].score if self._hits_above_definitions else 1.0
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
        """Count the hits, in total and by vocabulary, collection, class and state."""
        fields = {"group": _MAX_GROUPS}
        # A facet with only one possible value is not counted: counting is most of the cost of a search.
        if len(self._filter.states) > 1:
            fields["state"] = _MAX_FACET_VALUES
        fuzzy_steps, _ = self._fuzzy
        steps = (*self._exact_steps, *self._all_words_steps, *fuzzy_steps, *self._definition_steps)
        aggregations = {name: {"terms": {"field": name, "size": size}} for name, size in fields.items()}
        with translated_errors:
            aggregated = self._searcher.aggregate(any_of([step.query for step in steps]), aggregations)
        buckets = {
            name: {str(bucket["key"]): int(bucket["doc_count"]) for bucket in aggregated[name]["buckets"]}
            for name in aggregations
        }
        total = sum(buckets["group"].values()) + int(aggregated["group"]["sum_other_doc_count"])
        counts: dict[str, Counter[str]] = {"vocabulary": Counter(), "collection": Counter(), "class": Counter()}
        for group, count in buckets["group"].items():
            collection, _, class_id = group.partition(GROUP_SEPARATOR)
            vocabulary = collection.rpartition("/")[0] or MAIN_VOCABULARY
            counts["vocabulary"][vocabulary] += count
            counts["collection"][collection] += count
            if class_id:
                counts["class"][qualify_id(vocabulary, class_id)] += count
        counts["state"] = Counter(buckets.get("state", {str(self._filter.states[0]): total} if total else {}))
        facets = {name: dict(counter.most_common(_MAX_FACET_VALUES)) for name, counter in counts.items()}
        return FacetCounts(total, facets)

    @cached_property
    def _hits_above_definitions(self) -> list[IndexHit]:
        """The ranked hits that come before those in definitions."""
        return [hit for hit in self.ranked_hits if hit.grade.tier < Tier.DEFINITION_WORDS]

    def _collect(self, limit: int) -> list[IndexHit | _RawHit]:
        """Return the first hits: the ranked ones, then the others in the order of their queries."""
        if len(self._hits_above_definitions) >= limit:
            return [*self._hits_above_definitions[:limit]]
        fuzzy_steps, fuzzy_hits = self._fuzzy
        steps = [*self._exact_steps, *self._iter_word_steps()] if len(self._label_matches) == _MAX_RANKED else []
        steps += fuzzy_steps if len(fuzzy_hits) == _MAX_RANKED else []
        seen = self._label_matches.keys() | fuzzy_hits.keys()
        hits: list[IndexHit | _RawHit] = [*self._hits_above_definitions]

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
        return [*map(self._build_hit, self._label_matches.values())]

    @cached_property
    def _label_matches(self) -> _RawHits:
        """The first hits with all words in name and aliases."""
        raw_hits = self._run_steps(self._exact_steps, _MAX_RANKED)
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
    def _definition_steps(self) -> list[_QueryStep]:
        query = self._builder.match_text() if self._search_definitions else None
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
        if max_edits(key, is_key=True):
            yield self._fuzzy_key_steps(1)
        # If name and aliases together have all words, a less similar label was hardly meant.
        if self._label_matches:
            return
        if len(words) <= _MAX_FUZZY_WORDS and any(max_edits(word.forms[0]) for word in words):
            yield [_QueryStep(Tier.TYPO_WORDS, MatchSource.FUZZY, self._builder.match_fuzzy_words())]
        if max_edits(key, is_key=True) > 1:
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
    return tag.partition("-")[0].lower() == language.partition("-")[0].lower()
