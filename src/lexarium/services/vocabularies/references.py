"""Find references to missing records."""

from collections.abc import Iterable

from lexarium.services.vocabularies.access import ReadScope, list_candidates, match_records
from lexarium.store import records, vocabularies
from lexarium.store.position import Snapshot


def find_missing(snapshot: Snapshot, identifiers: Iterable[str], scope: ReadScope) -> set[str]:
    """Return the identifiers that mean no record of a scope, without IRIs of other sites."""
    own_starts = tuple(vocabulary.iri_start for vocabulary in scope.vocabularies)
    searched = sorted({item for item in identifiers if "://" not in item or item.startswith(own_starts)})
    candidates, names = list_candidates(searched, scope)
    existing = records.find_existing_ids(snapshot, candidates)
    alternatives = vocabularies.find_by_alternative_ids(snapshot, names)
    missing = set(searched)
    for slug in scope.slugs:  # One by one, since several may have the record.
        missing -= match_records(searched, existing, alternatives, ReadScope((slug,))).keys()
    return missing
