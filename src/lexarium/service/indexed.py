"""Holding the search index against the catalogue."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from lexarium.domain.changes import Change
from lexarium.search.census import Held, count, held, held_of
from lexarium.search.index import Broken, IndexFolder, OpenIndex, View
from lexarium.store import versions
from lexarium.store.backend import read_position
from lexarium.store.database import Database
from lexarium.store.records import BATCH

_ANEW = "`lexarium reindex` makes it anew"


@dataclass
class Comparison:
    """What an index and its catalogue disagree in."""

    problems: list[str] = field(default_factory=list)
    """What must not be."""
    remarks: list[str] = field(default_factory=list)
    """What may be, since an index follows the log, and is worth knowing."""


def compare(database: Database, folder: Path) -> Comparison:
    """Look whether an index has every record once, as the log has it where the index stands, and nothing else."""
    path = IndexFolder(folder).current()
    if path is None:
        return Comparison(remarks=[f"there is no search index in {folder} yet: a server makes one"])
    try:
        return _compared(database, OpenIndex(path).view)
    except Broken as error:
        return Comparison([f"the search index in {path} cannot be read: {error}; {_ANEW}"])


def _compared(database: Database, view: View) -> Comparison:
    """Of an index that was opened before the database is read, and so is not ahead of it."""
    found = Comparison()
    stands = view.standing.revision
    known, after = 0, ""
    with database.read() as connection:
        position = read_position(connection)
        if view.standing.epoch != position.epoch:
            return Comparison(remarks=["the search index is of another catalogue: a server makes it anew"])
        while batch := versions.newest(connection, after, BATCH):
            documents = held(view, [change.record for change in batch])
            known += sum(map(len, documents.values()))
            newer = [change.record for change in batch if change.seq > stands]
            then = {change.record: change.version for change in versions.at(connection, newer, stands)}
            found.problems += _differences(stands, batch, then, documents)
            after = batch[-1].record
    if stands != position.revision:
        behind = f"the search index stands at revision {stands}, the catalogue at {position.revision}"
        found.remarks.append(f"{behind}: a server brings it there")
    strangers = count(view) - known
    if strangers:
        found.problems.append(f"the search index has {strangers} documents of no record that there is; {_ANEW}")
    return found


def _differences(
    stands: int, batch: list[Change], then: dict[str, int], documents: dict[str, list[Held]]
) -> Iterator[str]:
    """What is wrong of these records, given the versions of those that have changed since where the index stands."""
    for change in batch:
        shown = documents.get(change.record, [])
        if not shown:
            right = change.seq > stands and change.record not in then
        elif change.seq <= stands:
            right = shown == [held_of(change)]
        else:  # it may be indexed already, where the index was being made meanwhile
            right = len(shown) == 1 and then.get(change.record, 1) <= shown[0].version <= change.version
        if not right:
            there = ", ".join(f"version {each.version}, {each.state}" for each in shown) or "nothing"
            yield f"{change.record} is not in the search index as the log has it, but {there}; {_ANEW}"
