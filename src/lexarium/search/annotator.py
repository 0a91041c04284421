"""Finds the names of records in text: leftmost first, the longest of those, on the boundaries of words.

The names stand in a tree of words. It is changed in place, so it follows the catalogue at once; and since a text is cut
into words once, however many names there are, their number hardly matters to the speed.
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple

from lexarium.search.words import LONGEST_WORD, WIDEST_GAP, bare, form, parts

LONGEST_LABEL = 500
"""In characters; a name that is longer is not looked for."""
_LONGEST_CASED = 4
_REMEMBERED = 50_000
"""How many spellings of words are remembered while a text is read."""
_SLICE = 1 << 16
"""How many characters are read at a time."""
_KEPT = 2 * max(LONGEST_WORD, WIDEST_GAP)
"""How much is kept of what is too long to be a word, so that it stays too long."""
_ROOT = 0
_UNKNOWN = 0
_WORDS = 32
"""How many bits the number of a word has."""
_FLAGS = 2
"""How many bits stand below a node's number and say what may end there: a name, one of which the spelling counts."""
_ENDS = 1
_CASED = 2

Place = int | tuple[int, str]
"""What ends at a node of the tree; or, where only one spelling counts, at a node if it is spelt so."""


@dataclass(frozen=True, slots=True)
class Term:
    """A record that may be mentioned."""

    id: str
    name: str
    collection: str


class Mention(NamedTuple):
    """A stretch of text, in code points from its beginning, and the terms that are called so."""

    start: int
    end: int
    text: str
    terms: tuple[Term, ...]


class Annotator:
    """The names that are looked for. One thread may change it while others read texts."""

    def __init__(self) -> None:
        self._words: dict[str, int] = {}
        """A number for the form of every word that is in a name."""
        self._steps: dict[int, int] = {}
        """The tree: from a node by a word to the next node, with flags."""
        self._terms: dict[Place, Term | dict[str, Term]] = {}
        """Whose names end where: mostly one term's, else several, by id."""
        self._places: dict[str, tuple[Place, ...]] = {}
        """Where the names of each term end, by id."""
        self._most_words = 1

    def __len__(self) -> int:
        return len(self._places)

    def put(self, term: Term, labels: Iterable[str]) -> None:
        """Look for a term by these names, and by no others."""
        self.drop(term.id)
        places = {place: None for place in map(self._grown, labels) if place is not None}
        # Where any spelling counts, none counts by itself.
        own = tuple(place for place in places if isinstance(place, int) or place[0] not in places)
        for place in own:
            self._call(place, term)
        if own:
            self._places[term.id] = own

    def drop(self, identifier: str) -> None:
        """Look for a term no more. One that is not there does no harm."""
        for place in self._places.pop(identifier, ()):
            called = self._terms[place]
            if isinstance(called, dict) and len(called) > 1:
                del called[identifier]
            else:
                del self._terms[place]

    def mentions(self, pieces: Iterable[str], collections: Collection[str]) -> Iterator[list[Mention]]:
        """Every mention of a term of these collections, in order, some at a time.

        Of what has been read only a few words are kept, however long the text is.
        """
        return _Reading(self, collections).mentions(pieces)

    @property
    def most_words(self) -> int:
        """How many words the longest name has."""
        return self._most_words

    def number(self, word: str) -> int:
        """The number of a word, however it is spelt; that of the unknown where no name holds it."""
        return self._words.get(form(word), _UNKNOWN) if len(word) <= LONGEST_WORD else _UNKNOWN

    def first(self, word: str) -> int:
        """The node that names beginning with this word go on from, with its flags; 0 where there are none."""
        return self._steps.get(self.number(word), 0)

    def path(self, node: int, numbers: list[int], place: int) -> list[tuple[int, int]]:
        """The nodes where a name may end, from the first word's on, each with the place after it.

        `place` is that after the first word. The numbers must end with that of the unknown.
        """
        step = self._steps.get
        ends = []
        here: int | None = node
        while here:
            if here & _ENDS:
                ends.append((here, place))
            here = step(here >> _FLAGS << _WORDS | numbers[place])
            place += 1
        return ends

    def called(self, node: int, word: str, collections: Collection[str]) -> tuple[Term, ...]:
        """The terms of these collections whose name ends at a node; `word` is how its first word is spelt."""
        found = self._terms.get(node >> _FLAGS)
        if type(found) is Term and not node & _CASED:
            return (found,) if found.collection in collections else ()
        terms = _several(found)
        if node & _CASED:
            terms += _several(self._terms.get((node >> _FLAGS, bare(word))))
        return tuple([term for term in terms if term.collection in collections])

    def _call(self, place: Place, term: Term) -> None:
        there = self._terms.get(place)
        if there is None:
            self._terms[place] = term
        elif isinstance(there, Term):
            self._terms[place] = {there.id: there, term.id: term}
        else:
            there[term.id] = term

    def _grown(self, label: str) -> Place | None:
        """Where a name ends, made where it is not there; None for one that cannot be looked for."""
        words = parts(label)[1::2]
        if len(label) > LONGEST_LABEL or not any(map(str.isalnum, label)):
            return None
        node = _ROOT
        for word in words:
            number = self._words.setdefault(form(word), len(self._words) + 1)
            step = node << _WORDS | number
            node = self._steps.setdefault(step, len(self._steps) + 1 << _FLAGS) >> _FLAGS
        self._most_words = max(self._most_words, len(words))
        spelling = bare(words[0])
        if len(words) > 1 or not _is_cased(spelling):
            self._steps[step] |= _ENDS
            return node
        self._steps[step] |= _ENDS | _CASED
        return node, spelling


