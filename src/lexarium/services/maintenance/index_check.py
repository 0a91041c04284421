"""Check the search index against the catalogue."""

from collections.abc import Iterator
from pathlib import Path

from lexarium.domain.change import Change
from lexarium.domain.identifiers import format_record_id
from lexarium.domain.schema.collections import COLLECTIONS
from lexarium.domain.text.numbers import format_count
from lexarium.search.index import IndexCorrupt, IndexDirectory, IndexedRecord, IndexSnapshot, SearchIndex
from lexarium.services.maintenance.database_check import CheckReport
from lexarium.store import revisions
from lexarium.store.database import Database
from lexarium.store.engine.position_queries import read_position
from lexarium.store.records import BATCH_SIZE

_MAX_EXAMPLES = 10
_REBUILD_HINT = "run `lexarium reindex` to rebuild it"


def check_index(database: Database, folder: Path) -> CheckReport:
    """Check that an index holds every record once, as of the revision of the index, and nothing else."""
    path = IndexDirectory(folder).current_path()
    if path is None:
        return CheckReport(remarks=[f"there is no search index in {folder} yet; a running server builds it"])
    try:
        return _compare(database, SearchIndex(path).snapshot)
    except IndexCorrupt as error:
        problem = f"the search index in {path} cannot be read: {error}; {_REBUILD_HINT}"
        return CheckReport(problems=[problem])


def _compare(database: Database, index_snapshot: IndexSnapshot) -> CheckReport:
    """Compare an index with a database that is read later, so that the index cannot be ahead of it."""
    report = CheckReport()
    skipped_ids = index_snapshot.list_skipped()
    index_revision = index_snapshot.position.revision
    indexed_count, after = 0, ""
    with database.read() as snapshot:
        position = read_position(snapshot)
        if index_snapshot.position.epoch != position.epoch:
            return CheckReport(remarks=["the search index is of another catalogue; a running server rebuilds it"])
        database.follow_vocabularies(snapshot)
        if index_snapshot.position.vocabularies != position.vocabularies:
            return CheckReport(remarks=["the search index is older than its vocabularies; a running server updates it"])
        while current := revisions.list_current(snapshot, after, BATCH_SIZE):
            after = current[-1].record_id
            batch = [change for change in current if change.collection in COLLECTIONS]
            documents = index_snapshot.find_records([change.record_id for change in batch])
            indexed_count += sum(map(len, documents.values()))
            newer_ids = [change.record_id for change in batch if change.seq > index_revision]
            indexed_changes = revisions.find_many_at(snapshot, newer_ids, index_revision)
            indexed_versions = {change.record_id: change.version for change in indexed_changes}
            expected = [change for change in batch if change.record_id not in skipped_ids]
            report.problems += _iter_problems(index_revision, expected, indexed_versions, documents)
    if skipped_ids:
        examples = ", ".join(map(format_record_id, sorted(skipped_ids)[:_MAX_EXAMPLES]))
        subject = format_count(len(skipped_ids), "record")
        message = f"{subject} could not be indexed, so that search does not find them"
        report.remarks.append(f"{message}: {examples}; the log of the server has the reason")
    if index_revision != position.revision:
        message = f"the search index is at revision {index_revision}, the catalogue at {position.revision}"
        report.remarks.append(f"{message}; a running server updates it")
    orphan_count = index_snapshot.record_count - indexed_count
    if orphan_count:
        message = f"the search index has {orphan_count} documents of missing records"
        report.problems.append(f"{message}; {_REBUILD_HINT}")
    return report


def _iter_problems(
    index_revision: int,
    batch: list[Change],
    indexed_versions: dict[str, int],
    documents: dict[str, list[IndexedRecord]],
) -> Iterator[str]:
    """Compare current changes with documents; `indexed_versions` are those of records that are newer than the index."""
    for change in batch:
        indexed = documents.get(change.record_id, [])
        if not indexed:
            is_correct = change.seq > index_revision and change.record_id not in indexed_versions
        elif change.seq <= index_revision:
            is_correct = indexed == [IndexedRecord.from_change(change)]
        else:  # A rebuild reads records that are newer than the revision it began at.
            oldest = indexed_versions.get(change.record_id, 1)
            is_correct = len(indexed) == 1 and oldest <= indexed[0].version <= change.version
        if not is_correct:
            contents = ", ".join(f"version {item.version}, {item.state}" for item in indexed) or "nothing"
            record = format_record_id(change.record_id)
            yield f"{record} in the search index differs from the log: {contents}; {_REBUILD_HINT}"
