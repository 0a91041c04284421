"""Which records are meant that files call by names of their own: the same ones at every import."""

from collections.abc import Sequence

from lexarium.domain.identifiers import mint_id
from lexarium.domain.record import Relation
from lexarium.domain.schema.collections import COLLECTIONS
from lexarium.domain.schema.relation_types import EXACT_MATCH, RELATION_TYPES
from lexarium.formats.foreign_ids import parse_name_reference
from lexarium.services.transfer.import_report import ImportReport, ProblemList
from lexarium.store import records, relations
from lexarium.store.imports import base_values
from lexarium.store.imports.stage import ForeignId, ImportStage
from lexarium.store.position import Snapshot
from lexarium.store.records import BATCH_SIZE


def may_be_foreign_id(text: str) -> bool:
    """Whether a text that names a record may be no id of ours, but an IRI or a CURIE, or stands for its name."""
    return ":" in text or parse_name_reference(text) is not None


def match_foreign_ids(snapshot: Snapshot, stage: ImportStage, report: ImportReport) -> None:
    """Put ids in place of names in a stage: of the records that are known by them, else new ones.

    Records that have to be left out, and edges to what nobody knows, are told of.
    """
    warnings = report.warnings
    for batch in stage.iter_foreign_ids(BATCH_SIZE):
        stage.set_record_ids(_match_batch(snapshot, stage, batch, warnings))
    duplicates = (
        foreign_id
        for record_id, foreign_ids in stage.iter_shared_ids()
        for foreign_id in _list_duplicate_ids(snapshot, record_id, foreign_ids)
    )
    for foreign_id, record_id, location in stage.exclude(duplicates):
        message = (
            f"{foreign_id} is {record_id} in the catalogue, and so is another of this import; this one is left out"
        )
        warnings.add(location, message)
        report.skipped += 1
        report.add_record(
            "refused", record_id, (parse_name_reference(foreign_id) or ("", ""))[0], _format_foreign_id(foreign_id)
        )
    for relation, location, is_manual in stage.resolve_foreign_ids(EXACT_MATCH.name):
        message = f"{_format_relation(relation)} is left out: one of the two is in neither the import nor the catalogue"
        warnings.add(location, f"{message}; those of this kind that are there stay" if is_manual else message)


def _match_batch(
    snapshot: Snapshot, stage: ImportStage, batch: Sequence[ForeignId], warnings: ProblemList
) -> dict[str, str]:
    foreign_ids = [item.foreign_id for item in batch if item.name_key is None]
    record_ids = {foreign_id: foreign_id for foreign_id in records.find_existing_ids(snapshot, foreign_ids)}
    collections = {item.foreign_id: item.collection for item in batch}
    for foreign_id, matches in relations.find_exact_matches(snapshot, foreign_ids).items():
        expected_collection = collections[foreign_id] or matches[0].collection
        matching_ids = [match.id for match in matches if match.collection == expected_collection]
        if matching_ids:
            record_ids.setdefault(foreign_id, matching_ids[0])
        if len(matching_ids) > 1:
            warnings.add(
                foreign_id, f"is an exact match of {', '.join(matching_ids)}; {record_ids[foreign_id]} is taken for it"
            )
        for match in matches:
            if match.collection != expected_collection:
                warnings.add(
                    foreign_id,
                    f"is an exact match of {match.id}, which is a {match.collection}, not a {expected_collection}",
                )
    for collection in COLLECTIONS:
        labels = {
            key: item.foreign_id
            for item in batch
            for kind, key in [parse_name_reference(item.foreign_id) or ("", "")]
            if kind == collection
        }
        ids_by_label = records.find_ids_by_name_key(snapshot, collection, list(labels)) if labels else {}
        record_ids |= {labels[label]: record_id for label, record_id in ids_by_label.items()}
    for item in batch:
        if item.collection is not None and item.foreign_id not in record_ids:
            record_ids[item.foreign_id] = mint_id(COLLECTIONS[item.collection].id_prefixes[0])
    return record_ids


def _list_duplicate_ids(snapshot: Snapshot, record_id: str, foreign_ids: Sequence[str]) -> list[str]:
    """Of names that are all one record: those that it did not have from an import, but from a merge or a curator.

    All but the first where that does not tell them apart.
    """
    change = base_values.find_last_imports(snapshot, [record_id]).get(record_id)
    imported_targets = base_values.find_unapplied(snapshot, [record_id]).get(record_id, {}).get("relations")
    if imported_targets is None:
        imported_targets = {} if change is None else change.to_record().relation_targets
    imported_ids = [
        foreign_id for foreign_id in foreign_ids if foreign_id in imported_targets.get(EXACT_MATCH.name, ())
    ] or list(foreign_ids)
    return [foreign_id for foreign_id in foreign_ids if foreign_id != imported_ids[0]]


def _format_relation(relation: Relation) -> str:
    return (
        f"{_format_foreign_id(relation.source)} {RELATION_TYPES[relation.relation].label}"
        f" {_format_foreign_id(relation.target)}"
    )


def _format_foreign_id(foreign_id: str) -> str:
    label = parse_name_reference(foreign_id)
    return foreign_id if label is None else repr(label[1])
