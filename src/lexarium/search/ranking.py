"""Grades a record against what was typed: in which tier it stands, how good it is there, and which words matched."""

from collections.abc import Iterable, Iterator, Sequence
from enum import Enum, IntEnum
from itertools import chain
from operator import lt
from typing import NamedTuple

from lexarium.domain.text.characters import name_key
from lexarium.search.analysis.folding import FoldedText, find_words, fold, singularize_cached
from lexarium.search.documents import STOP_WORDS
from lexarium.search.query_parser import ParsedQuery, QueryWord, max_edits


class Tier(IntEnum):
    """How a record matched. A lower one goes before a higher one, whatever the words weigh."""

    ID = 0
    """Its identifier, or a CURIE or IRI that it is mapped to."""
    NAME = 1
    """Its name, ignoring case."""
    FOLDED = 2
    """Its name, ignoring accents, punctuation, hyphens and spelling too."""
    ALIAS = 3
    """One of its aliases, likewise."""
    BEGINNING = 4
    """The beginning of its name."""
    NAME_WORDS = 5
    """All words, in its name."""
    ALIAS_WORDS = 6
    """All words, in its name and aliases."""
    TYPO = 7
    """Its name or an alias, but for a typing mistake. Looked for only where no name or alias has all words."""
    DEFINITION_WORDS = 8
    """All words, its definition included."""
    TYPO_WORDS = 9
    """All words in its name and aliases, but for a typing mistake in some. Looked for as typos are."""

    @property
    def api_name(self) -> str:
        """What an answer calls it."""
        return self.name.lower()


EXACT_TIERS = frozenset({Tier.ID, Tier.NAME, Tier.FOLDED, Tier.ALIAS})
"""Where what was asked is a whole identifier, name or alias of the record."""


_TIER_COUNT = len(Tier)
_MAX_EDITS = 2
_MAX_JOINED_WORDS = 5
"""Up to how many words may be written as one."""
_MIN_QUALITY = 0.01
"""The quality of the least of a tier. With none at all it would have the score of the best of the next tier."""
_BM25_HALF_SCORE = 10.0
"""The BM25 weight that counts half."""


class MatchSource(Enum):
    """Which kind of query found a record."""

    ID = "id"
    EXACT = "whole"
    """By the whole of a name or alias."""
    WORDS = "words"
    """By words of names and aliases, of which none is the whole of what was typed."""
    DEFINITION = "text"
    FUZZY = "close"


class TextSpan(NamedTuple):
    """A part of a text: from `start`, up to and without `end`, in code points."""

    start: int
    end: int


class MatchGrade(NamedTuple):
    """How a record matched."""

    tier: Tier
    quality: float
    """Within the tier, from 0 to 1."""
    field: str
    text: str
    """The label that matched; the name, where no one label did."""
    word_positions: tuple[int, ...] | None
    """Which words of the label matched; None: all of it."""
    explanation_parts: tuple[str, *tuple[object, ...]]
    """The same in words, and the figures to put into them."""
    is_single_label: bool = True
    """Whether one label has all words; else which has most is not looked for yet, see `in_labels`."""

    @property
    def explanation(self) -> str:
        """The same in words."""
        template, *figures = self.explanation_parts
        return template.format(*figures)

    @property
    def score(self) -> float:
        """One number for tier and quality, from 0 to 1."""
        return (_TIER_COUNT - 1 - self.tier + self.quality) / _TIER_COUNT

    @property
    def highlight(self) -> tuple[TextSpan, ...]:
        """The parts of the label that matched."""
        if self.word_positions is None:
            return (TextSpan(0, len(self.text)),)
        words = find_words(self.text)
        return merge_spans(
            TextSpan(words[position].start, words[position].end) for position in sorted(set(self.word_positions))
        )


class FoldedLabel(NamedTuple):
    """A name or alias of a record, taken apart."""

    text: str
    is_name: bool
    folded: FoldedText

    @property
    def field(self) -> str:
        """What an answer calls it."""
        return "name" if self.is_name else "alias"


