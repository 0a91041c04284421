"""Numbers of records by collection, as pages list them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lexarium.domain.record import RecordState
from lexarium.domain.schema.collections import COLLECTIONS
from lexarium.domain.vocabulary import Vocabulary


@dataclass(frozen=True)
class VocabularySummary:
    """A vocabulary and the numbers of its published records."""

    vocabulary: Vocabulary
    main_counts: Mapping[str, int]
    auxiliary_counts: Mapping[str, int]


def split_counts(counts: Mapping[str, int], collections: Sequence[str]) -> dict[str, dict[str, int]]:
    """Return the counts of main and of auxiliary collections among these.

    Empty ones are left out, except main ones of v-alpha, and of vocabularies without any.
    """
    valpha_slugs = {COLLECTIONS[name].vocabulary for name in collections if COLLECTIONS[name].in_valpha}
    shown = {}
    for name in collections:
        collection = COLLECTIONS[name]
        is_expected = collection.in_valpha or collection.vocabulary not in valpha_slugs
        if counts.get(name) or (is_expected and not collection.is_auxiliary):
            shown[name] = counts.get(name, 0)
    return {
        "main_counts": {name: count for name, count in shown.items() if not COLLECTIONS[name].is_auxiliary},
        "auxiliary_counts": {name: count for name, count in shown.items() if COLLECTIONS[name].is_auxiliary},
    }


def summarize(counts: Mapping[tuple[str, str], int], vocabularies: Sequence[Vocabulary]) -> list[VocabularySummary]:
    """Return the vocabularies with the numbers of their published records; `counts` are by collection and state."""
    published = {name: counts.get((name, RecordState.PUBLISHED), 0) for name in COLLECTIONS}
    return [
        VocabularySummary(vocabulary, **split_counts(published, COLLECTIONS.list_names(vocabulary.slug)))
        for vocabulary in vocabularies
    ]
