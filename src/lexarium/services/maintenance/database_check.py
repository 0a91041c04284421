"""Looking whether the catalogue agrees with itself."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from lexarium.domain.change import Change
from lexarium.domain.hierarchy import find_cycles, format_cycle
from lexarium.domain.merge import resolve_merge_chains
from lexarium.domain.record import RecordState, Relation
from lexarium.domain.rendering import RenderedRecord, parse_body, render_fields
from lexarium.domain.schema.collections import COLLECTIONS
from lexarium.domain.schema.relation_types import HIERARCHICAL_TYPES_BY_COLLECTION
from lexarium.store import change_log, integrity, relations
from lexarium.store.database import Database
from lexarium.store.integrity import iter_invalid_rows
from lexarium.store.position import Snapshot, read_position
from lexarium.store.records import RecordRow


@dataclass
class CheckReport:
    """What a check found."""

    records: int = 0
    changes: int = 0
    problems: list[str] = field(default_factory=list)
    """What must not be."""
    remarks: list[str] = field(default_factory=list)
    """What may be, and is worth knowing."""


def check_database(database: Database) -> CheckReport:
    """Hold the records against the log, the relations against the records, the log and the file against themselves.

    And what stands beside them, people and proposals say, against what it names.
    """
    report = CheckReport()
    with database.read() as connection:
        report.problems += database.backend.check_integrity(connection)
        if report.problems:
            return report
        revision = read_position(connection).revision
        log_extent = integrity.find_log_extent(connection)
        report.changes = log_extent.count
        if (log_extent.count, log_extent.last_seq) != (revision, revision):
            report.problems.append(
                f"the catalogue stands at revision {revision}, its log has {log_extent.count} changes"
                f" up to {log_extent.last_seq}"
            )
        report.problems += [
            f"the log lacks a version of {record_id}" for record_id in integrity.list_records_with_gaps(connection)
        ]
        report.problems += [
            f"change {misfiled.seq} in the log is not as it should be:"
            f" version {misfiled.version} of {misfiled.record_id}"
            for misfiled in integrity.iter_corrupt_changes(connection)
        ]
        _check_records(connection, report)
        report.problems += [
            f"{record_id} is in the log but not in the catalogue"
            for record_id in integrity.list_ids_only_in_log(connection)
        ]
        report.problems += [
            f"{table} {key}: {reason}" for table, key, reason in iter_invalid_rows(connection, revision)
        ]
        dangling_count = integrity.count_dangling_relations(connection)
        if dangling_count:
            report.remarks.append(f"{dangling_count} relations name a record that is not in the catalogue")
        for relation_types in HIERARCHICAL_TYPES_BY_COLLECTION.values():
            for cycle in find_cycles(relations.iter_inner_relations(connection, relation_types)):
                report.remarks.append(format_cycle(relation_types, cycle))
    return report


def _check_records(connection: Snapshot, report: CheckReport) -> None:
    """Hold every record against what the log says of it."""
    merge_targets: dict[str, str] = {}
    for batch in integrity.iter_record_rows(connection):
        report.records += len(batch)
        record_ids = [row.id for row, _, _ in batch]
        relations_by_source = relations.find_by_sources(connection, record_ids)
        changes = change_log.find_latest(connection, record_ids)
        for row, rendered, name in batch:
            report.problems += _find_rendering_problems(row, rendered, name)
            report.problems += _find_log_problems(
                row, relations_by_source.get(row.id, frozenset()), changes.get(row.id)
            )
            if row.state == RecordState.MERGED and row.id in changes:
                merge_targets[row.id] = changes[row.id].to_record().replaced_by or row.id
    report.problems += [
        f"{record_id} is merged into no other record"
        for record_id in sorted(merge_targets.keys() - resolve_merge_chains(merge_targets).keys())
    ]


def _find_rendering_problems(row: RecordRow, rendered: RenderedRecord, name: str) -> Iterator[str]:
    collection = COLLECTIONS.get(row.collection)
    if collection is None:
        yield f"{row.id} is in a collection that there is not: {row.collection}"
        return
    try:
        fields = parse_body(row.body)
        is_correct = (
            render_fields(collection, fields) == rendered
            and fields["name"] == name
            and list(fields) == list(collection.fields)
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        yield f"{row.id} cannot be read"
        return
    if not is_correct:
        yield f"{row.id} is not rendered as it should be"


def _find_log_problems(row: RecordRow, own_relations: frozenset[Relation], change: Change | None) -> Iterator[str]:
    if change is None:
        yield f"version {row.version} of {row.id} is not in the log"
        return
    try:
        record = change.to_record()
        is_correct = (record.rendered.body, record.relations, record.state) == (row.body, own_relations, row.state)
    except (ValueError, KeyError, TypeError, AttributeError):
        yield f"version {row.version} of {row.id} cannot be read in the log"
        return
    if not is_correct:
        yield f"{row.id} is not what the log says it is"