class _WordMatch(NamedTuple):
    """Where the words of a query stand in a label."""

    positions: list[int]
    whole_words: float
    """How many of them are whole words there; what is singular here and plural there counts a little less."""


def grade_match(parsed_query: ParsedQuery, labels: Sequence[str], weight: float, source: MatchSource) -> MatchGrade:
    """Grade a record by its labels, the name first, or its identifier, and by the kind of query that found it."""
    if source is MatchSource.ID:
        return MatchGrade(Tier.ID, 1.0, "id", labels[0], None, ("the identifier itself",))
    if source is MatchSource.WORDS:
        return _grade_words(parsed_query, _fold_labels(labels)) or _grade_scattered(labels[0])
    if source is MatchSource.DEFINITION:
        reason = "all words, definition included; BM25 {:.2f}", weight
        return MatchGrade(
            Tier.DEFINITION_WORDS, _saturate(weight), "definition", labels[0], (), reason, is_single_label=False
        )
    folded_labels = [*_fold_labels(labels)]
    if source is MatchSource.EXACT:
        return (
            _grade_exact(parsed_query, folded_labels)
            or _grade_words(parsed_query, folded_labels)
            or _grade_scattered(labels[0])
        )
    return _grade_fuzzy(parsed_query, folded_labels)


def add_best_label(grade: MatchGrade, parsed_query: ParsedQuery, labels: Sequence[str]) -> MatchGrade:
    """The grade of a record of which no one label has all words, with the label that has most of them."""
    label, positions = _find_best_label(parsed_query, [*_fold_labels(labels)])
    return grade._replace(field=label.field, text=label.text, word_positions=positions)


def merge_spans(spans: Iterable[TextSpan]) -> tuple[TextSpan, ...]:
    """Spans in order, those that touch as one."""
    merged: list[TextSpan] = []
    for span in spans:
        if merged and merged[-1].end >= span.start:
            merged[-1] = TextSpan(merged[-1].start, max(merged[-1].end, span.end))
        else:
            merged.append(span)
    return tuple(merged)


def _fold_labels(labels: Iterable[str]) -> Iterator[FoldedLabel]:
    return (FoldedLabel(text, not index, fold(text)) for index, text in enumerate(labels))


def _grade_exact(parsed_query: ParsedQuery, labels: Sequence[FoldedLabel]) -> MatchGrade | None:
    key = parsed_query.key
    if not key:
        return None
    for label in labels:
        if label.folded.key != key:
            continue
        if not label.is_name:
            return MatchGrade(Tier.ALIAS, 1.0, "alias", label.text, None, ("an alias, folded",))
        if name_key(label.text.strip()) == name_key(parsed_query.text):
            return MatchGrade(Tier.NAME, 1.0, "name", label.text, None, ("the name, ignoring case",))
        return MatchGrade(Tier.FOLDED, 1.0, "name", label.text, None, ("the name, folded",))
    return None


def _grade_words(parsed_query: ParsedQuery, labels: Iterable[FoldedLabel]) -> MatchGrade | None:
    for label in labels:
        folded = label.folded
        if parsed_query.phrases and not _has_phrases(parsed_query, folded.words):
            continue
        match = _match_words(parsed_query.words, folded)
        lacks_stop_words = match is None and len(parsed_query.significant_words) < len(parsed_query.words)
        if lacks_stop_words:
            match = _match_words(parsed_query.significant_words, folded)
        if match is not None:
            return _build_word_grade(parsed_query, label, match, lacks_stop_words=lacks_stop_words)
    return None


