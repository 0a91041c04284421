"""Grades a record against what was typed: in which tier it stands, how good it is there, and which words matched."""

from collections.abc import Iterable, Iterator, Sequence
from enum import Enum
from itertools import chain
from operator import lt
from typing import NamedTuple

from lexarium.domain.text import name_key
from lexarium.search.documents import LITTLE_WORDS
from lexarium.search.folding import Folded, fold, singular_of, spans
from lexarium.search.queries import Sought, Typed, allowed
from lexarium.search.tiers import Tier

_TIERS = len(Tier)
_MOST_EDITS = 2
_MOST_JOINED = 5
"""Up to how many words may be written as one."""
_LEAST = 0.01
"""The quality of the least of a tier. With none at all it would have the score of the best of the next tier."""
_USUAL_WEIGHT = 10.0
"""The BM25 weight that counts half."""


class Source(Enum):
    """Which kind of query found a record."""

    ID = "id"
    WHOLE = "whole"
    """By the whole of a name or alias."""
    WORDS = "words"
    """By words of names and aliases, of which none is the whole of what was typed."""
    TEXT = "text"
    CLOSE = "close"


class Span(NamedTuple):
    """A part of a text: from `start`, up to and without `end`, in code points."""

    start: int
    end: int


class Grade(NamedTuple):
    """How a record matched."""

    tier: Tier
    quality: float
    """Within the tier, from 0 to 1."""
    field: str
    text: str
    """The label that matched; the name, where no one label did."""
    places: tuple[int, ...] | None
    """Which words of the label matched; None: all of it."""
    reasons: tuple[str, *tuple[object, ...]]
    """The same in words, and the figures to put into them."""
    in_one_label: bool = True
    """Whether one label has all words; else which has most is not looked for yet, see `in_labels`."""

    @property
    def reason(self) -> str:
        """The same in words."""
        told, *figures = self.reasons
        return told.format(*figures)

    @property
    def score(self) -> float:
        """One number for tier and quality, from 0 to 1."""
        return (_TIERS - 1 - self.tier + self.quality) / _TIERS

    @property
    def highlight(self) -> tuple[Span, ...]:
        """The parts of the label that matched."""
        if self.places is None:
            return (Span(0, len(self.text)),)
        words = spans(self.text)
        return joined(Span(words[place].start, words[place].end) for place in sorted(set(self.places)))


class Label(NamedTuple):
    """A name or alias of a record, taken apart."""

    text: str
    is_name: bool
    folded: Folded

    @property
    def field(self) -> str:
        """What an answer calls it."""
        return "name" if self.is_name else "alias"


class _Match(NamedTuple):
    """Where the words of a query stand in a label."""

    places: list[int]
    whole: float
    """How many of them are whole words there; what is singular here and plural there counts a little less."""


def grade(sought: Typed, labels: Sequence[str], weight: float, source: Source) -> Grade:
    """Grade a record by its labels, the name first, or its identifier, and by the kind of query that found it."""
    if source is Source.ID:
        return Grade(Tier.ID, 1.0, "id", labels[0], None, ("the identifier itself",))
    if source is Source.WORDS:
        return _by_words(sought, _taken_apart(labels)) or _scattered(labels[0])
    if source is Source.TEXT:
        reason = "all words, definition included; BM25 {:.2f}", weight
        return Grade(Tier.DEFINITION_WORDS, _half(weight), "definition", labels[0], (), reason, in_one_label=False)
    known = [*_taken_apart(labels)]
    if source is Source.WHOLE:
        return _exact(sought, known) or _by_words(sought, known) or _scattered(labels[0])
    return _by_mistake(sought, known)


def in_labels(given: Grade, sought: Typed, labels: Sequence[str]) -> Grade:
    """The grade of a record of which no one label has all words, with the label that has most of them."""
    label, places = _fullest(sought, [*_taken_apart(labels)])
    return given._replace(field=label.field, text=label.text, places=places)


def joined(marked: Iterable[Span]) -> tuple[Span, ...]:
    """Spans in order, those that touch as one."""
    found: list[Span] = []
    for span in marked:
        if found and found[-1].end >= span.start:
            found[-1] = Span(found[-1].start, max(found[-1].end, span.end))
        else:
            found.append(span)
    return tuple(found)


def _taken_apart(labels: Iterable[str]) -> Iterator[Label]:
    return (Label(text, not place, fold(text)) for place, text in enumerate(labels))


def _exact(sought: Typed, labels: Sequence[Label]) -> Grade | None:
    key = sought.key
    if not key:
        return None
    for label in labels:
        if label.folded.key != key:
            continue
        if not label.is_name:
            return Grade(Tier.ALIAS, 1.0, "alias", label.text, None, ("an alias, folded",))
        if name_key(label.text.strip()) == name_key(sought.text):
            return Grade(Tier.NAME, 1.0, "name", label.text, None, ("the name, ignoring case",))
        return Grade(Tier.FOLDED, 1.0, "name", label.text, None, ("the name, folded",))
    return None


def _by_words(sought: Typed, labels: Iterable[Label]) -> Grade | None:
    for label in labels:
        folded = label.folded
        if sought.phrases and not _has_phrases(sought, folded.words):
            continue
        match = _match(sought.words, folded)
        lacking = match is None and len(sought.telling) < len(sought.words)
        if lacking:
            match = _match(sought.telling, folded)
        if match is not None:
            return _graded(sought, label, match, lacking=lacking)
    return None


