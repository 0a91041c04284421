"""Finds the names of records in text: leftmost first, the longest of those, on the boundaries of words.

The names stand in a tree of words, which is changed in place, so that it follows the catalogue at once. A text is cut
at spaces and signs, which is quick. What stands between, a run, has mostly been met before, and then its words are
known; and a word that no name begins with, as most are, is passed over.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, chain, compress, count
from operator import itemgetter
from typing import NamedTuple, Union

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
_MOST_TOKENS = 8
"""Of a run that is remembered: where words have no spaces between them, hardly any run comes again."""
_SLICE = 1 << 16
"""How many characters are read at a time."""
_KEPT = 2 * max(LONGEST_WORD, WIDEST_GAP)
"""How much is kept of what is too long to be a word, so that it stays too long."""

# No word of a name has the end of a line in it: these stand where words do, and are none.
_HERE = "\n"
"""In a node of the tree: what ends there."""
_UNKNOWN = "\n?"
"""A word that is in no name."""
_GAP = "\n-"
"""No word at all, where a run ends with what stands between words."""
_OPEN = "\n+"
"""A word that more text may change."""


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


@dataclass(frozen=True, slots=True)
class _Shared:
    """Whose name it is, by id: of several terms, or of those that are called so in one spelling only."""

    terms: dict[str, Term]
    spelt: dict[str, dict[str, Term]]

    def holders(self, spelling: str) -> dict[str, Term]:
        """Those of any spelling, where none is given, or of that."""
        return self.spelt.setdefault(spelling, {}) if spelling else self.terms

    def called(self, text: str) -> tuple[Term, ...]:
        """Whose name it is where it is spelt like this."""
        terms = tuple(self.terms.values())
        return terms + tuple(self.spelt.get(bare(text), {}).values()) if self.spelt else terms


_Ending = Term | _Shared
_Node = dict[str, Union["_Node", _Ending]]
"""What follows a word in a name, by the next word: more of the tree, or its end where no name goes on from there."""
_Token = tuple[str, int, int, bool]
"""A word as names have it, how long it is with what stands before it, how long that is, and whether names begin so."""
_LENGTH, _BEGINS = map(itemgetter, (1, 3))


class Annotator:
    """The names that are looked for. One thread may change it while others read texts."""

    def __init__(self) -> None:
        self.tree: _Node = {}
        self._words: dict[str, str] = {}
        """The form of every word that is in a name, once."""
        self._labels: dict[str, list[str]] = {}
        """What each term is called, by id."""
        self.runs = _Runs(self._words, self.tree)

    def __len__(self) -> int:
        return len(self._labels)

    def put(self, term: Term, labels: Iterable[str]) -> None:
        """Look for a term by these names, and by no others."""
        self.drop(term.id)
        sought = [label for label in labels if len(label) <= LONGEST_LABEL and any(map(str.isalnum, label))]
        names = _names(sought)
        before = len(self._words)
        # Where a record or more of the tree stands, names begin with that word already, however it is spelt.
        begins = any(not isinstance(self.tree.get(words[0]), Term | dict) for words, _ in names)
        for words, spelling in names:
            self._add([self._words.setdefault(word, word) for word in words], spelling, term)
        if sought:
            self._labels[term.id] = sought
        if begins or len(self._words) > before:
            self.runs = _Runs(self._words, self.tree)

    def drop(self, identifier: str) -> None:
        """Look for a term no more. One that is not there does no harm."""
        for words, spelling in _names(self._labels.pop(identifier, ())):
            node, last = self._end(words)
            there = node[last]
            if isinstance(there, _Shared):
                del there.holders(spelling)[identifier]
            else:
                del node[last]

    def mentions(self, pieces: Iterable[str], collections: Collection[str]) -> Iterator[list[Mention]]:
        """Every mention of a term of these collections, in order, some at a time.

        Of what has been read only a few words are kept, however long the text is.
        """
        return _Reading(self, collections).mentions(pieces)

    def _add(self, words: list[str], spelling: str, term: Term) -> None:
        node, last = self._end(words)
        there = node.get(last)
        if there is None and not spelling:
            node[last] = term
            return
        if not isinstance(there, _Shared):
            there = node[last] = _Shared({there.id: there} if isinstance(there, Term) else {}, {})
        there.holders(spelling)[term.id] = term

    def _end(self, words: Sequence[str]) -> tuple[_Node, str]:
        """Where a name ends in the tree, made where it is not there: a node, and what stands for it in that."""
        node = self.tree
        *before, last = words
        for word in before:
            there = node.get(word)
            if not isinstance(there, dict):
                there = node[word] = {} if there is None else {_HERE: there}
            node = there
        there = node.get(last)
        return (there, _HERE) if isinstance(there, dict) else (node, last)


class _Runs(dict[str, tuple[_Token, ...]]):
    """The tokens of the runs that were met lately, by their text; those of any other are made when they are asked for.

    They hold as long as no word comes to be known, or to begin a name.
    """

    def __init__(self, words: Mapping[str, str], tree: _Node) -> None:
        super().__init__()
        self._words = words
        self._tree = tree

    def __missing__(self, run: str) -> tuple[_Token, ...]:
        tokens = self._tokens(run)
        if len(run) <= _LONGEST_REMEMBERED and len(tokens) <= _MOST_TOKENS:
            if len(self) >= _REMEMBERED:
                self.clear()
            self[run] = tokens
        return tokens

    def _tokens(self, run: str) -> tuple[_Token, ...]:
        if run.isascii() and run.isalnum():  # One word, as most are: the fast way.
            known = self._known(run)
            return _unknown(len(run)) if known is _UNKNOWN else ((known, len(run) + 1, 1, self._begins(known, run)),)
        text = f" {run}" if follows_space(run) else run
        cut = parts(text)
        if text.rfind("\n") > 0:
            cut = mended(cut, lambda word: self._known(word) is not _UNKNOWN)
        tokens = [
            (known, len(gap) + len(word), len(gap), known is not _UNKNOWN and self._begins(known, word))
            for gap, word, known in zip(cut[::2], cut[1::2], map(self._known, cut[1::2]), strict=False)
        ]
        gap = len(cut[-1])
        return (*tokens, (_GAP, gap, gap, False)) if gap else tuple(tokens)

    def _begins(self, known: str, word: str) -> bool:
        """Whether a name begins with this word; where all that do are this word in another spelling, none does."""
        there = self._tree.get(known)
        return bool(there.called(word)) if isinstance(there, _Shared) else there is not None

    def _known(self, word: str) -> str:
        """A word as names have it, however it is spelt."""
        return self._words.get(form(word), _UNKNOWN) if len(word) <= LONGEST_WORD else _UNKNOWN


@lru_cache(100)
def _unknown(length: int) -> tuple[_Token]:
    """A run that is a word of no name: one for all of a length, since most runs are such and memory is slow."""
    return ((_UNKNOWN, length + 1, 1, False),)


class _Stretch(NamedTuple):
    """Some of a text."""

    text: str
    tokens: list[_Token]
    starts: list[int]
    """Where each token begins, and where the last ends."""

    def path(self, tree: _Node, at: int) -> list[tuple[_Node | _Ending, int]] | None:
        """The way through the tree from a token on, with the place after each: where names end that begin there.

        None where that depends on a word that is still open.
        """
        tokens = self.tokens
        here = tree.get(tokens[at][0])
        passed: list[tuple[_Node | _Ending, int]] = []
        while here is not None:
            at += 1
            passed.append((here, at))
            if not isinstance(here, dict):
                break
            word = tokens[at][0]
            if word is _GAP:
                gap = at
                while word is _GAP and at < gap + WIDEST_GAP:
                    at += 1
                    word = tokens[at][0]
                if are_apart(self.text[self.starts[gap] : self.start(at)]):
                    break
            if word is _OPEN:
                return None
            here = here.get(word)
        return passed

    def start(self, at: int) -> int:
        """Where the word of a token begins."""
        _, _, gap, _ = self.tokens[at]
        return self.starts[at] + gap


class _Reading:
    """One text, as it comes."""

    def __init__(self, annotator: Annotator, collections: Collection[str]) -> None:
        self._tree = annotator.tree
        self._run = annotator.runs.__getitem__
        self._collections = collections
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
        *before, last_tokens = map(self._run, runs(self._open))
        tokens = [*chain.from_iterable(before), *last_tokens]
        # The first run has no space before it, though it counts one.
        starts = list(accumulate(map(_LENGTH, tokens), initial=-1))
        if ended:
            done = len(tokens)
            tokens.append((_UNKNOWN, 0, 0, False))
        else:
            done = len(tokens) - len(last_tokens) + _changeable(last_tokens)
            _, length, gap, _ = tokens[done]
            tokens[done:] = [(_OPEN, length, gap, False)]
        stretch = _Stretch(self._open, tokens, starts)
        tree, offset = self._tree, self._offset
        found: list[Mention] = []
        after = 0
        for at in compress(count(), map(_BEGINS, tokens)):
            if at < after:
                continue
            path = stretch.path(tree, at)
            if path is None:
                done = at
                break
            start = stretch.start(at)
            for node, place in reversed(path):
                end = starts[place]
                text = stretch.text[start:end]
                terms = self._called(node, text)
                if terms:
                    found.append(Mention(offset + start, offset + end, text, terms))
                    after = place
                    break
        if not ended:
            self._keep(stretch, max(after, done))
        return found

    def _called(self, node: _Node | _Ending, text: str) -> tuple[Term, ...]:
        """Who among those that are asked for has a name that ends there."""
        ending = node.get(_HERE) if isinstance(node, dict) else node
        if isinstance(ending, Term):
            return (ending,) if ending.collection in self._collections else ()
        if isinstance(ending, _Shared):
            return tuple([term for term in ending.called(text) if term.collection in self._collections])
        return ()

    def _keep(self, stretch: _Stretch, at: int) -> None:
        start = max(stretch.start(at), stretch.starts[at + 1] - _KEPT)
        self._open = self._open[start:]
        self._offset += start


def _changeable(run: Sequence[_Token]) -> int:
    """Which token of the last run is the first that more text may change.

    The last word may go on, that before it by an apostrophe, and that before by a hyphen at the end of a line. But what
    is too long for a word stays so.
    """
    words = [length - gap for word, length, gap, _ in run if word is not _GAP]
    first = max(0, len(words) - 3)
    return max([first, *(at for at in range(first, len(words)) if words[at] > LONGEST_WORD)])


def _names(labels: Iterable[str]) -> list[tuple[tuple[str, ...], str]]:
    """The words of each name, and how it must be spelt where that counts; each once."""
    names = dict.fromkeys(map(_name, labels))
    # Where any spelling counts, none counts by itself.
    return [(words, spelling) for words, spelling in names if not spelling or (words, "") not in names]


def _name(label: str) -> tuple[tuple[str, ...], str]:
    words = tuple(chain.from_iterable(map(forms, label.split())))
    spelling = bare(parts(" ".join(label.split()))[1]) if len(words) == 1 else ""
    return words, spelling if _is_cased(spelling) else ""


def _is_cased(word: str) -> bool:
    """Whether a name that is this word alone is one only in its own case: one character, or an abbreviation."""
    return len(word) == 1 or (len(word) <= _LONGEST_CASED and word.isalpha() and word.isupper())
