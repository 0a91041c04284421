"""Report names that several records of a class have, or nearly have, after an import."""

from collections.abc import Iterable, Sequence
from contextlib import closing

from lexarium.domain.identifiers import get_local_id
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


def report_repeated_names(
    snapshot: Snapshot, report: ImportReport, vocabulary: str, imported_ids: Iterable[Sequence[str]]
) -> None:
    """Warn of names that published records of one class share once folded, or nearly share, if the import has one.

    The ids of its records are given in batches.
    """
    first_ids: list[str] = []
    count = 0
    with closing(NameStage()) as stage:
        for batch in imported_ids:
            stage.add_imported(batch)
            count += len(batch)
            if count <= MAX_NEAR_NAMES:
                first_ids += batch
        names: dict[str, tuple[str, str]] = {}
        if count <= MAX_NEAR_NAMES:
            names = records.find_collections_and_names(snapshot, first_ids)
        else:
            message = f"more than {MAX_NEAR_NAMES:,}, so similar names were not checked"
            report.warnings.add(_LOCATION, message, f"{count:,} records")
        changed = {*report.created, *report.updated, *report.unchanged}
        for name in COLLECTIONS.list_names(vocabulary):
            if COLLECTIONS[name].local_name in changed:
                imported = {item: text for item, (collection, text) in names.items() if collection == name}
                _report_collection(snapshot, report, COLLECTIONS[name], imported, stage)


def _report_collection(
    snapshot: Snapshot, report: ImportReport, collection: Collection, imported: dict[str, str], stage: NameStage
) -> None:
    near_names = NearNames(imported.items())
    near: list[tuple[str, str, str]] = []
    for batch in records.iter_names(snapshot, collection.name):
        stage.add_names((fold(name).key, record_id, name) for record_id, name in batch)
        for record_id, name in batch if imported else ():
            near += [
                (other, record_id, name)
                for other, is_same in near_names.find(name)
                # Two records of the import find each other.
                if not is_same and (record_id not in imported or other < record_id)
            ]
    for group in stage.iter_repeated():
        ids = ", ".join(get_local_id(record_id) for record_id, _ in group[:_MAX_LISTED])
        more = f" and {len(group) - _MAX_LISTED:,} more" if len(group) > _MAX_LISTED else ""
        report.warnings.add(_LOCATION, f"several {collection.plural} have this name", f"{group[0][1]} ({ids}{more})")
    stage.clear_names()
    for other, record_id, name in near:
        subject = f"{imported[other]} ({get_local_id(other)}) and {name} ({get_local_id(record_id)})"
        report.warnings.add(_LOCATION, f"two {collection.plural} have similar names", subject)
