"""Holding the search index against the catalogue."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from lexarium.domain.change import Change
from lexarium.search.index import IndexCorrupt, IndexDirectory, IndexSnapshot, SearchIndex
from lexarium.search.index_contents import IndexedRecord, count_indexed, find_indexed, to_indexed
from lexarium.store import revisions
from lexarium.store.database import Database
from lexarium.store.position import read_position
from lexarium.store.records import BATCH_SIZE

_REBUILD_HINT = "`lexarium reindex` makes it anew"


@dataclass
class IndexCheckReport:
    """What an index and its catalogue disagree in."""

    problems: list[str] = field(default_factory=list)
    """What must not be."""
    remarks: list[str] = field(default_factory=list)
    """What may be, since an index follows the log, and is worth knowing."""


def check_index(database: Database, folder: Path) -> IndexCheckReport:
    """Look whether an index has every record once, as the log has it where the index stands, and nothing else."""
    path = IndexDirectory(folder).current_path()
    if path is None:
        return IndexCheckReport(remarks=[f"there is no search index in {folder} yet: a server makes one"])
    try:
        return _compare(database, SearchIndex(path).snapshot)
    except IndexCorrupt as error:
        return IndexCheckReport([f"the search index in {path} cannot be read: {error}; {_REBUILD_HINT}"])


def _compare(database: Database, index_snapshot: IndexSnapshot) -> IndexCheckReport:
    """Of an index that was opened before the database is read, and so is not ahead of it."""
    report = IndexCheckReport()
    index_revision = index_snapshot.position.revision
    indexed_count, after = 0, ""
    with database.read() as connection:
        position = read_position(connection)
        if index_snapshot.position.epoch != position.epoch:
            return IndexCheckReport(remarks=["the search index is of another catalogue: a server makes it anew"])
        while batch := revisions.list_current(connection, after, BATCH_SIZE):
            documents = find_indexed(index_snapshot, [change.record_id for change in batch])
            indexed_count += sum(map(len, documents.values()))
            newer_ids = [change.record_id for change in batch if change.seq > index_revision]
            indexed_versions = {
                change.record_id: change.version
                for change in revisions.find_many_at(connection, newer_ids, index_revision)
            }
            report.problems += _iter_problems(index_revision, batch, indexed_versions, documents)
            after = batch[-1].record_id
    if index_revision != position.revision:
        message = f"the search index stands at revision {index_revision}, the catalogue at {position.revision}"
        report.remarks.append(f"{message}: a server brings it there")
    orphan_count = count_indexed(index_snapshot) - indexed_count
    if orphan_count:
        report.problems.append(
            f"the search index has {orphan_count} documents of no record that there is; {_REBUILD_HINT}"
        )
    return report


def _iter_problems(
    index_revision: int,
    batch: list[Change],
    indexed_versions: dict[str, int],
    documents: dict[str, list[IndexedRecord]],
) -> Iterator[str]:
    """What is wrong of these records, given the versions of those that have changed since where the index stands."""
    for change in batch:
        indexed = documents.get(change.record_id, [])
        if not indexed:
            is_correct = change.seq > index_revision and change.record_id not in indexed_versions
        elif change.seq <= index_revision:
            is_correct = indexed == [to_indexed(change)]
        else:  # it may be indexed already, where the index was being made meanwhile
            is_correct = (
                len(indexed) == 1 and indexed_versions.get(change.record_id, 1) <= indexed[0].version <= change.version
            )
        if not is_correct:
            description = (
                ", ".join(f"version {document.version}, {document.state}" for document in indexed) or "nothing"
            )
            yield f"{change.record_id} is not in the search index as the log has it, but {description}; {_REBUILD_HINT}"
