"""Find the names of records in text: leftmost first, then longest, on word boundaries.

The names are in a trie of words, which is updated in place as the catalogue changes. Most of it may be in a file: the
names that begin with a word are read when a text first has that word. A text is split at spaces and punctuation into
fragments. Most fragments were seen before, so that their tokens are cached; and most words begin no name, and are
skipped.
"""

import marshal
import re
import threading
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import lru_cache
from heapq import merge
from itertools import accumulate, chain, compress, count, repeat
from operator import itemgetter
from pathlib import Path
from sys import intern
from typing import NamedTuple, Union

from lexarium.search.analysis import words
from lexarium.search.analysis.words import MAX_ANNOTATED_WORD_CHARS, MAX_GAP_CHARS, split_words, strip_ending
from lexarium.search.annotator_file import AnnotatorFile, AnnotatorState, Entry, replace_file

# Longer names are not looked for.
MAX_LABEL_CHARS = 500
_MAX_ABBREVIATION_CHARS = 4
_MAX_CACHED_FRAGMENTS = 50_000
_MAX_CACHED_FRAGMENT_CHARS = 50
# In a script without spaces hardly any fragment occurs again.
_MAX_CACHED_TOKENS = 8
_MAX_CACHED_TERMS = 50_000
_SLICE_CHARS = 1 << 16
# Keep enough of what is too long for a word, so that it stays too long.
_MAX_RETAINED_CHARS = 2 * max(MAX_ANNOTATED_WORD_CHARS, MAX_GAP_CHARS)
# A few milliseconds of work, after which other threads get their turn.
_WRITTEN_AT_ONCE = 1_000

# Texts that are split faster than by `split_words`: ASCII words with hyphens between them, and many signs in a row, of
# which each counts as a word. An apostrophe among them is in no word.
_HYPHENATED = re.compile(r" [A-Za-z0-9]++(?:-[A-Za-z0-9]++)++-?+")
_PUNCTUATION_RUN = re.compile("([!-,.:-@\\[-^`{-~\u2014-\u2027]{20,}+)")

# Special words. No word of a name contains a line end.
_END = "\n"  # key in a trie node: the name that ends there
_UNKNOWN = "\n?"  # a word that is in no name
_GAP = "\n-"  # no word: the end of a fragment that ends with separators
_INCOMPLETE = "\n+"  # a word that more text may change
# Instead of the number of a term that was removed.
_REMOVED = -1


class DictionaryTerm(NamedTuple):
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


# The trie consists of types that `marshal` can write. Numbers refer to terms.
# The terms that have a name: in any spelling, and only in one.
_SharedEnding = tuple[list[int], dict[str, list[int]]]
_Ending = int | _SharedEnding
# By the next word: another node, or the end of a name that is no prefix of others.
_TrieNode = dict[str, Union["_TrieNode", _Ending]]
# A normalized word, its length with the gap before it, the length of the gap, and whether a name begins with it.
_Token = tuple[str, int, int, bool]
_get_length, _get_starts_label = map(itemgetter, (1, 3))


class Annotator:
    """A dictionary of names. One thread may change it while others find mentions."""

    def __init__(self, file: AnnotatorFile | None = None) -> None:
        """Begin with the names in a file, if there is one."""
        self._file = file
        self.trie = _Trie(file)
        self.terms = _Terms(file)
        # Of terms that are not in the file.
        self._numbers: dict[str, int] = {}
        self._term_count = 0 if file is None else len(file)
        self.fragment_tokens = _FragmentTokens(self.trie)

    def __len__(self) -> int:
        return self._term_count

    def add(self, term: DictionaryTerm, labels: Iterable[str]) -> None:
        """Add a term with these names; replace its former names."""
        usable_labels = [label for label in labels if len(label) <= MAX_LABEL_CHARS and any(map(str.isalnum, label))]
        entries = _analyze_labels(usable_labels)
        self.remove(term.id)
        if not usable_labels:
            return
        known_words = len(self.trie.words)
        # With a term or a node in the trie, names already begin with that word in any spelling.
        first_nodes = [self.trie.get_first_node(label_words[0]) for label_words, _ in entries]
        starts_new_label = any(not isinstance(node, int | dict) for node in first_nodes)
        number = self.terms.add((*term, *usable_labels))
        self._numbers[term.id] = number
        self._term_count += 1
        for label_words, spelling in entries:
            self.trie.add(label_words, spelling, number)
        if starts_new_label or len(self.trie.words) > known_words:
            self.fragment_tokens = _FragmentTokens(self.trie)

    def remove(self, record_id: str) -> None:
        """Remove a term, if it is there."""
        number = self._numbers.get(record_id)
        if number is None and self._file is not None:
            number = self._file.find_number(record_id)
        if number is None or number == _REMOVED:
            return
        _, _, _, *labels = self.terms.read_entry(number)
        for label_words, spelling in _analyze_labels(labels):
            self.trie.remove(label_words, spelling, number)
        self._numbers[record_id] = _REMOVED
        self._term_count -= 1

    def find_mentions(self, chunks: Iterable[str], collections: Collection[str]) -> Iterator[list[Mention]]:
        """Yield the mentions of terms of these collections in batches, in order.

        Keep only the last few words of the text in memory.
        """
        return _MentionScanner(self, collections).find_mentions(chunks)

    def save(self, path: Path, state: AnnotatorState) -> None:
        """Write the dictionary to a file; raise OSError, or IndexLocked if another process does so.

        To be called by the thread that changes it.
        """
        with replace_file(path, self._file) as writer:
            for index, entry in enumerate(self.terms.new_entries):
                writer.add_entry(entry)
                _yield_to_others(index)
            writer.end_entries()
            for index, (word, names) in enumerate(self.trie.iter_written()):
                writer.add_word(word, names)
                _yield_to_others(index)
            writer.finish(self._iter_sorted_numbers(), state)

    def _iter_sorted_numbers(self) -> Iterator[int]:
        """Yield the numbers of all terms, sorted by id."""
        numbers = self._numbers
        stored = () if self._file is None else self._file.iter_ids()
        unchanged = ((record_id, number) for record_id, number in stored if record_id not in numbers)
        changed = ((record_id, numbers[record_id]) for record_id in sorted(numbers) if numbers[record_id] != _REMOVED)
        for index, (_, number) in enumerate(merge(unchanged, changed)):
            yield number
            _yield_to_others(index)


