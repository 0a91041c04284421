"""Report names after an import: of related records, and those that several records of a class have or nearly have."""

from collections.abc import Iterable, Sequence, Set
from contextlib import closing

from lexarium.domain.identifiers import get_local_id, qualify_id
from lexarium.domain.schema.collections import COLLECTIONS, Collection
from lexarium.search.analysis.folding import fold
from lexarium.search.near_names import NearNames
from lexarium.services.transfer.import_report import ImportReport
from lexarium.store import records
from lexarium.store.imports.name_stage import NameStage
from lexarium.store.position import Snapshot

# Records of an import whose names are compared with those that are nearly the same.
MAX_NEAR_NAMES = 10_000
# Ids that a warning lists.
_MAX_LISTED = 10
_LOCATION = "names"


def report_relation_names(snapshot: Snapshot, report: ImportReport) -> None:
    """Add the names of the records whose relations a report lists."""
    listed = (*report.added_relations, *report.removed_relations)
    ids = {qualify_id(report.vocabulary, end) for item in listed for end in (item.source, item.target)}
    names = records.find_names(snapshot, sorted(ids))
    report.names = {get_local_id(record_id): name for record_id, name in names.items()}


def report_repeated_names(
    snapshot: Snapshot, report: ImportReport, vocabulary: str, imported_ids: Iterable[Sequence[str]]
) -> None:
    """Warn of names that published records of one class share once folded, or nearly share, if the import has one.

    The ids of its records are given in batches.
    """
    first_ids: set[str] = set()
    count = 0
    with closing(NameStage()) as stage:
        for batch in imported_ids:
            stage.add_imported(batch)
            count += len(batch)
            if count <= MAX_NEAR_NAMES:
                first_ids.update(batch)
        if count > MAX_NEAR_NAMES:
            first_ids.clear()
            message = f"more than {MAX_NEAR_NAMES:,}, so similar names were not checked"
            report.warnings.add(_LOCATION, message, f"{count:,} records")
        changed = {*report.created, *report.updated, *report.unchanged}
        for name in COLLECTIONS.list_names(vocabulary):
            if COLLECTIONS[name].local_name in changed:
                imported = _report_repeated(snapshot, report, COLLECTIONS[name], stage, first_ids)
                _report_near(snapshot, report, COLLECTIONS[name], imported)


def _report_repeated(
    snapshot: Snapshot, report: ImportReport, collection: Collection, stage: NameStage, wanted_ids: Set[str]
) -> list[tuple[str, str]]:
    """Warn of names that are equal once folded; return the wanted ids with their names."""
    wanted: list[tuple[str, str]] = []
    for batch in records.iter_names(snapshot, collection.name):
        stage.add_names((fold(name).key, record_id, name) for record_id, name in batch)
        wanted += [row for row in batch if row[0] in wanted_ids]
    for group in stage.iter_repeated():
        ids = ", ".join(get_local_id(record_id) for record_id, _ in group[:_MAX_LISTED])
        more = f" and {len(group) - _MAX_LISTED:,} more" if len(group) > _MAX_LISTED else ""
        report.warnings.add(_LOCATION, f"several {collection.plural} have this name", f"{group[0][1]} ({ids}{more})")
    stage.clear_names()
    return wanted


def _report_near(
    snapshot: Snapshot, report: ImportReport, collection: Collection, imported: Sequence[tuple[str, str]]
) -> None:
    """Warn once of each two records with similar names, unless they share one."""
    if not imported:
        return
    near_names = NearNames((str(number), name) for number, (_, name) in enumerate(imported))
    pairs: dict[tuple[str, ...], str | None] = {}
    for batch in records.iter_names(snapshot, collection.name):
        for record_id, name in batch:
            for number, is_same in near_names.find(name):
                other, other_name = imported[int(number)]
                # Two records of the import find each other.
                pair = tuple(sorted((other, record_id)))
                subject = f"{other_name} ({get_local_id(other)}) and {name} ({get_local_id(record_id)})"
                pairs[pair] = None if is_same or other == record_id else pairs.get(pair, subject)
    for subject in filter(None, pairs.values()):
        report.warnings.add(_LOCATION, f"two {collection.plural} have similar names", subject)
