"""Grade how a record matches a query: its tier, its quality within the tier, and the words that match."""

from collections.abc import Iterable, Iterator, Sequence
from enum import Enum, IntEnum
from functools import lru_cache
from operator import lt
from typing import NamedTuple

from lexarium.domain.text.characters import name_key
from lexarium.search.analysis.acronyms import list_acronyms
from lexarium.search.analysis.folding import FoldedText, find_words, fold
from lexarium.search.analysis.numerals import to_digits
from lexarium.search.analysis.plurals import singularize
from lexarium.search.documents import Label
from lexarium.search.query_parser import MIN_COMPOUND_PART, ParsedQuery, QueryWord, max_edits


class Tier(IntEnum):
    """The kind of match. Records of a lower tier come first, whatever their quality."""

    # The id, or a CURIE or IRI that the record is mapped to.
    ID = 0
    # The name, ignoring case.
    NAME = 1
    # The name, ignoring accents, punctuation, hyphens and spelling too.
    FOLDED = 2
    # An alias, folded.
    ALIAS = 3
    # The initials of the name or an alias.
    ACRONYM = 4
    # The beginning of the name.
    BEGINNING = 5
    # All words in the name.
    NAME_WORDS = 6
    # All words in name and aliases.
    ALIAS_WORDS = 7
    # The name or an alias with a typing mistake; tried only if no label has all words.
    TYPO = 8
    # All words in labels, definition and notes.
    DEFINITION_WORDS = 9
    # All words in name and aliases with typing mistakes; tried like TYPO.
    TYPO_WORDS = 10
    # At least half of the words; tried only if no record has all of them.
    PARTIAL = 11

    @property
    def api_name(self) -> str:
        """The name of the tier in responses."""
        return self.name.lower()


# The query is a whole id, name or alias of the record.
EXACT_TIERS = frozenset({Tier.ID, Tier.NAME, Tier.FOLDED, Tier.ALIAS})


_TIER_COUNT = len(Tier)
_MAX_EDITS = 2
# Words that may be written as one.
_MAX_JOINED_WORDS = 5
# With a quality of 0 the last of a tier would have the score of the best of the next.
_MIN_QUALITY = 0.01
# The BM25 weight that gives a quality of one half.
_BM25_HALF_SCORE = 10.0
_PARTIAL_HALF_SCORE = 50.0


class MatchSource(Enum):
    """The kind of query that found a record."""

    ID = "id"
    EXACT = "whole"  # a whole name or alias
    ACRONYM = "acronym"
    WORDS = "words"  # words of names and aliases
    DEFINITION = "text"
    FUZZY = "close"
    PARTIAL = "partial"


class TextSpan(NamedTuple):
    """A part of a text from `start` up to, but not including, `end`, in code points."""

    start: int
    end: int


class MatchGrade(NamedTuple):
    """The tier, quality and text of a match."""

    tier: Tier
    # Within the tier, from 0 to 1.
    quality: float
    field: str
    # The label that matched; the name, if no single label did.
    text: str
    # The words of the label that matched; None: all of it.
    word_positions: tuple[int, ...] | None
    # A template, and the figures to put into it.
    explanation_parts: tuple[str, *tuple[object, ...]]
    # Whether one label has all words. If not, `add_best_label` finds the one that has most.
    is_single_label: bool = True
    # The language of the text; none of an identifier, and of a definition before it is loaded.
    language: str | None = None

    @property
    def explanation(self) -> str:
        """The reason for the grade in words."""
        template, *figures = self.explanation_parts
        return template.format(*figures)

    @property
    def score(self) -> float:
        """Tier and quality as one number from 0 to 1."""
        return (_TIER_COUNT - 1 - self.tier + self.quality) / _TIER_COUNT

    @property
    def highlight(self) -> tuple[TextSpan, ...]:
        """The parts of the label that matched."""
        if self.word_positions is None:
            return (TextSpan(0, len(self.text)),)
        words = find_words(self.text)
        matched_words = (words[position] for position in sorted(set(self.word_positions)))
        return merge_spans(TextSpan(word.start, word.end) for word in matched_words)


class FoldedLabel(NamedTuple):
    """A name or alias of a record, folded."""

    text: str
    language: str
    is_name: bool
    folded: FoldedText

    @property
    def field(self) -> str:
        """The name of the field in responses."""
        return "name" if self.is_name else "alias"


