"""Finds the names of records in text: leftmost first, the longest of those, on the boundaries of words.

The names stand in a tree of words, which is changed in place, so that it follows the catalogue at once. A text is cut
at spaces and signs, which is quick. What stands between, a run, has mostly been met before, and then its words are
known; and a run without a word that some name begins with, as most are, is passed over.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain, compress, count
from operator import itemgetter
from typing import NamedTuple

from lexarium.search.words import (
    LONGEST_WORD,
    WIDEST_GAP,
    are_apart,
    bare,
    follows_space,
    form,
    forms,
    mended,
    parts,
    runs,
)

LONGEST_LABEL = 500
"""In characters; a name that is longer is not looked for."""
_LONGEST_CASED = 4
_REMEMBERED = 50_000
"""How many runs are remembered."""
_LONGEST_REMEMBERED = 50
"""In characters; a run may be as long as a text."""
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

Ending = int | tuple[int, str]
"""The node of the tree that a name ends at; where only one spelling counts, with that."""
Place = tuple[int, int]
"""Of a word in a text: which run, and which word of it."""


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


class Run(NamedTuple):
    """What stands between two spaces or signs, with the first of them, cut into words."""

    beginnings: tuple[int, ...]
    """Which of its words some name begins with."""
    length: int
    numbers: tuple[int, ...]
    """Those of its words."""
    bounds: list[int]
    """Where its first word begins, where that ends, where the next begins, and so on."""
    cut: list[str]
    """What stands before the first word, that word, what stands between it and the next, and so on."""
    is_plain: bool
    """Whether a space alone stands before its first word, and nothing after the last."""


_BEGINNINGS, _LENGTH = map(itemgetter, (0, 1))
_END = Run((), 0, (_UNKNOWN,), [0, 0], ["", "", ""], is_plain=False)
"""Stands behind the last run of a text: what no name goes on with."""


class Annotator:
    """The names that are looked for. One thread may change it while others read texts."""

    def __init__(self) -> None:
        self._words: dict[str, int] = {}
        """A number for the form of every word that is in a name."""
        self._steps: dict[int, int] = {}
        """The tree: from a node by a word to the next node, with flags."""
        self._terms: dict[Ending, Term | dict[str, Term]] = {}
        """Whose names end where: mostly one term's, else several, by id."""
        self._endings: dict[str, tuple[Ending, ...]] = {}
        """Where the names of each term end, by id."""
        self.runs = _Memory(self._run)
        """Every run, by its text. It is another one when the tree has grown."""

    def __len__(self) -> int:
        return len(self._endings)

    def put(self, term: Term, labels: Iterable[str]) -> None:
        """Look for a term by these names, and by no others."""
        self.drop(term.id)
        before = len(self._steps)
        endings = {ending: None for ending in map(self._grown, labels) if ending is not None}
        # Where any spelling counts, none counts by itself.
        own = tuple(ending for ending in endings if isinstance(ending, int) or ending[0] not in endings)
        for ending in own:
            self._call(ending, term)
        if own:
            self._endings[term.id] = own
        if len(self._steps) > before and self.runs:
            self.runs = _Memory(self._run)

    def drop(self, identifier: str) -> None:
        """Look for a term no more. One that is not there does no harm."""
        for ending in self._endings.pop(identifier, ()):
            called = self._terms[ending]
            if isinstance(called, dict) and len(called) > 1:
                del called[identifier]
            else:
                del self._terms[ending]

    def mentions(self, pieces: Iterable[str], collections: Collection[str]) -> Iterator[list[Mention]]:
        """Every mention of a term of these collections, in order, some at a time.

        Of what has been read only a few words are kept, however long the text is.
        """
        return _Reading(self, collections).mentions(pieces)

    def path(self, runs: Sequence[Run], at: int, word: int, open_from: Place) -> list[tuple[int, int, int]] | None:
        """The nodes where a name that begins at a place may end, each with the place after it.

        None where that depends on a word that is still open.
        """
        last, last_word = open_from
        if at > last or (at == last and word >= last_word):
            return None
        step = self._steps.get
        run = runs[at]
        numbers = run.numbers
        here = step(numbers[word])
        ends = []
        while here:
            word += 1
            if here & _ENDS:
                ends.append((here, at, word))
            if word == len(numbers):
                following = runs[at + 1]
                if run.is_plain and following.is_plain:
                    at += 1
                else:
                    further = _following(runs, at)
                    if further is None:
                        break
                    at = further
                word, run = 0, runs[at]
                numbers = run.numbers
            if at >= last and (at > last or word >= last_word):
                return None
            here = step(here >> _FLAGS << _WORDS | numbers[word])
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

    def _run(self, text: str) -> Run:
        if text.isascii() and text.isalnum():  # One word, as most are: the fast way.
            number = self._number(text)
            telling = (0,) if number in self._steps else ()
            length = len(text) + 1
            return Run(telling, length, (number,), [1, length, length], [" ", text, ""], is_plain=True)
        if follows_space(text):
            text = f" {text}"
        cut = parts(text)
        if text.rfind("\n") > 0:
            cut = mended(cut, lambda word: self._number(word) != _UNKNOWN)
        numbers = tuple(map(self._number, cut[1::2]))
        beginnings = tuple([word for word, number in enumerate(numbers) if number in self._steps])
        bounds = list(accumulate(map(len, cut)))
        return Run(beginnings, len(text), numbers, bounds, cut, cut[0] == " " and numbers != () and not cut[-1])

    def _number(self, word: str) -> int:
        """The number of a word, however it is spelt; that of the unknown where no name holds it."""
        return self._words.get(form(word), _UNKNOWN) if len(word) <= LONGEST_WORD else _UNKNOWN

    def _call(self, ending: Ending, term: Term) -> None:
        there = self._terms.get(ending)
        if there is None:
            self._terms[ending] = term
        elif isinstance(there, Term):
            self._terms[ending] = {there.id: there, term.id: term}
        else:
            there[term.id] = term

    def _grown(self, label: str) -> Ending | None:
        """Where a name ends, made where it is not there; None for one that cannot be looked for."""
        if len(label) > LONGEST_LABEL or not any(map(str.isalnum, label)):
            return None
        words = list(chain.from_iterable(map(forms, label.split())))
        node = _ROOT
        for word in words:
            number = self._words.get(word) or self._words.setdefault(word, len(self._words) + 1)
            step = node << _WORDS | number
            flagged = self._steps.get(step) or self._steps.setdefault(step, len(self._steps) + 1 << _FLAGS)
            node = flagged >> _FLAGS
        spelling = bare(parts(" ".join(label.split()))[1]) if len(words) == 1 else ""
        cased = _is_cased(spelling)
        self._steps[step] = flagged | _ENDS | (_CASED if cased else 0)
        return (node, spelling) if cased else node


