"""Parse the text of a search."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice, product, zip_longest

from lexarium.search.analysis.acronyms import MAX_ACRONYM_CHARS, MIN_ACRONYM_CHARS
from lexarium.search.analysis.folding import FoldedText, fold, has_unspaced_script, split_raw_words
from lexarium.search.analysis.languages import STOP_WORDS
from lexarium.search.analysis.numerals import is_code, to_digits
from lexarium.search.analysis.plurals import singularize
from lexarium.search.documents import PARTITIONS, build_initials

# Words beyond this number are ignored.
MAX_QUERY_WORDS = 24
# Typing mistakes in longer words and keys take too long to find.
_MAX_FUZZY_WORD_BYTES = 40
_MAX_FUZZY_KEY_BYTES = 80
_MAX_QUOTED_PARTS = 100
# Letters of a word that is looked for within longer ones. Shorter ones are within too many.
MIN_COMPOUND_PART = 5
# Only so much of the text is compared with names and identifiers.
_MAX_LABEL_CHARS = 2_000
# A part between quotation marks of any kind, or outside them. A mark that is never closed is ignored.
_QUOTED_OR_LOOSE = re.compile(
    '(?P<quoted>"[^"]{1,500}"|\u201c[^\u201d]{1,500}\u201d|\u00ab[^\u00bb]{1,500}\u00bb)'
    '|(?P<loose>["\u201c\u00ab]?[^"\u201c\u00ab]*)'
)
_PARTITION_CHARS = dict.fromkeys(map(ord, PARTITIONS[1:]))
_TYPE = "type"
_QUOTES = '"\u201c\u201d\u00ab\u00bb'


@dataclass(frozen=True)
class QueryWord:
    """A word of a query: a whole word if it is quoted, else the beginning of one."""

    # A record must have one of these; the first is the normalized one.
    forms: tuple[str, ...]
    # The parts of a hyphenated word. A record that has all of them matches too.
    parts: tuple[str, ...] = ()
    is_quoted: bool = False
    # True if a record may lack the word if it has the others.
    is_stop_word: bool = False

    @cached_property
    def digits(self) -> str | None:
        """A number in digits, if it is written otherwise."""
        digits = to_digits(self.forms[0])
        return digits if digits != self.forms[0] else None

    @cached_property
    def singular(self) -> str:
        """The form that is compared with whole words, singular or plural."""
        return self.forms[0] if self.is_quoted else singularize(self.forms[0])

    def is_prefix_of(self, other: "QueryWord") -> bool:
        """Return whether every record that matches the other word matches this one too."""
        if self.is_quoted or self.parts or other.parts:
            return False
        return all(form.startswith(self.forms) for form in (*other.forms, other.singular))

    def initials_with(self, other: "QueryWord", length: int) -> list[str]:
        """Return pairs of the first letter of this word and the first `length` (1 or 2) of the other.

        A record that matches both words has one of them. The list is empty if some record may have none.
        """
        if self.parts or other.parts or self.digits or other.digits:
            return []
        pair_lists = [build_initials(starts) for starts in product(self._prefixes(1), other._prefixes(length))]
        pairs = [pair for pair_list in pair_lists for pair in pair_list if len(pair) == 1 + length]
        return pairs if len(pairs) == len(pair_lists) else []

    def is_covered_by(self, length: int) -> bool:
        """Return whether its first `length` letters are the whole query word."""
        return not self.is_quoted and self._prefixes(length) == {*self.forms, self.singular}

    def _prefixes(self, length: int) -> set[str]:
        return {form[:length] for form in (*self.forms, self.singular)}


@dataclass(frozen=True)
class ParsedQuery:
    """The parsed text of a search."""

    text: str
    folded: FoldedText
    # In order; a word that was typed twice occurs twice.
    words: tuple[QueryWord, ...]
    # Words that must be adjacent.
    phrases: tuple[tuple[str, ...], ...]
    # Typing mistakes are not allowed for if something is quoted.
    has_quotes: bool
    # Of the languages that are searched.
    stop_words: frozenset[str] = STOP_WORDS

    @cached_property
    def key(self) -> str:
        """The folded key of the whole text."""
        return self.folded.key

    @cached_property
    def significant_words(self) -> tuple[QueryWord, ...]:
        """The words without stop words, unless there are no others."""
        return tuple(word for word in self.words if not word.is_stop_word) or self.words

    @cached_property
    def word_numbers(self) -> dict[str, int]:
        """The position of a significant word, by each of its forms and parts."""
        numbers: dict[str, int] = {}
        for number, word in enumerate(self.significant_words):
            for form in filter(None, (word.singular, word.digits, *word.forms, *word.parts)):
                numbers.setdefault(form, number)
        return numbers

    @cached_property
    def codes(self) -> tuple[QueryWord, ...]:
        """Words that are never corrected, because another one means something else: numbers and single letters."""
        return tuple(word for word in self.significant_words if is_code(word.forms[0]))

    @property
    def is_upper(self) -> bool:
        """True if the text is written in capitals."""
        return self.text.isupper()

    @cached_property
    def acronym(self) -> str:
        """The text as an acronym, folded; empty if it cannot be one. Two letters must be capitals."""
        is_short = MIN_ACRONYM_CHARS + (not self.is_upper) <= len(self.key) <= MAX_ACRONYM_CHARS
        is_one_word = len(self.words) == 1 or all(len(word.forms[0]) == 1 for word in self.words)  # A.D.H.D.
        return self.key if is_short and is_one_word and not self.key.isdigit() else ""

    @property
    def identifier(self) -> str:
        """The text as an identifier."""
        return self.text.strip(_QUOTES).strip().casefold().translate(_PARTITION_CHARS)


def parse_query(text: str, stop_words: frozenset[str] = STOP_WORDS) -> ParsedQuery:
    """Parse any text; no text is invalid."""
    text = text.encode(errors="replace").decode()  # Replace lone surrogates.
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
    unique_phrases = tuple(dict.fromkeys(phrases[:MAX_QUERY_WORDS]))
    words = list(_mark_stop_words(words, stop_words))
    return ParsedQuery(label_text, fold(label_text), tuple(words), unique_phrases, has_quotes, stop_words)


def _mark_stop_words(words: Sequence[QueryWord], stop_words: frozenset[str]) -> Iterator[QueryWord]:
    for word, next_word in zip_longest(words, words[1:]):
        is_stop_word = not stop_words.isdisjoint(word.forms)
        # "type 17" is "17".
        is_stop_word |= next_word is not None and word.forms[0] == _TYPE and is_code(next_word.forms[0])
        may_lack = is_stop_word and not word.is_quoted and not word.parts
        yield replace(word, is_stop_word=True) if may_lack else word


def _parse_unquoted(text: str) -> tuple[list[QueryWord], list[tuple[str, ...]]]:
    """Return the words of a text, and as phrases those without space between them."""
    words: list[QueryWord] = []
    phrases: list[tuple[str, ...]] = []
    for raw_word in islice(_skip_repeats(split_raw_words(text)), MAX_QUERY_WORDS):
        folded = fold(raw_word)
        first_words = tuple(folded.words[:MAX_QUERY_WORDS])
        if folded.compounds and len(folded.words) > 1:
            words.append(QueryWord((folded.compounds[0],), first_words))
        elif has_unspaced_script(raw_word):
            words += [QueryWord((word,)) for word in first_words]
            phrases.append(first_words)
        else:
            forms = zip(folded.words, folded.unnormalized, strict=True)
            words += [QueryWord(tuple(dict.fromkeys(word_forms))) for word_forms in forms]
    return words, phrases


def _skip_repeats(raw_words: Iterator[str]) -> Iterator[str]:
    """Yield each word once beyond the first few, so that a repeated word does not displace what follows."""
    seen: set[str] = set()
    for index, raw_word in enumerate(raw_words):
        if index < MAX_QUERY_WORDS // 2 or raw_word not in seen:
            yield raw_word
        seen.add(raw_word)


def max_edits(text: str, *, is_key: bool = False) -> int:
    """Return how many letters of a word or key may be wrong: none in a short or a very long one, or in a number."""
    max_bytes = _MAX_FUZZY_KEY_BYTES if is_key else _MAX_FUZZY_WORD_BYTES
    if len(text) < 4 or len(text.encode(errors="replace")) > max_bytes or (is_code(text) and not is_key):
        return 0
    return 1 if len(text) < 8 else 2
