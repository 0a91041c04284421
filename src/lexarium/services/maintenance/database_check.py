"""Check the consistency of the database."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field

from lexarium.domain.change import Change
from lexarium.domain.editing.merge import resolve_merge_chains
from lexarium.domain.hierarchy import find_cycles, format_cycle
from lexarium.domain.identifiers import format_record_id, get_local_id
from lexarium.domain.record import RecordState, Relation
from lexarium.domain.rendering import RenderedRecord, parse_body, render_fields
from lexarium.domain.schema.collections import COLLECTIONS, VOCABULARY, get_collection, list_stored_collections
from lexarium.domain.text.numbers import format_count
from lexarium.domain.vocabulary import VOCABULARIES
from lexarium.services.vocabularies.access import ReadScope
from lexarium.services.vocabularies.references import find_missing
from lexarium.store import change_log, records, relations
from lexarium.store.database import Database
from lexarium.store.engine.position_queries import read_position
from lexarium.store.maintenance import integrity
from lexarium.store.position import Snapshot
from lexarium.store.records import RecordRow

# Relations to missing records that are named.
_MAX_EXAMPLES = 3


@dataclass
class CheckReport:
    """Result of a check: problems are errors, remarks are not."""

    records: int = 0
    changes: int = 0
    problems: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)


def check_database(database: Database) -> CheckReport:
    """Check the storage engine, the log, records and relations against the log, and the references of other tables."""
    report = CheckReport()
    with database.read() as snapshot:
        report.problems += database.backend.check_integrity(snapshot)
        if not report.problems:
            with suppress(*integrity.DECODE_ERRORS):  # What cannot be read is found below.
                database.follow_vocabularies(snapshot)
            report.problems += _check_log(snapshot, report)
            report.problems += _check_records(snapshot, report)
            report.problems += _check_references(snapshot)
            report.remarks += _list_remarks(snapshot)
    return report


def _check_log(snapshot: Snapshot, report: CheckReport) -> Iterator[str]:
    position, extent = read_position(snapshot), integrity.find_log_extent(snapshot)
    revision = position.revision
    report.changes = extent.count
    # A purge counts as a change of the vocabularies, but is not logged.
    was_purged = position.vocabularies > integrity.count_vocabulary_changes(snapshot)
    if was_purged and extent.count <= extent.last_seq <= revision:
        report.remarks.append(f"{revision - extent.count:,} changes of purged vocabularies are not in the log")
    elif (extent.count, extent.last_seq) != (revision, revision):
        log = f"its log has {extent.count} changes up to {extent.last_seq}"
        yield f"the catalogue is at revision {revision}, {log}"
    for record_id in integrity.list_records_with_gaps(snapshot):
        yield f"the log is missing a version of {format_record_id(record_id)}"
    for change in integrity.iter_corrupt_changes(snapshot):
        version = f"version {change.version} of {format_record_id(change.record_id)}"
        yield f"change {change.seq} in the log is wrong: {version}"


def _check_records(snapshot: Snapshot, report: CheckReport) -> Iterator[str]:
    merge_targets: dict[str, str] = {}
    for batch in integrity.iter_record_rows(snapshot):
        report.records += sum(row.collection != VOCABULARY.name for row, _, _ in batch)
        record_ids = [row.id for row, _, _ in batch]
        relations_by_source = relations.find_by_sources(snapshot, record_ids)
        changes = change_log.find_latest(snapshot, record_ids)
        for row, rendered, name in batch:
            yield from _check_rendering(row, rendered, name)
            yield from _check_against_log(row, relations_by_source.get(row.id, frozenset()), changes.get(row.id))
            if row.state == RecordState.MERGED and row.id in changes:
                merge_targets[row.id] = changes[row.id].to_record().replaced_by or row.id
    for record_id in sorted(merge_targets.keys() - resolve_merge_chains(merge_targets).keys()):
        yield f"{format_record_id(record_id)} is not merged into another record"
    for record_id in integrity.iter_wrong_derived_rows(snapshot):
        yield f"{format_record_id(record_id)} has alternative IDs or translated names that differ from the change log"


def _check_rendering(row: RecordRow, rendered: RenderedRecord, name: str) -> Iterator[str]:
    record = format_record_id(row.id)
    if row.collection not in list_stored_collections():
        yield f"{record} is in an unknown collection: {row.collection}"
        return
    try:
        fields = parse_body(row.body)
        actual = render_fields(get_collection(row.collection), fields), fields["name"]
    except integrity.DECODE_ERRORS:
        yield f"{record} cannot be read"
        return
    if actual != (rendered, name):
        yield f"{record} has wrong rendered JSON"


def _check_against_log(row: RecordRow, own_relations: frozenset[Relation], change: Change | None) -> Iterator[str]:
    version = f"version {row.version} of {format_record_id(row.id)}"
    if change is None:
        yield f"{version} is not in the log"
        return
    try:
        record = change.to_record()
        logged = record.rendered.body, record.relations, record.state
    except integrity.DECODE_ERRORS:
        yield f"{version} cannot be read in the log"
        return
    if logged != (row.body, own_relations, row.state):
        yield f"{format_record_id(row.id)} differs from the change log"


def _check_references(snapshot: Snapshot) -> Iterator[str]:
    for record_id in integrity.list_ids_only_in_log(snapshot):
        yield f"{format_record_id(record_id)} is in the log but not in the catalogue"
    yield from integrity.iter_invalid_rows(snapshot, read_position(snapshot).revision)
    for file in integrity.iter_corrupt_files(snapshot):
        yield f"the {file.format} file of the release {format_record_id(file.release)} differs from what was rendered"


def _list_remarks(snapshot: Snapshot) -> Iterator[str]:
    dangling_count, examples = 0, list[str]()
    for relation in _iter_missing_ends(snapshot):
        dangling_count += 1
        if len(examples) < _MAX_EXAMPLES:
            source, target = get_local_id(relation.source), get_local_id(relation.target)
            examples.append(f"{source} {relation.relation} {target}")
    if dangling_count:
        verb = "refers" if dangling_count == 1 else "refer"
        more = ", …" if dangling_count > len(examples) else ""
        yield f"{format_count(dangling_count, 'relation')} {verb} to a missing record: {', '.join(examples)}{more}"
    for relation_types in dict.fromkeys(COLLECTIONS.hierarchies.values()):
        for cycle in find_cycles(relations.iter_inner_relations(snapshot, relation_types)):
            yield format_cycle(relation_types, [format_record_id(record_id) for record_id in cycle])


def _iter_missing_ends(snapshot: Snapshot) -> Iterator[Relation]:
    """Yield the relations with an end that is in no vocabulary."""
    scope = ReadScope(tuple(VOCABULARIES))
    for batch in records.batched(list(integrity.iter_dangling_relations(snapshot))):
        sources = records.find_existing_ids(snapshot, [relation.source for relation in batch])
        missing = find_missing(snapshot, (get_local_id(relation.target) for relation in batch), scope)
        for relation in batch:
            if relation.source not in sources or get_local_id(relation.target) in missing:
                yield relation
