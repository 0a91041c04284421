"""Find the names of records in text: leftmost first, then longest, on word boundaries.

The names are in a trie of words, which is updated in place as the catalogue changes. A text is split at spaces and
punctuation into fragments. Most fragments were seen before, so that their tokens are cached; and most words begin no
name, and are skipped.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, chain, compress, count
from operator import itemgetter
from typing import NamedTuple, Union

from lexarium.search.analysis import words
from lexarium.search.analysis.words import MAX_ANNOTATED_WORD_CHARS, MAX_GAP_CHARS, split_words, strip_ending

# Longer names are not looked for.
MAX_LABEL_CHARS = 500
_MAX_ABBREVIATION_CHARS = 4
_MAX_CACHED_FRAGMENTS = 50_000
_MAX_CACHED_FRAGMENT_CHARS = 50
# In a script without spaces hardly any fragment occurs again.
_MAX_CACHED_TOKENS = 8
_SLICE_CHARS = 1 << 16
# Keep enough of what is too long for a word, so that it stays too long.
_MAX_RETAINED_CHARS = 2 * max(MAX_ANNOTATED_WORD_CHARS, MAX_GAP_CHARS)

# Special words. No word of a name contains a line end.
_END = "\n"  # key in a trie node: the name that ends there
_UNKNOWN = "\n?"  # a word that is in no name
_GAP = "\n-"  # no word: the end of a fragment that ends with separators
_INCOMPLETE = "\n+"  # a word that more text may change


@dataclass(frozen=True, slots=True)
class DictionaryTerm:
    """A record that may be mentioned."""

    id: str
    name: str
    collection: str


class Mention(NamedTuple):
    """A span of text in code points, and the terms that have this name."""

    start: int
    end: int
    text: str
    terms: tuple[DictionaryTerm, ...]


@dataclass(frozen=True, slots=True)
class _SharedEnding:
    """The terms that have a name, by id: in any spelling, or only in one."""

    terms: dict[str, DictionaryTerm]
    terms_by_spelling: dict[str, dict[str, DictionaryTerm]]

    def terms_for(self, spelling: str) -> dict[str, DictionaryTerm]:
        """Return the terms of a spelling; of any, if it is empty."""
        return self.terms_by_spelling.setdefault(spelling, {}) if spelling else self.terms

    def matching(self, text: str) -> tuple[DictionaryTerm, ...]:
        """Return the terms that have this text as a name."""
        if not self.terms_by_spelling:
            return tuple(self.terms.values())
        return (*self.terms.values(), *self.terms_by_spelling.get(strip_ending(text), {}).values())


_Ending = DictionaryTerm | _SharedEnding
# By the next word: another node, or the end of a name that is no prefix of others.
_TrieNode = dict[str, Union["_TrieNode", _Ending]]
# A normalized word, its length with the gap before it, the length of the gap, and whether a name begins with it.
_Token = tuple[str, int, int, bool]
_get_length, _get_starts_label = map(itemgetter, (1, 3))


class Annotator:
    """A dictionary of names. One thread may change it while others find mentions."""

    def __init__(self) -> None:
        self.trie: _TrieNode = {}
        # The normalized words of all names, interned.
        self._words: dict[str, str] = {}
        # The names of each term, by id.
        self._labels: dict[str, list[str]] = {}
        self.fragment_tokens = _FragmentTokens(self._words, self.trie)

    def __len__(self) -> int:
        return len(self._labels)

    def add(self, term: DictionaryTerm, labels: Iterable[str]) -> None:
        """Add a term with these names; replace its former names."""
        self.remove(term.id)
        usable_labels = [label for label in labels if len(label) <= MAX_LABEL_CHARS and any(map(str.isalnum, label))]
        entries = _analyze_labels(usable_labels)
        known_words = len(self._words)
        # With a term or a node in the trie, names already begin with that word in any spelling.
        first_nodes = [self.trie.get(label_words[0]) for label_words, _ in entries]
        starts_new_label = any(not isinstance(node, DictionaryTerm | dict) for node in first_nodes)
        for label_words, spelling in entries:
            self._add_label([self._words.setdefault(word, word) for word in label_words], spelling, term)
        if usable_labels:
            self._labels[term.id] = usable_labels
        if starts_new_label or len(self._words) > known_words:
            self.fragment_tokens = _FragmentTokens(self._words, self.trie)

    def remove(self, record_id: str) -> None:
        """Remove a term, if it is there."""
        for label_words, spelling in _analyze_labels(self._labels.pop(record_id, ())):
            node, last = self._locate(label_words)
            ending = node[last]
            if isinstance(ending, _SharedEnding):
                del ending.terms_for(spelling)[record_id]
            else:
                del node[last]

    def find_mentions(self, chunks: Iterable[str], collections: Collection[str]) -> Iterator[list[Mention]]:
        """Yield the mentions of terms of these collections in batches, in order.

        Keep only the last few words of the text in memory.
        """
        return _MentionScanner(self, collections).find_mentions(chunks)

    def _add_label(self, label_words: list[str], spelling: str, term: DictionaryTerm) -> None:
        node, last = self._locate(label_words)
        ending = node.get(last)
        if ending is None and not spelling:
            node[last] = term
            return
        if not isinstance(ending, _SharedEnding):
            ending = node[last] = _SharedEnding({ending.id: ending} if isinstance(ending, DictionaryTerm) else {}, {})
        ending.terms_for(spelling)[term.id] = term

    def _locate(self, label_words: Sequence[str]) -> tuple[_TrieNode, str]:
        """Return the node and key at which a name ends; create the nodes on the way."""
        node = self.trie
        *leading, last = label_words
        for word in leading:
            child = node.get(word)
            if not isinstance(child, dict):
                child = node[word] = {} if child is None else {_END: child}
            node = child
        child = node.get(last)
        return (child, _END) if isinstance(child, dict) else (node, last)


class _FragmentTokens(dict[str, tuple[_Token, ...]]):
    """A cache of the tokens of fragments. It is valid until there is a new word, or a new first word of a name."""

    def __init__(self, known_words: Mapping[str, str], trie: _TrieNode) -> None:
        super().__init__()
        self._known_words = known_words
        self._trie = trie

    def __missing__(self, fragment: str) -> tuple[_Token, ...]:
        tokens = self._tokenize(fragment)
        if len(fragment) <= _MAX_CACHED_FRAGMENT_CHARS and len(tokens) <= _MAX_CACHED_TOKENS:
            if len(self) >= _MAX_CACHED_FRAGMENTS:
                self.clear()
            self[fragment] = tokens
        return tokens

    def _tokenize(self, fragment: str) -> tuple[_Token, ...]:
        if fragment.isascii() and fragment.isalnum():  # One word, as most are: the fast path.
            known_word = self._find_word(fragment)
            if known_word is _UNKNOWN:
                return _unknown_token(len(fragment))
            return ((known_word, len(fragment) + 1, 1, self._starts_label(known_word, fragment)),)
        text = f" {fragment}" if words.follows_space(fragment) else fragment
        parts = split_words(text)
        if text.rfind("\n") > 0:
            parts = words.join_hyphenated(parts, lambda word: self._find_word(word) is not _UNKNOWN)
        tokens = []
        for gap_text, word in zip(parts[::2], parts[1::2], strict=False):
            known_word = self._find_word(word)
            starts_label = known_word is not _UNKNOWN and self._starts_label(known_word, word)
            tokens.append((known_word, len(gap_text) + len(word), len(gap_text), starts_label))
        gap = len(parts[-1])
        return (*tokens, (_GAP, gap, gap, False)) if gap else tuple(tokens)

    def _starts_label(self, known_word: str, word: str) -> bool:
        """Return whether a name begins with this word in this spelling."""
        node = self._trie.get(known_word)
        return bool(node.matching(word)) if isinstance(node, _SharedEnding) else node is not None

    def _find_word(self, word: str) -> str:
        if len(word) > MAX_ANNOTATED_WORD_CHARS:
            return _UNKNOWN
        return self._known_words.get(words.normalize_word(word), _UNKNOWN)


@lru_cache(100)
def _unknown_token(length: int) -> tuple[_Token]:
    """Return the token of a fragment that is a word of no name; shared, since most fragments are such."""
    return ((_UNKNOWN, length + 1, 1, False),)


class _TokenizedText(NamedTuple):
    """A part of a text and its tokens."""

    text: str
    tokens: list[_Token]
    # The start of each token, and the end of the last.
    starts: list[int]

    def walk_trie(self, trie: _TrieNode, index: int) -> list[tuple[_TrieNode | _Ending, int]] | None:
        """Return the path through the trie from a token on, with the index after each node.

        Return None if it depends on an incomplete word.
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
                if words.is_phrase_boundary(self.text[self.starts[gap_index] : self.word_start(index)]):
                    break
            if word is _INCOMPLETE:
                return None
            node = node.get(word)
        return path

    def word_start(self, index: int) -> int:
        """Return the start of the word of a token."""
        _, _, gap, _ = self.tokens[index]
        return self.starts[index] + gap


