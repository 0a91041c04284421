"""Numbers of records by collection, as pages list them."""

from collections.abc import Mapping

from lexarium.domain.schema.collections import COLLECTIONS


def split_counts(counts: Mapping[str, int]) -> dict[str, dict[str, int]]:
    """Return the counts of main and of auxiliary collections. Empty ones are left out, except those of v-alpha."""
    shown = {
        name: counts.get(name, 0)
        for name, collection in COLLECTIONS.items()
        if counts.get(name) or (collection.in_valpha and not collection.is_auxiliary)
    }
    return {
        "main_counts": {name: count for name, count in shown.items() if not COLLECTIONS[name].is_auxiliary},
        "auxiliary_counts": {name: count for name, count in shown.items() if COLLECTIONS[name].is_auxiliary},
    }
