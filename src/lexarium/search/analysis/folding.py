"""Fold text into comparable words: without case, accents, punctuation, hyphens and differences of spelling.

The index and the queries use the same folding.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from functools import cache, lru_cache
from typing import NamedTuple

from lexarium.search.analysis.numerals import has_numeral, to_digits
from lexarium.search.analysis.plurals import singularize
from lexarium.search.analysis.spelling import normalize_spelling

# Marks that belong to the letter before them: Latin, Cyrillic, Hebrew and Arabic, and the Indic and Thai vowels.
_COMBINING_MARKS = (
    "\u0300-\u036f\u0483-\u0489\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06ed"
    "\u0900-\u0903\u093a-\u094f\u0981-\u0983\u09bc-\u09cd\u0a3c-\u0a4d\u0abc-\u0acd\u0b3c-\u0b4d\u0bbe-\u0bcd"
    "\u0c3e-\u0c4d\u0cbc-\u0ccd\u0d3e-\u0d4d\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u0eb1\u0eb4-\u0ebc\u0ec8-\u0ecd"
    "\u102b-\u103e\u17b4-\u17d3\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff"
)
# Scripts without spaces between words: each character is one. Thai and Lao, Burmese, Khmer, Chinese and Japanese.
_UNSPACED = (
    "\u0e01-\u0e30\u0e32\u0e33\u0e40-\u0e46\u0e81-\u0eb0\u0eb2\u0eb3\u0ec0-\u0ec6\u1000-\u102a\u1780-\u17b3"
    "\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
)
_IS_UNSPACED = re.compile(f"[{_UNSPACED}]")
_APOSTROPHES = "'\u2019\u02bc\u2018`\u00b4"
_HYPHENS = "-/\u2010\u2011\u2012\u2013"
# Possessive quantifiers prevent backtracking, so that the time is linear in the length of the text.
_LETTERS = f"(?:[^\\W{_UNSPACED}]|[{_COMBINING_MARKS}])++"
_SPACED_WORD = f"{_LETTERS}(?:[{_APOSTROPHES}]{_LETTERS})*+"
_HYPHEN = re.compile(f"[{_HYPHENS}]")
# Most texts are ASCII, which a table splits faster: apostrophes are dropped, other signs become spaces.
# The table covers every character, since `translate` is slow for missing ones.
_ASCII_TABLE = [char if char.isalnum() else None if char == "'" else " " for char in map(chr, range(128))]
_ACCENTS = re.compile("[\u0300-\u036f]+")
_ASCII_WORD = re.compile("[A-Za-z0-9]++(?:['`][A-Za-z0-9]++)*+")
_ASCII_RAW_WORD = re.compile("[A-Za-z0-9']++(?:[-/][A-Za-z0-9']++)*+")
# Letters that Unicode does not decompose.
_LIGATURES = str.maketrans(
    {"æ": "ae", "œ": "oe", "ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "ı": "i", "ħ": "h"}
)

MAX_WORD_CHARS = 60
MAX_FOLDED_KEY_CHARS = 300
# Some characters of a raw word are marks, which folding drops.
_MAX_RAW_WORD_CHARS = 4 * MAX_WORD_CHARS
_MAX_SYMBOLS_CHARS = 4 * MAX_FOLDED_KEY_CHARS
_CONTROLS = dict.fromkeys(range(32))
_CACHE_SIZE = 200_000


class FoldedWord(NamedTuple):
    """A folded word, and its position in the text in code points."""

    text: str
    start: int
    end: int


@cache
def _word_pattern() -> re.Pattern[str]:
    """Compile the pattern of a word of any script, on first use: it is slow, and few texts need it."""
    return re.compile(f"{_SPACED_WORD}|[{_UNSPACED}][{_COMBINING_MARKS}]*+")


@cache
def _raw_word_pattern() -> re.Pattern[str]:
    return re.compile(f"{_SPACED_WORD}(?:[{_HYPHENS}]{_SPACED_WORD})*+|[{_UNSPACED}][{_UNSPACED}{_COMBINING_MARKS}]*+")


def find_words(text: str) -> list[FoldedWord]:
    """Return the words of a text in order."""
    pattern = _ASCII_WORD if text.isascii() else _word_pattern()
    matches = pattern.finditer(text.replace("_", " "))
    words = (FoldedWord(_fold_word(match.group()), match.start(), match.end()) for match in matches)
    return [word for word in words if word.text]


class FoldedText(NamedTuple):
    """A text, split into words and folded."""

    words: list[str]
    # The same words before their spelling was normalized.
    unnormalized: list[str]
    # Hyphenated words as one word each: `n-back` is `nback`.
    compounds: list[str]
    # The text without spaces, if it has no words: a name may consist of signs alone.
    symbols: str

    @property
    def key(self) -> str:
        """The key of the whole text: equal for names that differ only in what folding drops, and in spaces."""
        return ("".join(self.words) or self.symbols)[:MAX_FOLDED_KEY_CHARS]

    @property
    def number_key(self) -> str:
        """The key with Roman numerals in digits."""
        return "".join(map(to_digits, self.words))[:MAX_FOLDED_KEY_CHARS] or self.key

    @property
    def word_forms(self) -> list[str]:
        """Every form in which one of its words may be typed."""
        forms = dict.fromkeys([*self.words, *self.unnormalized, *self.compounds, *map(singularize, self.words)])
        return list(forms) if not has_numeral(self.words) else list(dict.fromkeys([*forms, *map(to_digits, forms)]))

    @property
    def first_word_forms(self) -> list[str]:
        """Every form in which its first word may be typed."""
        if not self.words:
            return []
        compound = self.compounds[:1] if self.compounds and self.compounds[0].startswith(self.words[0]) else []
        return list({self.words[0], self.unnormalized[0], singularize(self.words[0]), *compound})


def split_raw_words(text: str) -> Iterator[str]:
    """Yield the words of a text as written; hyphenated words, and words without space between them, as one."""
    pattern = _ASCII_RAW_WORD if text.isascii() else _raw_word_pattern()
    return (match.group() for match in pattern.finditer(text.replace("_", " ")))


def has_unspaced_script(raw_word: str) -> bool:
    """Return whether a raw word is in a script without spaces between words."""
    return _IS_UNSPACED.search(raw_word) is not None


def fold(text: str) -> FoldedText:
    """Split a text into words and fold them."""
    unnormalized, compounds = split_text(text)
    symbols = ""
    if not unnormalized:
        head = text.casefold().replace("_", " ")[:_MAX_SYMBOLS_CHARS]
        symbols = "".join(unicodedata.normalize("NFKC", head).translate(_CONTROLS).split())
    words, compounds = list(map(normalize_spelling, unnormalized)), list(map(normalize_spelling, compounds))
    return FoldedText(words, unnormalized, compounds, symbols)


def fold_key(text: str) -> str:
    """Return the key of a folded text, faster than `fold`."""
    words, _ = split_text(text)
    return "".join(map(normalize_spelling, words))[:MAX_FOLDED_KEY_CHARS] if words else fold(text).key


def split_text(text: str) -> tuple[list[str], list[str]]:
    """Return the folded words of a text in their own spelling, and hyphenated words joined."""
    text = text.casefold().replace("_", " ")
    if not text.isascii():
        # Without accents, which folding drops anyway, most of these are ASCII too.
        unaccented = _ACCENTS.sub("", unicodedata.normalize("NFD", text))
        text = unaccented if unaccented.isascii() else text
    if text.isascii() and "`" not in text and "''" not in text:
        words = text.translate(_ASCII_TABLE).split()
        if len(text) > MAX_WORD_CHARS and max(map(len, words), default=0) > MAX_WORD_CHARS:
            words = [word[:MAX_WORD_CHARS] for word in words]
        if "-" not in text and "/" not in text:
            return words, []
        parts = [part for part in text.split() if "-" in part or "/" in part]
        raw_words = [raw_word for part in parts for raw_word in _ASCII_RAW_WORD.findall(part)]
        return words, _strip_words(raw_word for raw_word in raw_words if "-" in raw_word or "/" in raw_word)
    words = _strip_words(_word_pattern().findall(text))
    # A compound of signs alone, such as '-', is not a word.
    return words, _strip_words(
        filter(_HYPHEN.search, _raw_word_pattern().findall(text)) if _HYPHEN.search(text) else ()
    )


def _strip_words(raw_words: Iterable[str]) -> list[str]:
    return list(filter(None, (_strip_word(raw_word[:_MAX_RAW_WORD_CHARS]) for raw_word in raw_words)))


@lru_cache(_CACHE_SIZE)
def _fold_word(word: str) -> str:
    return normalize_spelling(_strip_word(word.casefold()[:_MAX_RAW_WORD_CHARS]))


@lru_cache(_CACHE_SIZE)
def _strip_word(word: str) -> str:
    """Return the letters and digits of a casefolded word, without accents."""
    if word.isascii():
        return (word if word.isalnum() else "".join(filter(str.isalnum, word)))[:MAX_WORD_CHARS]
    unaccented = "".join(char for char in unicodedata.normalize("NFKD", word) if not unicodedata.combining(char))
    letters = unaccented.translate(_LIGATURES).casefold()
    return "".join(char for char in letters if char.isalnum() or unicodedata.category(char)[0] == "M")[:MAX_WORD_CHARS]
