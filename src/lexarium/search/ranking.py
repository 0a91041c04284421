"""Grades a record against what was typed: in which tier it stands, how good it is there, and which words matched."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from lexarium.domain.text import name_key
from lexarium.search.folding import Folded, fold, spans
from lexarium.search.queries import Sought, Typed, allowed
from lexarium.search.tiers import Tier

_MOST_EDITS = 2
_USUAL_WEIGHT = 10.0
"""The BM25 weight that counts half."""


class Source(Enum):
    """Which kind of query found a record."""

    ID = "id"
    KEY = "key"
    WORDS = "words"
    TEXT = "text"
    CLOSE = "close"


class Span(NamedTuple):
    """A part of a text: from `start`, up to and without `end`, in code points."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Grade:
    """How a record matched."""

    tier: Tier
    quality: float
    """Within the tier, from 0 to 1."""
    field: str
    text: str
    """The label that matched; empty where it was the definition."""
    places: tuple[int, ...] | None
    """Which words of the label matched; None: all of it."""
    reason: str
    """The same in words."""

    @property
    def score(self) -> float:
        """One number for tier and quality, from 0 to 1."""
        return (len(Tier) - 1 - self.tier + self.quality) / len(Tier)

    @property
    def highlight(self) -> tuple[Span, ...]:
        """The parts of the label that matched."""
        if self.places is None:
            return (Span(0, len(self.text)),)
        words = spans(self.text)
        return tuple(Span(words[place].start, words[place].end) for place in sorted(set(self.places)))


def grade(sought: Typed, labels: Sequence[str], weight: float, source: Source) -> Grade:
    """Grade a record by its labels, the name first, and by the kind of query that found it."""
    if source is Source.ID:
        return Grade(Tier.ID, 1.0, "id", sought.text, None, "the identifier itself")
    exact = _exact(sought, labels) if source is Source.KEY else None
    found = exact or _by_words(sought, labels, weight)
    if found is None and source is Source.CLOSE:
        found = _by_mistake(sought, labels, weight)
    reason = f"all words, definition included; BM25 {weight:.2f}"
    return found or Grade(Tier.DEFINITION_WORDS, _half(weight), "definition", "", (), reason)


def _exact(sought: Typed, labels: Sequence[str]) -> Grade | None:
    key = sought.folded.key
    for label in labels:
        if fold(label).key == key:
            if label is not labels[0]:
                return Grade(Tier.ALIAS, 1.0, "alias", label, None, "an alias, folded")
            if name_key(label.strip()) == name_key(sought.text):
                return Grade(Tier.NAME, 1.0, "name", label, None, "the name, ignoring case")
            return Grade(Tier.FOLDED, 1.0, "name", label, None, "the name, folded")
    return None


class _Match(NamedTuple):
    """Where the words of a query stand in a label."""

    places: list[int]
    whole: int
    """How many of them are whole words there."""


def _by_words(sought: Typed, labels: Sequence[str], weight: float) -> Grade | None:
    together: list[Folded] = []
    for label in labels:
        folded = fold(label)
        match = _match(sought.words, folded.words, folded.plain)
        if match is not None and _has_phrases(sought, folded.words):
            return _graded(sought, label, match, weight, is_name=label is labels[0])
        together.append(folded)
    words = [word for folded in together for word in folded.words]
    if len(labels) > 1 and not sought.phrases and _match(sought.words, words, words) is not None:
        why = "all words, in name and aliases together"
        return Grade(Tier.ALIAS_WORDS, 0.1 * _half(weight), "name", labels[0], (), why)
    return None


def _graded(sought: Typed, label: str, match: _Match, weight: float, *, is_name: bool) -> Grade:
    places, count = match.places, len(sought.words)
    begins = places == list(range(len(places)))
    in_order = begins or places == sorted(places)
    tier = Tier.ALIAS_WORDS if not is_name else Tier.BEGINNING if begins else Tier.NAME_WORDS
    quality = (0.5 if begins else 0.25 if in_order else 0.0) + 0.3 * match.whole / count + 0.2 * _half(weight)
    order = "from the beginning" if begins else "in order" if in_order else "in another order"
    reason = f"all words {order}, {match.whole} of {count} whole; BM25 {weight:.2f}"
    return Grade(tier, quality, "name" if is_name else "alias", label, tuple(places), reason)


