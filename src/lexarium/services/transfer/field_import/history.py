"""Stage, validate and apply imported record histories."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any

import orjson

from lexarium.domain.change import Action, Change
from lexarium.domain.editing.defaults import assign_defaults
from lexarium.domain.editing.merge import resolve_merge_chains
from lexarium.domain.identifiers import SYSTEM_USER_ID, get_local_id, qualify_id, split_id
from lexarium.domain.progress import ProgressCallback
from lexarium.domain.record import Record, RecordState, Relation, build_record, parse_record
from lexarium.domain.rendering import get_filter_columns, render_body, render_json
from lexarium.domain.schema.collections import COLLECTIONS
from lexarium.domain.statement import pack_statements
from lexarium.formats.parsed import ParsedRecord, ParsedVersion
from lexarium.services.records.lookup import load_merge_chains
from lexarium.services.transfer.import_report import AffectedKind, ImportReport, ProblemList
from lexarium.store import change_log, records, relations
from lexarium.store.change_log import ImportedVersion, VersionRow
from lexarium.store.database import Database
from lexarium.store.imports import base_values
from lexarium.store.imports.history_stage import StagedMerge, StagedVersion
from lexarium.store.imports.stage import ImportStage
from lexarium.store.position import Snapshot
from lexarium.store.transaction import Transaction
from lexarium.store.vocabularies import replace_derived_rows

CYCLE_REASON = "leads back to itself"


def build_version(source: int, parsed: ParsedRecord, version: ParsedVersion) -> StagedVersion:
    """Return a version of a record for the stage, with all that is written of it."""
    collection, state, fields = COLLECTIONS[parsed.collection], RecordState.PUBLISHED, parsed.fields
    if parsed.plain_record is not None:
        _, document, is_linked = parsed.plain_record
    else:
        record = parsed.record or build_record(
            collection, fields, parsed.relations, parsed.aliases, parsed.sources or ()
        )
        record = assign_defaults(record, version.at)
        record = record.with_state(parsed.state or state, parsed.replaced_by)
        state, fields = record.state, record.fields
        document = record.to_document(version.origin, version.summary)
        is_linked = bool(record.relations or record.alternative_ids or record.translated_names)
    return StagedVersion(
        qualify_id(collection.vocabulary, fields["id"]),
        version.number,
        parsed.collection,
        source,
        parsed.line,
        version.write_id,
        version.at,
        version.actor,
        version.action,
        state,
        fields["name"],
        *get_filter_columns(collection, fields),
        is_linked,
        render_body(collection, fields),
        document,
    )


def validate_versions(stage: ImportStage, problems: ProblemList) -> None:
    """Report versions that are out of sequence or change the collection of their record."""
    for item in stage.history.finish() if stage.history else ():
        local_id = get_local_id(item.id)
        if item.version == item.expected_version:
            message = f"{local_id} is in a different collection than before"
        else:
            message = f"version {item.version} of {local_id} found, but version {item.expected_version} was expected"
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
            label = COLLECTIONS[merge.collection].local_name
            reasons[merge.id] = f"is not a {label} of the import or the catalogue"
        if merge.id in reasons:
            local_id = get_local_id(merge.id)
            message = f"{local_id} is marked as merged, but its target {reasons[merge.id]}; it is retired"
            report.warnings.add(stage.format_location(merge.source, merge.line), message)
    return reasons


def apply_history(
    database: Database, transaction: Transaction, stage: ImportStage, report: ImportReport, progress: ProgressCallback
) -> None:
    """Write the versions that continue the history of a record, or make up a new one, in their order.

    The last version of any other record is staged like a record without history.
    """
    if not stage.history:
        return
    has_records = records.count(transaction.flush()) > 0
    for record_ids in stage.history.iter_ids():
        last_versions = _find_last_versions(transaction, stage, record_ids) if has_records else {}
        stage.history.mark_missing(last_versions if has_records else dict.fromkeys(record_ids, 0))
    merges = [
        merge._replace(survivor_id=qualify_id(split_id(merge.id)[0], merge.survivor_id or ""))
        for merge in stage.history.iter_merges()
    ]
    invalid_merges = report_invalid_merges(transaction.flush(), stage, report, merges)
    total = stage.history.count_missing()
    # A small import is fast either way.
    is_bulk_load = total > max(records.count(transaction.flush()), records.BATCH_SIZE)
    with database.bulk_load(transaction) if is_bulk_load else nullcontext():
        _write_missing(transaction, stage, report, invalid_merges, lambda done: progress("writing", done, total))
    # The import proper is a write of its own.
    transaction.write_id = transaction.revision + 1
    for latest in stage.history.iter_latest():
        _stage_latest(stage, latest)


def _write_missing(
    transaction: Transaction,
    stage: ImportStage,
    report: ImportReport,
    invalid_merges: Mapping[str, str],
    progress: Callable[[int], None],
) -> None:
    done = 0
    previous_write: tuple[int, int] | None = None
    for batch in stage.history.iter_missing():
        versions = []
        linked: dict[str, Record] = {}
        for item in batch:
            write = item.source, item.write
            version = _to_imported_version(item, starts_write=write != previous_write)
            if version.is_current and item.id in invalid_merges:
                version = _to_retired(version, invalid_merges[item.id])
            if version.is_current and (item.is_linked or not version.is_new_record):
                linked[item.id] = _parse_row(version.row)
            versions.append(version)
            previous_write = write
        change_log.insert_history(transaction, versions)
        current = [version for version in versions if version.is_current]
        _write_current(transaction, stage, report, current, linked)
        done += len(batch)
        progress(done)


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
    return change.to_record().to_document(change.parse_origin(), change.parse_summary())


def _to_retired(version: ImportedVersion, reason: str) -> ImportedVersion:
    record = _parse_row(version.row)
    record = record.with_state(RecordState.RETIRED, None if reason == CYCLE_REASON else record.replaced_by)
    row = change_log.build_row(record, record.to_document())
    return version._replace(row=row, action=Action.RETIRE)


def _parse_row(row: VersionRow) -> Record:
    return parse_record(row.collection, row.document)


def _to_imported_version(item: StagedVersion, *, starts_write: bool) -> ImportedVersion:
    rendered = render_json(COLLECTIONS[item.collection], get_local_id(item.id), item.name, item.body)
    filter_columns = item.class_id, item.owner, bool(item.flagged)
    row = VersionRow(item.id, item.collection, item.state, item.name, rendered, *filter_columns, item.document)
    is_current, is_new_record = bool(item.is_current), bool(item.is_new_record)
    action = Action(item.action)
    return ImportedVersion(row, item.number, action, item.at, item.actor, starts_write, is_current, is_new_record)


def _write_current(
    transaction: Transaction,
    stage: ImportStage,
    report: ImportReport,
    versions: Sequence[ImportedVersion],
    linked: Mapping[str, Record],
) -> None:
    """Report records, write their relations, and save that they differ from the last import.

    `linked` has the records that may have relations, alternative ids or names in other languages, now or before.
    """
    record_ids = [version.row.id for version in versions]
    # A new record has relations if others stated them before.
    relations_by_source = relations.find_by_sources(transaction.flush(), record_ids)
    added: list[Relation] = []
    removed: list[Relation] = []
    unapplied: dict[str, dict[str, int]] = {}
    for version in versions:
        row = version.row
        kind: AffectedKind = "retired" if version.action == Action.RETIRE else "updated"
        report.add_record("created" if version.is_new_record else kind, row.id, row.collection, row.name)
        existing = relations_by_source.get(row.id, frozenset())
        stated = linked[row.id].relations if row.id in linked else frozenset()
        added += stated - existing
        if version.is_new_record:
            stage.add_relations(row.id, existing - stated, ())
        else:
            removed += existing - stated
        if version.actor != SYSTEM_USER_ID:
            unapplied[row.id] = {base_values.IMPORTED_VERSION_KEY: version.version}
        elif not version.is_new_record:
            unapplied[row.id] = {}
    change_log.update_relations(transaction, added, removed)
    replace_derived_rows(transaction, list(linked.values()))
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