class _WordMatch(NamedTuple):
    """The positions of the words of a query in a label, and how many of them are whole words.

    A singular that matches a plural counts a little less than one.
    """

    positions: list[int]
    whole_words: float


def grade_identifier(text: str) -> MatchGrade:
    """Grade a record that has the query as an identifier."""
    return MatchGrade(Tier.ID, 1.0, "id", text, None, ("the identifier itself",))


def grade_match(parsed_query: ParsedQuery, labels: Sequence[Label], weight: float, source: MatchSource) -> MatchGrade:
    """Grade a record by its labels (the name first), and by the kind of query that found it."""
    name = labels[0].text
    if source is MatchSource.PARTIAL:
        coverage = _measure_coverage(parsed_query, labels)
        weight *= 1 + coverage
        quality = weight / (weight + _PARTIAL_HALF_SCORE)
        reason = "some words, definition included; BM25 {:.2f}, {:.0%} common to query and label", weight, coverage
        return MatchGrade(Tier.PARTIAL, quality, "definition", name, (), reason, is_single_label=False)
    if source is MatchSource.DEFINITION:
        quality = weight / (weight + _BM25_HALF_SCORE)
        reasons = "all words, definition included; BM25 {:.2f}", weight
        return MatchGrade(Tier.DEFINITION_WORDS, quality, "definition", name, (), reasons, is_single_label=False)
    if source is MatchSource.ACRONYM:
        return _grade_acronym(parsed_query, labels)
    if source is MatchSource.FUZZY:
        return _grade_fuzzy(parsed_query, [*_fold_labels(labels)])
    grade = _grade_exact(parsed_query, _fold_labels(labels)) if source is MatchSource.EXACT else None
    grade = grade or _grade_words(parsed_query, _fold_labels(labels))
    if grade is not None:
        return grade
    # Name and aliases together have all words.
    explanation = ("all words, in name and aliases together",)
    language = labels[0].language
    return MatchGrade(Tier.ALIAS_WORDS, _MIN_QUALITY, "name", name, (), explanation, False, language)


def add_best_label(grade: MatchGrade, parsed_query: ParsedQuery, labels: Sequence[Label]) -> MatchGrade:
    """Return the grade with the label that has most of the words."""
    label, positions = _find_best_label(parsed_query, [*_fold_labels(labels)])
    return grade._replace(field=label.field, text=label.text, word_positions=positions, language=label.language)


def merge_spans(spans: Iterable[TextSpan]) -> tuple[TextSpan, ...]:
    """Merge sorted spans that touch."""
    merged: list[TextSpan] = []
    for span in spans:
        if merged and merged[-1].end >= span.start:
            merged[-1] = TextSpan(merged[-1].start, max(merged[-1].end, span.end))
        else:
            merged.append(span)
    return tuple(merged)


def _fold_labels(labels: Iterable[Label]) -> Iterator[FoldedLabel]:
    return map(_fold_label, labels)


@lru_cache(2_000)  # One search needs it several times.
def _fold_label(label: Label) -> FoldedLabel:
    return FoldedLabel(*label, fold(label.text))


def _grade_acronym(parsed_query: ParsedQuery, labels: Sequence[Label]) -> MatchGrade:
    """Grade a record with a label that the query abbreviates, or whose acronym begins with the query.

    The abbreviation may be in its definition too.
    """
    acronym = parsed_query.acronym
    abbreviated = (label for label in labels if _has_acronym(label, acronym))
    label = _fold_label(next(abbreviated, labels[0]))
    # Of two names the one with fewer words that have no initial.
    quality = (0.5 if label.is_name else 0.0) + 0.5 * min(1.0, len(acronym) / max(1, len(label.folded.words)))
    return _build_grade(Tier.ACRONYM, quality, label, None, ("the initials of its words",))


def _has_acronym(label: Label, beginning: str) -> bool:
    return any(acronym.startswith(beginning) for acronym in list_acronyms(label.text, label.language))


def demote_acronym(grade: MatchGrade) -> MatchGrade:
    """Return the grade of an acronym that is more likely meant as a word."""
    return grade._replace(tier=Tier.ALIAS_WORDS) if grade.tier is Tier.ACRONYM else grade


def has_written_word(grade: MatchGrade) -> bool:
    """Return whether the words that matched are written as words, not as an abbreviation in capitals."""
    texts = [grade.text[start:end] for start, end in grade.highlight]
    return any(not text.isupper() for text in texts)