def _graded(sought: Typed, label: Label, match: _Match, *, lacking: bool) -> Grade:
    """`lacking`: without the little words, so that what has them too goes first."""
    places, count = match.places, len(sought.words)
    in_order = len(places) == 1 or all(map(lt, places, places[1:]))
    begins = in_order and _begins(places, label.folded.words)
    tier = Tier.ALIAS_WORDS if not label.is_name else Tier.BEGINNING if begins else Tier.NAME_WORDS
    covered = min(1.0, len(sought.key) / max(1, len(label.folded.key)))
    quality = (0.5 if begins else 0.25 if in_order else 0.0) + 0.3 * match.whole / count + 0.2 * covered
    quality = quality / 2 if lacking else quality
    order = "from the beginning" if begins else "in order" if in_order else "in another order"
    reason = "words {}, {:g} of {} whole, {:.0%} of its length", order, match.whole, count, covered
    return Grade(tier, min(quality, 1.0), label.field, label.text, tuple(places), reason)


def _begins(places: Sequence[int], words: Sequence[str]) -> bool:
    """Whether words, in order, stand at the beginning, with at most little words between them."""
    if places[-1] < len(places):
        return True
    return all(place in places or (place and words[place] in LITTLE_WORDS) for place in range(places[-1]))


def _match(sought: Sequence[Sought], label: Folded) -> _Match | None:
    """The place of each word of a query, of several the first after the one before; None where one is missing."""
    places: list[int] = []
    whole = 0.0
    singulars = list(map(singular_of, label.words))
    for word in sought:
        after = places[-1] + 1 if places else 0
        found = _place(word, label, singulars, after)
        if found is None:
            return None
        places += found.places
        whole += found.whole
    return _Match(places, whole) if places else None


def _place(word: Sought, label: Folded, singulars: Sequence[str], after: int) -> _Match | None:
    """Where a word of a query stands: as a whole word if it can be, and after a place if it can be."""
    form = word.forms[0]
    words = label.words
    if form in words:
        return _Match([_index(words, form, after)], 1.0)
    if word.whole:
        return None
    if word.singular in singulars:
        return _Match([_index(singulars, word.singular, after)], 0.9)
    return _beginning(word, label, after) or _joined(word, label)


def _index(words: Sequence[str], word: str, after: int) -> int:
    return words.index(word, after) if word in words[after:] else words.index(word)


def _beginning(word: Sought, label: Folded, after: int) -> _Match | None:
    forms, words, plain = word.forms, label.words, label.plain
    for place in chain(range(after, len(words)), range(min(after, len(words)))):
        if words[place].startswith(forms) or plain[place].startswith(forms):
            return _Match([place], 0.0)
    return None


def _joined(word: Sought, label: Folded) -> _Match | None:
    """Where words stand that are one with or without a hyphen or a space: `nback`, `n-back`, `n back`.

    None of them begins like the word of the query: so that must begin like the first of them.
    """
    words = label.words
    for first in [at for at, there in enumerate(words[:-1]) for form in word.forms if form.startswith(there)]:
        together = words[first]
        for last in range(first + 1, min(len(words), first + _MOST_JOINED)):
            together += words[last]
            if together.startswith(word.forms):
                return _Match(list(range(first, last + 1)), 1.0 if together in word.forms else 0.0)
    if not word.parts:
        return None
    last = len(word.parts) - 1
    parts = [Sought((part,), whole=place < last) for place, part in enumerate(word.parts)]
    match = _match(parts, label)
    return None if match is None else _Match(match.places, match.whole / len(parts))


def _has_phrases(sought: Typed, words: Sequence[str]) -> bool:
    return all(
        any(tuple(words[start : start + len(phrase)]) == phrase for start in range(len(words)))
        for phrase in sought.phrases
    )


def _scattered(name: str) -> Grade:
    """All words are in name and aliases, but no one of these has them all."""
    reason = ("all words, in name and aliases together",)
    return Grade(Tier.ALIAS_WORDS, _LEAST, "name", name, (), reason, in_one_label=False)


def _fullest(sought: Typed, labels: Sequence[Label]) -> tuple[Label, tuple[int, ...]]:
    """The label that has most of the words, and where it has them."""
    found = [(label, _some_places(sought, label.folded)) for label in labels]
    return max(found, key=lambda each: len(each[1]))


def _some_places(sought: Typed, label: Folded) -> tuple[int, ...]:
    singulars = list(map(singular_of, label.words))
    matches = (_place(word, label, singulars, 0) for word in sought.telling)
    return tuple(place for match in matches if match is not None for place in match.places)


def _by_mistake(sought: Typed, labels: Sequence[Label]) -> Grade:
    key = sought.key
    for edits in range(1, _MOST_EDITS + 1):
        for label in labels:
            of_label = label.folded.key
            if distance(key, of_label, edits) <= edits:
                quality = 0.6 / edits + 0.3 * (of_label[:1] == key[:1]) + 0.1 * label.is_name
                told = "a whole label but for {} letter{}", edits, "s" if edits > 1 else ""
                return Grade(Tier.TYPO, quality, label.field, label.text, None, told)
    for label in labels:
        places = _close_places(sought, label.folded.words)
        if places is not None:
            begins = places == list(range(len(places)))
            reason = (
                "all words but for some letters, from the beginning" if begins else "all words but for some letters",
            )
            covered = min(1.0, len(key) / max(1, len(label.folded.key)))
            quality = 0.4 * label.is_name + 0.4 * begins + 0.2 * covered
            return Grade(Tier.TYPO_WORDS, quality, label.field, label.text, tuple(places), reason)
    label, found = _fullest(sought, labels)
    reason = ("all words but for some letters, in name and aliases together",)
    return Grade(Tier.TYPO_WORDS, 0.0, label.field, label.text, found, reason)


def _close_places(sought: Typed, words: Sequence[str]) -> list[int] | None:
    found = []
    for word in sought.telling:
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
