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

from lexarium.search.analysis.words import (
    MAX_ANNOTATED_WORD_CHARS,
    MAX_GAP_CHARS,
    follows_space,
    is_phrase_boundary,
    join_hyphenated,
    normalize_word,
    normalize_words,
    split_fragments,
    split_words,
    strip_ending,
)

MAX_LABEL_CHARS = 500
"""In characters; a name that is longer is not looked for."""
_MAX_ABBREVIATION_CHARS = 4
_MAX_CACHED_FRAGMENTS = 50_000
"""How many runs are remembered."""
_MAX_CACHED_FRAGMENT_CHARS = 50
"""In characters; a run may be as long as a text."""
_MAX_CACHED_TOKENS = 8
"""Of a run that is remembered: where words have no spaces between them, hardly any run comes again."""
_SLICE_CHARS = 1 << 16
"""How many characters are read at a time."""
_MAX_RETAINED_CHARS = 2 * max(MAX_ANNOTATED_WORD_CHARS, MAX_GAP_CHARS)
"""How much is kept of what is too long to be a word, so that it stays too long."""

# No word of a name has the end of a line in it: these stand where words do, and are none.
_END = "\n"
"""In a node of the tree: what ends there."""
_UNKNOWN = "\n?"
"""A word that is in no name."""
_GAP = "\n-"
"""No word at all, where a run ends with what stands between words."""
_INCOMPLETE = "\n+"
"""A word that more text may change."""


@dataclass(frozen=True, slots=True)
class DictionaryTerm:
    """A record that may be mentioned."""

    id: str
    name: str
    collection: str


class Mention(NamedTuple):
    """A stretch of text, in code points from its beginning, and the terms that are called so."""

    start: int
    end: int
    text: str
    terms: tuple[DictionaryTerm, ...]


@dataclass(frozen=True, slots=True)
class _SharedEnding:
    """Whose name it is, by id: of several terms, or of those that are called so in one spelling only."""

    terms: dict[str, DictionaryTerm]
    terms_by_spelling: dict[str, dict[str, DictionaryTerm]]

    def terms_for(self, spelling: str) -> dict[str, DictionaryTerm]:
        """Those of any spelling, where none is given, or of that."""
        return self.terms_by_spelling.setdefault(spelling, {}) if spelling else self.terms

    def matching(self, text: str) -> tuple[DictionaryTerm, ...]:
        """Whose name it is where it is spelt like this."""
        terms = tuple(self.terms.values())
        return (
            terms + tuple(self.terms_by_spelling.get(strip_ending(text), {}).values())
            if self.terms_by_spelling
            else terms
        )


_Ending = DictionaryTerm | _SharedEnding
_TrieNode = dict[str, Union["_TrieNode", _Ending]]
"""What follows a word in a name, by the next word: more of the tree, or its end where no name goes on from there."""
_Token = tuple[str, int, int, bool]
"""A word as names have it, how long it is with what stands before it, how long that is, and whether names begin so."""
_get_length, _get_starts_label = map(itemgetter, (1, 3))


class Annotator:
    """The names that are looked for. One thread may change it while others read texts."""

    def __init__(self) -> None:
        self.trie: _TrieNode = {}
        self._words: dict[str, str] = {}
        """The form of every word that is in a name, once."""
        self._labels: dict[str, list[str]] = {}
        """What each term is called, by id."""
        self.fragment_tokens = _FragmentTokens(self._words, self.trie)

    def __len__(self) -> int:
        return len(self._labels)

    def add(self, term: DictionaryTerm, labels: Iterable[str]) -> None:
        """Look for a term by these names, and by no others."""
        self.remove(term.id)
        usable_labels = [label for label in labels if len(label) <= MAX_LABEL_CHARS and any(map(str.isalnum, label))]
        entries = _analyze_labels(usable_labels)
        known_words = len(self._words)
        # Where a record or more of the tree stands, names begin with that word already, however it is spelt.
        starts_new_label = any(not isinstance(self.trie.get(words[0]), DictionaryTerm | dict) for words, _ in entries)
        for words, spelling in entries:
            self._add_label([self._words.setdefault(word, word) for word in words], spelling, term)
        if usable_labels:
            self._labels[term.id] = usable_labels
        if starts_new_label or len(self._words) > known_words:
            self.fragment_tokens = _FragmentTokens(self._words, self.trie)

    def remove(self, record_id: str) -> None:
        """Look for a term no more. One that is not there does no harm."""
        for words, spelling in _analyze_labels(self._labels.pop(record_id, ())):
            node, last = self._locate(words)
            ending = node[last]
            if isinstance(ending, _SharedEnding):
                del ending.terms_for(spelling)[record_id]
            else:
                del node[last]

    def find_mentions(self, chunks: Iterable[str], collections: Collection[str]) -> Iterator[list[Mention]]:
        """Every mention of a term of these collections, in order, some at a time.

        Of what has been read only a few words are kept, however long the text is.
        """
        return _MentionScanner(self, collections).find_mentions(chunks)

    def _add_label(self, words: list[str], spelling: str, term: DictionaryTerm) -> None:
        node, last = self._locate(words)
        ending = node.get(last)
        if ending is None and not spelling:
            node[last] = term
            return
        if not isinstance(ending, _SharedEnding):
            ending = node[last] = _SharedEnding({ending.id: ending} if isinstance(ending, DictionaryTerm) else {}, {})
        ending.terms_for(spelling)[term.id] = term

    def _locate(self, words: Sequence[str]) -> tuple[_TrieNode, str]:
        """Where a name ends in the tree, made where it is not there: a node, and what stands for it in that."""
        node = self.trie
        *leading, last = words
        for word in leading:
            child = node.get(word)
            if not isinstance(child, dict):
                child = node[word] = {} if child is None else {_END: child}
            node = child
        child = node.get(last)
        return (child, _END) if isinstance(child, dict) else (node, last)


