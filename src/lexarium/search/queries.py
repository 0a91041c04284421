"""What someone typed, and the queries of the index that it becomes: one for each way to match."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations
from math import prod
from typing import NamedTuple

from tantivy import Occur, Query, Schema, Searcher

from lexarium.domain.record import RecordState
from lexarium.domain.schema.collections import COLLECTIONS, DEFAULT_SEARCH_COLLECTIONS
from lexarium.search.analysis.folding import singularize_cached
from lexarium.search.documents import (
    DEFAULT_PARTITION,
    INITIALS_FIELDS,
    OTHER_PARTITION,
    STOP_WORDS,
    UNPUBLISHED_PARTITION,
    WORD_END,
)
from lexarium.search.index import translate_errors
from lexarium.search.query_parser import ParsedQuery, QueryWord, max_edits

_MAX_PAIRED_WORDS = 3
"""How many words, the shortest, pairs of first letters are tried with."""
_MAX_PAIRED_CHARS = 4
"""In letters, the shorter of the two: what begins with more is rare enough by itself."""


@dataclass(frozen=True)
class SearchFilter:
    """Which records are looked at."""

    collections: tuple[str, ...] = ()
    """None: those that are usually searched, and all of them for an identifier."""
    states: tuple[RecordState, ...] = (RecordState.PUBLISHED,)
    class_id: str | None = None

    @property
    def effective_collections(self) -> tuple[str, ...]:
        """The collections that are looked at for words."""
        return self.collections or DEFAULT_SEARCH_COLLECTIONS

    @property
    def partitions(self) -> list[str]:
        """The marks that the terms of such records begin with."""
        partitions = []
        if RecordState.PUBLISHED in self.states:
            partitions += (
                [DEFAULT_PARTITION] if set(self.effective_collections) & set(DEFAULT_SEARCH_COLLECTIONS) else []
            )
            partitions += [OTHER_PARTITION] if set(self.effective_collections) - set(DEFAULT_SEARCH_COLLECTIONS) else []
        return partitions + ([UNPUBLISHED_PARTITION] if set(self.states) - {RecordState.PUBLISHED} else [])


class QueryBuilder:
    """Makes the queries for one text."""

    def __init__(
        self, schema: Schema, searcher: Searcher, parsed_query: ParsedQuery, search_filter: SearchFilter
    ) -> None:
        self._schema = schema
        self._searcher = searcher
        self._parsed_query = parsed_query
        self._filter = search_filter
        self._partitions = search_filter.partitions

    def match_identifier(self) -> Query:
        """Records with this identifier, or mapped to it."""
        all_collections = replace(self._filter, collections=self._filter.collections or tuple(COLLECTIONS))
        return QueryBuilder(self._schema, self._searcher, self._parsed_query, all_collections)._exact_term(
            "ids", self._parsed_query.identifier
        )

    def match_key(self, field: str) -> Query:
        """Records whose name or alias is the whole text."""
        return self._exact_term(field, self._parsed_query.key)

    def estimate_hits(self, words: tuple[QueryWord, ...]) -> float:
        """About how many records have labels with words that begin so, if none had to do with another."""
        records = max(1, self._searcher.num_docs)
        return records * prod(self._word_frequency("label_grams", word) / records for word in _unique(words))

    def match_name_start(self, words: tuple[QueryWord, ...], *, whole_words: bool) -> Query:
        """Records whose name has the first word first, and the others somewhere."""
        first, *others = words
        if whole_words:
            queries = [self._word_query("first_grams", first, whole_word=True)]
            queries += [self._word_query("name_grams", word, whole_word=word != others[-1]) for word in _unique(others)]
        else:
            queries = self._prefix_queries("name", words, first)
        return self._apply_filter(all_of([*queries, *self._phrase_queries("words")]))

    def match_label(self, label: str, words: tuple[QueryWord, ...], *, whole_words: bool) -> Query:
        """Records that have all words in their `name`, in their aliases (`alias`), or in these together (`label`)."""
        if whole_words:
            queries = [self._word_query(f"{label}_grams", word, whole_word=True) for word in _unique(words)]
        else:
            queries = self._prefix_queries(label, words)
        return self._apply_filter(all_of([*queries, *self._phrase_queries("words")]))

    def match_text(self) -> Query | None:
        """Records that have all words in their labels and definition; None where only little words are asked for."""
        words = [word for word in _unique(self._parsed_query.significant_words) if STOP_WORDS.isdisjoint(word.forms)]
        if not words:
            return None
        return self._apply_filter(
            all_of([*(self._text_word_query(word) for word in words), *self._phrase_queries("text")])
        )

    def match_fuzzy_key(self, field: str, distance: int) -> Query:
        """Records whose name or alias is the whole text but for some letters."""
        return self._apply_filter(self._fuzzy_term(field, self._parsed_query.key, distance), exact=False)

    def match_fuzzy_words(self) -> Query:
        """Records that have all words, or words that begin so, in name and aliases, but for some letters in each."""
        return self._apply_filter(
            all_of([self._fuzzy_word(word) for word in _unique(self._parsed_query.significant_words)]), exact=False
        )

    def _fuzzy_word(self, word: QueryWord) -> Query:
        form = word.forms[0]
        if not max_edits(form):
            return self._word_query("label_grams", word, whole_word=False)
        fuzzy = self._fuzzy_term("words", form, max_edits(form), is_prefix=True)
        # Fuzzy matches all weigh the same: a word that is right shall weigh more.
        return any_of([fuzzy, self._any_term("words", [form])])

    def _prefix_queries(self, label: str, words: tuple[QueryWord, ...], first: QueryWord | None = None) -> list[Query]:
        """That words of a label begin with these; `first`: that the label itself begins with this one of them.

        Where little is typed, pairs of first letters may leave fewer to look through.
        """
        required, plans = _plan_initials(words)
        frequencies = {word: self._word_frequency(f"{label}_grams", word) for word in required if word != first}
        start_frequency = [] if first is None else [self._word_frequency("first_grams", first)]
        initials: list[str] = []
        remaining = [*frequencies]
        lowest_cost = _estimate_cost([*start_frequency, *frequencies.values()])
        for plan in plans if label in INITIALS_FIELDS else ():
            uncovered = [word for word in frequencies if word not in plan.covered_words]
            cost = _estimate_cost(
                [
                    *start_frequency,
                    self._doc_frequency(f"{label}_pairs", plan.initials),
                    *(frequencies[word] for word in uncovered),
                ]
            )
            if cost < lowest_cost:
                initials, remaining, lowest_cost = plan.initials, uncovered, cost
        queries = [] if first is None else [self._word_query("first_grams", first, whole_word=False)]
        queries += [self._any_term(f"{label}_pairs", initials)] if initials else []
        return queries + [self._word_query(f"{label}_grams", word, whole_word=False) for word in remaining]

    def _word_frequency(self, field: str, word: QueryWord) -> int:
        """In how many records a word begins so, or nearly."""
        return self._doc_frequency(field, [form + WORD_END for form in word.forms] if word.is_quoted else word.forms)

    def _doc_frequency(self, field: str, terms: Iterable[str]) -> int:
        with translate_errors():
            return sum(
                self._searcher.doc_freq(field, partition + term) for partition in self._partitions for term in terms
            )

    def _word_query(self, field: str, word: QueryWord, *, whole_word: bool) -> Query:
        whole_terms = [form + WORD_END for form in dict.fromkeys([word.forms[0], word.singular])]
        whole_word = whole_word or word.is_quoted
        query = self._any_term(field, whole_terms if whole_word else [*word.forms, *whole_terms[1:]])
        if not word.parts:
            return query
        *leading, last = word.parts
        part_queries = [self._any_term(field, [part + WORD_END]) for part in leading]
        return any_of(
            [query, all_of([*part_queries, self._word_query(field, QueryWord((last,)), whole_word=whole_word)])]
        )

    def _text_word_query(self, word: QueryWord) -> Query:
        query = self._any_term("text", [singularize_cached(word.forms[0])])
        part_queries = [
            self._any_term("text", [singularize_cached(part)]) for part in word.parts if part not in STOP_WORDS
        ]
        return any_of([query, all_of(part_queries)]) if part_queries else query

    def _phrase_queries(self, field: str) -> list[Query]:
        return [
            any_of([self._phrase_query(field, partition, phrase) for partition in self._partitions])
            for phrase in self._parsed_query.phrases
        ]

    def _phrase_query(self, field: str, partition: str, phrase: Sequence[str]) -> Query:
        positions = [(position, partition + word) for position, word in enumerate(phrase)]
        if field == "text":
            positions = [
                (position, partition + singularize_cached(word))
                for position, word in enumerate(phrase)
                if word not in STOP_WORDS
            ]
        if len(positions) > 1:
            return Query.phrase_query(self._schema, field, [*positions])
        return self._term_query(field, positions[0][1]) if positions else Query.all_query()

    def _exact_term(self, field: str, term: str) -> Query:
        return self._apply_filter(self._any_term(field, [term]))

    def _any_term(self, field: str, terms: Iterable[str]) -> Query:
        return any_of([self._term_query(field, partition + term) for partition in self._partitions for term in terms])

    def _term_query(self, field: str, term: str) -> Query:
        return Query.term_query(self._schema, field, term, "basic")

    def _fuzzy_term(self, field: str, term: str, distance: int, *, is_prefix: bool = False) -> Query:
        return any_of(
            [
                Query.fuzzy_term_query(self._schema, field, partition + term, distance, prefix=is_prefix)
                for partition in self._partitions
            ]
        )

    def _apply_filter(self, query: Query, *, exact: bool = True) -> Query:
        """Only what is wanted. Where the terms begin with exact marks that say all of it, there is nothing to filter.

        A term that need not be exact may find what has another mark, or none.
        """
        search_filter = self._filter
        filters = (
            []
            if exact
            else [any_of([self._term_query("scope", partition + WORD_END) for partition in self._partitions])]
        )
        if not set(search_filter.effective_collections) >= self._collections_in_partitions():
            filters.append(
                any_of([self._term_query("collection", name) for name in search_filter.effective_collections])
            )
        if UNPUBLISHED_PARTITION in self._partitions:
            filters.append(any_of([self._term_query("state", state) for state in search_filter.states]))
        if search_filter.class_id is not None:
            filters.append(self._term_query("class", search_filter.class_id))
        return all_of([query, *(Query.const_score_query(filter_query, 0.0) for filter_query in filters)])

    def _collections_in_partitions(self) -> set[str]:
        """The collections whose records the scopes hold."""
        if UNPUBLISHED_PARTITION in self._partitions:
            return set(COLLECTIONS)
        default_collections = set(DEFAULT_SEARCH_COLLECTIONS) if DEFAULT_PARTITION in self._partitions else set()
        return default_collections | (
            set(COLLECTIONS) - set(DEFAULT_SEARCH_COLLECTIONS) if OTHER_PARTITION in self._partitions else set()
        )


def any_of(queries: Sequence[Query]) -> Query:
    """What one of these finds."""
    return queries[0] if len(queries) == 1 else Query.boolean_query([(Occur.Should, query) for query in queries])


def all_of(queries: Sequence[Query]) -> Query:
    """Require all queries."""
    return queries[0] if len(queries) == 1 else Query.boolean_query([(Occur.Must, query) for query in queries])


def _unique(words: Iterable[QueryWord]) -> list[QueryWord]:
    return list(dict.fromkeys(words))


class _InitialsPlan(NamedTuple):
    """A way to look for two words at once."""

    initials: list[str]
    """Pairs of first letters, of which a record that has both has one."""
    covered_words: list[QueryWord]
    """Which of them need not be looked for besides."""


@lru_cache(16)  # as long as one search goes on, which asks several times
def _plan_initials(words: tuple[QueryWord, ...]) -> tuple[tuple[QueryWord, ...], tuple[_InitialsPlan, ...]]:
    """What words to look for, without those that another begins with, and the ways to look for two at once."""
    required = _unique(words)
    for word in _unique(words):
        if any(word.is_prefix_of(second) for second in required if second != word):
            required.remove(word)
    plans: list[_InitialsPlan] = []
    for first, second, length in _iter_word_pairs(_unique(words)):
        initials = first.initials_with(second, length)
        covered_words = [word for word, letters in ((first, 1), (second, length)) if word.is_covered_by(letters)]
        plans += [_InitialsPlan(initials, covered_words)] if initials else []
    return tuple(required), tuple(plans)


def _iter_word_pairs(words: Sequence[QueryWord]) -> Iterator[tuple[QueryWord, QueryWord, int]]:
    """Two words whose pairs are perhaps rare, and how many letters of the second are in them: two, if there are."""
    shortest = sorted(words, key=lambda word: len(word.forms[0]))[:_MAX_PAIRED_WORDS]
    for first, second in combinations(shortest, 2):
        if len(first.forms[0]) <= _MAX_PAIRED_CHARS:
            yield first, second, min(2, len(second.forms[0]))
            if len(first.forms[0]) > 1:
                yield second, first, 2


def _estimate_cost(frequencies: Sequence[int]) -> tuple[int, int]:
    """What it takes to find what is on all of several lists: going through the shortest, one looks into each other."""
    return min(frequencies) * (len(frequencies) + 1), sum(frequencies)
