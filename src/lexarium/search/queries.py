"""What someone typed, and the queries of the index that it becomes: one for each way to match."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tantivy import Occur, Query, Schema

from lexarium.domain.changes import State
from lexarium.domain.collections import COLLECTIONS, SEARCHED
from lexarium.search.documents import END, GONE, LITTLE_WORDS, LONGEST_GRAM, UNUSUAL, USUAL
from lexarium.search.folding import Folded, fold

MOST_WORDS = 24
"""How many words of a query are looked for; the whole of it is looked for as a name."""
# Between quotation marks, of whichever kind, or not. One that is never closed is no mark.
_PARTS = re.compile(
    '(?P<quoted>"[^"]{1,500}"|\u201c[^\u201d]{1,500}\u201d|\u00ab[^\u00bb]{1,500}\u00bb)'
    '|(?P<loose>["\u201c\u00ab]?[^"\u201c\u00ab]*)'
)
_LONGEST_IDENTIFIER = 2_000


@dataclass(frozen=True)
class Sought:
    """A word that is looked for."""

    forms: tuple[str, ...]
    """The forms of which a record must have one; the first is the usual one."""
    parts: tuple[str, ...] = ()
    """Of a word with hyphens, its parts: a record that has all of them will do."""
    whole: bool = False
    """Whether it must be a whole word: one between quotation marks. Else it may be the beginning of one."""


@dataclass(frozen=True)
class Typed:
    """What someone typed, taken apart."""

    text: str
    folded: Folded
    words: tuple[Sought, ...]
    phrases: tuple[tuple[str, ...], ...]


def typed(text: str) -> Typed:
    """Take apart what someone typed. Whatever it is, this is what it may mean."""
    sought: list[Sought] = []
    phrases: list[tuple[str, ...]] = []
    for part in _PARTS.finditer(text):
        if part.lastgroup == "loose":
            sought += _loose(part.group())
        else:
            phrase = fold(part.group()).words[:MOST_WORDS]
            sought += [Sought((word,), whole=True) for word in phrase]
            phrases += [tuple(phrase)] if len(phrase) > 1 else []
    return Typed(text.strip(), fold(text), tuple(dict.fromkeys(sought))[:MOST_WORDS], tuple(phrases[:MOST_WORDS]))


def _loose(text: str) -> Iterable[Sought]:
    for part in text.split():
        folded = fold(part)
        if folded.compounds and len(folded.words) > 1:
            yield Sought((folded.compounds[0],), tuple(dict.fromkeys(folded.words))[:MOST_WORDS])
        else:
            for word, plain in zip(folded.words, folded.plain, strict=True):
                yield Sought(tuple(dict.fromkeys([word, plain])))


@dataclass(frozen=True)
class Filter:
    """Which records are looked at."""

    collections: tuple[str, ...] = SEARCHED
    states: tuple[State, ...] = (State.PUBLISHED,)
    class_id: str | None = None

    @property
    def scopes(self) -> list[str]:
        """The marks that the terms of such records begin with."""
        found = []
        if State.PUBLISHED in self.states:
            found += [USUAL] if set(self.collections) & set(SEARCHED) else []
            found += [UNUSUAL] if set(self.collections) - set(SEARCHED) else []
        return found + ([GONE] if set(self.states) - {State.PUBLISHED} else [])


class Queries:
    """Makes the queries for one text."""

    def __init__(self, schema: Schema, sought: Typed, wanted: Filter) -> None:
        self._schema = schema
        self._typed = sought
        self._wanted = wanted
        self._scopes = wanted.scopes

    def identifier(self) -> Query:
        """Records with this identifier, or mapped to it."""
        return self._filtered(self._any("ids", [self._typed.text.casefold()[:_LONGEST_IDENTIFIER]]))

    def key(self, field: str) -> Query:
        """Records whose name or alias is the whole text."""
        return self._filtered(self._any(field, [self._typed.folded.key]))

    def beginning(self, *, whole: bool) -> Query:
        """Records whose name has the first word first, and the others somewhere."""
        first, *others = self._typed.words
        queries = [self._word("first_grams", first, whole=whole)]
        queries += [self._word("name_grams", word, whole=whole and word is not others[-1]) for word in others]
        return self._filtered(_all(queries))

    def label(self, field: str, *, whole: bool = False) -> Query:
        """Records that have all words in their name (`name_grams`) or aliases (`alias_grams`)."""
        queries = [self._word(field, word, whole=whole) for word in self._typed.words]
        return self._filtered(_all([*queries, *self._phrases("words")]))

    def text(self) -> Query | None:
        """Records that have all words in their labels and definition; None where only little words are asked for."""
        words = [word for word in self._typed.words if not set(word.forms) & LITTLE_WORDS]
        if not words:
            return None
        return self._filtered(_all([*(self._text_word(word) for word in words), *self._phrases("text")]))

    def close_key(self, field: str, distance: int) -> Query:
        """Records whose name or alias is the whole text but for some letters."""
        key = self._typed.folded.key
        return self._filtered(some([self._fuzzy(field, scope + key, distance) for scope in self._scopes]))

    def close_words(self) -> Query:
        """Records that have all words, or words that begin so, in name and aliases, but for some letters in each."""
        return self._filtered(_all([self._close_word(word) for word in self._typed.words]))

    def _close_word(self, word: Sought) -> Query:
        form = word.forms[0]
        if not allowed(form):
            return some([self._word(field, word, whole=False) for field in ("name_grams", "alias_grams")])
        close = [self._fuzzy("words", scope + form, allowed(form), begun=True) for scope in self._scopes]
        # Fuzzy matches all weigh the same: a word that is right shall weigh more.
        return some([*close, self._any("words", [form])])

    def _word(self, field: str, word: Sought, *, whole: bool) -> Query:
        whole = whole or word.whole
        forms = [_gram(form, whole=whole) for form in (word.forms[:1] if whole else word.forms)]
        one = self._any(field, forms)
        if not word.parts:
            return one
        parts = [self._any(field, [_gram(part, whole=True)]) for part in word.parts[:-1]]
        parts.append(self._any(field, [_gram(word.parts[-1], whole=whole)]))
        return some([one, _all(parts)])

    def _text_word(self, word: Sought) -> Query:
        one = self._any("text", word.forms[:1])
        parts = [self._any("text", [part]) for part in word.parts if part not in LITTLE_WORDS]
        return some([one, _all(parts)]) if parts else one

    def _phrases(self, field: str) -> list[Query]:
        found = []
        for phrase in self._typed.phrases:
            found.append(some([self._phrase(field, scope, phrase) for scope in self._scopes]))
        return found

    def _phrase(self, field: str, scope: str, phrase: Sequence[str]) -> Query:
        left_out = LITTLE_WORDS if field == "text" else frozenset()
        places = [(place, scope + word) for place, word in enumerate(phrase) if word not in left_out]
        if len(places) > 1:
            return Query.phrase_query(self._schema, field, [*places])
        return self._term(field, places[0][1]) if places else Query.all_query()

    def _any(self, field: str, terms: Iterable[str]) -> Query:
        return some([self._term(field, scope + term) for scope in self._scopes for term in terms])

    def _term(self, field: str, term: str) -> Query:
        return Query.term_query(self._schema, field, term, "basic")

    def _fuzzy(self, field: str, term: str, distance: int, *, begun: bool = False) -> Query:
        return Query.fuzzy_term_query(self._schema, field, term, distance, prefix=begun)

    def _filtered(self, query: Query) -> Query:
        """Only what is wanted. Where the scopes say all that is wanted, there is nothing to filter."""
        wanted = self._wanted
        filters = []
        if not set(wanted.collections) >= self._in_scope():
            filters.append(some([self._term("collection", name) for name in wanted.collections]))
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
    """How many letters of a word may be wrong."""
    return 0 if len(word) < 4 else 1 if len(word) < 9 else 2


def _gram(word: str, *, whole: bool) -> str:
    return word[:LONGEST_GRAM] if len(word) > LONGEST_GRAM or not whole else word + END


def _all(queries: Sequence[Query]) -> Query:
    return queries[0] if len(queries) == 1 else Query.boolean_query([(Occur.Must, query) for query in queries])


def some(queries: Sequence[Query]) -> Query:
    """What one of these finds."""
    return queries[0] if len(queries) == 1 else Query.boolean_query([(Occur.Should, query) for query in queries])
