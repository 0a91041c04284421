"""Generate search queries of each kind from a generated catalogue."""

import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

from benchmarks.data.records import Record

MAX_P99_MS = 10.0
MAX_TYPO_P99_MS = 25.0
_ALPHABET = "abcdefghijklmnopqrstuvwxyz"
_COMMON_WORDS = (
    *("memory", "attention", "control", "learning", "recall", "response", "stimulus", "visual", "task", "spatial"),
    *("the", "of", "and", "in", "re", "co"),
)
_ACCENTS = str.maketrans("aeouinc", "áéöüïñç")


@dataclass(frozen=True)
class QueryKind:
    """Kind of query, with its p99 target in milliseconds."""

    name: str
    max_p99_ms: float
    generate: Callable[[Random, Sequence[Record]], str]

    def generate_many(self, records: Sequence[Record], count: int) -> list[str]:
        """Return a number of queries, always the same ones for the same records."""
        rng = Random(self.name)
        return [self.generate(rng, records) for _ in range(count)]


def swap_case_and_accents(text: str) -> str:
    """Return a text in the other case, with accents."""
    return unicodedata.normalize("NFC", text).swapcase().translate(_ACCENTS)


def add_typo(rng: Random, text: str) -> str:
    """Insert, delete or change a letter, or swap two."""
    index = rng.randrange(len(text))
    before, replaced, after = text[:index], text[index : index + 1], text[index + 1 :]
    letter = rng.choice(_ALPHABET)
    edits = [before + letter + replaced + after, before + letter + after]
    if len(text) > 1:
        edits += [before + after, before + after[:1] + replaced + after[1:]]
    return rng.choice(edits)


def take_prefix(text: str) -> str:
    """Return the first three fifths of a text."""
    return text[: max(1, -(-len(text) * 3 // 5))]


def _pick_name(rng: Random, records: Sequence[Record], *, words: int = 0) -> str:
    while True:
        name = str(rng.choice(records)["name"])
        if not words or len(name.split()) >= words:
            return name


def _pick_words(count: int) -> Callable[[Random, Sequence[Record]], str]:
    def draw(rng: Random, records: Sequence[Record]) -> str:
        return " ".join(rng.sample(_pick_name(rng, records, words=count).split(), count))

    return draw


def _pick_prefix(rng: Random, records: Sequence[Record]) -> str:
    return _pick_name(rng, records)[: rng.randint(1, 5)]


def _pick_prefixes(rng: Random, records: Sequence[Record]) -> str:
    return " ".join(word[: rng.randint(1, 5)] for word in _pick_name(rng, records, words=2).split()[:3])


def _generate_nonsense(rng: Random, _: Sequence[Record]) -> str:
    return " ".join("".join(rng.choices("qxzjkvw", k=rng.randint(6, 12))) for _ in range(rng.randint(1, 3)))


QUERY_KINDS = (
    QueryKind("exact names", MAX_P99_MS, _pick_name),
    QueryKind("identifiers", MAX_P99_MS, lambda rng, records: str(rng.choice(records)["id"])),
    QueryKind("two words", MAX_P99_MS, _pick_words(2)),
    QueryKind("three words", MAX_P99_MS, _pick_words(3)),
    QueryKind("common words", MAX_P99_MS, lambda rng, _: rng.choice(_COMMON_WORDS)),
    QueryKind("prefixes of 1 to 5 letters", MAX_P99_MS, _pick_prefix),
    QueryKind("prefixes of two or three words", MAX_P99_MS, _pick_prefixes),
    QueryKind("names with a typo", MAX_TYPO_P99_MS, lambda rng, records: add_typo(rng, _pick_name(rng, records))),
    QueryKind("no hit", MAX_TYPO_P99_MS, _generate_nonsense),
)