class _FragmentTokens(dict[str, tuple[_Token, ...]]):
    """The tokens of the runs that were met lately, by their text; those of any other are made when they are asked for.

    They hold as long as no word comes to be known, or to begin a name.
    """

    def __init__(self, words: Mapping[str, str], trie: _TrieNode) -> None:
        super().__init__()
        self._words = words
        self._trie = trie

    def __missing__(self, fragment: str) -> tuple[_Token, ...]:
        tokens = self._tokenize(fragment)
        if len(fragment) <= _MAX_CACHED_FRAGMENT_CHARS and len(tokens) <= _MAX_CACHED_TOKENS:
            if len(self) >= _MAX_CACHED_FRAGMENTS:
                self.clear()
            self[fragment] = tokens
        return tokens

    def _tokenize(self, fragment: str) -> tuple[_Token, ...]:
        if fragment.isascii() and fragment.isalnum():  # One word, as most are: the fast way.
            known_word = self._find_word(fragment)
            return (
                _unknown_token(len(fragment))
                if known_word is _UNKNOWN
                else ((known_word, len(fragment) + 1, 1, self._starts_label(known_word, fragment)),)
            )
        text = f" {fragment}" if follows_space(fragment) else fragment
        parts = split_words(text)
        if text.rfind("\n") > 0:
            parts = join_hyphenated(parts, lambda word: self._find_word(word) is not _UNKNOWN)
        tokens = [
            (
                known_word,
                len(gap) + len(word),
                len(gap),
                known_word is not _UNKNOWN and self._starts_label(known_word, word),
            )
            for gap, word, known_word in zip(parts[::2], parts[1::2], map(self._find_word, parts[1::2]), strict=False)
        ]
        gap = len(parts[-1])
        return (*tokens, (_GAP, gap, gap, False)) if gap else tuple(tokens)

    def _starts_label(self, known_word: str, word: str) -> bool:
        """Whether a name begins with this word; where all that do are this word in another spelling, none does."""
        node = self._trie.get(known_word)
        return bool(node.matching(word)) if isinstance(node, _SharedEnding) else node is not None

    def _find_word(self, word: str) -> str:
        """A word as names have it, however it is spelt."""
        return self._words.get(normalize_word(word), _UNKNOWN) if len(word) <= MAX_ANNOTATED_WORD_CHARS else _UNKNOWN


@lru_cache(100)
def _unknown_token(length: int) -> tuple[_Token]:
    """A run that is a word of no name: one for all of a length, since most runs are such and memory is slow."""
    return ((_UNKNOWN, length + 1, 1, False),)


class _TokenizedText(NamedTuple):
    """Some of a text."""

    text: str
    tokens: list[_Token]
    starts: list[int]
    """Where each token begins, and where the last ends."""

    def walk_trie(self, trie: _TrieNode, index: int) -> list[tuple[_TrieNode | _Ending, int]] | None:
        """The way through the tree from a token on, with the place after each: where names end that begin there.

        None where that depends on a word that is still open.
        """
        tokens = self.tokens
        node = trie.get(tokens[index][0])
        path: list[tuple[_TrieNode | _Ending, int]] = []
        while node is not None:
            index += 1
            path.append((node, index))
            if not isinstance(node, dict):
                break
            word = tokens[index][0]
            if word is _GAP:
                gap_index = index
                while word is _GAP and index < gap_index + MAX_GAP_CHARS:
                    index += 1
                    word = tokens[index][0]
                if is_phrase_boundary(self.text[self.starts[gap_index] : self.word_start(index)]):
                    break
            if word is _INCOMPLETE:
                return None
            node = node.get(word)
        return path

    def word_start(self, index: int) -> int:
        """Where the word of a token begins."""
        _, _, gap, _ = self.tokens[index]
        return self.starts[index] + gap


