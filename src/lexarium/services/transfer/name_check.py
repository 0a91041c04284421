"""Report names after an import: of related records, and those that several records of a class have or nearly have."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence, Set
from contextlib import closing
from itertools import chain

from lexarium.domain.identifiers import get_local_id, qualify_id
from lexarium.domain.schema.collections import COLLECTIONS, Collection
from lexarium.search.analysis.folding import fold_key
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
    snapshot: Snapshot,
    report: ImportReport,
    vocabulary: str,
    imported_ids: Iterable[Sequence[str]],
    is_imported: Callable[[str], bool],
) -> None:
    """Warn of names that published records of one class share once folded, or nearly share, if the import has one.

    The ids of its records are given in batches.
    """
    first_ids: set[str] = set()
    count = 0
    for batch in imported_ids:
        count += len(batch)
        if count <= MAX_NEAR_NAMES:
            first_ids.update(batch)
    if count > MAX_NEAR_NAMES:
        first_ids.clear()
        message = f"more than {MAX_NEAR_NAMES:,}, so similar names were not checked"
        report.warnings.add(_LOCATION, message, f"{count:,} records")
    changed = {*report.created, *report.updated, *report.unchanged}
    with closing(NameStage()) as stage:
        for name in COLLECTIONS.list_names(vocabulary):
            if COLLECTIONS[name].local_name in changed:
                imported = _report_repeated(snapshot, report, COLLECTIONS[name], stage, first_ids, is_imported)
                _report_near(snapshot, report, COLLECTIONS[name], imported)


def _report_repeated(  # noqa: PLR0913, PLR0917 (an import, and what is known of its names)
    snapshot: Snapshot,
    report: ImportReport,
    collection: Collection,
    stage: NameStage,
    wanted_ids: Set[str],
    is_imported: Callable[[str], bool],
) -> list[tuple[str, str]]:
    """Warn of names that are equal once folded; return the wanted ids with their names."""
    wanted: list[tuple[str, str]] = []
    for batch in records.iter_names(snapshot, collection.name):
        stage.add_names([(fold_key(name), record_id, name) for record_id, name in batch])
        if wanted_ids:
            wanted += [row for row in batch if row[0] in wanted_ids]
    for group in stage.iter_repeated():
        if not any(is_imported(record_id) for record_id, _ in group):
            continue
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
    # Comparing each name once: many records may have the same.
    imported_by_key: defaultdict[str, list[tuple[str, str]]] = defaultdict(list)
    for record_id, name in imported:
        imported_by_key[fold_key(name)].append((record_id, name))
    near_names = NearNames((key, rows[0][1]) for key, rows in imported_by_key.items())
    # Names of records that the import has too, folded.
    shared_keys: defaultdict[str, set[str]] = defaultdict(set)
    pairs: dict[tuple[str, str], str] = {}
    for record_id, name in chain.from_iterable(records.iter_names(snapshot, collection.name)):
        for key, is_same in near_names.find(name):
            if is_same:
                shared_keys[record_id].add(key)
                continue
            for other, other_name in imported_by_key[key]:
                # Two records of the import find each other.
                pair = (min(other, record_id), max(other, record_id))
                if other != record_id and pair not in pairs:
                    ids = get_local_id(other), get_local_id(record_id)
                    pairs[pair] = f"{other_name} ({ids[0]}) and {name} ({ids[1]})"
    for (first, second), subject in pairs.items():
        if shared_keys[first].isdisjoint(shared_keys[second]):
            report.warnings.add(_LOCATION, f"two {collection.plural} have similar names", subject)
