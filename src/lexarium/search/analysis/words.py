"""Split text into words for the annotator, and normalize words for comparison."""

import re
import unicodedata
from collections.abc import Callable, Iterable
from functools import cache, lru_cache
from itertools import groupby

from lexarium.search.analysis.plurals import singularize

# A longer run of letters is not a word, and is never compared.
MAX_ANNOTATED_WORD_CHARS = 500
# Words that are further apart do not belong to one name.
MAX_GAP_CHARS = 100

# Invisible characters within words: the soft hyphen, joiner and non-joiner.
_INVISIBLE = "\u00ad\u200c\u200d"
# Scripts without spaces between words, and Hangul, which attaches particles to words: each character is a word.
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uac00-\ud7af\uf900-\ufaff\uff66-\uff9d\U00020000-\U0003ffff"
)
# Characters between the words of a name: spaces, hyphens, slashes, underscores, direction marks.
_SEPARATORS = r"\s_/\-\u2010-\u2013\u2212\ufe63\uff0d\u200b\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff"
# A blank line, or the start of a line with a dash, as in a list.
_PARAGRAPH_BREAK = r"\n[^\S\n]*+(?:\n|[-\u2010-\u2013]\s)"
_LETTER = rf"[^\W_{_UNSPACED}]"

# A hyphen at the end of a line may break a word or stand between two.
_LINE_END_HYPHEN = re.compile("[-\u00ad\u2010]\r?\n")
# The end of a line without such a hyphen.
_LINE_END = re.compile("\n(?<![-\u00ad\u2010]\n)(?<![-\u00ad\u2010]\r\n)")
# The end of a line that separates two words as a space does.
_PLAIN_LINE_END = re.compile("\n(?<=[^\\s\\-\u00ad\u2010]\n)(?=[^\\s\\-\u2010-\u2013])")
_FRAGMENT_PUNCTUATION = (",", ".", ";", ":", ")")
_FRAGMENT_STARTS = (*_FRAGMENT_PUNCTUATION, "\n")
_QUOTE_TABLE = str.maketrans("’‘“”„", '\'\'"""', _INVISIBLE)


def split_words(text: str) -> list[str]:
    """Split a text into gap, word, gap, word … gap; joined, they are the text.

    A sign that cannot occur within a name (a full stop, a blank line, a very wide space) counts as a word.
    """
    return _word_pattern().split(text)


@cache
def _word_pattern() -> re.Pattern[str]:
    """Compile the pattern on first use: it is slow, and a process that annotates nothing does not need it."""
    # There are no marks beyond this range; the whole of Unicode would take a quarter of a second.
    marks = _to_char_class(char for char in range(0x300, 0x1F000) if unicodedata.category(chr(char)).startswith("M"))
    mark = f"[{marks}{_INVISIBLE}]"
    # The first alternative is the fast path: an ASCII word followed by neither an apostrophe nor another letter.
    return re.compile(
        r"([A-Za-z0-9]++(?![^\x00-\x26\x28-\x7f])"
        rf"|(?:{_LETTER}|{mark})(?:{_LETTER}+|\u00ad\r?\n(?={_LETTER})|{mark}|['’]{_LETTER}+)*+"
        rf"|[{_UNSPACED}][{marks}]*+"
        rf"|[{_SEPARATORS}]{{{MAX_GAP_CHARS},}}+"
        rf"|{_PARAGRAPH_BREAK}"
        rf"|[^{_SEPARATORS}])"
    )


def _to_char_class(chars: Iterable[int]) -> str:
    """Format code points as ranges of a regular expression's character class."""
    runs = groupby(enumerate(chars), lambda pair: pair[1] - pair[0])
    ranges = [[char for _, char in run] for _, run in runs]
    return "".join(f"\\U{span[0]:08x}-\\U{span[-1]:08x}" for span in ranges)


def split_fragments(text: str) -> list[str]:
    """Split a text at spaces and plain line ends, which are dropped, and before common punctuation.

    No word is split. A fragment with `follows_space` has a space before it, unless it is the first.
    """
    text = _PLAIN_LINE_END.sub(" ", text)
    for punctuation in _FRAGMENT_PUNCTUATION:
        text = text.replace(punctuation, f" {punctuation}")
    return _LINE_END.sub(" \n", text).split(" ")


def follows_space(fragment: str) -> bool:
    """Return whether a fragment was split off at a space."""
    return not fragment.startswith(_FRAGMENT_STARTS)


def is_phrase_boundary(gap: str) -> bool:
    """Return whether the words around a gap cannot belong to one name."""
    return len(gap) >= MAX_GAP_CHARS or ("\n" in gap and re.search(_PARAGRAPH_BREAK, gap) is not None)


def join_hyphenated(parts: list[str], is_word: Callable[[str], bool]) -> list[str]:
    """Join words that are hyphenated at the end of a line, if that gives a word."""
    if len(parts) == 1:
        return parts
    joined = parts[:2]
    for gap, word in zip(parts[2::2], parts[3::2], strict=False):
        # A sign, such as a closing quotation mark, is not the beginning of a word.
        is_sign = len(joined[-1]) == 1 and not joined[-1].isalnum()
        if _LINE_END_HYPHEN.fullmatch(gap) and not is_sign and is_word(joined[-1] + word):
            joined[-1] += gap + word
        else:
            joined += gap, word
    return [*joined, parts[-1]]


@lru_cache(100_000)
def normalize_word(word: str) -> str:
    """Return the form that a word is compared by: without case, accents, plural and possessive endings."""
    word = strip_ending(word)
    if word.isascii():
        return singularize(word.lower())
    letters = unicodedata.normalize("NFKD", word.casefold())
    return singularize("".join(char for char in letters if not unicodedata.combining(char)).casefold())


@lru_cache(50_000)
def normalize_words(text: str) -> tuple[str, ...]:
    """Return the normalized words of a text."""
    return tuple(map(normalize_word, split_words(text)[1::2]))


def strip_ending(word: str) -> str:
    """Remove a possessive ending, or the plural ending of an abbreviation; keep the spelling otherwise."""
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
