"""Taking in the history of records: what the catalogue lacks of it; of those that went another way here, its end."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import orjson

from lexarium.domain.change import Action
from lexarium.domain.defaults import fill_defaults
from lexarium.domain.identifiers import SYSTEM_USER_ID
from lexarium.domain.progress import ProgressCallback
from lexarium.domain.record import Record, RecordState, Relation, parse_record
from lexarium.domain.schema.collections import COLLECTIONS
from lexarium.formats.parsed import ParsedRecord, ParsedVersion
from lexarium.services.curation.merges import CYCLE_REASON, find_invalid_merges, format_invalid_merge
from lexarium.services.transfer.import_report import ImportReport, ProblemList
from lexarium.store import change_log, records, relations
from lexarium.store.imports import base_values
from lexarium.store.imports.history_stage import MissingVersion, StagedVersion
from lexarium.store.imports.stage import ImportStage
from lexarium.store.records import BATCH_SIZE
from lexarium.store.transaction import Transaction


def stage_version(stage: ImportStage, source: int, parsed: ParsedRecord, version: ParsedVersion) -> None:
    """Put a version where it waits."""
    collection = COLLECTIONS[parsed.collection]
    record = Record(
        collection=collection,
        fields=fill_defaults(collection, parsed.fields, version.at),
        relations=frozenset(parsed.relations),
        state=parsed.state or RecordState.PUBLISHED,
        replaced_by=parsed.replaced_by,
        stored_aliases=parsed.aliases,
        sources=parsed.sources or (),
    )
    stage.history.add(
        StagedVersion(
            id=record.id,
            number=version.number,
            collection=collection.name,
            source=source,
            line=parsed.line,
            write=version.write_id,
            at=version.at,
            actor=version.actor,
            action=version.action,
            document=record.to_document(version.origin),
        )
    )


def validate_versions(stage: ImportStage, problems: ProblemList) -> None:
    """Note every version that does not go with those before it."""
    for version in stage.history.finish() if stage.history else ():
        if version.version == version.expected_version:
            message = f"{version.id} is of another collection here than before"
        else:
            message = (
                f"version {version.version} of {version.id} comes where version {version.expected_version} was expected"
            )
        problems.add(stage.format_location(version.source, version.line), message)


def apply_history(
    transaction: Transaction, stage: ImportStage, report: ImportReport, progress: ProgressCallback
) -> None:
    """Write every version that the catalogue lacks, as they were made elsewhere, in their order.

    So it is of a record that is not there, and of one that is now what it was once in the file. What the last version
    of any other says waits from then on like any record.
    """
    if not stage.history:
        return
    for record_ids in stage.history.iter_ids(BATCH_SIZE):
        stage.history.mark_missing(_find_missing_versions(transaction, stage, record_ids))
    invalid_merges = _find_invalid_merges(transaction, stage, report)
    done, total = 0, stage.history.count_missing()
    write_key = (-1, -1)
    for batch in stage.history.iter_missing(BATCH_SIZE):
        imported_versions = []
        for item in batch:
            starts_write, write_key = (
                write_key != (item.version.source, item.version.write),
                (item.version.source, item.version.write),
            )
            imported_version = _to_imported_version(item, starts_write=starts_write)
            imported_versions.append(
                _to_retired(imported_version, invalid_merges[imported_version.record.id])
                if imported_version.is_current and imported_version.record.id in invalid_merges
                else imported_version
            )
        change_log.insert_history(transaction, imported_versions)
        _write_relations(transaction, stage, report, [item for item in imported_versions if item.is_current])
        done += len(batch)
        progress("writing", done, total)
    # What the import itself writes is a write of its own.
    transaction.write_id = transaction.revision + 1
    for version in stage.history.iter_latest():
        _stage_latest(stage, version)


def _find_missing_versions(transaction: Transaction, stage: ImportStage, record_ids: Sequence[str]) -> dict[str, int]:
    """Those of these records of which the catalogue lacks versions, and the last that it has: 0, where it has none."""
    latest = change_log.find_latest(transaction.connection, record_ids)
    missing = {record_id: 0 for record_id in record_ids if record_id not in latest}
    return missing | {
        record_id: change.version
        for record_id, change in latest.items()
        if stage.history.continues_from(record_id, change.version, change.document)
    }


def _find_invalid_merges(transaction: Transaction, stage: ImportStage, report: ImportReport) -> dict[str, str]:
    """Those records that are told to have been merged into what they cannot be, and why: each is only retired."""
    merges = list(stage.history.iter_merges())
    target_ids = sorted({merge.survivor_id for merge in merges})
    target_collections = records.find_collections(transaction.connection, target_ids) | dict(
        stage.find_collections(target_ids)
    )
    target_collections |= dict(stage.history.find_collections(target_ids))
    targets = {merge.id: merge.survivor_id for merge in merges}
    source_collections = {merge.id: merge.collection for merge in merges}
    reasons = find_invalid_merges(transaction.connection, targets, source_collections, target_collections)
    for merge in merges:
        if merge.id in reasons:
            report.warnings.add(
                stage.format_location(merge.source, merge.line), format_invalid_merge(merge.id, reasons[merge.id])
            )
    return reasons


def _to_retired(imported_version: change_log.ImportedVersion, reason: str) -> change_log.ImportedVersion:
    """A version that is told as merged, and cannot be."""
    replacement = None if reason == CYCLE_REASON else imported_version.record.replaced_by
    record = replace(imported_version.record, state=RecordState.RETIRED, replaced_by=replacement)
    return replace(imported_version, record=record, document=record.to_document(), action=Action.RETIRE)


def _to_imported_version(missing: MissingVersion, *, starts_write: bool) -> change_log.ImportedVersion:
    version = missing.version
    return change_log.ImportedVersion(
        record=parse_record(version.collection, version.document),
        version=version.number,
        action=Action(version.action),
        at=version.at,
        actor=version.actor,
        document=version.document,
        starts_write=starts_write,
        is_current=missing.is_current,
        is_new_record=missing.is_new_record,
    )


def _write_relations(
    transaction: Transaction,
    stage: ImportStage,
    report: ImportReport,
    imported_versions: Sequence[change_log.ImportedVersion],
) -> None:
    """Write the relations of records that are there now, and count them."""
    # Others may have told of some before the record came.
    existing_relations = relations.find_by_sources(
        transaction.connection, [imported_version.record.id for imported_version in imported_versions]
    )
    added: list[Relation] = []
    removed: list[Relation] = []
    for imported_version in imported_versions:
        is_retired = imported_version.action == Action.RETIRE
        kind = "created" if imported_version.is_new_record else "retired" if is_retired else "updated"
        collection = imported_version.record.collection.name
        {"created": report.created, "retired": report.retired, "updated": report.updated}[kind][collection] += 1
        report.add_record(kind, imported_version.record.id, collection, imported_version.record.fields["name"])
        existing = existing_relations.get(imported_version.record.id, frozenset())
        added += imported_version.record.relations - existing
        if imported_version.is_new_record:
            stage.add_relations(imported_version.record.id, existing - imported_version.record.relations, ())
        else:
            removed += existing - imported_version.record.relations
    change_log.update_relations(transaction, added, removed)
    report.count_relations(added, removed)
    edited = {
        imported_version.record.id: {base_values.IMPORTED_VERSION_KEY: imported_version.version}
        if imported_version.actor != SYSTEM_USER_ID
        else {}
        for imported_version in imported_versions
        if imported_version.actor != SYSTEM_USER_ID or not imported_version.is_new_record
    }
    base_values.save_unapplied(transaction.connection, edited)


def _stage_latest(stage: ImportStage, version: StagedVersion) -> None:
    record = parse_record(version.collection, version.document)
    extras: dict[str, Any] = {"sources": record.sources, "state": record.state, "replaced_by": record.replaced_by}
    if record.stored_aliases is not None:
        extras["aliases"] = [alias.model_dump() for alias in record.stored_aliases]
    fields = orjson.dumps(record.fields)
    stage.add_record(record.id, version.collection, version.source, version.line, fields, orjson.dumps(extras))
    stage.add_relations(record.id, record.relations, [(name, "source") for name in record.collection.relation_types])
