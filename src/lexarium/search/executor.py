"""Runs the queries of a search, the best first, and gathers what they find.

The order of hits depends on what was typed alone, never on how many are wanted: so many of the first are put in
order by how they match, always the same; the others follow as their queries find them. A page is a part of that.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import Any, NamedTuple

from tantivy import DocAddress, Order, Query

from lexarium.domain.schema.collections import COLLECTIONS, DEFAULT_SEARCH_COLLECTIONS
from lexarium.search.documents import LABEL_SEPARATOR
from lexarium.search.index import IndexSnapshot, translate_errors
from lexarium.search.queries import QueryBuilder, SearchFilter, any_of
from lexarium.search.query_parser import ParsedQuery, max_edits, max_key_edits, parse_query
from lexarium.search.ranking import MatchGrade, MatchSource, Tier, add_best_label, grade_match

_MAX_RANKED = 30
"""How many of the first hits are put in order by how they match: the queries themselves tell nearly all of it."""
_FEW_HITS = 100
"""Where fewer hits in labels are expected, all of them are looked for before the best."""
_MAX_FACET_VALUES = 100
"""How many values of a facet are told."""
_MAX_FUZZY_WORDS = 8
"""Up to how many words typing mistakes are looked for in each of them: it takes milliseconds a word."""


class IndexHit(NamedTuple):
    """A record that was found, and how it matched."""

    record_id: str
    collection: str
    state: str
    labels: tuple[str, ...]
    grade: MatchGrade
    score: float

    @property
    def sort_key(self) -> tuple[float, int, str, str]:
        """Best first; of equals the shorter name."""
        name = self.labels[0]
        return -self.score, len(name), name.casefold(), self.record_id

    @property
    def completion_sort_key(self) -> tuple[Tier, bool, tuple[float, int, str, str]]:
        """Best first, and of a tier those that are usually searched."""
        return self.grade.tier, self.collection not in DEFAULT_SEARCH_COLLECTIONS, self.sort_key

    def grade_with_label(self, parsed_query: ParsedQuery) -> MatchGrade:
        """How it matched, with the label that shows it best."""
        return self.grade if self.grade.is_single_label else add_best_label(self.grade, parsed_query, self.labels)


class FacetCounts(NamedTuple):
    """How many hits there are."""

    total: int
    counts: dict[str, dict[str, int]]
    """By collection, class and state, and each of their values."""


class _QueryStep(NamedTuple):
    """One way to match, and the query for it."""

    tier: Tier
    """What it finds, or nearly so."""
    source: MatchSource
    query: Query

    @property
    def uses_bm25(self) -> bool:
        """Whether BM25 tells what is better; else all match alike, and the shorter name goes first."""
        return self.source is MatchSource.DEFINITION or self.tier is Tier.TYPO_WORDS

    def get_score(self, grade: MatchGrade) -> float:
        """The score of what it finds, where that falls from one to the next: else the least of its tier."""
        return grade.score if self.source is MatchSource.DEFINITION else (len(Tier) - 1 - self.tier) / len(Tier)


_DocKey = tuple[int, int]


class _RawHit(NamedTuple):
    address: DocAddress
    weight: float
    step: _QueryStep


class QueryExecutor:
    """One search in one state of an index."""

    def __init__(
        self, snapshot: IndexSnapshot, text: str, search_filter: SearchFilter, *, search_definitions: bool = True
    ) -> None:
        """`definitions`: whether these are searched too, or only names and aliases."""
        self._searcher = snapshot.searcher
        self.parsed_query: ParsedQuery = parse_query(text)
        self._filter = search_filter
        self._builder = QueryBuilder(snapshot.schema, snapshot.searcher, self.parsed_query, search_filter)
        self._search_definitions = search_definitions

    @cached_property
    def ranked_hits(self) -> list[IndexHit]:
        """The hits that are put in order by how their names and aliases match."""
        _, fuzzy_hits = self._fuzzy
        fuzzy = [
            self._build_hit(raw_hit) for doc_key, raw_hit in fuzzy_hits.items() if doc_key not in self._label_matches
        ]
        return sorted([*self._label_hits, *fuzzy], key=lambda hit: hit.sort_key)

    @property
    def did_you_mean(self) -> str | None:
        """The name or alias that comes first among those that were meant perhaps, where none has all words."""
        texts = (hit.grade.text for hit in self.ranked_hits if hit.grade.tier in (Tier.TYPO, Tier.TYPO_WORDS))
        return next((" ".join(text.split()) for text in texts), None)

    def get_page(self, start: int, end: int) -> list[IndexHit]:
        """The hits from `start` up to `end`."""
        max_score = self._hits_above_definitions[-1].score if self._hits_above_definitions else 1.0
        return [
            hit if isinstance(hit, IndexHit) else self._build_hit(hit, max_score)
            for hit in self._collect(end)[start:end]
        ]

    def get_completions(self, limit: int) -> list[IndexHit]:
        """The first hits for someone who is typing: what is usually searched goes before others that match as well."""
        ordered = sorted(self.ranked_hits, key=lambda hit: hit.completion_sort_key)
        return ordered[:limit] + self.get_page(len(ordered), limit)

    def iter_record_ids(self) -> Iterator[str]:
        """The records of every hit, the best first."""
        for hit in self._collect(self._searcher.num_docs):
            if isinstance(hit, IndexHit):
                yield hit.record_id
            else:
                with translate_errors():
                    document = self._searcher.doc(hit.address)
                yield str(document.get_first("record"))

    def count_facets(self) -> FacetCounts:
        """How many hits there are, and how many by collection, class and state."""
        # A facet that can have but one value is not counted: counting is most of what a search costs.
        possible_values = {"collection": self._indexed_collections(), "class": (), "state": self._filter.states}
        aggregations = {
            name: {"terms": {"field": name, "size": _MAX_FACET_VALUES}}
            for name in possible_values
            if len(possible_values[name]) != 1
        }
        with translate_errors():
            aggregated: dict[str, Any] = self._searcher.aggregate(any_of(self._all_queries()), aggregations)
        total = _sum_buckets(aggregated["class"])
        facets = {}
        for name, values in possible_values.items():
            if name in aggregated:
                facets[name] = {str(bucket["key"]): int(bucket["doc_count"]) for bucket in aggregated[name]["buckets"]}
            else:
                facets[name] = {values[0]: total}
        return FacetCounts(total, {name: _drop_empty(counts) for name, counts in facets.items()})

    def _indexed_collections(self) -> tuple[str, ...]:
        """The collections that are looked at and of which the index holds any: mostly a large catalogue has one."""
        best = next(iter(self._label_matches.values()), None)
        by_identifier = best is not None and best.step.source is MatchSource.ID
        collections = self._filter.collections or (tuple(COLLECTIONS) if by_identifier else DEFAULT_SEARCH_COLLECTIONS)
        with translate_errors():
            return tuple(name for name in collections if self._searcher.doc_freq("collection", name))

    @cached_property
    def _hits_above_definitions(self) -> list[IndexHit]:
        """The hits put in order that go before those in definitions."""
        return [hit for hit in self.ranked_hits if hit.grade.tier < Tier.DEFINITION_WORDS]

    def _collect(self, limit: int) -> list[IndexHit | _RawHit]:
        """So many of the hits, in order: those put in order, and the others as their queries find them."""
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
    def _label_matches(self) -> dict[_DocKey, _RawHit]:
        """The first hits that have all words in name and aliases."""
        raw_hits = self._run_steps(self._exact_steps, _MAX_RANKED)
        if self._builder.estimate_hits(self.parsed_query.significant_words) < _FEW_HITS:
            # Where these are few, each is looked at for how it matched.
            all_hits = self._run_steps(self._all_words_steps, _MAX_RANKED, raw_hits)
            if len(all_hits) < _MAX_RANKED:
                return all_hits
        return self._run_steps(self._iter_word_steps(), _MAX_RANKED, raw_hits)

    @cached_property
    def _fuzzy(self) -> tuple[list[_QueryStep], dict[_DocKey, _RawHit]]:
        """What allows for typing mistakes, where no name or alias has all words, and the first hits of it."""
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
        """By the whole of an identifier or a label."""
        builder = self._builder
        steps = [_QueryStep(Tier.ID, MatchSource.ID, builder.match_identifier())]
        if self.parsed_query.key:
            steps.append(_QueryStep(Tier.FOLDED, MatchSource.EXACT, builder.match_key("name_key")))
            steps.append(_QueryStep(Tier.ALIAS, MatchSource.EXACT, builder.match_key("alias_key")))
        return steps

    @cached_property
    def _all_words_steps(self) -> list[_QueryStep]:
        """By words of labels: all that has them."""
        words = self.parsed_query.significant_words
        build = self._builder.match_label
        return (
            [_QueryStep(Tier.ALIAS_WORDS, MatchSource.WORDS, build("label", words, whole_words=False))] if words else []
        )

    def _iter_word_steps(self) -> Iterator[_QueryStep]:
        """The same, the best first."""
        builder, parsed_query = self._builder, self.parsed_query
        if not parsed_query.words:
            return
        # Those that have the little words too go before those that do without.
        word_sets = (
            [parsed_query.words]
            if parsed_query.significant_words == parsed_query.words
            else [parsed_query.words, parsed_query.significant_words]
        )
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
        if max_key_edits(key):
            yield self._fuzzy_key_steps(1)
        if (
            self._label_matches
        ):  # Name and aliases together have all words as they are: what is less close was hardly meant.
            return
        if len(words) <= _MAX_FUZZY_WORDS and any(max_edits(word.forms[0]) for word in words):
            yield [_QueryStep(Tier.TYPO_WORDS, MatchSource.FUZZY, self._builder.match_fuzzy_words())]
        if max_key_edits(key) > 1:
            yield self._fuzzy_key_steps(2)

    def _fuzzy_key_steps(self, distance: int) -> list[_QueryStep]:
        fields = ("name_key", "alias_key")
        return [
            _QueryStep(Tier.TYPO, MatchSource.FUZZY, self._builder.match_fuzzy_key(field, distance)) for field in fields
        ]

    def _all_queries(self) -> list[Query]:
        """Queries that find all hits between them."""
        fuzzy_steps, _ = self._fuzzy
        return [
            step.query for step in (*self._exact_steps, *self._all_words_steps, *fuzzy_steps, *self._definition_steps)
        ]

    def _run_steps(
        self, steps: Iterable[_QueryStep], limit: int, previous: Mapping[_DocKey, _RawHit] | None = None
    ) -> dict[_DocKey, _RawHit]:
        """What was found before, and what the stages find, in order, at most so many."""
        raw_hits = dict(previous or {})
        for step in steps if len(raw_hits) < limit else ():
            with translate_errors():
                if step.uses_bm25:
                    hits = self._searcher.search(step.query, limit, count=False).hits
                else:
                    order: dict[str, Any] = {"order_by_field": "order", "order": Order.Asc}
                    hits = self._searcher.search(step.query, limit, count=False, **order).hits
            for weight, address in hits:
                raw_hits.setdefault((address.segment_ord, address.doc), _RawHit(address, weight, step))
                if len(raw_hits) >= limit:
                    return raw_hits
        return raw_hits

    def _build_hit(self, raw_hit: _RawHit, max_score: float | None = None) -> IndexHit:
        """A hit; where `most` is given it is not put in order by how it matches, and scores no more than that."""
        with translate_errors():
            document = self._searcher.doc(raw_hit.address)
        labels = tuple(str(document.get_first("labels")).split(LABEL_SEPARATOR))
        record_id = str(document.get_first("record"))
        source = raw_hit.step.source
        grade = grade_match(
            self.parsed_query, (record_id,) if source is MatchSource.ID else labels, raw_hit.weight, source
        )
        return IndexHit(
            record_id=record_id,
            collection=str(document.get_first("collection")),
            state=str(document.get_first("state")),
            labels=labels,
            grade=grade,
            score=grade.score if max_score is None else min(max_score, raw_hit.step.get_score(grade)),
        )


def _sum_buckets(aggregation: dict[str, Any]) -> int:
    """How many were counted: every record has one class, if only the empty one."""
    return sum(int(bucket["doc_count"]) for bucket in aggregation["buckets"]) + int(aggregation["sum_other_doc_count"])


def _drop_empty(counts: dict[str, int]) -> dict[str, int]:
    return {str(value): count for value, count in counts.items() if value and count}
