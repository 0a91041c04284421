"""Compare numbers in digits, in words and in Roman numerals."""

from collections.abc import Iterable

_UNITS = ("", "i", "ii", "iii", "iv", "v", "vi", "vii", "viii", "ix")
# Those below 40: larger ones are rare, and more likely abbreviations (CD, ML).
_DIGITS_BY_NUMERAL = {"x" * (number // 10) + _UNITS[number % 10]: str(number) for number in range(1, 40)}
_NUMBER_WORDS = """
    zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen
    eighteen nineteen twenty
"""
_DIGITS_BY_NUMERAL |= {word: str(number) for number, word in enumerate(_NUMBER_WORDS.split())}


def to_digits(word: str) -> str:
    """Return a number in digits, and any other word as it is."""
    return _DIGITS_BY_NUMERAL.get(word, word)


def has_numeral(words: Iterable[str]) -> bool:
    """Return whether one of the words may be a Roman numeral or a number."""
    return not _DIGITS_BY_NUMERAL.keys().isdisjoint(words)


def is_code(word: str) -> bool:
    """Return whether a word is a number, a single letter or a Roman numeral: one that is close means something else."""
    return len(word) == 1 or any(map(str.isdigit, word)) or word in _DIGITS_BY_NUMERAL