class _Memory(dict[str, int]):
    """What is known of words, by how they are spelt."""

    def __init__(self, look_up: Callable[[str], int]) -> None:
        super().__init__()
        self._look_up = look_up

    def __missing__(self, word: str) -> int:
        if len(self) >= _REMEMBERED:
            self.clear()
        known = self[word] = self._look_up(word)
        return known


class _Reading:
    """One text, as it comes."""

    def __init__(self, annotator: Annotator, collections: Collection[str]) -> None:
        self._annotator = annotator
        self._collections = collections
        self._number = _Memory(annotator.number).__getitem__
        self._first = _Memory(annotator.first).__getitem__
        self._open = ""
        """What may still be part of a mention that has not been found."""
        self._offset = 0
        """Where that begins."""

    def mentions(self, pieces: Iterable[str]) -> Iterator[list[Mention]]:
        for piece in pieces:
            for start in range(0, len(piece), _SLICE):
                self._open += piece[start : start + _SLICE]
                yield self._found(ended=False)
        yield self._found(ended=True)

    def _found(self, *, ended: bool) -> list[Mention]:
        """The mentions in what is open, up to where they may depend on what comes next."""
        text, offset = self._open, self._offset
        cut = parts(text)
        words = cut[1::2]
        numbers = [*map(self._number, words), _UNKNOWN]
        bounds = list(accumulate(map(len, cut)))
        settled = len(words) if ended else self._settled(words, numbers)
        path, called, collections = self._annotator.path, self._annotator.called, self._collections
        found = []
        after = 0
        for place, first in enumerate(map(self._first, words[:settled])):
            if not first or place < after:
                continue
            for node, beyond in reversed(path(first, numbers, place + 1)):
                terms = called(node, words[place], collections)
                if terms:
                    start, end = bounds[2 * place], bounds[2 * beyond - 1]
                    found.append(Mention(offset + start, offset + end, text[start:end], terms))
                    after = beyond
                    break
        after = max(after, settled)
        if after < len(words):
            self._keep(max(bounds[2 * after], bounds[2 * after + 1] - _KEPT))
        return found

    def _settled(self, words: list[str], numbers: list[int]) -> int:
        """How many of the words may begin a mention without regard to what comes next.

        The last word may go on, and so may the one before it, by an apostrophe. No mention goes beyond an unknown word,
        or beyond as many words as the longest name has.
        """
        whole = len(words) - 2
        least = max(0, whole - self._annotator.most_words)
        for place in range(len(words) - 1, least - 1, -1):
            if len(words[place]) > LONGEST_WORD:
                return place
            if place < whole and numbers[place] == _UNKNOWN:
                return place + 1
        return least

    def _keep(self, start: int) -> None:
        self._open = self._open[start:]
        self._offset += start


def _several(found: Term | dict[str, Term] | None) -> tuple[Term, ...]:
    if isinstance(found, dict):
        return tuple(found.values())
    return () if found is None else (found,)


def _is_cased(word: str) -> bool:
    """Whether a name that is this word alone is one only in its own case: one character, or an abbreviation."""
    return len(word) == 1 or (len(word) <= _LONGEST_CASED and word.isalpha() and word.isupper())
