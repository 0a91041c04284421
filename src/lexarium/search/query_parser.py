"""Parse the text of a search."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import islice, product

from lexarium.search.analysis.folding import FoldedText, fold, has_unspaced_script, singularize_cached, split_raw_words
from lexarium.search.documents import PARTITIONS, STOP_WORDS, build_initials

MAX_QUERY_WORDS = 24
"""How many words of a query are looked for; the beginning of it is looked for as a name."""


_MAX_FUZZY_WORD_BYTES = 40
"""In bytes: in longer words typing mistakes are not looked for."""


_MAX_FUZZY_KEY_BYTES = 80


_MAX_QUOTED_PARTS = 100
"""How many times one may begin and end to quote."""


_MAX_LABEL_CHARS = 2_000
"""How many characters are compared with names and identifiers."""


# Between quotation marks, of whichever kind, or not. One that is never closed is no mark.
_QUOTED_OR_LOOSE = re.compile(
    '(?P<quoted>"[^"]{1,500}"|\u201c[^\u201d]{1,500}\u201d|\u00ab[^\u00bb]{1,500}\u00bb)'
    '|(?P<loose>["\u201c\u00ab]?[^"\u201c\u00ab]*)'
)


_PARTITION_CHARS = dict.fromkeys(map(ord, PARTITIONS[1:]))


_QUOTES = '"\u201c\u201d\u00ab\u00bb'


@dataclass(frozen=True)
class QueryWord:
    """A word that is looked for."""

    forms: tuple[str, ...]
    """The forms of which a record must have one; the first is the usual one."""
    parts: tuple[str, ...] = ()
    """Of a word with hyphens, its parts: a record that has all of them will do."""
    is_quoted: bool = False
    """Whether it must be the whole word as it is: one between quotation marks. Else it may be the beginning of one."""

    @cached_property
    def singular(self) -> str:
        """What it is compared by with whole words, whether they are singular or plural."""
        return self.forms[0] if self.is_quoted else singularize_cached(self.forms[0])

    @property
    def is_stop_word(self) -> bool:
        """Whether a record will do without it, if it has the others."""
        return not self.is_quoted and not self.parts and not STOP_WORDS.isdisjoint(self.forms)

    def is_prefix_of(self, other: "QueryWord") -> bool:
        """Whether a record that has the other word has this one too, as the beginning of a word."""
        if self.is_quoted or self.parts or other.parts:
            return False
        return all(form.startswith(self.forms) for form in (*other.forms, other.singular))

    def initials_with(self, other: "QueryWord", length: int) -> list[str]:
        """Pairs of this word's first letter and the other's, or its first two: a record that has both has one of these.

        Empty where it may have none.
        """
        if self.parts or other.parts:
            return []
        pair_lists = [build_initials(starts) for starts in product(self._prefixes(1), other._prefixes(length))]
        pairs = [pair for pair_list in pair_lists for pair in pair_list if len(pair) == 1 + length]
        return pairs if len(pairs) == len(pair_lists) else []

    def is_covered_by(self, length: int) -> bool:
        """Whether so many first letters are all that is known of it."""
        return not self.is_quoted and self._prefixes(length) == {*self.forms, self.singular}

    def _prefixes(self, length: int) -> set[str]:
        return {form[:length] for form in (*self.forms, self.singular)}


@dataclass(frozen=True)
class ParsedQuery:
    """What someone typed, taken apart."""

    text: str
    folded: FoldedText
    words: tuple[QueryWord, ...]
    """In order; a word that was typed twice is there twice."""
    phrases: tuple[tuple[str, ...], ...]
    """Words that must stand together."""
    has_quotes: bool
    """Whether something was between quotation marks: then typing mistakes are not allowed for."""

    @cached_property
    def key(self) -> str:
        """The key of the whole."""
        return self.folded.key

    @cached_property
    def significant_words(self) -> tuple[QueryWord, ...]:
        """The words without those that say little, unless there are no others."""
        return tuple(word for word in self.words if not word.is_stop_word) or self.words

    @property
    def identifier(self) -> str:
        """What was typed, if it is an identifier."""
        return self.text.strip(_QUOTES).strip().casefold().translate(_PARTITION_CHARS)


def parse_query(text: str) -> ParsedQuery:
    """Take apart what someone typed. Whatever it is, this is what it may mean."""
    text = text.encode(errors="replace").decode()  # Halves of characters are none.
    unique_words: dict[QueryWord, None] = {}
    words: list[QueryWord] = []
    phrases: list[tuple[str, ...]] = []
    has_quotes = False
    for part in islice(_QUOTED_OR_LOOSE.finditer(text), _MAX_QUOTED_PARTS):
        if part.lastgroup == "loose":
            part_words, part_phrases = _parse_unquoted(part.group())
        else:
            phrase = fold(part.group()).words[:MAX_QUERY_WORDS]
            part_words, part_phrases = [QueryWord((word,), is_quoted=True) for word in phrase], [tuple(phrase)]
            has_quotes = True
        words += part_words
        phrases += [phrase for phrase in part_phrases if len(phrase) > 1]
        unique_words |= dict.fromkeys(part_words)
        if len(unique_words) >= MAX_QUERY_WORDS:
            break
    if len(words) > MAX_QUERY_WORDS:
        words = list(unique_words)[:MAX_QUERY_WORDS]
    label_text = text.strip()[:_MAX_LABEL_CHARS]
    return ParsedQuery(
        label_text, fold(label_text), tuple(words), tuple(dict.fromkeys(phrases[:MAX_QUERY_WORDS])), has_quotes
    )


def _parse_unquoted(text: str) -> tuple[list[QueryWord], list[tuple[str, ...]]]:
    """The words of what is not between quotation marks, and those that no space parts."""
    words: list[QueryWord] = []
    phrases: list[tuple[str, ...]] = []
    # Each once beyond the first few, lest someone who repeats one word hides what comes after.
    for raw_word in islice(_skip_repeats(split_raw_words(text)), MAX_QUERY_WORDS):
        folded = fold(raw_word)
        if folded.compounds and len(folded.words) > 1:
            words.append(QueryWord((folded.compounds[0],), tuple(folded.words)[:MAX_QUERY_WORDS]))
        elif has_unspaced_script(raw_word):
            words += [QueryWord((word,)) for word in folded.words[:MAX_QUERY_WORDS]]
            phrases.append(tuple(folded.words[:MAX_QUERY_WORDS]))
        else:
            for word, unnormalized in zip(folded.words, folded.unnormalized, strict=True):
                words.append(QueryWord(tuple(dict.fromkeys([word, unnormalized]))))
    return words, phrases


def _skip_repeats(raw_words: Iterator[str]) -> Iterator[str]:
    seen: set[str] = set()
    for index, raw_word in enumerate(raw_words):
        if index < MAX_QUERY_WORDS // 2 or raw_word not in seen:
            yield raw_word
        seen.add(raw_word)


def max_edits(word: str) -> int:
    """How many letters of a word may be wrong: none in a short one, nor in one so long that it takes long to try."""
    if len(word) < 4 or len(word.encode(errors="replace")) > _MAX_FUZZY_WORD_BYTES:
        return 0
    return 1 if len(word) < 9 else 2


def max_key_edits(key: str) -> int:
    """The same for a whole name without its spaces."""
    if len(key) < 4 or len(key.encode(errors="replace")) > _MAX_FUZZY_KEY_BYTES:
        return 0
    return 1 if len(key) < 8 else 2