def _build_word_grade(
    parsed_query: ParsedQuery, label: FoldedLabel, match: _WordMatch, *, lacks_stop_words: bool
) -> MatchGrade:
    """`lacking`: without the little words, so that what has them too goes first."""
    positions, count = match.positions, len(parsed_query.words)
    in_order = len(positions) == 1 or all(map(lt, positions, positions[1:]))
    is_start = in_order and _is_label_start(positions, label.folded.words)
    tier = Tier.ALIAS_WORDS if not label.is_name else Tier.BEGINNING if is_start else Tier.NAME_WORDS
    coverage = min(1.0, len(parsed_query.key) / max(1, len(label.folded.key)))
    quality = (0.5 if is_start else 0.25 if in_order else 0.0) + 0.3 * match.whole_words / count + 0.2 * coverage
    quality = quality / 2 if lacks_stop_words else quality
    order = "from the beginning" if is_start else "in order" if in_order else "in another order"
    reason = "words {}, {:g} of {} whole, {:.0%} of its length", order, match.whole_words, count, coverage
    return MatchGrade(tier, min(quality, 1.0), label.field, label.text, tuple(positions), reason)


def _is_label_start(positions: Sequence[int], words: Sequence[str]) -> bool:
    """Whether words, in order, stand at the beginning, with at most little words between them."""
    if positions[-1] < len(positions):
        return True
    return all(
        position in positions or (position and words[position] in STOP_WORDS) for position in range(positions[-1])
    )


def _match_words(words: Sequence[QueryWord], label: FoldedText) -> _WordMatch | None:
    """The place of each word of a query, of several the first after the one before; None where one is missing."""
    positions: list[int] = []
    whole_words = 0.0
    singulars = list(map(singularize_cached, label.words))
    for word in words:
        start = positions[-1] + 1 if positions else 0
        match = _match_word(word, label, singulars, start)
        if match is None:
            return None
        positions += match.positions
        whole_words += match.whole_words
    return _WordMatch(positions, whole_words) if positions else None


def _match_word(word: QueryWord, label: FoldedText, singulars: Sequence[str], start: int) -> _WordMatch | None:
    """Where a word of a query stands: as a whole word if it can be, and after a place if it can be."""
    form = word.forms[0]
    words = label.words
    if form in words:
        return _WordMatch([_find_from(words, form, start)], 1.0)
    if word.is_quoted:
        return None
    if word.singular in singulars:
        return _WordMatch([_find_from(singulars, word.singular, start)], 0.9)
    return _match_prefix(word, label, start) or _match_joined(word, label)


def _find_from(words: Sequence[str], word: str, start: int) -> int:
    return words.index(word, start) if word in words[start:] else words.index(word)


def _match_prefix(word: QueryWord, label: FoldedText, start: int) -> _WordMatch | None:
    forms, words, unnormalized = word.forms, label.words, label.unnormalized
    for position in chain(range(start, len(words)), range(min(start, len(words)))):
        if words[position].startswith(forms) or unnormalized[position].startswith(forms):
            return _WordMatch([position], 0.0)
    return None


def _match_joined(word: QueryWord, label: FoldedText) -> _WordMatch | None:
    """Where words stand that are one with or without a hyphen or a space: `nback`, `n-back`, `n back`.

    None of them begins like the word of the query: so that must begin like the first of them.
    """
    words = label.words
    for first in [
        index for index, label_word in enumerate(words[:-1]) for form in word.forms if form.startswith(label_word)
    ]:
        compound = words[first]
        for last in range(first + 1, min(len(words), first + _MAX_JOINED_WORDS)):
            compound += words[last]
            if compound.startswith(word.forms):
                return _WordMatch(list(range(first, last + 1)), 1.0 if compound in word.forms else 0.0)
    if not word.parts:
        return None
    last = len(word.parts) - 1
    parts = [QueryWord((part,), is_quoted=position < last) for position, part in enumerate(word.parts)]
    match = _match_words(parts, label)
    return None if match is None else _WordMatch(match.positions, match.whole_words / len(parts))


def _has_phrases(parsed_query: ParsedQuery, words: Sequence[str]) -> bool:
    return all(
        any(tuple(words[start : start + len(phrase)]) == phrase for start in range(len(words)))
        for phrase in parsed_query.phrases
    )