class _MentionScanner:
    """Find the mentions in one text, chunk by chunk."""

    def __init__(self, annotator: Annotator, collections: Collection[str]) -> None:
        self._trie = annotator.trie
        self._get_tokens = annotator.fragment_tokens.__getitem__
        self._collections = collections
        # Text that may still be part of a mention, and its offset.
        self._pending = ""
        self._pending_offset = 0

    def find_mentions(self, chunks: Iterable[str]) -> Iterator[list[Mention]]:
        for chunk in chunks:
            for start in range(0, len(chunk), _SLICE_CHARS):
                self._pending += chunk[start : start + _SLICE_CHARS]
                yield self._scan(is_last=False)
        yield self._scan(is_last=True)

    def _scan(self, *, is_last: bool) -> list[Mention]:
        """Return the mentions in the pending text, up to where they may depend on what follows."""
        *leading_tokens, last_tokens = map(self._get_tokens, words.split_fragments(self._pending))
        tokens = [*chain.from_iterable(leading_tokens), *last_tokens]
        # The first fragment counts a space before it, but has none.
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
    """Return the index of the first token of the last fragment that more text may change.

    The last word may continue, the one before it with an apostrophe, and the one before that with a hyphen at the end
    of a line. What is too long for a word stays too long.
    """
    lengths = [length - gap for word, length, gap, _ in tokens if word is not _GAP]
    first = max(0, len(lengths) - 3)
    return max([first, *(index for index in range(first, len(lengths)) if lengths[index] > MAX_ANNOTATED_WORD_CHARS)])


def _analyze_labels(labels: Iterable[str]) -> list[tuple[tuple[str, ...], str]]:
    """Return the words of each name, and its spelling if that is significant; without duplicates."""
    entries = dict.fromkeys(map(_analyze_label, labels))
    # A name in any spelling includes the same name in one spelling.
    return [
        (label_words, spelling) for label_words, spelling in entries if not spelling or (label_words, "") not in entries
    ]


def _analyze_label(label: str) -> tuple[tuple[str, ...], str]:
    label_words = tuple(chain.from_iterable(map(words.normalize_words, label.split())))
    spelling = strip_ending(split_words(" ".join(label.split()))[1]) if len(label_words) == 1 else ""
    # A single character, or an abbreviation, is a name only in its own case.
    is_abbreviation = len(spelling) <= _MAX_ABBREVIATION_CHARS and spelling.isalpha() and spelling.isupper()
    return label_words, spelling if len(spelling) == 1 or is_abbreviation else ""
