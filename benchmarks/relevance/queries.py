"""Queries with the records that should come first: written for the sample, or generated from names."""

import csv
import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import islice
from pathlib import Path
from random import Random

from benchmarks.data.search_queries import add_typo, take_prefix
from benchmarks.relevance.catalogues import CatalogueRecord
from lexarium.domain.identifiers import qualify_id

_SAMPLE_QUERIES = Path(__file__).with_name("queries.tsv")
_QUERIES_PER_KIND = 40
# Shorter names are too easily mistaken for another one.
_MIN_TYPO_CHARS = 6
_MIN_PREFIX_CHARS = 4
_MIN_ACRONYM_WORDS = 3
_SKIPPED_INITIALS = frozenset(("a", "an", "and", "by", "for", "from", "in", "of", "on", "or", "the", "to", "with"))
_EXTRA_WORDS = ("study", "patients", "score", "severity", "model", "outcome", "measure", "children", "clinical", "rate")
# Up to nine: a single X is rarely a number.
_ROMAN_NUMERALS = ("I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX")
_OTHER_NUMERALS = dict(zip(_ROMAN_NUMERALS, "123456789", strict=True))
_OTHER_NUMERALS |= {arabic: roman for roman, arabic in _OTHER_NUMERALS.items()}
_Words = tuple[str, ...]
# Text of a query, and the ids of the records that are right.
_Candidate = tuple[str, set[str]]


@dataclass(frozen=True)
class RelevanceQuery:
    """A query, and the ids of the records that are right as the first hit."""

    kind: str
    text: str
    expected: frozenset[str]


def load_sample_queries() -> list[RelevanceQuery]:
    """Return the queries that were written for the sample catalogue."""
    with _SAMPLE_QUERIES.open(encoding="utf-8", newline="") as file:
        rows = csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        return [
            RelevanceQuery(
                row["kind"],
                row["query"],
                frozenset(qualify_id(row["vocabulary"], local_id) for local_id in row["expected"].split()),
            )
            for row in rows
        ]


def generate_queries(records: Iterable[CatalogueRecord]) -> list[RelevanceQuery]:
    """Return queries of each kind, always the same ones for the same records."""
    labels = _LabelIndex(records)
    queries = []
    for kind, build in _BUILDERS.items():
        rng = Random(kind)
        sources = sorted((labels.aliases if kind == "alias" else labels.names).values())
        rng.shuffle(sources)
        candidates = (build(labels, text, rng) for text in sources)
        found = islice(filter(None, candidates), _QUERIES_PER_KIND)
        queries += [RelevanceQuery(kind, text, frozenset(expected)) for text, expected in found]
    return queries


@cache
def split_words(text: str) -> _Words:
    """Return the words of a text without case and accents."""
    decomposed = unicodedata.normalize("NFKD", text.casefold())
    return tuple(re.findall(r"\w+", "".join(char for char in decomposed if not unicodedata.combining(char))))


class _LabelIndex:
    """Labels of a catalogue by their words, and the ids of the records that have them."""

    def __init__(self, records: Iterable[CatalogueRecord]) -> None:
        self.names: dict[_Words, str] = {}
        self.aliases: dict[_Words, str] = {}
        self.ids_by_name: dict[_Words, set[str]] = defaultdict(set)
        self.ids_by_label: dict[_Words, set[str]] = defaultdict(set)
        for record in records:
            for name in filter(split_words, record.names):
                self.names.setdefault(split_words(name), name)
                self.ids_by_name[split_words(name)].add(record.id)
            for alias in filter(split_words, record.aliases):
                self.aliases.setdefault(split_words(alias), alias)
            for label in filter(split_words, (*record.names, *record.aliases)):
                self.ids_by_label[split_words(label)].add(record.id)

    @cached_property
    def label_words(self) -> frozenset[str]:
        """All words of labels."""
        return frozenset(word for words in self.ids_by_label for word in words)

    @cached_property
    def ids_by_initials(self) -> dict[str, set[str]]:
        """Ids of the records that have a label with these initials."""
        ids_by_initials: dict[str, set[str]] = defaultdict(set)
        for words, ids in self.ids_by_label.items():
            ids_by_initials[_take_initials(words)] |= ids
        return ids_by_initials

    def find_names(self, is_wanted: Callable[[_Words], bool]) -> set[str]:
        """Return the ids of the records with a name whose words meet a condition."""
        return {record_id for words, ids in self.ids_by_name.items() if is_wanted(words) for record_id in ids}


