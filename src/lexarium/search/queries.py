"""Build the index queries for a parsed query: one for each way to match."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations
from math import prod

from tantivy import Occur, Query, Schema, Searcher

from lexarium.domain.record import RecordState
from lexarium.domain.schema.collections import COLLECTIONS
from lexarium.search import documents
from lexarium.search.analysis.plurals import singularize
from lexarium.search.documents import STOP_WORDS, WORD_END
from lexarium.search.index import translated_errors
from lexarium.search.query_parser import ParsedQuery, QueryWord, max_edits

# Pairs of initials are tried only for the shortest words, since longer ones are rare enough by themselves.
_MAX_PAIRED_WORDS = 3
_MAX_PAIRED_CHARS = 4


@dataclass(frozen=True)
class SearchFilter:
    """The records to search."""

    # If empty: the default collections, and all of them for an identifier.
    collections: tuple[str, ...] = ()
    states: tuple[RecordState, ...] = (RecordState.PUBLISHED,)
    # Records of one of these classes; None: of any or none.
    class_ids: tuple[str, ...] | None = None
    # Records of these alone; None: of all.
    vocabularies: tuple[str, ...] | None = None

    @property
    def effective_collections(self) -> tuple[str, ...]:
        """The collections that are searched for words."""
        return self._limit(self.collections or COLLECTIONS.searched)

    @property
    def identified_collections(self) -> tuple[str, ...]:
        """The collections that are searched for an identifier."""
        return self._limit(self.collections or tuple(COLLECTIONS))

    def _limit(self, names: tuple[str, ...]) -> tuple[str, ...]:
        slugs = self.vocabularies
        return names if slugs is None else tuple(name for name in names if COLLECTIONS[name].vocabulary in slugs)

    def list_partitions(self, indexed: Iterable[str]) -> dict[str, set[str]]:
        """Return the partitions to search, and the indexed collections whose records they may hold.

        A collection that is not registered any more may be in any.
        """
        default_collections, wanted = set(COLLECTIONS.searched), set(self.effective_collections)
        other_collections = set(COLLECTIONS) - default_collections
        partitions: dict[str, set[str]] = {}
        if RecordState.PUBLISHED in self.states and wanted & default_collections:
            partitions[documents.DEFAULT_PARTITION] = set(indexed) - other_collections
        if RecordState.PUBLISHED in self.states and wanted & other_collections:
            partitions[documents.OTHER_PARTITION] = set(indexed) - default_collections
        if set(self.states) - {RecordState.PUBLISHED}:
            partitions[documents.UNPUBLISHED_PARTITION] = set(indexed)
        return partitions


class QueryBuilder:
    """Build the index queries for one parsed query."""

    def __init__(
        self,
        schema: Schema,
        searcher: Searcher,
        parsed_query: ParsedQuery,
        search_filter: SearchFilter,
        collection_sizes: Mapping[str, int],
    ) -> None:
        self._schema = schema
        self._searcher = searcher
        self._parsed_query = parsed_query
        self._filter = search_filter
        # Approximate number of documents of each collection in the index.
        self._collection_sizes = collection_sizes
        self._partitions = search_filter.list_partitions(collection_sizes)

    def match_identifier(self) -> Query:
        """Match records with this identifier, or a mapping to it."""
        all_collections = replace(self._filter, collections=self._filter.identified_collections)
        builder = QueryBuilder(
            self._schema, self._searcher, self._parsed_query, all_collections, self._collection_sizes
        )
        return builder._apply_filter(builder._any_term("ids", [self._parsed_query.identifier]))

    def match_key(self, field: str) -> Query:
        """Match records whose name or alias is the whole text."""
        return self._apply_filter(self._any_term(field, [self._parsed_query.key]))

    def estimate_hits(self, words: tuple[QueryWord, ...]) -> float:
        """Estimate how many records match all words in their labels, as if words were independent."""
        records = max(1, self._searcher.num_docs)
        return records * prod(self._word_frequency("label_grams", word) / records for word in dict.fromkeys(words))

    def match_name_start(self, words: tuple[QueryWord, ...], *, whole_words: bool) -> Query:
        """Match records whose name begins with the first word and contains the others."""
        first, *others = words
        if whole_words:
            queries = [self._word_query("first_grams", first, whole_word=True)]
            for word in dict.fromkeys(others):
                queries.append(self._word_query("name_grams", word, whole_word=word != others[-1]))
        else:
            queries = self._prefix_queries("name", words, first)
        return self._apply_filter(all_of([*queries, *self._phrase_queries("words")]))

    def match_label(self, label: str, words: tuple[QueryWord, ...], *, whole_words: bool) -> Query:
        """Match records with all words in the `name`, in the aliases (`alias`), or in both together (`label`)."""
        if whole_words:
            queries = [self._word_query(f"{label}_grams", word, whole_word=True) for word in dict.fromkeys(words)]
        else:
            queries = self._prefix_queries(label, words)
        return self._apply_filter(all_of([*queries, *self._phrase_queries("words")]))

    def match_text(self) -> Query | None:
        """Match records with all words in labels and definition; return None if there are only stop words."""
        words = dict.fromkeys(self._parsed_query.significant_words)
        queries = [self._text_word_query(word) for word in words if STOP_WORDS.isdisjoint(word.forms)]
        return self._apply_filter(all_of([*queries, *self._phrase_queries("text")])) if queries else None

    def match_fuzzy_key(self, field: str, distance: int) -> Query:
        """Match records whose name or alias is the whole text, but for some letters."""
        return self._apply_filter(self._fuzzy_term(field, self._parsed_query.key, distance), exact=False)

    def match_fuzzy_words(self) -> Query:
        """Match records with all words, or words that begin so, in their labels, but for some letters in each."""
        words = dict.fromkeys(self._parsed_query.significant_words)
        return self._apply_filter(all_of([self._fuzzy_word(word) for word in words]), exact=False)

    def _fuzzy_word(self, word: QueryWord) -> Query:
        form = word.forms[0]
        if not max_edits(form):
            return self._word_query("label_grams", word, whole_word=False)
        fuzzy = self._fuzzy_term("words", form, max_edits(form), is_prefix=True)
        # All fuzzy matches weigh the same. The exact word adds weight.
        return any_of([fuzzy, self._any_term("words", [form])])

    def _prefix_queries(self, label: str, words: tuple[QueryWord, ...], first: QueryWord | None = None) -> list[Query]:
        """Require words of a label to begin with these, and the label itself with `first`.

        For short words, pairs of initials may leave fewer documents to go through.
        """
        required, plans = _plan_initials(words)
        frequencies = {word: self._word_frequency(f"{label}_grams", word) for word in required if word != first}
        start_frequency = [] if first is None else [self._word_frequency("first_grams", first)]
        initials: list[str] = []
        remaining = [*frequencies]
        lowest_cost = _estimate_cost([*start_frequency, *frequencies.values()])
        for pairs, covered_words in plans if label in documents.INITIALS_FIELDS else ():
            uncovered = [word for word in frequencies if word not in covered_words]
            pair_frequency = self._doc_frequency(f"{label}_pairs", pairs)
            cost = _estimate_cost([*start_frequency, pair_frequency, *(frequencies[word] for word in uncovered)])
            if cost < lowest_cost:
                initials, remaining, lowest_cost = pairs, uncovered, cost
        queries = [] if first is None else [self._word_query("first_grams", first, whole_word=False)]
        queries += [self._any_term(f"{label}_pairs", initials)] if initials else []
        return queries + [self._word_query(f"{label}_grams", word, whole_word=False) for word in remaining]

    def _word_frequency(self, field: str, word: QueryWord) -> int:
        return self._doc_frequency(field, [form + WORD_END for form in word.forms] if word.is_quoted else word.forms)

    def _doc_frequency(self, field: str, terms: Iterable[str]) -> int:
        doc_freq = self._searcher.doc_freq
        with translated_errors:
            return sum(doc_freq(field, partition + term) for partition in self._partitions for term in terms)

    def _word_query(self, field: str, word: QueryWord, *, whole_word: bool) -> Query:
        whole_terms = [form + WORD_END for form in dict.fromkeys([word.forms[0], word.singular])]
        whole_word = whole_word or word.is_quoted
        query = self._any_term(field, whole_terms if whole_word else [*word.forms, *whole_terms[1:]])
        if not word.parts:
            return query
        *leading, last = word.parts
        part_queries = [self._any_term(field, [part + WORD_END]) for part in leading]
        part_queries.append(self._word_query(field, QueryWord((last,)), whole_word=whole_word))
        return any_of([query, all_of(part_queries)])

    def _text_word_query(self, word: QueryWord) -> Query:
        query = self._any_term("text", [singularize(word.forms[0])])
        parts = [singularize(part) for part in word.parts if part not in STOP_WORDS]
        return any_of([query, all_of([self._any_term("text", [part]) for part in parts])]) if parts else query

    def _phrase_queries(self, field: str) -> list[Query]:
        return [
            any_of([self._phrase_query(field, partition, phrase) for partition in self._partitions])
            for phrase in self._parsed_query.phrases
        ]

    def _phrase_query(self, field: str, partition: str, phrase: Sequence[str]) -> Query:
        positions = list(enumerate(phrase))
        if field == "text":
            positions = [(position, singularize(word)) for position, word in positions if word not in STOP_WORDS]
        terms: list[str | tuple[int, str]] = [(position, partition + word) for position, word in positions]
        if len(terms) > 1:
            return Query.phrase_query(self._schema, field, terms)
        return self._term_query(field, partition + positions[0][1]) if positions else Query.all_query()

    def _any_term(self, field: str, terms: Iterable[str]) -> Query:
        return any_of([self._term_query(field, partition + term) for partition in self._partitions for term in terms])

    def _term_query(self, field: str, term: str) -> Query:
        return Query.term_query(self._schema, field, term, "basic")

    def _fuzzy_term(self, field: str, term: str, distance: int, *, is_prefix: bool = False) -> Query:
        queries = (
            Query.fuzzy_term_query(self._schema, field, partition + term, distance, prefix=is_prefix)
            for partition in self._partitions
        )
        return any_of([*queries])

    def _apply_filter(self, query: Query, *, exact: bool = True) -> Query:
        """Add the filters that the partitions of the terms do not imply.

        A term that is not exact may match one of another partition.
        """
        search_filter = self._filter
        filters = [] if exact else [self._any_term("scope", [WORD_END])]
        excluded: list[Query] = []
        searched = set[str]().union(*self._partitions.values())
        wanted = searched.intersection(search_filter.effective_collections)
        unwanted = searched - wanted
        if unwanted:
            # Whichever goes through fewer documents.
            is_smaller = self._count_documents(unwanted) < self._count_documents(wanted)
            queries = [self._term_query("collection", name) for name in (unwanted if is_smaller else wanted)]
            if is_smaller:
                excluded = queries
            else:
                filters.append(any_of(queries))
        if documents.UNPUBLISHED_PARTITION in self._partitions:
            filters.append(any_of([self._term_query("state", state) for state in search_filter.states]))
        if search_filter.class_ids is not None:
            filters.append(any_of([self._term_query("class", class_id) for class_id in search_filter.class_ids]))
        required = [query, *(Query.const_score_query(filter_query, 0.0) for filter_query in filters)]
        if not excluded:
            return all_of(required)
        clauses = [(Occur.Must, item) for item in required]
        return Query.boolean_query(clauses + [(Occur.MustNot, item) for item in excluded])

    def _count_documents(self, collections: Iterable[str]) -> int:
        return sum(self._collection_sizes[name] for name in collections)


def any_of(queries: Sequence[Query]) -> Query:
    """Require one of the queries."""
    return queries[0] if len(queries) == 1 else Query.boolean_query([(Occur.Should, query) for query in queries])


def all_of(queries: Sequence[Query]) -> Query:
    """Require all queries."""
    return queries[0] if len(queries) == 1 else Query.boolean_query([(Occur.Must, query) for query in queries])


# Pairs of initials of two words, and those of the two words that need no query besides.
_InitialsPlan = tuple[list[str], list[QueryWord]]


@lru_cache(16)  # One search needs it several times.
def _plan_initials(words: tuple[QueryWord, ...]) -> tuple[list[QueryWord], list[_InitialsPlan]]:
    """Return the words without those that are prefixes of others, and the ways to look for two at once."""
    unique_words = list(dict.fromkeys(words))
    required = unique_words[:]
    for word in unique_words:
        if any(word.is_prefix_of(second) for second in required if second != word):
            required.remove(word)
    plans: list[_InitialsPlan] = []
    for first, second, length in _iter_word_pairs(unique_words):
        initials = first.initials_with(second, length)
        covered_words = [word for word, letters in ((first, 1), (second, length)) if word.is_covered_by(letters)]
        plans += [(initials, covered_words)] if initials else []
    return required, plans


def _iter_word_pairs(words: Sequence[QueryWord]) -> Iterator[tuple[QueryWord, QueryWord, int]]:
    """Yield two words whose initials may be rare, and how many letters of the second to use."""
    shortest = sorted(words, key=lambda word: len(word.forms[0]))[:_MAX_PAIRED_WORDS]
    for first, second in combinations(shortest, 2):
        if len(first.forms[0]) <= _MAX_PAIRED_CHARS:
            yield first, second, min(2, len(second.forms[0]))
            if len(first.forms[0]) > 1:
                yield second, first, 2


def _estimate_cost(frequencies: Sequence[int]) -> tuple[int, int]:
    """Estimate the cost of intersecting posting lists: go through the shortest, and look into each other."""
    return min(frequencies) * (len(frequencies) + 1), sum(frequencies)
