"""Text as words that can be compared: without case, accents, punctuation, hyphens and differences of spelling.

The same folding makes the index and reads a query.
"""

import re
import unicodedata
from collections.abc import Iterator
from functools import cache, lru_cache
from typing import NamedTuple

from lexarium.search.plurals import singular
from lexarium.search.spelling import spelled

# Marks that belong to the letter before them: of Latin, Cyrillic, Hebrew and Arabic, and the Indic and Thai vowels.
_MARKS = (
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
_LETTERS = f"(?:[^\\W{_UNSPACED}]|[{_MARKS}])++"
_SPACED = f"{_LETTERS}(?:[{_APOSTROPHES}]{_LETTERS})*+"
_HYPHEN = re.compile(f"[{_HYPHENS}]")
# Most texts are ASCII alone, which is quicker to take apart: apostrophes go, and other signs become spaces.
# Every character has its place, since one that a table lacks is looked for at length.
_SIGNS = [char if char.isalnum() else None if char == "'" else " " for char in map(chr, range(128))]
_ACCENTS = re.compile("[\u0300-\u036f]+")
_ASCII_WORD = re.compile("[A-Za-z0-9]++(?:['`][A-Za-z0-9]++)*+")
_ASCII_PIECE = re.compile("[A-Za-z0-9']++(?:[-/][A-Za-z0-9']++)*+")
# Letters that Unicode does not take apart.
_LIGATURES = str.maketrans(
    {"æ": "ae", "œ": "oe", "ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "ı": "i", "ħ": "h"}
)

LONGEST_WORD = 60
"""How many characters of a word count."""
LONGEST_KEY = 300
_LONGEST_REST = 4 * LONGEST_KEY
_CONTROLS = dict.fromkeys(range(32))
_CACHED = 200_000


class Word(NamedTuple):
    """A word of a text: folded, and where it stands in the text, in code points."""

    text: str
    plain: str
    """Folded, in its own spelling."""
    start: int
    end: int


@cache
def _word() -> re.Pattern[str]:
    """A word of any script. To make this, and the next, takes a while, of which few texts have need."""
    return re.compile(f"{_SPACED}|[{_UNSPACED}][{_MARKS}]*+")


@cache
def _piece() -> re.Pattern[str]:
    return re.compile(f"{_SPACED}(?:[{_HYPHENS}]{_SPACED})*+|[{_UNSPACED}][{_UNSPACED}{_MARKS}]*+")


def spans(text: str) -> list[Word]:
    """The words of a text, in order."""
    found = []
    pattern = _ASCII_WORD if text.isascii() else _word()
    for match in pattern.finditer(text.replace("_", " ")):
        word, plain = _folded(match.group())
        if plain:
            found.append(Word(word, plain, match.start(), match.end()))
    return found


class Folded(NamedTuple):
    """A text, taken apart and folded."""

    words: list[str]
    """In the one form of all spellings."""
    plain: list[str]
    """The same words in their own spelling."""
    compounds: list[str]
    """What the words that hyphens or strokes join are as one word each: `n-back` is `nback`."""
    rest: str
    """The text without spaces, where there are no words: a name of signs alone is still a name."""

    @property
    def key(self) -> str:
        """One key for the whole: equal for names that differ only in what folding takes away, spaces included."""
        return ("".join(self.words) or self.rest)[:LONGEST_KEY]

    @property
    def forms(self) -> list[str]:
        """Every form in which one of its words may be typed."""
        return list(dict.fromkeys([*self.words, *self.plain, *self.compounds, *map(singular_of, self.words)]))

    @property
    def first_forms(self) -> list[str]:
        """Every form in which its beginning may be typed."""
        if not self.words:
            return []
        compound = self.compounds[:1] if self.compounds and self.compounds[0].startswith(self.words[0]) else []
        return list({self.words[0], self.plain[0], singular_of(self.words[0]), *compound})


def pieces(text: str) -> Iterator[str]:
    """The words of a text as they are written, those that hyphens join, or that no space parts, as one."""
    pattern = _ASCII_PIECE if text.isascii() else _piece()
    return (match.group() for match in pattern.finditer(text.replace("_", " ")))


def is_unspaced(piece: str) -> bool:
    """Whether a piece of a text is of a script that puts no space between words."""
    return _IS_UNSPACED.search(piece) is not None


def fold(text: str) -> Folded:
    """Take a text apart and fold it."""
    low = text.casefold().replace("_", " ")
    plain, joined = _apart(low)
    # Signs alone may be joined, as in '-': that is no word.
    compounds = list(filter(None, (spelled_of(_plain(_cut(each))) for each in joined)))
    rest = "" if plain else "".join(unicodedata.normalize("NFKC", low[:_LONGEST_REST]).translate(_CONTROLS).split())
    return Folded(list(map(spelled_of, plain)), plain, compounds, rest)


def stems(text: str) -> tuple[Iterator[str], Iterator[str]]:
    """The words of a text, and what hyphens join as one word each: in one form for all spellings, and for plurals."""
    plain, joined = _apart(text.casefold().replace("_", " "))
    return map(_stem_of, plain), map(_stem_of, filter(None, (_plain(_cut(each)) for each in joined)))


def _apart(low: str) -> tuple[list[str], list[str]]:
    """The words of a casefolded text, in their own spelling, and the parts of it that hyphens or strokes join."""
    if not low.isascii():
        # Without accents, which go anyway, most of these are ASCII too.
        bare = _ACCENTS.sub("", unicodedata.normalize("NFD", low))
        low = bare if bare.isascii() else low
    if low.isascii() and "`" not in low and "''" not in low:
        plain = low.translate(_SIGNS).split()
        if len(low) > LONGEST_WORD and max(map(len, plain), default=0) > LONGEST_WORD:
            plain = [word[:LONGEST_WORD] for word in plain]
        hyphened = [part for part in low.split() if "-" in part or "/" in part] if "-" in low or "/" in low else []
        joined = [each for part in hyphened for each in _ASCII_PIECE.findall(part) if "-" in each or "/" in each]
    else:
        plain = list(filter(None, map(_plain, map(_cut, _word().findall(low)))))
        joined = list(filter(_HYPHEN.search, _piece().findall(low))) if _HYPHEN.search(low) else []
    return plain, joined


def _cut(word: str) -> str:
    """As much of a word as can count: some of its characters may be marks that do not."""
    return word[: 4 * LONGEST_WORD]


@lru_cache(_CACHED)
def _folded(word: str) -> tuple[str, str]:
    """A word as it is written: in the one form of all its spellings, and in its own."""
    plain = _plain(_cut(word.casefold()))
    return spelled_of(plain), plain


@lru_cache(_CACHED)
def _plain(word: str) -> str:
    """A word that is casefolded already: its letters and digits, without accents."""
    if word.isascii():
        return (word if word.isalnum() else "".join(filter(str.isalnum, word)))[:LONGEST_WORD]
    bare = "".join(char for char in unicodedata.normalize("NFKD", word) if not unicodedata.combining(char))
    return "".join(filter(_belongs, bare.translate(_LIGATURES).casefold()))[:LONGEST_WORD]


def _belongs(char: str) -> bool:
    return char.isalnum() or unicodedata.category(char).startswith("M")


@lru_cache(_CACHED)
def spelled_of(plain: str) -> str:
    """A folded word in the one form of all its spellings."""
    return spelled(plain)


@lru_cache(_CACHED)
def _stem_of(plain: str) -> str:
    """The same of its singular and plural too."""
    return singular(spelled(plain))


@lru_cache(_CACHED)
def singular_of(word: str) -> str:
    """A folded word in the one form of its singular and plural."""
    return singular(word)