class _MentionScanner:
    """One text, as it comes."""

    def __init__(self, annotator: Annotator, collections: Collection[str]) -> None:
        self._trie = annotator.trie
        self._get_tokens = annotator.fragment_tokens.__getitem__
        self._collections = collections
        self._pending = ""
        """What may still be part of a mention that has not been found."""
        self._pending_offset = 0
        """Where that begins."""

    def find_mentions(self, chunks: Iterable[str]) -> Iterator[list[Mention]]:
        for chunk in chunks:
            for start in range(0, len(chunk), _SLICE_CHARS):
                self._pending += chunk[start : start + _SLICE_CHARS]
                yield self._scan(is_last=False)
        yield self._scan(is_last=True)

    def _scan(self, *, is_last: bool) -> list[Mention]:
        """The mentions in what is open, up to where they may depend on what comes next."""
        *leading_tokens, last_tokens = map(self._get_tokens, split_fragments(self._pending))
        tokens = [*chain.from_iterable(leading_tokens), *last_tokens]
        # The first run has no space before it, though it counts one.
        starts = list(accumulate(map(_get_length, tokens), initial=-1))
        if is_last:
            limit = len(tokens)
            tokens.append((_UNKNOWN, 0, 0, False))
        else:
            limit = len(tokens) - len(last_tokens) + _first_unstable_token(last_tokens)
            _, length, gap, _ = tokens[limit]
            tokens[limit:] = [(_INCOMPLETE, length, gap, False)]
        tokenized = _TokenizedText(self._pending, tokens, starts)
        trie, pending_offset = self._trie, self._pending_offset
        mentions: list[Mention] = []
        next_token = 0
        for index in compress(count(), map(_get_starts_label, tokens)):
            if index < next_token:
                continue
            path = tokenized.walk_trie(trie, index)
            if path is None:
                limit = index
                break
            start = tokenized.word_start(index)
            for node, next_index in reversed(path):
                end = starts[next_index]
                text = tokenized.text[start:end]
                terms = self._matching_terms(node, text)
                if terms:
                    mentions.append(Mention(pending_offset + start, pending_offset + end, text, terms))
                    next_token = next_index
                    break
        if not is_last:
            self._retain(tokenized, max(next_token, limit))
        return mentions

    def _matching_terms(self, node: _TrieNode | _Ending, text: str) -> tuple[DictionaryTerm, ...]:
        """Who among those that are asked for has a name that ends there."""
        ending = node.get(_END) if isinstance(node, dict) else node
        if isinstance(ending, DictionaryTerm):
            return (ending,) if ending.collection in self._collections else ()
        if isinstance(ending, _SharedEnding):
            return tuple([term for term in ending.matching(text) if term.collection in self._collections])
        return ()

    def _retain(self, tokenized: _TokenizedText, index: int) -> None:
        start = max(tokenized.word_start(index), tokenized.starts[index + 1] - _MAX_RETAINED_CHARS)
        self._pending = self._pending[start:]
        self._pending_offset += start


def _first_unstable_token(tokens: Sequence[_Token]) -> int:
    """Which token of the last run is the first that more text may change.

    The last word may go on, that before it by an apostrophe, and that before by a hyphen at the end of a line. But what
    is too long for a word stays so.
    """
    lengths = [length - gap for word, length, gap, _ in tokens if word is not _GAP]
    first = max(0, len(lengths) - 3)
    return max([first, *(index for index in range(first, len(lengths)) if lengths[index] > MAX_ANNOTATED_WORD_CHARS)])


def _analyze_labels(labels: Iterable[str]) -> list[tuple[tuple[str, ...], str]]:
    """The words of each name, and how it must be spelt where that counts; each once."""
    entries = dict.fromkeys(map(_analyze_label, labels))
    # Where any spelling counts, none counts by itself.
    return [(words, spelling) for words, spelling in entries if not spelling or (words, "") not in entries]


def _analyze_label(label: str) -> tuple[tuple[str, ...], str]:
    words = tuple(chain.from_iterable(map(normalize_words, label.split())))
    spelling = strip_ending(split_words(" ".join(label.split()))[1]) if len(words) == 1 else ""
    return words, spelling if _is_case_sensitive(spelling) else ""


def _is_case_sensitive(word: str) -> bool:
    """Whether a name that is this word alone is one only in its own case: one character, or an abbreviation."""
    return len(word) == 1 or (len(word) <= _MAX_ABBREVIATION_CHARS and word.isalpha() and word.isupper())