def _match(sought: Sequence[Sought], words: Sequence[str], plain: Sequence[str]) -> _Match | None:
    """The place of each word of a query, of several the first after the one before; None where one is missing."""
    places: list[int] = []
    whole = 0
    for word in sought:
        after = places[-1] + 1 if places else 0
        place = _place(word, words, plain, after)
        if place is not None:
            places.append(place)
            whole += words[place] == word.forms[0]
            continue
        joined = _joined(word, words)
        if joined is None:
            return None
        places += joined
        whole += 1
    return _Match(places, whole) if places else None


def _place(word: Sought, words: Sequence[str], plain: Sequence[str], after: int) -> int | None:
    """Where a word of a query stands: as a whole word if it can be, and after a place if it can be."""
    form = word.forms[0]
    if form in words:
        later = form in words[after:]
        return words.index(form, after) if later else words.index(form)
    if word.whole:
        return None
    for start in (after, 0):
        for place in range(start, len(words)):
            if words[place].startswith(word.forms) or plain[place].startswith(word.forms):
                return place
    return None


def _joined(word: Sought, words: Sequence[str]) -> list[int] | None:
    """Where words stand that are one with or without a hyphen or a space: `nback`, `n-back`, `n back`."""
    for place in range(len(words) - 1):
        if (words[place] + words[place + 1]).startswith(word.forms[0]):
            return [place, place + 1]
    if not word.parts:
        return None
    last = len(word.parts) - 1
    parts = [Sought((part,), whole=place < last) for place, part in enumerate(word.parts)]
    match = _match(parts, words, words)
    return None if match is None else match.places


def _has_phrases(sought: Typed, words: Sequence[str]) -> bool:
    return all(
        any(tuple(words[start : start + len(phrase)]) == phrase for start in range(len(words)))
        for phrase in sought.phrases
    )


def _by_mistake(sought: Typed, labels: Sequence[str], weight: float) -> Grade | None:
    key = sought.folded.key
    keys = [fold(label).key for label in labels]
    for edits in range(1, _MOST_EDITS + 1):
        for label, of_label in zip(labels, keys, strict=True):
            if distance(key, of_label, edits) <= edits:
                is_name = label is labels[0]
                quality = 0.6 / edits + 0.3 * (of_label[:1] == key[:1]) + 0.1 * is_name
                reason = f"a whole label but for {edits} letter{'s' if edits > 1 else ''}"
                return Grade(Tier.TYPO, quality, "name" if is_name else "alias", label, None, reason)
    for label in labels:
        places = _close_places(sought, fold(label).words)
        if places is not None:
            is_name = label is labels[0]
            begins = places == list(range(len(places)))
            reason = f"all words but for some letters{', from the beginning' if begins else ''}; BM25 {weight:.2f}"
            quality = 0.4 * is_name + 0.4 * begins + 0.2 * _half(weight)
            return Grade(Tier.TYPO_WORDS, quality, "name" if is_name else "alias", label, tuple(places), reason)
    return None


def _close_places(sought: Typed, words: Sequence[str]) -> list[int] | None:
    found = []
    for word in sought.words:
        place = next((at for at, there in enumerate(words) if _is_close(word.forms[0], there)), None)
        if place is None:
            return None
        found.append(place)
    return found


def _is_close(typed_word: str, word: str) -> bool:
    """Whether a word, or its beginning, is what was typed but for some letters."""
    most = allowed(typed_word)
    ends = {len(word), *range(len(typed_word) - most, len(typed_word) + most + 1)}
    return any(distance(typed_word, word[:end], most) <= most for end in ends)


def _half(weight: float) -> float:
    return weight / (weight + _USUAL_WEIGHT)


def distance(one: str, other: str, most: int) -> int:
    """How many letters must be put in, left out, changed or swapped with the next; beyond `most` it is not told."""
    if abs(len(one) - len(other)) > most:
        return most + 1
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, letter in enumerate(one, 1):
        earlier, before, row = before, row, [i] + [most + 1] * len(other)
        for j in range(max(1, i - most), min(len(other), i + most) + 1):
            cost = letter != other[j - 1]
            row[j] = min(before[j - 1] + cost, before[j] + 1, row[j - 1] + 1)
            if earlier and j > 1 and letter == other[j - 2] and one[i - 2] == other[j - 1]:
                row[j] = min(row[j], earlier[j - 2] + 1)
        if min(row) > most:
            return most + 1
    return row[-1]
