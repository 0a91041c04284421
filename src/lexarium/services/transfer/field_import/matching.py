"""Match foreign ids of an import with records, or mint new ids."""

from collections.abc import Sequence

from lexarium.domain.identifiers import mint_id
from lexarium.domain.record import Relation
from lexarium.domain.schema.collections import COLLECTIONS, EXACT_MATCH, RELATION_TYPES
from lexarium.domain.text.nouns import add_article
from lexarium.formats.foreign_ids import parse_name_reference
from lexarium.services.transfer.import_report import ImportReport, WarningList
from lexarium.store import records, relations
from lexarium.store.imports import base_values
from lexarium.store.imports.stage import ForeignId, ImportStage
from lexarium.store.position import Snapshot


def may_be_foreign_id(text: str) -> bool:
    """Return whether a text may be an IRI, a CURIE or a name reference, and not an id of the catalogue."""
    return ":" in text or parse_name_reference(text) is not None


def match_foreign_ids(snapshot: Snapshot, stage: ImportStage, report: ImportReport) -> None:
    """Replace foreign ids in a stage by the ids of matching records, or by new ids.

    Warn of records that match the same record as another, and of relations without a known target.
    """
    warnings = report.warnings
    for batch in stage.iter_foreign_ids():
        stage.set_record_ids(_match_batch(snapshot, batch, warnings))
    duplicates = (
        foreign_id
        for record_id, foreign_ids in stage.iter_shared_ids()
        for foreign_id in _list_duplicate_ids(snapshot, record_id, foreign_ids)
    )
    for foreign_id, record_id, location in stage.exclude(duplicates):
        match = f"{foreign_id} is {record_id} in the catalogue"
        warnings.add(location, f"{match}, and so is another of this import; this one is skipped", is_loss=True)
        collection, _ = parse_name_reference(foreign_id) or ("", "")
        report.add_record("refused", record_id, collection, _format_foreign_id(foreign_id))
    for relation, location, is_manual in stage.resolve_foreign_ids(EXACT_MATCH.name):
        message = f"{_format_relation(relation)} is skipped: one of the two is in neither the import nor the catalogue"
        if is_manual:
            message += "; existing relations of this kind are kept"
        warnings.add(location, message, is_loss=True)


def _match_batch(snapshot: Snapshot, batch: Sequence[ForeignId], warnings: WarningList) -> dict[str, str]:
    foreign_ids = [item.foreign_id for item in batch if item.name_key is None]
    record_ids = {foreign_id: foreign_id for foreign_id in records.find_existing_ids(snapshot, foreign_ids)}
    collections = {item.foreign_id: item.collection for item in batch}
    for foreign_id, matches in relations.find_exact_matches(snapshot, foreign_ids).items():
        expected_collection = collections[foreign_id] or matches[0].collection
        matching_ids = [match.id for match in matches if match.collection == expected_collection]
        if matching_ids:
            record_ids.setdefault(foreign_id, matching_ids[0])
        if len(matching_ids) > 1:
            message = f"is an exact match of {', '.join(matching_ids)}; {record_ids[foreign_id]} is used"
            warnings.add(foreign_id, message)
        for match in matches:
            if match.collection != expected_collection:
                mismatch = f"which is {add_article(match.collection)}, not {add_article(expected_collection)}"
                warnings.add(foreign_id, f"is an exact match of {match.id}, {mismatch}")
    record_ids |= _match_names(snapshot, batch)
    for item in batch:
        if item.collection is not None and item.foreign_id not in record_ids:
            record_ids[item.foreign_id] = mint_id(COLLECTIONS[item.collection].id_prefixes[0])
    return record_ids


def _match_names(snapshot: Snapshot, batch: Sequence[ForeignId]) -> dict[str, str]:
    foreign_ids: dict[str, dict[str, str]] = {}
    for item in batch:
        if reference := parse_name_reference(item.foreign_id):
            collection, key = reference
            foreign_ids.setdefault(collection, {})[key] = item.foreign_id
    return {
        by_key[key]: record_id
        for collection, by_key in foreign_ids.items()
        for key, record_id in records.find_ids_by_name_key(snapshot, collection, list(by_key)).items()
    }


def _list_duplicate_ids(snapshot: Snapshot, record_id: str, foreign_ids: Sequence[str]) -> list[str]:
    """Return all but one of the foreign ids that match a record.

    The one that stays is preferably one that an import gave the record, and not a merge or a curator.
    """
    change = base_values.find_last_imports(snapshot, [record_id]).get(record_id)
    imported_targets = base_values.find_unapplied(snapshot, [record_id]).get(record_id, {}).get("relations")
    if imported_targets is None:
        imported_targets = {} if change is None else change.to_record().relation_targets
    imported_ids = imported_targets.get(EXACT_MATCH.name, ())
    kept_id = next((foreign_id for foreign_id in foreign_ids if foreign_id in imported_ids), foreign_ids[0])
    return [foreign_id for foreign_id in foreign_ids if foreign_id != kept_id]


def _format_relation(relation: Relation) -> str:
    source, target = _format_foreign_id(relation.source), _format_foreign_id(relation.target)
    return f"{source} {RELATION_TYPES[relation.relation].label} {target}"


def _format_foreign_id(foreign_id: str) -> str:
    label = parse_name_reference(foreign_id)
    return foreign_id if label is None else repr(label[1])
