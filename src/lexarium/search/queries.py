"""What someone typed, and the queries of the index that it becomes: one for each way to match."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import combinations, islice, product
from math import prod
from typing import NamedTuple

from tantivy import Occur, Query, Schema, Searcher

from lexarium.domain.changes import State
from lexarium.domain.collections import COLLECTIONS, SEARCHED
from lexarium.search.documents import END, GONE, LITTLE_WORDS, PAIRED, SCOPES, UNUSUAL, USUAL, pairs_of
from lexarium.search.folding import Folded, fold, is_unspaced, pieces, singular_of
from lexarium.search.index import explained

MOST_WORDS = 24
"""How many words of a query are looked for; the beginning of it is looked for as a name."""
_LONGEST_CLOSE_WORD = 40
"""In bytes: in longer words typing mistakes are not looked for."""
_LONGEST_CLOSE_KEY = 80
_MOST_PAIRED = 3
"""How many words, the shortest, pairs of first letters are tried with."""
_LONGEST_PAIRED = 4
"""In letters, the shorter of the two: what begins with more is rare enough by itself."""
_MOST_PARTS = 100
"""How many times one may begin and end to quote."""
_LONGEST_LABEL = 2_000
"""How many characters are compared with names and identifiers."""
# Between quotation marks, of whichever kind, or not. One that is never closed is no mark.
_PARTS = re.compile(
    '(?P<quoted>"[^"]{1,500}"|\u201c[^\u201d]{1,500}\u201d|\u00ab[^\u00bb]{1,500}\u00bb)'
    '|(?P<loose>["\u201c\u00ab]?[^"\u201c\u00ab]*)'
)
_MARKS = dict.fromkeys(map(ord, SCOPES[1:]))
_QUOTES = '"\u201c\u201d\u00ab\u00bb'


@dataclass(frozen=True)
class Sought:
    """A word that is looked for."""

    forms: tuple[str, ...]
    """The forms of which a record must have one; the first is the usual one."""
    parts: tuple[str, ...] = ()
    """Of a word with hyphens, its parts: a record that has all of them will do."""
    whole: bool = False
    """Whether it must be the whole word as it is: one between quotation marks. Else it may be the beginning of one."""

    @cached_property
    def singular(self) -> str:
        """What it is compared by with whole words, whether they are singular or plural."""
        return self.forms[0] if self.whole else singular_of(self.forms[0])

    @property
    def is_little(self) -> bool:
        """Whether a record will do without it, if it has the others."""
        return not self.whole and not self.parts and not LITTLE_WORDS.isdisjoint(self.forms)

    def begins(self, other: "Sought") -> bool:
        """Whether a record that has the other word has this one too, as the beginning of a word."""
        if self.whole or self.parts or other.parts:
            return False
        return all(form.startswith(self.forms) for form in (*other.forms, other.singular))

    def pairs(self, other: "Sought", length: int) -> list[str]:
        """Pairs of this word's first letter and the other's, or its first two: a record that has both has one of these.

        Empty where it may have none.
        """
        if self.parts or other.parts:
            return []
        found = [pairs_of(two) for two in product(self._starts(1), other._starts(length))]
        pairs = [pair for each in found for pair in each if len(pair) == 1 + length]
        return pairs if len(pairs) == len(found) else []

    def is_told_by(self, length: int) -> bool:
        """Whether so many first letters are all that is known of it."""
        return not self.whole and self._starts(length) == {*self.forms, self.singular}

    def _starts(self, length: int) -> set[str]:
        return {form[:length] for form in (*self.forms, self.singular)}


@dataclass(frozen=True)
class Typed:
    """What someone typed, taken apart."""

    text: str
    folded: Folded
    words: tuple[Sought, ...]
    """In order; a word that was typed twice is there twice."""
    phrases: tuple[tuple[str, ...], ...]
    """Words that must stand together."""
    quoted: bool
    """Whether something was between quotation marks: then typing mistakes are not allowed for."""

    @cached_property
    def key(self) -> str:
        """The key of the whole."""
        return self.folded.key

    @cached_property
    def telling(self) -> tuple[Sought, ...]:
        """The words without those that say little, unless there are no others."""
        return tuple(word for word in self.words if not word.is_little) or self.words

    @property
    def identifier(self) -> str:
        """What was typed, if it is an identifier."""
        return self.text.strip(_QUOTES).strip().casefold().translate(_MARKS)


def typed(text: str) -> Typed:
    """Take apart what someone typed. Whatever it is, this is what it may mean."""
    text = text.encode(errors="replace").decode()  # Halves of characters are none.
    sought: dict[Sought, None] = {}
    words: list[Sought] = []
    phrases: list[tuple[str, ...]] = []
    quoted = False
    for part in islice(_PARTS.finditer(text), _MOST_PARTS):
        if part.lastgroup == "loose":
            found, together = _loose(part.group())
        else:
            phrase = fold(part.group()).words[:MOST_WORDS]
            found, together = [Sought((word,), whole=True) for word in phrase], [tuple(phrase)]
            quoted = True
        words += found
        phrases += [phrase for phrase in together if len(phrase) > 1]
        sought |= dict.fromkeys(found)
        if len(sought) >= MOST_WORDS:
            break
    if len(words) > MOST_WORDS:
        words = list(sought)[:MOST_WORDS]
    named = text.strip()[:_LONGEST_LABEL]
    return Typed(named, fold(named), tuple(words), tuple(dict.fromkeys(phrases[:MOST_WORDS])), quoted)


def _loose(text: str) -> tuple[list[Sought], list[tuple[str, ...]]]:
    """The words of what is not between quotation marks, and those that no space parts."""
    sought: list[Sought] = []
    phrases: list[tuple[str, ...]] = []
    # Each once beyond the first few, lest someone who repeats one word hides what comes after.
    for piece in islice(_unrepeated(pieces(text)), MOST_WORDS):
        folded = fold(piece)
        if folded.compounds and len(folded.words) > 1:
            sought.append(Sought((folded.compounds[0],), tuple(folded.words)[:MOST_WORDS]))
        elif is_unspaced(piece):
            sought += [Sought((word,)) for word in folded.words[:MOST_WORDS]]
            phrases.append(tuple(folded.words[:MOST_WORDS]))
        else:
            for word, plain in zip(folded.words, folded.plain, strict=True):
                sought.append(Sought(tuple(dict.fromkeys([word, plain]))))
    return sought, phrases


def _unrepeated(found: Iterator[str]) -> Iterator[str]:
    seen: set[str] = set()
    for number, piece in enumerate(found):
        if number < MOST_WORDS // 2 or piece not in seen:
            yield piece
        seen.add(piece)


@dataclass(frozen=True)
class Filter:
    """Which records are looked at."""

    collections: tuple[str, ...] = ()
    """None: those that are usually searched, and all of them for an identifier."""
    states: tuple[State, ...] = (State.PUBLISHED,)
    class_id: str | None = None

    @property
    def searched(self) -> tuple[str, ...]:
        """The collections that are looked at for words."""
        return self.collections or SEARCHED

    @property
    def scopes(self) -> list[str]:
        """The marks that the terms of such records begin with."""
        found = []
        if State.PUBLISHED in self.states:
            found += [USUAL] if set(self.searched) & set(SEARCHED) else []
            found += [UNUSUAL] if set(self.searched) - set(SEARCHED) else []
        return found + ([GONE] if set(self.states) - {State.PUBLISHED} else [])


class Queries:
    """Makes the queries for one text."""

    def __init__(self, schema: Schema, searcher: Searcher, sought: Typed, wanted: Filter) -> None:
        self._schema = schema
        self._searcher = searcher
        self._typed = sought
        self._wanted = wanted
        self._scopes = wanted.scopes

    def identifier(self) -> Query:
        """Records with this identifier, or mapped to it."""
        wide = replace(self._wanted, collections=self._wanted.collections or tuple(COLLECTIONS))
        return Queries(self._schema, self._searcher, self._typed, wide)._exactly("ids", self._typed.identifier)

    def key(self, field: str) -> Query:
        """Records whose name or alias is the whole text."""
        return self._exactly(field, self._typed.key)

    def expected(self, words: tuple[Sought, ...]) -> float:
        """About how many records have labels with words that begin so, if none had to do with another."""
        records = max(1, self._searcher.num_docs)
        return records * prod(self._frequency("label_grams", word) / records for word in _once(words))

    def beginning(self, words: tuple[Sought, ...], *, whole: bool) -> Query:
        """Records whose name has the first word first, and the others somewhere."""
        first, *others = words
        if whole:
            queries = [self._word("first_grams", first, whole=True)]
            queries += [self._word("name_grams", word, whole=word != others[-1]) for word in _once(others)]
        else:
            queries = self._begun("name", words, first)
        return self._filtered(_all([*queries, *self._phrases("words")]))

    def label(self, label: str, words: tuple[Sought, ...], *, whole: bool) -> Query:
        """Records that have all words in their `name`, in their aliases (`alias`), or in these together (`label`)."""
        if whole:
            queries = [self._word(f"{label}_grams", word, whole=True) for word in _once(words)]
        else:
            queries = self._begun(label, words)
        return self._filtered(_all([*queries, *self._phrases("words")]))

    def text(self) -> Query | None:
        """Records that have all words in their labels and definition; None where only little words are asked for."""
        words = [word for word in _once(self._typed.telling) if LITTLE_WORDS.isdisjoint(word.forms)]
        if not words:
            return None
        return self._filtered(_all([*(self._text_word(word) for word in words), *self._phrases("text")]))

    def close_key(self, field: str, distance: int) -> Query:
        """Records whose name or alias is the whole text but for some letters."""
        return self._filtered(self._some_close(field, self._typed.key, distance), exact=False)

    def close_words(self) -> Query:
        """Records that have all words, or words that begin so, in name and aliases, but for some letters in each."""
        return self._filtered(_all([self._close_word(word) for word in _once(self._typed.telling)]), exact=False)

    def _close_word(self, word: Sought) -> Query:
        form = word.forms[0]
        if not allowed(form):
            return self._word("label_grams", word, whole=False)
        close = self._some_close("words", form, allowed(form), begun=True)
        # Fuzzy matches all weigh the same: a word that is right shall weigh more.
        return some([close, self._any("words", [form])])

    def _begun(self, label: str, words: tuple[Sought, ...], first: Sought | None = None) -> list[Query]:
        """That words of a label begin with these; `first`: that the label itself begins with this one of them.

        Where little is typed, pairs of first letters may leave fewer to look through.
        """
        needed, ways = _planned(words)
        known = {word: self._frequency(f"{label}_grams", word) for word in needed if word != first}
        begun = [] if first is None else [self._frequency("first_grams", first)]
        pairs: list[str] = []
        rest = [*known]
        least = _cost([*begun, *known.values()])
        for way in ways if label in PAIRED else ():
            untold = [word for word in known if word not in way.told]
            cost = _cost([*begun, self._count(f"{label}_pairs", way.pairs), *(known[word] for word in untold)])
            if cost < least:
                pairs, rest, least = way.pairs, untold, cost
        queries = [] if first is None else [self._word("first_grams", first, whole=False)]
        queries += [self._any(f"{label}_pairs", pairs)] if pairs else []
        return queries + [self._word(f"{label}_grams", word, whole=False) for word in rest]

    def _frequency(self, field: str, word: Sought) -> int:
        """In how many records a word begins so, or nearly."""
        return self._count(field, [form + END for form in word.forms] if word.whole else word.forms)

    def _count(self, field: str, terms: Iterable[str]) -> int:
        with explained():
            return sum(self._searcher.doc_freq(field, scope + term) for scope in self._scopes for term in terms)

    def _word(self, field: str, word: Sought, *, whole: bool) -> Query:
        wholes = [form + END for form in dict.fromkeys([word.forms[0], word.singular])]
        whole = whole or word.whole
        one = self._any(field, wholes if whole else [*word.forms, *wholes[1:]])
        if not word.parts:
            return one
        *before, last = word.parts
        parts = [self._any(field, [part + END]) for part in before]
        return some([one, _all([*parts, self._word(field, Sought((last,)), whole=whole)])])

    def _text_word(self, word: Sought) -> Query:
        one = self._any("text", [singular_of(word.forms[0])])
        parts = [self._any("text", [singular_of(part)]) for part in word.parts if part not in LITTLE_WORDS]
        return some([one, _all(parts)]) if parts else one

    def _phrases(self, field: str) -> list[Query]:
        return [some([self._phrase(field, scope, phrase) for scope in self._scopes]) for phrase in self._typed.phrases]

    def _phrase(self, field: str, scope: str, phrase: Sequence[str]) -> Query:
        places = [(place, scope + word) for place, word in enumerate(phrase)]
        if field == "text":
            places = [
                (place, scope + singular_of(word)) for place, word in enumerate(phrase) if word not in LITTLE_WORDS
            ]
        if len(places) > 1:
            return Query.phrase_query(self._schema, field, [*places])
        return self._term(field, places[0][1]) if places else Query.all_query()

    def _exactly(self, field: str, term: str) -> Query:
        return self._filtered(self._any(field, [term]))

    def _any(self, field: str, terms: Iterable[str]) -> Query:
        return some([self._term(field, scope + term) for scope in self._scopes for term in terms])

    def _term(self, field: str, term: str) -> Query:
        return Query.term_query(self._schema, field, term, "basic")

    def _some_close(self, field: str, term: str, distance: int, *, begun: bool = False) -> Query:
        return some(
            [
                Query.fuzzy_term_query(self._schema, field, scope + term, distance, prefix=begun)
                for scope in self._scopes
            ]
        )

    def _filtered(self, query: Query, *, exact: bool = True) -> Query:
        """Only what is wanted. Where the terms begin with exact marks that say all of it, there is nothing to filter.

        A term that need not be exact may find what has another mark, or none.
        """
        wanted = self._wanted
        filters = [] if exact else [some([self._term("scope", scope + END) for scope in self._scopes])]
        if not set(wanted.searched) >= self._in_scope():
            filters.append(some([self._term("collection", name) for name in wanted.searched]))
        if GONE in self._scopes:
            filters.append(some([self._term("state", state) for state in wanted.states]))
        if wanted.class_id is not None:
            filters.append(self._term("class", wanted.class_id))
        return _all([query, *(Query.const_score_query(each, 0.0) for each in filters)])

    def _in_scope(self) -> set[str]:
        """The collections whose records the scopes hold."""
        if GONE in self._scopes:
            return set(COLLECTIONS)
        usual = set(SEARCHED) if USUAL in self._scopes else set()
        return usual | (set(COLLECTIONS) - set(SEARCHED) if UNUSUAL in self._scopes else set())


def allowed(word: str) -> int:
    """How many letters of a word may be wrong: none in a short one, nor in one so long that it takes long to try."""
    if len(word) < 4 or len(word.encode(errors="replace")) > _LONGEST_CLOSE_WORD:
        return 0
    return 1 if len(word) < 9 else 2


def allowed_in_key(key: str) -> int:
    """The same for a whole name without its spaces."""
    if len(key) < 4 or len(key.encode(errors="replace")) > _LONGEST_CLOSE_KEY:
        return 0
    return 1 if len(key) < 8 else 2


def some(queries: Sequence[Query]) -> Query:
    """What one of these finds."""
    return queries[0] if len(queries) == 1 else Query.boolean_query([(Occur.Should, query) for query in queries])


def _all(queries: Sequence[Query]) -> Query:
    return queries[0] if len(queries) == 1 else Query.boolean_query([(Occur.Must, query) for query in queries])


def _once(words: Iterable[Sought]) -> list[Sought]:
    return list(dict.fromkeys(words))


class _Way(NamedTuple):
    """A way to look for two words at once."""

    pairs: list[str]
    """Pairs of first letters, of which a record that has both has one."""
    told: list[Sought]
    """Which of them need not be looked for besides."""


@lru_cache(16)  # as long as one search goes on, which asks several times
def _planned(words: tuple[Sought, ...]) -> tuple[tuple[Sought, ...], tuple[_Way, ...]]:
    """What words to look for, without those that another begins with, and the ways to look for two at once."""
    needed = _once(words)
    for word in _once(words):
        if any(word.begins(other) for other in needed if other != word):
            needed.remove(word)
    ways: list[_Way] = []
    for one, other, length in _paired(_once(words)):
        pairs = one.pairs(other, length)
        told = [word for word, letters in ((one, 1), (other, length)) if word.is_told_by(letters)]
        ways += [_Way(pairs, told)] if pairs else []
    return tuple(needed), tuple(ways)


def _paired(words: Sequence[Sought]) -> Iterator[tuple[Sought, Sought, int]]:
    """Two words whose pairs are perhaps rare, and how many letters of the second are in them: two, if there are."""
    short = sorted(words, key=lambda word: len(word.forms[0]))[:_MOST_PAIRED]
    for one, other in combinations(short, 2):
        if len(one.forms[0]) <= _LONGEST_PAIRED:
            yield one, other, min(2, len(other.forms[0]))
            if len(one.forms[0]) > 1:
                yield other, one, 2


def _cost(lengths: Sequence[int]) -> tuple[int, int]:
    """What it takes to find what is on all of several lists: going through the shortest, one looks into each other."""
    return min(lengths) * (len(lengths) + 1), sum(lengths)
