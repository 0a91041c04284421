"""Report references to missing records after an import."""

from collections.abc import Callable

from lexarium.domain.identifiers import get_local_id
from lexarium.domain.record import Relation
from lexarium.services.transfer.import_report import ImportReport
from lexarium.store.maintenance import integrity
from lexarium.store.position import Snapshot


def report_missing_targets(snapshot: Snapshot, report: ImportReport, is_imported: Callable[[Relation], bool]) -> None:
    """Warn of the imported relations, other than mappings, with an end that does not exist.

    An IRI that no prefix of the vocabulary shortens is that of another site.
    """
    if not report.relations_added:
        return
    for relation in integrity.iter_dangling_relations(snapshot, report.vocabulary):
        if "://" not in relation.target and is_imported(relation):
            subject = f"{get_local_id(relation.source)} {relation.relation} {get_local_id(relation.target)}"
            report.warnings.add("relations", "refers to a record that does not exist", subject)
