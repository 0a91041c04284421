"""Grades a record against what was typed: in which tier it stands, how good it is there, and which words matched."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from lexarium.domain.text import name_key
from lexarium.search.folding import Word, fold, spans
from lexarium.search.queries import Sought, Typed, allowed
from lexarium.search.tiers import Tier

_MOST_EDITS = 2
_USUAL_WEIGHT = 10.0
"""The BM25 weight that counts half."""


class Span(NamedTuple):
    """A part of a text: from `start`, up to and without `end`, in code points."""

    start: int
    end: int


@dataclass(frozen=True)
class Grade:
    """How a record matched."""

    tier: Tier
    quality: float
    """Within the tier, from 0 to 1."""
    field: str
    text: str
    """The label that matched; empty where it was the definition."""
    spans: tuple[Span, ...]
    reason: str
    """The same in words."""

    @property
    def score(self) -> float:
        """One number for tier and quality, from 0 to 1."""
        return (len(Tier) - 1 - self.tier + self.quality) / len(Tier)


class _Match(NamedTuple):
    """Where the words of a query stand in a label."""

    words: Sequence[Word]
    """Of the label."""
    places: list[int]
    whole: int
    """How many of them are whole words there."""


def grade(sought: Typed, labels: Sequence[str], weight: float, *, close: bool = False, by_id: bool = False) -> Grade:
    """Grade a record by its labels, the name first; `close`: typing mistakes are allowed for."""
    name, *aliases = labels
    if by_id:
        return Grade(Tier.ID, 1.0, "id", sought.text, (Span(0, len(sought.text)),), "the identifier itself")
    exact = _exact(sought, name, aliases)
    if exact:
        return exact
    for label in labels:
        words = spans(label)
        match = _match(sought.words, words)
        if match is not None and _has_phrases(sought, words):
            return _by_words(sought, label, match, weight, is_name=label is name)
    together = _match(sought.words, [word for label in labels for word in spans(label)])
    if together is not None and not sought.phrases:
        return Grade(Tier.ALIAS_WORDS, 0.1 * _half(weight), "name", name, (), "all words, in name and aliases together")
    found = _by_mistake(sought, labels, weight) if close else None
    return found or Grade(
        Tier.DEFINITION_WORDS, _half(weight), "definition", "", (), f"all words, definition included; BM25 {weight:.2f}"
    )


def _exact(sought: Typed, name: str, aliases: Sequence[str]) -> Grade | None:
    key = sought.folded.key
    if not key:
        return None
    if fold(name).key == key:
        as_typed = name_key(name.strip()) == name_key(sought.text)
        why = "the name, ignoring case" if as_typed else "the name, folded"
        return Grade(Tier.NAME if as_typed else Tier.FOLDED, 1.0, "name", name, (Span(0, len(name)),), why)
    for alias in aliases:
        if fold(alias).key == key:
            return Grade(Tier.ALIAS, 1.0, "alias", alias, (Span(0, len(alias)),), "an alias, folded")
    return None


def _by_words(sought: Typed, label: str, match: _Match, weight: float, *, is_name: bool) -> Grade:
    words, places = match.words, match.places
    in_order = places == sorted(places)
    begins = places == list(range(len(places)))
    tier = Tier.ALIAS_WORDS if not is_name else Tier.BEGINNING if begins else Tier.NAME_WORDS
    share = match.whole / max(1, len(sought.words))
    quality = 0.5 * (begins or (0.5 if in_order else 0.0)) + 0.3 * share + 0.2 * _half(weight)
    order = "from the beginning" if begins else "in order" if in_order else "in another order"
    reason = f"all words {order}, {match.whole} of {len(sought.words)} whole; BM25 {weight:.2f}"
    return Grade(tier, quality, "name" if is_name else "alias", label, _marked(words, places), reason)


def _match(sought: Sequence[Sought], words: Sequence[Word]) -> _Match | None:
    """The place of each word of a query, of several the first after the one before; None where one is missing."""
    places: list[int] = []
    whole = 0
    if not sought:
        return None
    for word in sought:
        found = list(_places(word, words))
        if not found:
            return None
        last = places[-1] if places else -1
        best = next((each for each in found if each[0][0] > last), found[0])
        places += best[0]
        whole += best[1]
    return _Match(words, places, whole)


def _places(word: Sought, words: Sequence[Word]) -> Iterator[tuple[list[int], bool]]:
    """Each place where a word of a query stands, and whether it is all of the word there; whole words first."""
    begun = []
    for place, there in enumerate(words):
        if word.forms[0] == there.text:
            yield [place], True
        elif not word.whole and any(there.text.startswith(form) or there.plain.startswith(form) for form in word.forms):
            begun.append(place)
    for place in begun:
        yield [place], False
    # Words that are one with or without a hyphen or a space: `nback`, `n-back`, `n back`.
    for place in range(len(words) - 1):
        if (words[place].text + words[place + 1].text).startswith(word.forms[0]) and place not in begun:
            yield [place, place + 1], True
    if word.parts:
        parts = _match(
            [Sought((part,), whole=place < len(word.parts) - 1) for place, part in enumerate(word.parts)], words
        )
        if parts is not None:
            yield parts.places, parts.whole == len(word.parts)


def _has_phrases(sought: Typed, words: Sequence[Word]) -> bool:
    texts = [word.text for word in words]
    return all(
        any(tuple(texts[start : start + len(phrase)]) == phrase for start in range(len(texts)))
        for phrase in sought.phrases
    )


def _by_mistake(sought: Typed, labels: Sequence[str], weight: float) -> Grade | None:
    key = sought.folded.key
    for edits in range(1, _MOST_EDITS + 1):
        for label in labels:
            if distance(key, fold(label).key, edits) <= edits:
                field = "name" if label is labels[0] else "alias"
                same = fold(label).key[:1] == key[:1]
                quality = 0.6 / edits + 0.3 * same + 0.1 * (field == "name")
                reason = f"a whole label but for {edits} letter{'s' if edits > 1 else ''}"
                return Grade(Tier.TYPO, quality, field, label, (Span(0, len(label)),), reason)
    for label in labels:
        words = spans(label)
        places = _close_places(sought, words)
        if places is not None:
            field = "name" if label is labels[0] else "alias"
            begins = places == list(range(len(places)))
            reason = f"all words but for some letters{', from the beginning' if begins else ''}; BM25 {weight:.2f}"
            quality = 0.4 * (field == "name") + 0.4 * begins + 0.2 * _half(weight)
            return Grade(Tier.TYPO_WORDS, quality, field, label, _marked(words, places), reason)
    return None


def _close_places(sought: Typed, words: Sequence[Word]) -> list[int] | None:
    found = []
    for word in sought.words:
        place = next((at for at, there in enumerate(words) if _is_close(word.forms[0], there.text)), None)
        if place is None:
            return None
        found.append(place)
    return found


def _marked(words: Sequence[Word], places: Sequence[int]) -> tuple[Span, ...]:
    return tuple(Span(words[place].start, words[place].end) for place in sorted(set(places)))


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
