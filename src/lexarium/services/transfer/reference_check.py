"""Report references to missing records after an import."""

from collections.abc import Callable

from lexarium.domain.identifiers import get_local_id
from lexarium.domain.record import Relation
from lexarium.services.transfer.import_report import ImportReport
from lexarium.services.vocabularies.access import ReadScope, get_read_scope
from lexarium.services.vocabularies.references import find_missing
from lexarium.store import records
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
    for batch in records.batched([relation for relation in dangling if is_imported(relation)]):
        missing = find_missing(snapshot, (get_local_id(relation.target) for relation in batch), scope)
        for relation in batch:
            target = get_local_id(relation.target)
            if target in missing:
                subject = f"{get_local_id(relation.source)} {relation.relation} {target}"
                report.warnings.add("relations", "refers to a record that does not exist", subject)