class _Memory(dict[str, Run]):
    """The runs that were met lately, by their text; any other is made when it is asked for."""

    def __init__(self, make: Callable[[str], Run]) -> None:
        super().__init__()
        self._make = make

    def __missing__(self, text: str) -> Run:
        run = self._make(text)
        if len(text) <= _LONGEST_REMEMBERED:
            if len(self) >= _REMEMBERED:
                self.clear()
            self[text] = run
        return run


class _Stretch:
    """Some of a text, as runs."""

    def __init__(self, text: str, run: Callable[[str], Run]) -> None:
        self.text = text
        self.runs = [*map(run, runs(text)), _END]
        # The first run has no space before it, though it counts one.
        self.starts: list[int] = list(accumulate(map(_LENGTH, self.runs), initial=-1))

    def telling(self) -> Iterable[int]:
        """The runs that have a word that some name begins with."""
        return compress(count(), map(_BEGINNINGS, self.runs))

    def start(self, place: Place) -> int:
        """Where a word begins."""
        at, word = place
        return self.starts[at] + self.runs[at].bounds[2 * word]

    def word(self, place: Place) -> str:
        """How a word is spelt."""
        at, word = place
        return self.runs[at].cut[2 * word + 1]

    def open_from(self) -> Place:
        """The first word that more text may change.

        The last may go on, that before it by an apostrophe, and that before by a hyphen at the end of a line. But what
        is too long for a word stays so.
        """
        words = self.runs[-2].cut[1::2]
        first = max(0, len(words) - 3)
        long = [word for word in range(first, len(words)) if len(words[word]) > LONGEST_WORD]
        return len(self.runs) - 2, long[-1] if long else first


class _Reading:
    """One text, as it comes."""

    def __init__(self, annotator: Annotator, collections: Collection[str]) -> None:
        self._annotator = annotator
        self._collections = collections
        self._run = annotator.runs.__getitem__
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
        stretch = _Stretch(self._open, self._run)
        open_from = (len(stretch.runs), 0) if ended else stretch.open_from()
        path, called, collections = self._annotator.path, self._annotator.called, self._collections
        text, runs, starts, offset = stretch.text, stretch.runs, stretch.starts, self._offset
        after_at = after_word = 0
        found: list[Mention] = []
        for at in stretch.telling():
            if at < after_at:
                continue
            run = runs[at]
            for word in run.beginnings:
                if at == after_at and word < after_word:
                    continue
                ends = path(runs, at, word, open_from)
                if ends is None:
                    self._keep(stretch, max((after_at, after_word), min((at, word), open_from)))
                    return found
                for node, end_at, end_word in reversed(ends):
                    terms = called(node, run.cut[2 * word + 1], collections)
                    if terms:
                        start = starts[at] + run.bounds[2 * word]
                        end = starts[end_at] + runs[end_at].bounds[2 * end_word - 1]
                        found.append(Mention(offset + start, offset + end, text[start:end], terms))
                        after_at, after_word = end_at, end_word
                        break
                if after_at > at:
                    break
        if not ended:
            self._keep(stretch, max((after_at, after_word), open_from))
        return found

    def _keep(self, stretch: _Stretch, place: Place) -> None:
        at, word = place
        start = stretch.start(place)
        if word < len(stretch.runs[at].numbers):
            start = max(start, start + len(stretch.word(place)) - _KEPT)
        self._open = self._open[start:]
        self._offset += start


def _following(runs: Sequence[Run], at: int) -> int | None:
    """The next run that has a word, or None where that stands too far away."""
    gap = runs[at].cut[-1]
    while True:
        at += 1
        gap += runs[at].cut[0]
        if are_apart(gap):
            return None
        if runs[at].numbers:
            return at


def _several(found: Term | dict[str, Term] | None) -> tuple[Term, ...]:
    if isinstance(found, dict):
        return tuple(found.values())
    return () if found is None else (found,)


def _is_cased(word: str) -> bool:
    """Whether a name that is this word alone is one only in its own case: one character, or an abbreviation."""
    return len(word) == 1 or (len(word) <= _LONGEST_CASED and word.isalpha() and word.isupper())
