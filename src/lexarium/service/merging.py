"""What merges have done: what a merge touched, what stands in the way of undoing it, and who stands for whom now."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from lexarium.domain.changes import Action, Change, State, Whole
from lexarium.domain.editing import Difference, draft_differences, draft_of
from lexarium.domain.errors import Conflict
from lexarium.domain.merging import Footprint, ends, entangled, named, survivor
from lexarium.store import edges, log, records, versions
from lexarium.store.backend import Snapshot

CIRCLE = "comes back to itself"
"""What is wrong with a merge that leads to where it began."""


def footprints(snapshot: Snapshot, merge: Change) -> dict[str, Footprint]:
    """What a merge, of which this is the change of the merged record, made of every other record that it touched.

    Nothing where an import brought the record as merged: what else it wrote has nothing to do with that.
    """
    made = [
        change
        for change in versions.in_batch(snapshot, merge.batch)
        if change.action == Action.MERGE and change.version > 1 and change.record != merge.record
    ]
    before = versions.find_versions(snapshot, [(change.record, change.version - 1) for change in made])
    return {change.record: Footprint(before[change.record].whole(), change.whole()) for change in made}


def refuse_entangled(snapshot: Snapshot, merge: Change, touched: dict[str, Footprint], back: Whole) -> None:
    """Raise `Conflict` where a later merge must be undone before this one; `back` is what the merged record becomes.

    So it is where a record that this merge touched is merged now, where a later one had to do with what this one
    added, and where one that is to be named again is merged since.
    """
    for gone in _merged(snapshot, touched):
        raise _undo_first(versions.turning(snapshot, gone, State.MERGED))
    for later in versions.merges_since(snapshot, merge, sorted(touched)):
        cause = versions.in_batch(snapshot, later.batch)[0]
        if _stands(snapshot, cause) and _goes_on(snapshot, touched[later.record], later, cause):
            raise _undo_first(cause)
    ahead, seen = named(back) - {merge.record}, {merge.record}
    while ahead:
        seen |= ahead
        merged = _merged(snapshot, ahead)
        for gone in merged:
            cause = versions.turning(snapshot, gone, State.MERGED)
            if cause.seq > merge.seq:
                raise _undo_first(cause)
        ahead = set(merged.values()) - seen


def _goes_on(snapshot: Snapshot, earlier: Footprint, later: Change, cause: Change) -> bool:
    """Whether a later merge, which `cause` is the merged record's change of, had to do with what an earlier added."""
    wanted = [(cause.record, cause.version - 1), (later.record, later.version - 1)]
    before = versions.find_versions(snapshot, wanted)
    theirs = Footprint(before[later.record].whole(), later.whole())
    return entangled(earlier, theirs, before[cause.record].whole(), str(cause.whole().replaced_by))


@dataclass(frozen=True)
class Forecast:
    """What a merge would do."""

    gains: list[Difference]
    """What the survivor would have otherwise than now."""
    related: int
    """How many other records are related to the one that is merged, and would be to the survivor."""
    members: int
    """How many records are in the class that is merged."""


def forecast(snapshot: Snapshot, gone: Whole, kept: Whole) -> Forecast:
    """What it would do to merge one record into another."""
    pointing = {edge.source for edge in edges.touching(snapshot, [gone.id])} - {gone.id, kept.id}
    return Forecast(
        draft_differences(draft_of(kept), survivor(kept, gone)),
        len(pointing),
        versions.count_in_class(snapshot, gone.id) if gone.collection.is_class else 0,
    )


def survivors(snapshot: Snapshot, identifiers: Iterable[str], alive: str) -> dict[str, str]:
    """Of those of these records that are merged, which one each has come to be. `alive` is taken for not merged."""
    wanted = set(identifiers)
    return {
        identifier: end for identifier, end in ends(merges(snapshot, wanted, alive)).items() if identifier in wanted
    }


def merges(snapshot: Snapshot, identifiers: Iterable[str], alive: str = "") -> dict[str, str]:
    """Those of these records, and of those that they lead to, that are merged, and into what."""
    into: dict[str, str] = {}
    ahead, seen = set(identifiers) - {alive}, {alive}
    while ahead:
        seen |= ahead
        found = _merged(snapshot, ahead)
        into |= found
        ahead = set(found.values()) - seen
    return into


def impossible(
    snapshot: Snapshot, told: Mapping[str, str], kinds: Mapping[str, str], collections: Mapping[str, str]
) -> dict[str, str]:
    """Of records that are told to be merged, and into what, those that cannot be, with what is wrong with the other.

    `kinds` are their collections, `collections` those of what they are told to be merged into. One that is merged here
    already is not asked again.
    """
    here = merges(snapshot, told.keys() | set(told.values()))
    last = ends({**told, **here})
    found: dict[str, str] = {}
    for identifier, into in told.items():
        if identifier in here:
            continue
        if identifier not in last:
            found[identifier] = CIRCLE
        elif collections.get(into) != kinds[identifier]:
            found[identifier] = f"is no {kinds[identifier]} of the import or the catalogue"
    return found


def not_merged(identifier: str, why: str) -> str:
    """What there is to tell of such a record."""
    return f"{identifier} is told as merged, but what it is merged into {why}; it is retired"


def _merged(snapshot: Snapshot, identifiers: Iterable[str]) -> dict[str, str]:
    """Those of these records that are merged, and into what."""
    gone = records.names(snapshot, sorted(identifiers), State.MERGED)
    wholes = [change.whole() for change in log.latest(snapshot, list(gone)).values()]
    return {whole.id: whole.replaced_by for whole in wholes if whole.replaced_by}


def _stands(snapshot: Snapshot, gone: Change) -> bool:
    """Whether a merge has not been undone since."""
    present = log.latest(snapshot, [gone.record])[gone.record]
    if present.whole().state != State.MERGED:
        return False
    return versions.turning(snapshot, gone.record, State.MERGED).seq == gone.seq


def _undo_first(gone: Change) -> Conflict:
    what = f"{gone.record} was merged into {gone.whole().replaced_by} since, and that goes on from this merge."
    return Conflict(f"{what} Undo that one first: revert {gone.record}.", undo_first=gone.record)