def _grade_scattered(name: str) -> MatchGrade:
    """All words are in name and aliases, but no one of these has them all."""
    reason = ("all words, in name and aliases together",)
    return MatchGrade(Tier.ALIAS_WORDS, _MIN_QUALITY, "name", name, (), reason, is_single_label=False)


def _find_best_label(parsed_query: ParsedQuery, labels: Sequence[FoldedLabel]) -> tuple[FoldedLabel, tuple[int, ...]]:
    """The label that has most of the words, and where it has them."""
    candidates = [(label, _find_positions(parsed_query, label.folded)) for label in labels]
    return max(candidates, key=lambda candidate: len(candidate[1]))


def _find_positions(parsed_query: ParsedQuery, label: FoldedText) -> tuple[int, ...]:
    singulars = list(map(singularize_cached, label.words))
    matches = (_match_word(word, label, singulars, 0) for word in parsed_query.significant_words)
    return tuple(position for match in matches if match is not None for position in match.positions)


def _grade_fuzzy(parsed_query: ParsedQuery, labels: Sequence[FoldedLabel]) -> MatchGrade:
    key = parsed_query.key
    for edits in range(1, _MAX_EDITS + 1):
        for label in labels:
            label_key = label.folded.key
            if edit_distance(key, label_key, edits) <= edits:
                quality = 0.6 / edits + 0.3 * (label_key[:1] == key[:1]) + 0.1 * label.is_name
                typo_reason = "a whole label but for {} letter{}", edits, "s" if edits > 1 else ""
                return MatchGrade(Tier.TYPO, quality, label.field, label.text, None, typo_reason)
    for label in labels:
        positions = _find_fuzzy_positions(parsed_query, label.folded.words)
        if positions is not None:
            is_start = positions == list(range(len(positions)))
            reason = (
                "all words but for some letters, from the beginning" if is_start else "all words but for some letters",
            )
            coverage = min(1.0, len(key) / max(1, len(label.folded.key)))
            quality = 0.4 * label.is_name + 0.4 * is_start + 0.2 * coverage
            return MatchGrade(Tier.TYPO_WORDS, quality, label.field, label.text, tuple(positions), reason)
    label, best_positions = _find_best_label(parsed_query, labels)
    reason = ("all words but for some letters, in name and aliases together",)
    return MatchGrade(Tier.TYPO_WORDS, 0.0, label.field, label.text, best_positions, reason)


def _find_fuzzy_positions(parsed_query: ParsedQuery, words: Sequence[str]) -> list[int] | None:
    positions = []
    for word in parsed_query.significant_words:
        position = next(
            (index for index, label_word in enumerate(words) if _is_fuzzy_match(word.forms[0], label_word)), None
        )
        if position is None:
            return None
        positions.append(position)
    return positions


def _is_fuzzy_match(query_word: str, word: str) -> bool:
    """Whether a word, or its beginning, is what was typed but for some letters."""
    limit = max_edits(query_word)
    ends = {len(word), *range(len(query_word) - limit, len(query_word) + limit + 1)}
    return any(edit_distance(query_word, word[:end], limit) <= limit for end in ends)


def _saturate(weight: float) -> float:
    return weight / (weight + _BM25_HALF_SCORE)


def edit_distance(a: str, b: str, limit: int) -> int:
    """How many letters must be put in, left out, changed or swapped with the next; beyond `most` it is not told."""
    if abs(len(a) - len(b)) > limit:
        return limit + 1
    previous: list[int] = []
    row = list(range(len(b) + 1))
    for i, letter in enumerate(a, 1):
        before_previous, previous, row = previous, row, [i] + [limit + 1] * len(b)
        for j in range(max(1, i - limit), min(len(b), i + limit) + 1):
            cost = letter != b[j - 1]
            row[j] = min(previous[j - 1] + cost, previous[j] + 1, row[j - 1] + 1)
            if before_previous and j > 1 and letter == b[j - 2] and a[i - 2] == b[j - 1]:
                row[j] = min(row[j], before_previous[j - 2] + 1)
        if min(row) > limit:
            return limit + 1
    return row[-1]