class _Trie:
    """The names by their words. Those that begin with a word are read from the file when they are first needed."""

    def __init__(self, file: AnnotatorFile | None) -> None:
        self._file = file
        self.root: _TrieNode = {}
        # The normalized words of all names, each with the position in the file of the names that begin with it; 0 if
        # there are none, or once they were read.
        self.words: dict[str, int] = {}
        for part in () if file is None else file.iter_words():
            self.words.update(part)
            time.sleep(0)
        self._read_lock = threading.Lock()

    def get_first_node(self, word: str) -> "_TrieNode | _Ending | None":
        """Return the names that begin with a normalized word."""
        if self.words.get(word) and self._file is not None:
            with self._read_lock:
                position = self.words[word]
                if position:  # No other thread has read them meanwhile.
                    self.root[intern(word)] = self._file.read_names(position)
                    self.words[word] = 0
        return self.root.get(word)

    def add(self, label_words: Sequence[str], spelling: str, number: int) -> None:
        """Add a name of a term."""
        label_words = list(map(intern, label_words))
        for word in label_words:
            self.words.setdefault(word, 0)
        node, last = self._locate(label_words)
        ending = node.get(last)
        if ending is None and not spelling:
            node[last] = number
            return
        if not isinstance(ending, tuple):
            ending = node[last] = ([ending] if isinstance(ending, int) else [], {})
        _get_numbers(ending, spelling).append(number)

    def remove(self, label_words: Sequence[str], spelling: str, number: int) -> None:
        """Remove a name of a term."""
        node, last = self._locate(label_words)
        ending = node[last]
        if isinstance(ending, tuple):
            _get_numbers(ending, spelling).remove(number)
        else:
            del node[last]

    def iter_written(self) -> Iterator[tuple[str, bytes | memoryview | None]]:
        """Yield each word with the names that begin with it, as they are written to a file; None if there are none."""
        for word, position in self.words.items():
            if position and self._file is not None:
                yield word, self._file.copy_names(position)
            else:
                node = self.root.get(word)
                yield word, None if node is None else marshal.dumps(node)

    def _locate(self, label_words: Sequence[str]) -> tuple[_TrieNode, str]:
        """Return the node and key at which a name ends; create the nodes on the way."""
        self.get_first_node(label_words[0])
        node = self.root
        *leading, last = label_words
        for word in leading:
            child = node.get(word)
            if not isinstance(child, dict):
                child = node[word] = {} if child is None else {_END: child}
            node = child
        child = node.get(last)
        return (child, _END) if isinstance(child, dict) else (node, last)


def _yield_to_others(index: int) -> None:
    """Let other threads go on, after every so many items."""
    if index % _WRITTEN_AT_ONCE == 0:
        time.sleep(0)


def _get_numbers(ending: _SharedEnding, spelling: str) -> list[int]:
    """Return the terms of a spelling; those of any, if it is empty."""
    in_any, by_spelling = ending
    return by_spelling.setdefault(spelling, []) if spelling else in_any


def _match_spelling(ending: _SharedEnding, text: str) -> Sequence[int]:
    """Return the terms that have this text as a name."""
    in_any, by_spelling = ending
    return (*in_any, *by_spelling.get(strip_ending(text), ())) if by_spelling else tuple(in_any)


