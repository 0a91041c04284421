"""Text as words: where one begins and ends, and the form under which words are compared."""

import re
import unicodedata
from collections.abc import Callable
from functools import cache, lru_cache

from lexarium.search.analysis.plurals import singularize

MAX_ANNOTATED_WORD_CHARS = 500
"""In characters; what is longer is no word, and never compared."""
MAX_GAP_CHARS = 100
"""In characters; words that are further apart have nothing to do with each other."""


def _to_char_class(chars: list[int]) -> str:
    """Characters as they stand between the brackets of a regular expression, as ranges."""
    ranges: list[list[int]] = []
    for char in chars:
        if ranges and char == ranges[-1][1] + 1:
            ranges[-1][1] = char
        else:
            ranges.append([char, char])
    return "".join(f"\\U{first:08x}-\\U{last:08x}" for first, last in ranges)


_INVISIBLE = "\u00ad\u200c\u200d"
"""Within words: the soft hyphen, and what joins letters or keeps them from joining."""
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uac00-\ud7af\uf900-\ufaff\uff66-\uff9d\U00020000-\U0003ffff"
)
"""Scripts that put no space between words, and Hangul, which writes particles on to them: each character is a word."""
_SEPARATORS = r"\s_/\-\u2010-\u2013\u2212\ufe63\uff0d\u200b\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff"
"""What may stand between the words of a name: spaces, hyphens, strokes, underscores, marks of direction."""
_PARAGRAPH_BREAK = r"\n[^\S\n]*+(?:\n|[-\u2010-\u2013]\s)"
"""A blank line, or the beginning of one that a dash begins, as it does an item of a list."""
_LETTER = rf"[^\W_{_UNSPACED}]"

_LINE_END_HYPHEN = re.compile("[-\u00ad\u2010]\r?\n")
"""A hyphen at the end of a line: of a word that goes on, or between two."""
_LINE_END = re.compile("\n(?<![-\u00ad\u2010]\n)(?<![-\u00ad\u2010]\r\n)")
"""The end of a line that has no such hyphen."""
_PLAIN_LINE_END = re.compile("\n(?<=[^\\s\\-\u00ad\u2010]\n)(?=[^\\s\\-\u2010-\u2013])")
"""One that parts two words as a space does."""
_FRAGMENT_PUNCTUATION = (",", ".", ";", ":", ")")
_FRAGMENT_STARTS = (*_FRAGMENT_PUNCTUATION, "\n")
_QUOTE_TABLE = str.maketrans("’‘“”„", '\'\'"""', _INVISIBLE)


def split_words(text: str) -> list[str]:
    """The text cut up: what stands between words, a word, what stands between words, and so on; joined, the text.

    A sign that cannot stand within a name by itself (a full stop, a blank line, a very wide space) counts as a word.
    """
    return _word_pattern().split(text)


@cache
def _word_pattern() -> re.Pattern[str]:
    """What cuts a text. To make it takes a while, which a process that annotates nothing is spared."""
    # No mark of a script stands beyond; to look through the whole of Unicode would take a quarter of a second.
    marks = _to_char_class([char for char in range(0x300, 0x1F000) if unicodedata.category(chr(char)).startswith("M")])
    mark = f"[{marks}{_INVISIBLE}]"
    # A word of ASCII letters that neither an apostrophe nor another letter follows comes first: that is the fast way.
    return re.compile(
        r"([A-Za-z0-9]++(?![^\x00-\x26\x28-\x7f])"
        rf"|(?:{_LETTER}|{mark})(?:{_LETTER}+|\u00ad\r?\n(?={_LETTER})|{mark}|['’]{_LETTER}+)*+"
        rf"|[{_UNSPACED}][{marks}]*+"
        rf"|[{_SEPARATORS}]{{{MAX_GAP_CHARS},}}+"
        rf"|{_PARAGRAPH_BREAK}"
        rf"|[^{_SEPARATORS}])"
    )


def split_fragments(text: str) -> list[str]:
    """The text cut at spaces and plain ends of lines, which are left out, and before the commonest signs.

    No word is cut. A run with `follows_space` has a space before it, unless it is the first.
    """
    text = _PLAIN_LINE_END.sub(" ", text)
    for punctuation in _FRAGMENT_PUNCTUATION:
        text = text.replace(punctuation, f" {punctuation}")
    return _LINE_END.sub(" \n", text).split(" ")


def follows_space(fragment: str) -> bool:
    """Whether it was cut at a space."""
    return not fragment.startswith(_FRAGMENT_STARTS)


def is_phrase_boundary(gap: str) -> bool:
    """Whether words with this between them have nothing to do with each other."""
    return len(gap) >= MAX_GAP_CHARS or ("\n" in gap and re.search(_PARAGRAPH_BREAK, gap) is not None)


def join_hyphenated(parts: list[str], is_word: Callable[[str], bool]) -> list[str]:
    """The parts of a text, with words that a hyphen breaks at the end of a line made whole, if that gives a word."""
    if len(parts) == 1:
        return parts
    joined = parts[:2]
    for gap, word in zip(parts[2::2], parts[3::2], strict=False):
        if _LINE_END_HYPHEN.fullmatch(gap) and is_word(joined[-1] + word):
            joined[-1] += gap + word
        else:
            joined += gap, word
    return [*joined, parts[-1]]


def _strip_accents(word: str) -> str:
    letters = unicodedata.normalize("NFKD", word.casefold())
    return "".join(char for char in letters if not unicodedata.combining(char)).casefold()


@lru_cache(100_000)
def normalize_word(word: str) -> str:
    """What a word is compared by: the same for its singular and plural, in any case, with and without accents."""
    stripped = strip_ending(word)
    folded = stripped.lower() if stripped.isascii() else _strip_accents(stripped)
    return singularize(folded)


@lru_cache(50_000)
def normalize_words(text: str) -> tuple[str, ...]:
    """The forms of the words of a text."""
    return tuple(map(normalize_word, split_words(text)[1::2]))


def strip_ending(word: str) -> str:
    """A word as it is spelt, but for an ending that makes it a possessive, or capitals a plural."""
    if word.isalnum() and word.isascii() and word[-1] != "s":
        return word
    if "\n" in word:
        word = _LINE_END_HYPHEN.sub("", word)
    if not word.isascii():
        word = unicodedata.normalize("NFC", word.translate(_QUOTE_TABLE))
    if word.endswith(("'s", "'S")):
        word = word[:-2]
    elif len(word) > 2 and word.endswith("s") and word[:-1].isupper():
        word = word[:-1]
    return word.replace("'", "") if len(word) > 1 else word
