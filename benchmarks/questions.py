"""What is searched for: of every kind of query as many as are wanted, drawn from a made catalogue."""

import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

from benchmarks.records import Record

MOST_MS = 10.0
MOST_MS_TYPOS = 25.0
_ALPHABET = "abcdefghijklmnopqrstuvwxyz"
_COMMON = (
    *("memory", "attention", "control", "learning", "recall", "response", "stimulus", "visual", "task", "spatial"),
    *("the", "of", "and", "in", "re", "co"),
)
_ACCENTS = str.maketrans("aeouinc", "áéöüïñç")


@dataclass(frozen=True)
class Kind:
    """A kind of query, and the highest p99 it may have, in milliseconds."""

    name: str
    most_ms: float
    draw: Callable[[Random, Sequence[Record]], str]


def flipped(text: str) -> str:
    """A text in the other case, with accents."""
    return unicodedata.normalize("NFC", text).swapcase().translate(_ACCENTS)


def mistyped(random: Random, text: str) -> str:
    """A text with one letter put in, left out, changed, or swapped with the next."""
    place = random.randrange(len(text))
    before, at, after = text[:place], text[place : place + 1], text[place + 1 :]
    letter = random.choice(_ALPHABET)
    edits = [before + letter + at + after, before + letter + after]
    if len(text) > 1:
        edits += [before + after, before + after[:1] + at + after[1:]]
    return random.choice(edits)


def beginning(text: str) -> str:
    """The first three fifths of a text."""
    return text[: max(1, -(-len(text) * 3 // 5))]


def _name(random: Random, records: Sequence[Record], *, words: int = 0) -> str:
    while True:
        name = str(random.choice(records)["name"])
        if not words or len(name.split()) >= words:
            return name


def _words(count: int) -> Callable[[Random, Sequence[Record]], str]:
    def draw(random: Random, records: Sequence[Record]) -> str:
        return " ".join(random.sample(_name(random, records, words=count).split(), count))

    return draw


def _prefix(random: Random, records: Sequence[Record]) -> str:
    return _name(random, records)[: random.randint(1, 5)]


def _prefixes(random: Random, records: Sequence[Record]) -> str:
    return " ".join(word[: random.randint(1, 5)] for word in _name(random, records, words=2).split()[:3])


def _nonsense(random: Random, _: Sequence[Record]) -> str:
    return " ".join("".join(random.choices("qxzjkvw", k=random.randint(6, 12))) for _ in range(random.randint(1, 3)))


KINDS = (
    Kind("exact names", MOST_MS, _name),
    Kind("identifiers", MOST_MS, lambda random, records: str(random.choice(records)["id"])),
    Kind("two words", MOST_MS, _words(2)),
    Kind("three words", MOST_MS, _words(3)),
    Kind("common words", MOST_MS, lambda random, _: random.choice(_COMMON)),
    Kind("prefixes of 1 to 5 letters", MOST_MS, _prefix),
    Kind("prefixes of two or three words", MOST_MS, _prefixes),
    Kind(
        "names with a typing mistake", MOST_MS_TYPOS, lambda random, records: mistyped(random, _name(random, records))
    ),
    Kind("no hit", MOST_MS_TYPOS, _nonsense),
)
