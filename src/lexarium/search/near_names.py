"""Find names that nearly equal another: with typing mistakes, in another word order, number or spelling."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import chain, combinations, permutations
from typing import NamedTuple

from tantivy import Order

from lexarium.domain.labels import DEFAULT_LANGUAGE
from lexarium.domain.schema.collections import COLLECTIONS
from lexarium.search.analysis.folding import fold, has_unspaced_script
from lexarium.search.analysis.numerals import is_code
from lexarium.search.analysis.plurals import singularize
from lexarium.search.documents import Label
from lexarium.search.index import IndexSnapshot, read_labels, translated_errors
from lexarium.search.queries import QueryBuilder, SearchFilter, any_of
from lexarium.search.query_parser import max_edits, parse_query

# Of a whole name.
_MAX_EDITS = 2
_TOO_FAR = _MAX_EDITS + 1
# Letters of a word from which one and two of them may be wrong.
_MIN_CHARS, _MIN_CHARS_FOR_TWO = 4, 8
# Variants of a word are made of its beginning: two words that are near have near beginnings.
_VARIANT_CHARS = 10
# Records that each query of the index may find, the shortest names first.
_MAX_CANDIDATES = 50
# A query with more fuzzy words would take too long.
_MAX_FUZZY_WORDS = 8
_QUOTES = str.maketrans(dict.fromkeys('"\u201c\u201d\u00ab\u00bb', " "))


class NameForm(NamedTuple):
    """A name in the form that it is compared in."""

    # Equal for names that differ only in what folding drops.
    key: str
    # The same in the singular.
    singular_key: str
    # Folded. A text in a script without spaces is one word.
    words: tuple[str, ...]
    # The same words in the singular.
    singulars: tuple[str, ...]

    @classmethod
    def from_text(cls, text: str) -> "NameForm":
        """Return the form of a name."""
        folded = fold(text)
        singulars = list(map(singularize, folded.words))
        words = (folded.key,) if has_unspaced_script(text) else tuple(folded.words)
        return cls(folded.key, "".join(singulars) or folded.key, words, tuple(map(singularize, words)))

    def is_near(self, other: "NameForm") -> bool:
        """Return whether two names are the same but for plurals, word order and at most two edits."""
        if self.singular_key == other.singular_key:
            return True
        if len(self.words) != len(other.words):
            return False
        left = [word for word, form in zip(self.words, self.singulars, strict=True) if self._has_more(form, other)]
        if len(left) > _MAX_EDITS:
            return False
        right = [word for word, form in zip(other.words, other.singulars, strict=True) if other._has_more(form, self)]
        if len(left) != len(right):
            return False
        return any(
            sum(_count_edits(a, b) for a, b in zip(left, order, strict=True)) <= _MAX_EDITS
            for order in permutations(right)
        )

    def _has_more(self, singular: str, other: "NameForm") -> bool:
        """Return whether this name has a word more often than another."""
        return self.singulars.count(singular) > other.singulars.count(singular)


@lru_cache(100_000)
def _max_word_edits(word: str) -> int:
    """Return how many letters of a word may be wrong: none of a number, a roman numeral or a short word."""
    if len(word) < _MIN_CHARS or is_code(word) or has_unspaced_script(word):
        return 0
    return 1 if len(word) < _MIN_CHARS_FOR_TWO else 2


@lru_cache(100_000)
def _count_edits(a: str, b: str) -> int:
    limit = min(_max_word_edits(a), _max_word_edits(b))
    if not limit or abs(len(a) - len(b)) > limit + 2:
        return _TOO_FAR
    edits = _measure_distance(a, b, limit)
    singulars = singularize(a), singularize(b)
    if edits > 1 and singulars != (a, b):
        edits = min(edits, _measure_distance(*singulars, limit))
    return edits if edits <= limit else _TOO_FAR


def _measure_distance(a: str, b: str, limit: int) -> int:
    """Return the Damerau-Levenshtein distance, or more than the limit if it is larger.

    For a limit of one or two, trying each edit at the first difference takes a tenth of the time of a table.
    """
    if abs(len(a) - len(b)) > limit:
        return limit + 1
    if not limit:
        return a != b
    start = 0
    for x, y in zip(a, b, strict=False):
        if x != y:
            break
        start += 1
    a, b = a[start:], b[start:]
    if not a or not b:
        return len(a) + len(b)
    rests = [(a[1:], b[1:]), (a[1:], b), (a, b[1:])]
    if a[:2] == b[1::-1]:
        rests.append((a[2:], b[2:]))
    if limit == 1:
        return 1 if any(first == second for first, second in rests) else 2
    return 1 + min(_measure_distance(x, y, limit - 1) for x, y in rests)


class NearNames:
    """Names, each with an id, among which near ones are found without comparing each with each."""

    def __init__(self, names: Iterable[tuple[str, str]]) -> None:
        self._names: list[tuple[str, NameForm]] = []
        self._by_key: defaultdict[str, list[int]] = defaultdict(list)
        # By the number of words of a name, and one of them.
        self._by_word: defaultdict[tuple[int, str], list[int]] = defaultdict(list)
        for number, (name_id, text) in enumerate(names):
            form = NameForm.from_text(text)
            self._names.append((name_id, form))
            self._by_key[form.singular_key].append(number)
            for word in set(form.words):
                self._by_word[len(form.words), word].append(number)
        # Words by what is left of them without some letters.
        self._by_variant: defaultdict[str, list[str]] = defaultdict(list)
        for word in {word for _, word in self._by_word}:
            for variant in _list_variants(word):
                self._by_variant[variant].append(word)
        # Names with a word near a word, by the number of their words and that word.
        self._near_numbers: dict[tuple[int, str], frozenset[int]] = {}

    def find(self, text: str) -> Iterator[tuple[str, bool]]:
        """Yield the ids of the names that equal a text or are near it, and whether they equal it once folded."""
        form = NameForm.from_text(text)
        numbers = {*self._by_key.get(form.singular_key, ()), *self._find_by_words(form)}
        for name_id, other in (self._names[number] for number in sorted(numbers)):
            if form.is_near(other):
                yield name_id, form.key == other.key

    def _find_by_words(self, form: NameForm) -> frozenset[int]:
        """Return the names with as many words as a name, and one near each of its words."""
        numbers = [self._find_near_word(len(form.words), word) for word in set(form.words)]
        return frozenset.intersection(*sorted(numbers, key=len)) if numbers else frozenset()

    def _find_near_word(self, count: int, word: str) -> frozenset[int]:
        """Return the names with a number of words that may have one near a word; most do."""
        found = self._near_numbers.get((count, word))
        if found is None:
            near_words = {item for variant in _list_variants(word) for item in self._by_variant.get(variant, ())}
            lists = [self._by_word[count, item] for item in near_words if (count, item) in self._by_word]
            found = self._near_numbers[count, word] = frozenset(chain.from_iterable(lists))
        return found


def _list_variants(word: str) -> set[str]:
    """Return the beginning of a word, also without as many letters as may be wrong: near words have one in common."""
    variants: set[str] = set()
    for beginning in {word[:_VARIANT_CHARS], singularize(word)[:_VARIANT_CHARS]}:
        for count in range(_max_word_edits(word) + 1):
            variants.update("".join(letters) for letters in combinations(beginning, len(beginning) - count))
    return variants


class NearRecord(NamedTuple):
    """A record with a name or alias that equals a name or is near it."""

    record_id: str
    collection: str
    # The one that is shown by default.
    name: str
    label: Label
    # The label equals the name once both are folded.
    is_same: bool


def find_near_records(snapshot: IndexSnapshot, name: str, search_filter: SearchFilter) -> list[NearRecord]:
    """Return the records of the index with labels that equal a name or are near it, the equal ones first."""
    form = NameForm.from_text(name)
    parsed_query = parse_query(name.translate(_QUOTES))
    builder = QueryBuilder(snapshot, parsed_query, search_filter)
    words = parsed_query.significant_words
    fields = ("name_key", "alias_key")
    queries = [[builder.match_key(field) for field in fields]] if form.key else []
    if distance := max_edits(form.key, is_key=True):
        queries.append([builder.match_fuzzy_key(field, distance) for field in fields])
    if words:
        queries.append([builder.match_label("label", words, whole_words=True)])
    if len(words) <= _MAX_FUZZY_WORDS and (fuzzy_words := builder.match_fuzzy_words(_MAX_FUZZY_WORDS)) is not None:
        queries.append([fuzzy_words])
    near: dict[str, NearRecord] = {}
    for alternatives in queries:
        with translated_errors:
            hits = snapshot.searcher.search(
                any_of(alternatives), _MAX_CANDIDATES, count=False, order_by_field="order", order=Order.Asc
            ).hits
            documents = [snapshot.searcher.doc(address) for _, address in hits]
        for document in documents:
            record_id, collection = (str(document.get_first(field)) for field in ("record", "collection"))
            registered = COLLECTIONS.get(collection)
            labels = read_labels(document).parse(registered.language if registered else DEFAULT_LANGUAGE)
            if record_id not in near and (found := _find_near_label(form, labels)):
                near[record_id] = NearRecord(record_id, collection, labels[0].text, *found)
    return sorted(near.values(), key=lambda record: not record.is_same)


def _find_near_label(form: NameForm, labels: Iterable[Label]) -> tuple[Label, bool] | None:
    """Return the label that equals a name, else the first that is near it."""
    first: Label | None = None
    for label in labels:
        other = NameForm.from_text(label.text)
        if other.key == form.key:
            return label, True
        if first is None and form.is_near(other):
            first = label
    return None if first is None else (first, False)
