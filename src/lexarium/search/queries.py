"""Build the index queries for a parsed query: one for each way to match."""

from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import combinations
from math import log, prod

from tantivy import Occur, Query

from lexarium.domain.record import RecordState
from lexarium.domain.schema.collections import COLLECTIONS
from lexarium.domain.vocabulary import VOCABULARIES
from lexarium.search import documents
from lexarium.search.analysis.languages import COMPOUNDING_LANGUAGES, stem_word
from lexarium.search.documents import WORD_END
from lexarium.search.index import IndexSnapshot, translated_errors
from lexarium.search.query_parser import MIN_COMPOUND_PART, ParsedQuery, QueryWord, max_edits

# Pairs of initials are tried only for the shortest words, since longer ones are rare enough by themselves.
_MAX_PAIRED_WORDS = 3
_MAX_PAIRED_CHARS = 4
# Words beyond this number are not counted as found or missing.
_MAX_PARTIAL_WORDS = 12
# Weight of a word that is found, beside its BM25 weight: records with more of the words come first.
_FOUND_WEIGHT = 5.0
# How much a word that is only close to the one that is looked for counts.
_CLOSE_WORD_FACTOR = 0.5
_MAX_WORD_EDITS = 2
# Among more records, looking for a part of a compound takes too long: it goes through all words of labels.
_MAX_COMPOUND_RECORDS = 20_000


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
    # Records with a name or alias in one of these; if empty, in any. In lower case.
    label_languages: tuple[str, ...] = ()

    @cached_property
    def effective_collections(self) -> tuple[str, ...]:
        """The collections that are searched for words."""
        return self._limit(self.collections or COLLECTIONS.searched)

    @cached_property
    def identified_collections(self) -> tuple[str, ...]:
        """The collections that are searched for an identifier."""
        return self._limit(self.collections or tuple(COLLECTIONS))

    @cached_property
    def languages(self) -> tuple[str, ...]:
        """The languages of the vocabularies that are searched."""
        slugs = VOCABULARIES if self.vocabularies is None else self.vocabularies
        tags = (tag for slug in slugs if slug in VOCABULARIES for tag in VOCABULARIES[slug].languages)
        return tuple(dict.fromkeys(tags))

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

    def __init__(self, snapshot: IndexSnapshot, parsed_query: ParsedQuery, search_filter: SearchFilter) -> None:
        self._snapshot = snapshot
        self._schema = snapshot.schema
        self._searcher = snapshot.searcher
        self._parsed_query = parsed_query
        self._filter = search_filter
        # Approximate number of documents of each collection in the index.
        self._collection_sizes = snapshot.get_collection_sizes()
        # Languages that words are stemmed in; in others they are as they are.
        self._languages = (*snapshot.get_stemmed_languages(), "")
        self._partitions = search_filter.list_partitions(self._collection_sizes)
        self._word_frequencies: dict[tuple[str, QueryWord], int] = {}

    def match_identifier(self) -> Query:
        """Match records with this identifier, or a mapping to it."""
        all_collections = replace(self._filter, collections=self._filter.identified_collections)
        builder = QueryBuilder(self._snapshot, self._parsed_query, all_collections)
        return builder._apply_filter(builder._any_term("ids", [self._parsed_query.identifier]))

    def match_ids(self, record_ids: Sequence[str]) -> Query:
        """Match the records with these ids."""
        return any_of([self._term_query("record", record_id) for record_id in record_ids])

    def match_many_languages(self, query: Query) -> Query:
        """Match those records of a query whose group does not name their languages."""
        return all_of([query, self._term_query("language", documents.MANY_LANGUAGES)])

    def match_key(self, field: str) -> Query:
        """Match records whose name or alias is the whole text."""
        keys = dict.fromkeys([self._parsed_query.key, self._parsed_query.folded.number_key])
        return self._apply_filter(self._any_term(field, keys))

    def match_acronym(self) -> Query:
        """Match records with a label that the text abbreviates."""
        return self._apply_filter(self._any_term("acronym_key", [self._parsed_query.acronym]))

    def match_acronym_start(self) -> Query:
        """Match records with a label whose acronym begins with the text."""
        return self._apply_filter(
            self._fuzzy_term("acronym_key", self._parsed_query.acronym, 0, is_prefix=True), exact=False
        )

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
        queries = [self._text_word_query(word) for word in words if not self._is_stop_word(word)]
        return self._apply_filter(all_of([*queries, *self._phrase_queries("text")])) if queries else None

    def match_fuzzy_key(self, field: str, distance: int) -> Query:
        """Match records whose name or alias is the whole text, but for some letters; numbers are as they are."""
        codes = [self._word_query("label_grams", word, whole_word=True) for word in self._parsed_query.codes]
        fuzzy = self._fuzzy_term(field, self._parsed_query.key, distance)
        return self._apply_filter(all_of([fuzzy, *codes]), exact=False)

    def match_fuzzy_words(self, max_words: int) -> Query | None:
        """Match records with all words, or words that begin so, in their labels, but for some letters in each.

        In more than `max_words` words, mistakes are looked for only in those that no label has. Return None if there
        are no words that may be misspelled.
        """
        words = dict.fromkeys(self._parsed_query.significant_words)
        fuzzy_words = {
            word for word in words if max_edits(word.forms[0]) and (len(words) <= max_words or not self.is_known(word))
        }
        if not fuzzy_words:
            return None
        queries = [
            self._fuzzy_word(word) if word in fuzzy_words else self._word_query("label_grams", word, whole_word=False)
            for word in words
        ]
        return self._apply_filter(all_of(queries), exact=False)

    def match_close_label(self, words: Sequence[QueryWord]) -> Query:
        """Match records with a label that has a word close to one of these, or one that contains it."""
        return self._apply_filter(any_of([*map(self._close_label, words)]), exact=False)

    def match_some_words(self, missing: Container[QueryWord]) -> list[Query]:
        """Match records with at least half of the words in labels, definitions and notes, else with one of them.

        Records with most of the words come first. No label has words that are close to the missing ones.
        """
        words = self._list_partial_words()
        clauses = [self._partial_word(word, is_missing=word in missing) for word in words]
        if len(words) == 1 and clauses[0] is None:
            clauses = [self._close_text(words[0])]
        found = [(Occur.Should, clause) for clause in clauses if clause is not None]
        minimums = dict.fromkeys([(len(words) + 1) // 2, 1]) if found else ()
        queries = [
            Query.boolean_query(found, minimum_number_should_match=minimum)
            for minimum in minimums
            if minimum <= len(found)
        ]
        return [self._apply_filter(query, exact=False) for query in queries]

    def _list_partial_words(self) -> list[QueryWord]:
        """Return the words that are found or missing; the parts of a hyphenated word are words."""
        words = [
            part_word
            for word in self._parsed_query.significant_words
            for part_word in ([QueryWord((part,)) for part in word.parts] or [word])
        ]
        return [word for word in dict.fromkeys(words) if not self._is_stop_word(word)][:_MAX_PARTIAL_WORDS]

    def match_close_word(self, missing: Container[QueryWord]) -> Query | None:
        """Match records with a word that is close to the longest one that no label has, else to the longest of all.

        Return None if all words are short or missing.
        """
        words = [
            word
            for word in self._parsed_query.significant_words
            if max_edits(word.forms[0]) and not (word in missing and max_edits(word.forms[0]) == _MAX_WORD_EDITS)
        ]
        longest = max(words, key=lambda word: (not self.is_known(word), len(word.forms[0])), default=None)
        if longest is None:
            return None
        fuzzy = self._fuzzy_term("words", longest.forms[0], _MAX_WORD_EDITS, is_prefix=True)
        return self._apply_filter(fuzzy, exact=False)

    def _partial_word(self, word: QueryWord, *, is_missing: bool) -> Query | None:
        """Match a word anywhere. A rare word weighs more, one in a label and a text more than in one, a close one less.

        A word that no label has completely, and no text, is taken for the beginning of one, or for a close one.
        Return None if no record has one.
        """
        form, stems = word.forms[0], self._list_stems(word.forms[-1])
        text_frequency = self._doc_frequency("text", stems)
        weight = _FOUND_WEIGHT * log(1 + self._searcher.num_docs / (1 + text_frequency))
        is_acronym = self._doc_frequency("acronym_key", [form]) > 0
        is_whole = text_frequency or self._doc_frequency("label_grams", [form + WORD_END])
        if not is_acronym and not is_whole and not self.is_known(word):
            return None if is_missing else Query.const_score_query(self._close_label(word), _CLOSE_WORD_FACTOR * weight)
        labels = [self._word_query("label_grams", word, whole_word=is_acronym or is_whole > 0)]
        labels += [self._any_term("acronym_key", [form])] if is_acronym else []
        label, text = any_of(labels), self._any_term("text", stems)
        found = Query.const_score_query(any_of([label, text]), weight)
        return Query.boolean_query([(Occur.Must, found), (Occur.Should, label), (Occur.Should, text)])

    def _close_text(self, word: QueryWord) -> Query | None:
        """Match a word of a definition or note that is close to this one, or begins with it."""
        stem = self._list_stems(word.forms[-1])[0]
        return self._fuzzy_term("text", stem, max_edits(stem), is_prefix=True) if max_edits(stem) else None

    def _close_label(self, word: QueryWord) -> Query:
        return any_of([self._fuzzy_word(word), *self._compound_queries(word.forms[0])])

    def _compound_queries(self, form: str) -> list[Query]:
        """Match longer words that contain a word, if the index has a language that writes compounds as one word."""
        is_large = self._searcher.num_docs > _MAX_COMPOUND_RECORDS
        if is_large or len(form) < MIN_COMPOUND_PART or COMPOUNDING_LANGUAGES.isdisjoint(self._languages):
            return []
        return [Query.regex_query(self._schema, "words", f"{partition}.*{form}.*") for partition in self._partitions]

    def is_known(self, word: QueryWord) -> bool:
        """Return whether a label has a word that begins with this one."""
        return self._word_frequency("label_grams", word) > 0

    def _is_stop_word(self, word: QueryWord) -> bool:
        return not self._parsed_query.stop_words.isdisjoint(word.forms)

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
        frequency = self._word_frequencies.get((field, word))
        if frequency is None:
            forms = [form + WORD_END for form in word.forms] if word.is_quoted else word.forms
            frequency = self._word_frequencies[field, word] = self._doc_frequency(field, forms)
        return frequency

    def _doc_frequency(self, field: str, terms: Iterable[str]) -> int:
        doc_freq = self._searcher.doc_freq
        with translated_errors:
            return sum(doc_freq(field, partition + term) for partition in self._partitions for term in terms)

    def _word_query(self, field: str, word: QueryWord, *, whole_word: bool) -> Query:
        whole_terms = [form + WORD_END for form in dict.fromkeys([word.forms[0], word.singular, word.digits]) if form]
        whole_word = whole_word or word.is_quoted
        query = self._any_term(field, whole_terms if whole_word else [*word.forms, *whole_terms[1:]])
        if not word.parts:
            return query
        *leading, last = word.parts
        part_queries = [self._any_term(field, [part + WORD_END]) for part in leading]
        part_queries.append(self._word_query(field, QueryWord((last,)), whole_word=whole_word))
        return any_of([query, all_of(part_queries)])

    def _text_word_query(self, word: QueryWord) -> Query:
        query = self._any_term("text", self._list_stems(word.forms[-1]))
        parts = [self._list_stems(part) for part in word.parts if part not in self._parsed_query.stop_words]
        return any_of([query, all_of([self._any_term("text", stems) for stems in parts])]) if parts else query

    def _list_stems(self, word: str) -> list[str]:
        """Return the stems of a word in the languages of the index."""
        return list(dict.fromkeys([stem_word(word, language) for language in self._languages]))

    def _phrase_queries(self, field: str) -> list[Query]:
        if field != "text":
            variants = [[list(enumerate(phrase))] for phrase in self._parsed_query.phrases]
        else:
            variants = [
                [self._stem_phrase(phrase, language) for language in self._languages]
                for phrase in self._parsed_query.phrases
            ]
        return [
            any_of([self._phrase_query(field, partition, words) for partition in self._partitions for words in phrases])
            for phrases in variants
        ]

    def _stem_phrase(self, phrase: Sequence[str], language: str) -> list[tuple[int, str]]:
        """Return the stems of a phrase with their positions, without stop words."""
        stop_words = self._parsed_query.stop_words
        return [(index, stem_word(word, language)) for index, word in enumerate(phrase) if word not in stop_words]

    def _phrase_query(self, field: str, partition: str, positions: Sequence[tuple[int, str]]) -> Query:
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
        if search_filter.label_languages:
            filters.append(any_of([self._term_query("language", tag) for tag in search_filter.label_languages]))
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