def _grade_exact(parsed_query: ParsedQuery, labels: Iterable[FoldedLabel]) -> MatchGrade | None:
    key = parsed_query.folded.number_key
    label = next((label for label in labels if label.folded.number_key == key), None)
    if not key or label is None:
        return None
    if not label.is_name:
        return _build_grade(Tier.ALIAS, 1.0, label, None, ("an alias, folded",))
    if name_key(label.text.strip()) == name_key(parsed_query.text):
        return _build_grade(Tier.NAME, 1.0, label, None, ("the name, ignoring case",))
    return _build_grade(Tier.FOLDED, 1.0, label, None, ("the name, folded",))


def _build_grade(
    tier: Tier,
    quality: float,
    label: FoldedLabel,
    positions: tuple[int, ...] | None,
    reason: tuple[str, *tuple[object, ...]],
) -> MatchGrade:
    return MatchGrade(tier, quality, label.field, label.text, positions, reason, language=label.language)


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
    """Grade a label that has all words, or all but the stop words: those that have them too come first."""
    positions, count = match.positions, len(parsed_query.words)
    in_order = len(positions) == 1 or all(map(lt, positions, positions[1:]))
    is_start = in_order and _is_label_start(positions, label.folded.words, parsed_query.stop_words)
    tier = Tier.ALIAS_WORDS if not label.is_name else Tier.BEGINNING if is_start else Tier.NAME_WORDS
    coverage = min(1.0, len(parsed_query.key) / max(1, len(label.folded.key)))
    quality = (0.5 if is_start else 0.25 if in_order else 0.0) + 0.3 * match.whole_words / count + 0.2 * coverage
    quality = quality / 2 if lacks_stop_words else quality
    order = "from the beginning" if is_start else "in order" if in_order else "in another order"
    reason = "words {}, {:g} of {} whole, {:.0%} of its length", order, match.whole_words, count, coverage
    return _build_grade(tier, min(quality, 1.0), label, tuple(positions), reason)


def _is_label_start(positions: Sequence[int], words: Sequence[str], stop_words: frozenset[str]) -> bool:
    """Return whether sorted positions are at the beginning, with only stop words between them."""
    if positions[-1] < len(positions):
        return True
    skipped = set(range(positions[-1])).difference(positions)
    return 0 not in skipped and all(words[position] in stop_words for position in skipped)


def _match_words(words: Sequence[QueryWord], label: FoldedText) -> _WordMatch | None:
    """Return the position of each word, if possible after the word before; None if one is missing."""
    positions: list[int] = []
    whole_words = 0.0
    singulars = list(map(singularize, label.words))
    for word in words:
        start = positions[-1] + 1 if positions else 0
        match = _match_word(word, label, singulars, start)
        if match is None:
            return None
        positions += match.positions
        whole_words += match.whole_words
    return _WordMatch(positions, whole_words) if positions else None


def _match_word(word: QueryWord, label: FoldedText, singulars: Sequence[str], start: int) -> _WordMatch | None:
    """Return the position of a word: if possible a whole word, and from `start` on."""
    form = word.forms[0]
    words = label.words
    if form in words:
        return _WordMatch([_find_from(words, form, start)], 1.0)
    if word.is_quoted:
        return None
    if word.singular in singulars:
        return _WordMatch([_find_from(singulars, word.singular, start)], 0.9)
    digits = word.digits or form
    if digits.isdigit() and digits in (numbers := list(map(to_digits, words))):
        return _WordMatch([_find_from(numbers, digits, start)], 1.0)
    return _match_prefix(word, label, start) or _match_joined(word, label)


def _match_within(word: QueryWord, label: FoldedText) -> _WordMatch | None:
    """Return the position of a longer word that contains a word."""
    form = word.forms[0]
    if len(form) < MIN_COMPOUND_PART:
        return None
    positions = [position for position, label_word in enumerate(label.words) if form in label_word]
    return _WordMatch(positions[:1], 0.0) if positions else None


def _find_from(words: Sequence[str], word: str, start: int) -> int:
    return words.index(word, start) if word in words[start:] else words.index(word)


def _match_prefix(word: QueryWord, label: FoldedText, start: int) -> _WordMatch | None:
    forms = word.forms
    positions = [
        position
        for position, label_word in enumerate(label.words)
        if label_word.startswith(forms) or label.unnormalized[position].startswith(forms)
    ]
    if not positions:
        return None
    return _WordMatch([next((position for position in positions if position >= start), positions[0])], 0.0)