class _Terms(dict[int, DictionaryTerm]):
    """The terms by their numbers: those of the file, then new ones. A dictionary of those that were used lately."""

    def __init__(self, file: AnnotatorFile | None) -> None:
        super().__init__()
        self._file = file
        self._file_count = 0 if file is None else file.entry_count
        self.new_entries: list[Entry] = []

    def add(self, entry: Entry) -> int:
        """Add a term; return its number."""
        self.new_entries.append(entry)
        return self._file_count + len(self.new_entries) - 1

    def read_entry(self, number: int) -> Entry:
        """Return a term with its names."""
        if number < self._file_count and self._file is not None:
            return self._file.read_entry(number)
        return self.new_entries[number - self._file_count]

    def __missing__(self, number: int) -> DictionaryTerm:
        if len(self) >= _MAX_CACHED_TERMS:
            self.clear()
        record_id, name, collection = self.read_entry(number)[:3]
        term = self[number] = DictionaryTerm(record_id, name, collection)
        return term


class _FragmentTokens(dict[str, tuple[_Token, ...]]):
    """A cache of the tokens of fragments. It is valid until there is a new word, or a new first word of a name."""

    def __init__(self, trie: _Trie) -> None:
        super().__init__()
        self._word_tokens = _WordTokens(trie)

    def __missing__(self, fragment: str) -> tuple[_Token, ...]:
        tokens = self._tokenize(fragment)
        if len(fragment) <= _MAX_CACHED_FRAGMENT_CHARS and len(tokens) <= _MAX_CACHED_TOKENS:
            if len(self) >= _MAX_CACHED_FRAGMENTS:
                self.clear()
            self[fragment] = tokens
        return tokens

    def _tokenize(self, fragment: str) -> tuple[_Token, ...]:
        if fragment.isascii() and fragment.isalnum():  # One word, as most are: the fast path.
            if not self._word_tokens.is_known(fragment):
                return _unknown_token(len(fragment))
            return (self._word_tokens[" ", fragment],)
        text = f" {fragment}" if words.follows_space(fragment) else fragment
        get_token = self._word_tokens.__getitem__
        if _HYPHENATED.fullmatch(text):
            first, *others = text.removesuffix("-")[1:].split("-")
            tokens = [get_token((" ", first)), *map(get_token, zip(repeat("-"), others))]
            return (*tokens, (_GAP, 1, 1, False)) if text.endswith("-") else tuple(tokens)
        tokens, gap = [], ""
        # Every other piece is a run of punctuation.
        for index, piece in enumerate(_PUNCTUATION_RUN.split(text)):
            if index % 2 and any(map(self._word_tokens.is_known, set(piece))):
                tokens += map(get_token, zip(chain([gap], repeat("")), piece, strict=False))
            elif index % 2:
                tokens.append((_UNKNOWN, len(gap) + len(piece), len(gap), False))
            else:
                parts = split_words(piece)
                if piece.rfind("\n") > 0:
                    parts = words.join_hyphenated(parts, self._word_tokens.is_known)
                tokens += map(get_token, zip(parts[::2], parts[1::2], strict=False))
                gap = parts[-1]
        return (*tokens, (_GAP, len(gap), len(gap), False)) if gap else tuple(tokens)


class _WordTokens(dict[tuple[str, str], _Token]):
    """A cache of the tokens of words, each with the gap before it."""

    def __init__(self, trie: _Trie) -> None:
        super().__init__()
        self._trie = trie

    def __missing__(self, gap_and_word: tuple[str, str]) -> _Token:
        gap, word = gap_and_word
        known_word = self._find_word(word)
        starts_label = known_word is not _UNKNOWN and self._starts_label(known_word, word)
        token = known_word, len(gap) + len(word), len(gap), starts_label
        if len(gap) + len(word) <= _MAX_CACHED_FRAGMENT_CHARS:
            if len(self) >= _MAX_CACHED_FRAGMENTS:
                self.clear()
            self[gap_and_word] = token
        return token

    def is_known(self, word: str) -> bool:
        """Return whether a word is in any name."""
        return self._find_word(word) is not _UNKNOWN

    def _starts_label(self, known_word: str, word: str) -> bool:
        """Return whether a name begins with this word in this spelling."""
        node = self._trie.get_first_node(known_word)
        return bool(_match_spelling(node, word)) if isinstance(node, tuple) else node is not None

    def _find_word(self, word: str) -> str:
        if len(word) > MAX_ANNOTATED_WORD_CHARS:
            return _UNKNOWN
        normalized = words.normalize_word(word)
        # Interned, as the keys of the trie are: they compare faster.
        return intern(normalized) if normalized in self._trie.words else _UNKNOWN


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
        self._trie = annotator.trie.root
        self._get_term = annotator.terms.__getitem__
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
        if isinstance(ending, int):
            term = self._get_term(ending)
            return (term,) if term.collection in self._collections else ()
        if isinstance(ending, tuple):
            terms = map(self._get_term, _match_spelling(ending, text))
            return tuple([term for term in terms if term.collection in self._collections])
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
