"""Report references to missing records after an import."""

from collections.abc import Callable, Sequence

from lexarium.domain.identifiers import get_local_id
from lexarium.domain.record import Relation
from lexarium.services.transfer.import_report import ImportReport
from lexarium.services.vocabularies.access import ReadScope, get_read_scope, list_candidates, match_records
from lexarium.store import records, vocabularies
from lexarium.store.maintenance import integrity
from lexarium.store.position import Snapshot


def report_missing_targets(snapshot: Snapshot, report: ImportReport, is_imported: Callable[[Relation], bool]) -> None:
    """Warn of the imported relations, other than mappings, with an end that does not exist.

    An IRI that no prefix of the vocabulary shortens is that of another site. Other vocabularies may have the record,
    but no warning says what a private one has.
    """
    if not report.relations_added:
        return
    scope = ReadScope(tuple(dict.fromkeys((report.vocabulary, *get_read_scope(None).slugs))))
    dangling = integrity.iter_dangling_relations(snapshot, report.vocabulary)
    imported = [relation for relation in dangling if "://" not in relation.target and is_imported(relation)]
    for batch in records.batched(imported):
        known = _find_known(snapshot, sorted({get_local_id(relation.target) for relation in batch}), scope)
        for relation in batch:
            target = get_local_id(relation.target)
            if target not in known:
                subject = f"{get_local_id(relation.source)} {relation.relation} {target}"
                report.warnings.add("relations", "refers to a record that does not exist", subject)


def _find_known(snapshot: Snapshot, identifiers: Sequence[str], scope: ReadScope) -> set[str]:
    """Return the identifiers that mean a record of any vocabulary of a scope."""
    candidates, names = list_candidates(identifiers, scope)
    existing = records.find_existing_ids(snapshot, candidates)
    alternatives = vocabularies.find_by_alternative_ids(snapshot, names)
    # One by one, since several may have the record.
    scopes = (ReadScope((slug,)) for slug in scope.slugs)
    return {item for one in scopes for item in match_records(identifiers, existing, alternatives, one)}
