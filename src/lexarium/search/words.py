"""Text as words: where one begins and ends, and the form under which words are compared."""

import re
import unicodedata
from collections.abc import Callable
from functools import cache, lru_cache

from lexarium.search.plurals import singular

LONGEST_WORD = 500
"""In characters; what is longer is no word, and never compared."""
WIDEST_GAP = 100
"""In characters; words that are further apart have nothing to do with each other."""


def _class(chars: list[int]) -> str:
    """Characters as they stand between the brackets of a regular expression, as ranges."""
    ranges: list[list[int]] = []
    for char in chars:
        if ranges and char == ranges[-1][1] + 1:
            ranges[-1][1] = char
        else:
            ranges.append([char, char])
    return "".join(f"\\U{first:08x}-\\U{last:08x}" for first, last in ranges)


_UNSEEN = "\u00ad\u200c\u200d"
"""Within words: the soft hyphen, and what joins letters or keeps them from joining."""
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uac00-\ud7af\uf900-\ufaff\uff66-\uff9d\U00020000-\U0003ffff"
)
"""Scripts that put no space between words, and Hangul, which writes particles on to them: each character is a word."""
_BETWEEN = r"\s_/\-\u2010-\u2013\u2212\ufe63\uff0d\u200b\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff"
"""What may stand between the words of a name: spaces, hyphens, strokes, underscores, marks of direction."""
_BREAK = r"\n[^\S\n]*+(?:\n|[-\u2010-\u2013]\s)"
"""A blank line, or the beginning of one that a dash begins, as it does an item of a list."""
_LETTER = rf"[^\W_{_UNSPACED}]"

_BROKEN = re.compile("[-\u00ad\u2010]\r?\n")
"""A hyphen at the end of a line: of a word that goes on, or between two."""
_LINE = re.compile("\n(?<![-\u00ad\u2010]\n)(?<![-\u00ad\u2010]\r\n)")
"""The end of a line that has no such hyphen."""
_PLAIN_LINE = re.compile("\n(?<=[^\\s\\-\u00ad\u2010]\n)(?=[^\\s\\-\u2010-\u2013])")
"""One that parts two words as a space does."""
_CUT_BEFORE = (",", ".", ";", ":", ")")
_CUT_BEFORE_LINES = (*_CUT_BEFORE, "\n")
_PLAIN = str.maketrans("’‘“”„", '\'\'"""', _UNSEEN)


def parts(text: str) -> list[str]:
    """The text cut up: what stands between words, a word, what stands between words, and so on; joined, the text.

    A sign that cannot stand within a name by itself (a full stop, a blank line, a very wide space) counts as a word.
    """
    return _parts().split(text)


@cache
def _parts() -> re.Pattern[str]:
    """What cuts a text. To make it takes a while, which a process that annotates nothing is spared."""
    # No mark of a script stands beyond; to look through the whole of Unicode would take a quarter of a second.
    marks = _class([char for char in range(0x300, 0x1F000) if unicodedata.category(chr(char)).startswith("M")])
    mark = f"[{marks}{_UNSEEN}]"
    # A word of ASCII letters that neither an apostrophe nor another letter follows comes first: that is the fast way.
    return re.compile(
        r"([A-Za-z0-9]++(?![^\x00-\x26\x28-\x7f])"
        rf"|(?:{_LETTER}|{mark})(?:{_LETTER}+|\u00ad\r?\n(?={_LETTER})|{mark}|['’]{_LETTER}+)*+"
        rf"|[{_UNSPACED}][{marks}]*+"
        rf"|[{_BETWEEN}]{{{WIDEST_GAP},}}+"
        rf"|{_BREAK}"
        rf"|[^{_BETWEEN}])"
    )


def runs(text: str) -> list[str]:
    """The text cut at spaces and plain ends of lines, which are left out, and before the commonest signs.

    No word is cut. A run with `follows_space` has a space before it, unless it is the first.
    """
    text = _PLAIN_LINE.sub(" ", text)
    for sign in _CUT_BEFORE:
        text = text.replace(sign, f" {sign}")
    return _LINE.sub(" \n", text).split(" ")


def follows_space(run: str) -> bool:
    """Whether it was cut at a space."""
    return not run.startswith(_CUT_BEFORE_LINES)


def are_apart(gap: str) -> bool:
    """Whether words with this between them have nothing to do with each other."""
    return len(gap) >= WIDEST_GAP or ("\n" in gap and re.search(_BREAK, gap) is not None)


def mended(cut: list[str], is_word: Callable[[str], bool]) -> list[str]:
    """The parts of a text, with words that a hyphen breaks at the end of a line made whole, if that gives a word."""
    if len(cut) == 1:
        return cut
    whole = cut[:2]
    for gap, word in zip(cut[2::2], cut[3::2], strict=False):
        if _BROKEN.fullmatch(gap) and is_word(whole[-1] + word):
            whole[-1] += gap + word
        else:
            whole += gap, word
    return [*whole, cut[-1]]


def _unaccented(word: str) -> str:
    letters = unicodedata.normalize("NFKD", word.casefold())
    return "".join(char for char in letters if not unicodedata.combining(char)).casefold()


@lru_cache(100_000)
def form(word: str) -> str:
    """What a word is compared by: the same for its singular and plural, in any case, with and without accents."""
    plain = bare(word)
    folded = plain.lower() if plain.isascii() else _unaccented(plain)
    return singular(folded)


@lru_cache(50_000)
def forms(text: str) -> tuple[str, ...]:
    """The forms of the words of a text."""
    return tuple(map(form, parts(text)[1::2]))


def bare(word: str) -> str:
    """A word as it is spelt, but for an ending that makes it a possessive, or capitals a plural."""
    if word.isalnum() and word.isascii() and word[-1] != "s":
        return word
    if "\n" in word:
        word = _BROKEN.sub("", word)
    if not word.isascii():
        word = unicodedata.normalize("NFC", word.translate(_PLAIN))
    if word.endswith(("'s", "'S")):
        word = word[:-2]
    elif len(word) > 2 and word.endswith("s") and word[:-1].isupper():
        word = word[:-1]
    return word.replace("'", "") if len(word) > 1 else word
