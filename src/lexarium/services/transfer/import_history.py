"""Stage, validate and apply imported record histories."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import orjson

from lexarium.domain.change import Action, Change
from lexarium.domain.editing.defaults import assign_defaults
from lexarium.domain.editing.merge import resolve_merge_chains
from lexarium.domain.identifiers import SYSTEM_USER_ID
from lexarium.domain.progress import ProgressCallback
from lexarium.domain.record import RecordState, Relation, build_record, parse_record
from lexarium.domain.schema.collections import COLLECTIONS
from lexarium.domain.statement import pack_statements
from lexarium.formats.parsed import ParsedRecord, ParsedVersion
from lexarium.services.records.lookup import load_merge_chains
from lexarium.services.transfer.import_report import AffectedKind, ImportReport, ProblemList
from lexarium.store import change_log, records, relations
from lexarium.store.change_log import ImportedVersion
from lexarium.store.imports import base_values
from lexarium.store.imports.history_stage import MissingVersion, StagedMerge, StagedVersion
from lexarium.store.imports.stage import ImportStage
from lexarium.store.position import Snapshot
from lexarium.store.transaction import Transaction
from lexarium.store.vocabularies import replace_derived_rows

CYCLE_REASON = "comes back to itself"


def stage_version(stage: ImportStage, source: int, parsed: ParsedRecord, version: ParsedVersion) -> None:
    """Add one version of a record to the stage."""
    collection = COLLECTIONS[parsed.collection]
    record = parsed.record or build_record(
        collection, parsed.fields, parsed.relations, parsed.aliases, parsed.sources or ()
    )
    record = replace(
        assign_defaults(record, version.at), state=parsed.state or RecordState.PUBLISHED, replaced_by=parsed.replaced_by
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
    """Report versions that are out of sequence or change the collection of their record."""
    for item in stage.history.finish() if stage.history else ():
        if item.version == item.expected_version:
            message = f"{item.id} is of another collection here than before"
        else:
            message = f"version {item.version} of {item.id} comes where version {item.expected_version} was expected"
        problems.add(stage.format_location(item.source, item.line), message)


def report_invalid_merges(
    snapshot: Snapshot, stage: ImportStage, report: ImportReport, merges: Sequence[StagedMerge]
) -> dict[str, str]:
    """Warn of merges that are impossible; return their reasons by record id.

    Records that are merged here already are skipped.
    """
    survivors = {merge.id: merge.survivor_id for merge in merges}
    survivor_ids = sorted(set(survivors.values()))
    collections = records.find_collections(snapshot, survivor_ids)
    collections |= {**dict(stage.find_collections(survivor_ids)), **dict(stage.history.find_collections(survivor_ids))}
    existing_merges = load_merge_chains(snapshot, {*survivors, *survivor_ids})
    final_survivors = resolve_merge_chains({**survivors, **existing_merges})
    reasons: dict[str, str] = {}
    for merge in merges:
        if merge.id in existing_merges:
            continue
        if merge.id not in final_survivors:
            reasons[merge.id] = CYCLE_REASON
        elif collections.get(merge.survivor_id) != merge.collection:
            reasons[merge.id] = f"is no {merge.collection} of the import or the catalogue"
        if merge.id in reasons:
            message = f"{merge.id} is told as merged, but what it is merged into {reasons[merge.id]}; it is retired"
            report.warnings.add(stage.format_location(merge.source, merge.line), message)
    return reasons


def apply_history(
    transaction: Transaction, stage: ImportStage, report: ImportReport, progress: ProgressCallback
) -> None:
    """Write the versions that continue the history of a record, or make up a new one, in their order.

    The last version of any other record is staged like a record without history.
    """
    if not stage.history:
        return
    for record_ids in stage.history.iter_ids():
        stage.history.mark_missing(_find_last_versions(transaction, stage, record_ids))
    merges = list(stage.history.iter_merges())
    invalid_merges = report_invalid_merges(transaction.flush(), stage, report, merges)
    done, total = 0, stage.history.count_missing()
    previous_write: tuple[int, int] | None = None
    for batch in stage.history.iter_missing():
        versions = []
        for item in batch:
            write = item.version.source, item.version.write
            version = _to_imported_version(item, starts_write=write != previous_write)
            if version.is_current and version.record.id in invalid_merges:
                version = _to_retired(version, invalid_merges[version.record.id])
            versions.append(version)
            previous_write = write
        change_log.insert_history(transaction, versions)
        _write_current(transaction, stage, report, [version for version in versions if version.is_current])
        done += len(batch)
        progress("writing", done, total)
    # The import proper is a write of its own.
    transaction.write_id = transaction.revision + 1
    for latest in stage.history.iter_latest():
        _stage_latest(stage, latest)


def _find_last_versions(transaction: Transaction, stage: ImportStage, record_ids: Sequence[str]) -> dict[str, int]:
    """Return the current version of records that the staged history continues; 0 for missing records."""
    latest = change_log.find_latest(transaction.flush(), record_ids)
    missing = {record_id: 0 for record_id in record_ids if record_id not in latest}
    return missing | {
        record_id: change.version
        for record_id, change in latest.items()
        if stage.history.continues_from(record_id, change.version, _to_present_document(change))
    }


def _to_present_document(change: Change) -> bytes:
    """Return the document of a change in the form of the present, as staged versions have it."""
    return change.to_record().to_document(change.parse_origin())


def _to_retired(version: ImportedVersion, reason: str) -> ImportedVersion:
    replacement = None if reason == CYCLE_REASON else version.record.replaced_by
    record = replace(version.record, state=RecordState.RETIRED, replaced_by=replacement)
    return replace(version, record=record, document=record.to_document(), action=Action.RETIRE)


def _to_imported_version(missing: MissingVersion, *, starts_write: bool) -> ImportedVersion:
    version = missing.version
    return ImportedVersion(
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


def _write_current(
    transaction: Transaction, stage: ImportStage, report: ImportReport, versions: Sequence[ImportedVersion]
) -> None:
    """Report records, write their relations, and save that they differ from the last import."""
    record_ids = [version.record.id for version in versions]
    # A new record has relations if others stated them before.
    relations_by_source = relations.find_by_sources(transaction.flush(), record_ids)
    added: list[Relation] = []
    removed: list[Relation] = []
    unapplied: dict[str, dict[str, int]] = {}
    for version in versions:
        record = version.record
        kind: AffectedKind = "retired" if version.action == Action.RETIRE else "updated"
        report.add_record(
            "created" if version.is_new_record else kind, record.id, record.collection.name, record.fields["name"]
        )
        existing = relations_by_source.get(record.id, frozenset())
        added += record.relations - existing
        if version.is_new_record:
            stage.add_relations(record.id, existing - record.relations, ())
        else:
            removed += existing - record.relations
        if version.actor != SYSTEM_USER_ID:
            unapplied[record.id] = {base_values.IMPORTED_VERSION_KEY: version.version}
        elif not version.is_new_record:
            unapplied[record.id] = {}
    change_log.update_relations(transaction, added, removed)
    replace_derived_rows(transaction, [version.record for version in versions])
    report.add_relations(added, removed)
    base_values.save_unapplied(transaction.flush(), unapplied)


def _stage_latest(stage: ImportStage, version: StagedVersion) -> None:
    record = parse_record(version.collection, version.document)
    extras: dict[str, Any] = {
        "sources": record.sources,
        "state": record.state,
        "replaced_by": record.replaced_by,
        "statements": pack_statements(record.statements),
    }
    if record.stored_aliases:
        extras["aliases"] = [alias.model_dump() for alias in record.stored_aliases]
    fields = orjson.dumps(record.fields)
    stage.add_record(record.id, version.collection, version.source, version.line, fields, orjson.dumps(extras))
    stage.add_relations(record.id, record.relations, [(name, "source") for name in record.collection.relation_types])
