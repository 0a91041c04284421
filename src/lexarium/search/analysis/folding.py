"""Text as words that can be compared: without case, accents, punctuation, hyphens and differences of spelling.

The same folding makes the index and reads a query.
"""

import re
import unicodedata
from collections.abc import Iterator
from functools import cache, lru_cache
from typing import NamedTuple

from lexarium.search.analysis.plurals import singularize
from lexarium.search.analysis.spelling import normalize_spelling

# Marks that belong to the letter before them: of Latin, Cyrillic, Hebrew and Arabic, and the Indic and Thai vowels.
_COMBINING_MARKS = (
    "\u0300-\u036f\u0483-\u0489\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06ed"
    "\u0900-\u0903\u093a-\u094f\u0981-\u0983\u09bc-\u09cd\u0a3c-\u0a4d\u0abc-\u0acd\u0b3c-\u0b4d\u0bbe-\u0bcd"
    "\u0c3e-\u0c4d\u0cbc-\u0ccd\u0d3e-\u0d4d\u0e31-\u0e3a\u0e47-\u0e4e\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff"
)
_UNSPACED = "\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
"""Chinese and Japanese put no space between words: each character is one."""
_IS_UNSPACED = re.compile(f"[{_UNSPACED}]")
_APOSTROPHES = "'\u2019\u02bc\u2018`\u00b4"
_HYPHENS = "-/\u2010\u2011\u2012\u2013"
# What has matched is never tried again otherwise, so that the time grows with the text and no faster.
_LETTERS = f"(?:[^\\W{_UNSPACED}]|[{_COMBINING_MARKS}])++"
_SPACED_WORD = f"{_LETTERS}(?:[{_APOSTROPHES}]{_LETTERS})*+"
_HYPHEN = re.compile(f"[{_HYPHENS}]")
# Most texts are ASCII alone, which is quicker to take apart: apostrophes go, and other signs become spaces.
# Every character has its place, since one that a table lacks is looked for at length.
_ASCII_TABLE = [char if char.isalnum() else None if char == "'" else " " for char in map(chr, range(128))]
_ACCENTS = re.compile("[\u0300-\u036f]+")
_ASCII_WORD = re.compile("[A-Za-z0-9]++(?:['`][A-Za-z0-9]++)*+")
_ASCII_RAW_WORD = re.compile("[A-Za-z0-9']++(?:[-/][A-Za-z0-9']++)*+")
# Letters that Unicode does not take apart.
_LIGATURES = str.maketrans(
    {"æ": "ae", "œ": "oe", "ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "ı": "i", "ħ": "h"}
)

MAX_WORD_CHARS = 60
"""How many characters of a word count."""
MAX_FOLDED_KEY_CHARS = 300
_MAX_SYMBOLS_CHARS = 4 * MAX_FOLDED_KEY_CHARS
_CONTROLS = dict.fromkeys(range(32))
_CACHE_SIZE = 200_000


class FoldedWord(NamedTuple):
    """A word of a text: folded, and where it stands in the text, in code points."""

    text: str
    unnormalized: str
    """Folded, in its own spelling."""
    start: int
    end: int


@cache
def _word_pattern() -> re.Pattern[str]:
    """A word of any script. To make this, and the next, takes a while, of which few texts have need."""
    return re.compile(f"{_SPACED_WORD}|[{_UNSPACED}][{_COMBINING_MARKS}]*+")


@cache
def _raw_word_pattern() -> re.Pattern[str]:
    return re.compile(f"{_SPACED_WORD}(?:[{_HYPHENS}]{_SPACED_WORD})*+|[{_UNSPACED}][{_UNSPACED}{_COMBINING_MARKS}]*+")


def find_words(text: str) -> list[FoldedWord]:
    """The words of a text, in order."""
    words = []
    pattern = _ASCII_WORD if text.isascii() else _word_pattern()
    for match in pattern.finditer(text.replace("_", " ")):
        word, unnormalized = _fold_word(match.group())
        if unnormalized:
            words.append(FoldedWord(word, unnormalized, match.start(), match.end()))
    return words


class FoldedText(NamedTuple):
    """A text, taken apart and folded."""

    words: list[str]
    """In the one form of all spellings."""
    unnormalized: list[str]
    """The same words in their own spelling."""
    compounds: list[str]
    """What the words that hyphens or strokes join are as one word each: `n-back` is `nback`."""
    symbols: str
    """The text without spaces, where there are no words: a name of signs alone is still a name."""

    @property
    def key(self) -> str:
        """One key for the whole: equal for names that differ only in what folding takes away, spaces included."""
        return ("".join(self.words) or self.symbols)[:MAX_FOLDED_KEY_CHARS]

    @property
    def word_forms(self) -> list[str]:
        """Every form in which one of its words may be typed."""
        return list(
            dict.fromkeys([*self.words, *self.unnormalized, *self.compounds, *map(singularize_cached, self.words)])
        )

    @property
    def first_word_forms(self) -> list[str]:
        """Every form in which its beginning may be typed."""
        if not self.words:
            return []
        compound = self.compounds[:1] if self.compounds and self.compounds[0].startswith(self.words[0]) else []
        return list({self.words[0], self.unnormalized[0], singularize_cached(self.words[0]), *compound})


def split_raw_words(text: str) -> Iterator[str]:
    """The words of a text as they are written, those that hyphens join, or that no space parts, as one."""
    pattern = _ASCII_RAW_WORD if text.isascii() else _raw_word_pattern()
    return (match.group() for match in pattern.finditer(text.replace("_", " ")))


def has_unspaced_script(raw_word: str) -> bool:
    """Whether a piece of a text is of a script that puts no space between words."""
    return _IS_UNSPACED.search(raw_word) is not None


def fold(text: str) -> FoldedText:
    """Take a text apart and fold it."""
    casefolded = text.casefold().replace("_", " ")
    unnormalized, raw_compounds = _tokenize(casefolded)
    # Signs alone may be joined, as in '-': that is no word.
    compounds = list(
        filter(
            None,
            (normalize_spelling_cached(_strip_word(_truncate_word(raw_compound))) for raw_compound in raw_compounds),
        )
    )
    symbols = (
        ""
        if unnormalized
        else "".join(unicodedata.normalize("NFKC", casefolded[:_MAX_SYMBOLS_CHARS]).translate(_CONTROLS).split())
    )
    return FoldedText(list(map(normalize_spelling_cached, unnormalized)), unnormalized, compounds, symbols)


def stem_words(text: str) -> tuple[Iterator[str], Iterator[str]]:
    """The words of a text, and what hyphens join as one word each: in one form for all spellings, and for plurals."""
    unnormalized, raw_compounds = _tokenize(text.casefold().replace("_", " "))
    return map(_stem, unnormalized), map(
        _stem, filter(None, (_strip_word(_truncate_word(raw_compound)) for raw_compound in raw_compounds))
    )


def _tokenize(text: str) -> tuple[list[str], list[str]]:
    """The words of a casefolded text, in their own spelling, and the parts of it that hyphens or strokes join."""
    if not text.isascii():
        # Without accents, which go anyway, most of these are ASCII too.
        unaccented = _ACCENTS.sub("", unicodedata.normalize("NFD", text))
        text = unaccented if unaccented.isascii() else text
    if text.isascii() and "`" not in text and "''" not in text:
        unnormalized = text.translate(_ASCII_TABLE).split()
        if len(text) > MAX_WORD_CHARS and max(map(len, unnormalized), default=0) > MAX_WORD_CHARS:
            unnormalized = [word[:MAX_WORD_CHARS] for word in unnormalized]
        hyphenated = [part for part in text.split() if "-" in part or "/" in part] if "-" in text or "/" in text else []
        raw_compounds = [
            raw_word
            for part in hyphenated
            for raw_word in _ASCII_RAW_WORD.findall(part)
            if "-" in raw_word or "/" in raw_word
        ]
    else:
        unnormalized = list(filter(None, map(_strip_word, map(_truncate_word, _word_pattern().findall(text)))))
        raw_compounds = list(filter(_HYPHEN.search, _raw_word_pattern().findall(text))) if _HYPHEN.search(text) else []
    return unnormalized, raw_compounds


def _truncate_word(word: str) -> str:
    """As much of a word as can count: some of its characters may be marks that do not."""
    return word[: 4 * MAX_WORD_CHARS]


@lru_cache(_CACHE_SIZE)
def _fold_word(word: str) -> tuple[str, str]:
    """A word as it is written: in the one form of all its spellings, and in its own."""
    unnormalized = _strip_word(_truncate_word(word.casefold()))
    return normalize_spelling_cached(unnormalized), unnormalized


@lru_cache(_CACHE_SIZE)
def _strip_word(word: str) -> str:
    """A word that is casefolded already: its letters and digits, without accents."""
    if word.isascii():
        return (word if word.isalnum() else "".join(filter(str.isalnum, word)))[:MAX_WORD_CHARS]
    unaccented = "".join(char for char in unicodedata.normalize("NFKD", word) if not unicodedata.combining(char))
    return "".join(filter(_is_word_char, unaccented.translate(_LIGATURES).casefold()))[:MAX_WORD_CHARS]


def _is_word_char(char: str) -> bool:
    return char.isalnum() or unicodedata.category(char).startswith("M")


@lru_cache(_CACHE_SIZE)
def normalize_spelling_cached(word: str) -> str:
    """A folded word in the one form of all its spellings."""
    return normalize_spelling(word)


@lru_cache(_CACHE_SIZE)
def _stem(word: str) -> str:
    """The same of its singular and plural too."""
    return singularize(normalize_spelling(word))


@lru_cache(_CACHE_SIZE)
def singularize_cached(word: str) -> str:
    """A folded word in the one form of its singular and plural."""
    return singularize(word)