def _build_exact_name(labels: _LabelIndex, name: str, _: Random) -> _Candidate | None:
    return name, labels.ids_by_name[split_words(name)]


def _build_alias(labels: _LabelIndex, alias: str, _: Random) -> _Candidate | None:
    words = split_words(alias)
    return None if words in labels.names else (alias, labels.ids_by_label[words])


def _build_typo(labels: _LabelIndex, name: str, rng: Random) -> _Candidate | None:
    """Change a letter. A name with a digit is left out: the digit may become that of another name."""
    text = add_typo(rng, name)
    if len(name) < _MIN_TYPO_CHARS or any(map(str.isdigit, name)) or split_words(text) in labels.ids_by_label:
        return None
    return text, labels.ids_by_name[split_words(name)]


def _build_acronym(labels: _LabelIndex, name: str, rng: Random) -> _Candidate | None:
    """Take the initials, if no other record has a label with them and no word begins with them."""
    initials, expected = _take_initials(split_words(name)), labels.ids_by_name[split_words(name)]
    has_acronym = "(" in name  # A name with brackets mostly has one already.
    if has_acronym or len(initials) < _MIN_ACRONYM_WORDS or not initials.isalpha():
        return None
    if labels.ids_by_initials[initials] != expected or any(word.startswith(initials) for word in labels.label_words):
        return None
    return rng.choice((initials, initials.upper())), expected


def _build_partial(labels: _LabelIndex, name: str, rng: Random) -> _Candidate | None:
    """Add a word that no label has, and leave one of many words out."""
    words = name.split()
    extra_words = [word for word in _EXTRA_WORDS if word not in labels.label_words]
    if len(words) < 2 or not extra_words:
        return None
    expected = labels.ids_by_name[split_words(name)]
    if len(words) > 3:
        words.pop(rng.randrange(len(words)))
        kept = set(split_words(" ".join(words)))
        expected = labels.find_names(kept.issubset)
    words.insert(rng.choice((0, len(words))), rng.choice(extra_words))
    return " ".join(words), expected


def _build_number(labels: _LabelIndex, name: str, _: Random) -> _Candidate | None:
    """Write Roman numerals as Arabic ones, and the reverse."""
    text = " ".join(_OTHER_NUMERALS.get(word, word) for word in name.split())
    expected = labels.ids_by_name[split_words(name)]
    is_changed = split_words(text) != split_words(name)
    return (text, expected) if is_changed and labels.ids_by_label.get(split_words(text), expected) <= expected else None


def _build_prefix(labels: _LabelIndex, name: str, _: Random) -> _Candidate | None:
    """Cut the name. Every record with a name that begins so is right."""
    text = take_prefix(name)
    start = " ".join(split_words(text))
    if len(start) < _MIN_PREFIX_CHARS:
        return None
    return text, labels.find_names(lambda words: " ".join(words).startswith(start))


def _build_reordered_name(labels: _LabelIndex, name: str, rng: Random) -> _Candidate | None:
    """Begin with the last word, or with the second half."""
    parts = name.replace(",", "").split()
    middle = len(parts) // 2
    text = rng.choice((f"{parts[-1]}, {' '.join(parts[:-1])}", " ".join(parts[middle:] + parts[:middle])))
    if len(parts) < 2 or split_words(text) in labels.ids_by_label:
        return None
    sorted_words = sorted(split_words(name))
    return text, labels.find_names(lambda words: sorted(words) == sorted_words)


def _take_initials(words: _Words) -> str:
    return "".join(word[0] for word in words if word not in _SKIPPED_INITIALS)


_BUILDERS: dict[str, Callable[[_LabelIndex, str, Random], _Candidate | None]] = {
    "exact name": _build_exact_name,
    "alias": _build_alias,
    "one typo": _build_typo,
    "acronym": _build_acronym,
    "partial": _build_partial,
    "number": _build_number,
    "prefix": _build_prefix,
    "order, plural or spelling": _build_reordered_name,
}