def _match_joined(word: QueryWord, label: FoldedText) -> _WordMatch | None:
    """Match words that are one word without a hyphen or space: `nback`, `n-back`, `n back`.

    None of them begins with the query word, so the query word must begin with the first of them.
    """
    words = label.words
    starts = tuple(words[:-1])
    for first, label_word in enumerate(starts) if any(form.startswith(starts) for form in word.forms) else ():
        if not any(form.startswith(label_word) for form in word.forms):
            continue
        for last in range(first + 1, min(len(words), first + _MAX_JOINED_WORDS)):
            compound = "".join(words[first : last + 1])
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


def _measure_coverage(parsed_query: ParsedQuery, labels: Sequence[Label]) -> float:
    """Return the share of the words of a label that the query has, times that of the query's that the label has.

    The largest of all labels counts. A short label is not covered by chance: the query has to be about it.
    """
    numbers = parsed_query.word_numbers
    coverages = [0.0]
    for label in labels:
        label_words = [
            singularize(word) for word in _fold_label(label).folded.words if word not in parsed_query.stop_words
        ]
        found = [
            number for word in label_words if (number := numbers.get(word, numbers.get(to_digits(word)))) is not None
        ]
        if found:
            coverages.append(len(found) / len(label_words) * len(set(found)) / len(parsed_query.significant_words))
    return max(coverages)


def _find_best_label(parsed_query: ParsedQuery, labels: Sequence[FoldedLabel]) -> tuple[FoldedLabel, tuple[int, ...]]:
    """Return the label that has most of the words, and their positions."""
    candidates = []
    for label in labels:
        singulars = list(map(singularize, label.folded.words))
        matches = [
            _match_word(word, label.folded, singulars, 0) or _match_within(word, label.folded)
            for word in parsed_query.significant_words
        ]
        candidates.append((label, tuple(position for match in matches if match for position in match.positions)))
    return max(candidates, key=lambda candidate: len(candidate[1]))


def _grade_fuzzy(parsed_query: ParsedQuery, labels: Sequence[FoldedLabel]) -> MatchGrade:
    key = parsed_query.key
    for edits in range(1, _MAX_EDITS + 1):
        for label in labels:
            label_key = label.folded.key
            if edit_distance(key, label_key, edits) <= edits:
                quality = 0.6 / edits + 0.3 * (label_key[:1] == key[:1]) + 0.1 * label.is_name
                typo_reason = "a whole label but for {} letter{}", edits, "s" if edits > 1 else ""
                return _build_grade(Tier.TYPO, quality, label, None, typo_reason)
    for label in labels:
        positions = _find_fuzzy_positions(parsed_query, label.folded.words)
        if positions is not None:
            is_start = positions == list(range(len(positions)))
            reason = (f"all words but for some letters{', from the beginning' if is_start else ''}",)
            coverage = min(1.0, len(key) / max(1, len(label.folded.key)))
            quality = 0.4 * label.is_name + 0.4 * is_start + 0.2 * coverage
            return _build_grade(Tier.TYPO_WORDS, quality, label, tuple(positions), reason)
    label, best_positions = _find_best_label(parsed_query, labels)
    reason = ("all words but for some letters, in name and aliases together",)
    return _build_grade(Tier.TYPO_WORDS, 0.0, label, best_positions, reason)


def _find_fuzzy_positions(parsed_query: ParsedQuery, words: Sequence[str]) -> list[int] | None:
    positions = []
    for word in parsed_query.significant_words:
        matches = (index for index, label_word in enumerate(words) if _is_fuzzy_match(word.forms[0], label_word))
        position = next(matches, None)
        if position is None:
            return None
        positions.append(position)
    return positions


def _is_fuzzy_match(query_word: str, word: str) -> bool:
    """Return whether a word, or its beginning, equals the query word but for some letters."""
    limit = max_edits(query_word)
    ends = {len(word), *range(len(query_word) - limit, len(query_word) + limit + 1)}
    return any(edit_distance(query_word, word[:end], limit) <= limit for end in ends)


def edit_distance(a: str, b: str, limit: int) -> int:
    """Return the Damerau-Levenshtein distance, or `limit` + 1 if it is larger than the limit."""
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
