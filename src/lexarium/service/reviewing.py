"""What a curator needs to see to decide a proposal, and the way back from a decision."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from lexarium.domain.changes import Action, Change, State, Whole
from lexarium.domain.collections import COLLECTIONS, Collection
from lexarium.domain.comparison import Piece
from lexarium.domain.editing import Difference, draft_of, merge_patch, patch_between
from lexarium.domain.errors import Conflict
from lexarium.domain.proposals import Decision, Proposal, Queue
from lexarium.domain.text import name_key
from lexarium.service import proposals
from lexarium.service.access import Caller
from lexarium.service.desk import Desk, Saved, found, refuse_stale
from lexarium.service.dossiers import alterations
from lexarium.service.finding import Finder, Hit
from lexarium.service.recent import people
from lexarium.store import log, versions
from lexarium.store import proposals as stored
from lexarium.store.backend import Snapshot
from lexarium.store.transaction import Transaction

_MOST_AUTHORS = 200
"""How many are offered to choose from."""
NEW, EDIT, RETIRE = "new", "edit", "retire"
"""What may be proposed: a record, a change of one, the end of one."""


@dataclass(frozen=True)
class Waiting:
    """A proposal in the queue."""

    proposal: Proposal
    kind: str
    name: str
    """What its record is called, or would be."""
    author: str
    fields: Sequence[str]
    """What it would change."""
    moved: bool
    """Whether the record has changed since."""


@dataclass(frozen=True)
class Point:
    """One field that a proposal would change."""

    field: str
    pieces: Sequence[Piece]
    """From what is there to what is proposed."""
    since: Sequence[Piece] | None
    """What others have made of it since it was proposed; None where that is no conflict."""


@dataclass(frozen=True)
class Case:
    """A proposal, beside what is there."""

    proposal: Proposal
    kind: str
    name: str
    people: Mapping[str, str]
    """What those are called who made and decided it, by id."""
    points: Sequence[Point]
    draft: Mapping[str, Any]
    """All that is writable of the record, as it would be."""
    present: Saved | None
    """The record as it is; None where it would be new."""
    gone: bool
    """Whether the record is retired or merged by now, so that nothing can be changed of it."""
    version: int | None
    """The version that it made, once it is accepted."""
    undoable: bool
    """Whether the record is still what it made of it."""
    undone: Change | None
    """The change that took back what it had made."""

    @property
    def collection(self) -> Collection:
        """Where the record is."""
        return COLLECTIONS[self.proposal.collection]

    @property
    def editable(self) -> Sequence[str]:
        """The fields that may be accepted otherwise than they are proposed."""
        return list(self.draft) if self.kind == NEW else [each.field for each in self.points]

    @property
    def conflicts(self) -> Sequence[str]:
        """The fields that the record has moved on in."""
        return [each.field for each in self.points if each.since is not None]


def queue(snapshot: Snapshot, wanted: Queue, after: tuple[int, str] | None, limit: int) -> list[Waiting]:
    """The next proposals to be decided; `after` is when the last of the page before was made, and its id."""
    several = stored.waiting(snapshot, wanted, after, limit)
    present = log.latest(snapshot, [each.record for each in several if each.record is not None])
    names = people(snapshot, (each.author for each in several))
    return [_waiting(each, present.get(each.record or ""), names[each.author]) for each in several]


def pending(snapshot: Snapshot, caller: Caller, present: Change) -> list[Waiting]:
    """The open proposals about a record that the caller may see, the oldest first."""
    several = proposals.about(snapshot, caller, present.record)
    names = people(snapshot, (each.author for each in several))
    return [_waiting(each, present, names[each.author]) for each in several]


def next_after(snapshot: Snapshot, wanted: Queue, decided: Proposal) -> Proposal | None:
    """What comes after a proposal that was decided: the next of the queue, or else the first of it."""
    following = stored.waiting(snapshot, wanted, (decided.made, decided.id), 1)
    return next(iter(following or stored.waiting(snapshot, wanted, None, 1)), None)


def authors(snapshot: Snapshot, also: str | None) -> list[tuple[str, str]]:
    """Who has proposals in the queue, by name, and this one: the id and the name of each. Not all of very many."""
    names = people(snapshot, {*stored.authors(snapshot, _MOST_AUTHORS), *([also] if also else [])})
    return sorted(names.items(), key=lambda each: each[1].casefold())


def case(snapshot: Snapshot, proposal: Proposal) -> Case:
    """All there is to see of a proposal; of one that was decided, as it was made."""
    change: dict[str, Any] = orjson.loads(proposal.change)
    standing = proposals.standing(snapshot, proposal)
    made = proposal.base_version is None
    present = None if made or proposal.record is None else found(snapshot, proposal.record)
    before = _before(snapshot, proposal, present)
    was: dict[str, Any] = {} if before is None else draft_of(before)
    draft = change if "state" in change else merge_patch(was, change)
    clashes = {each["field"]: each for each in standing["conflicts"]}
    gone = "state" in clashes
    if "state" in change:
        was = {"state": State.PUBLISHED, "replaced_by": None}
    wanted = [Difference(name, was.get(name), draft.get(name)) for name in change if was.get(name) != draft.get(name)]
    wanted = [each for each in wanted if each.before or each.after]
    since = [Difference(name, clash["base"], clash["current"]) for name, clash in clashes.items() if not gone]
    told = {each.field: each.pieces for each in alterations(snapshot, since)}
    undone = _undone(snapshot, proposal, standing["version"])
    who = {proposal.author, *([proposal.decider] if proposal.decider else []), *([undone.actor] if undone else [])}
    return Case(
        proposal=proposal,
        kind=_kind(proposal, change),
        name=_name(_became(snapshot, proposal)) or change.get("name") or _name(before),
        people=people(snapshot, who),
        points=[Point(each.field, each.pieces, told.get(each.field)) for each in alterations(snapshot, wanted)],
        draft=draft,
        present=present,
        gone=gone,
        version=standing["version"],
        undoable=standing["version"] is not None and _stands(snapshot, proposal, standing["version"]),
        undone=undone,
    )


def similar(finder: Finder, case: Case) -> list[Hit]:
    """Records that are called much like what a proposal would call one; none where it changes no name."""
    if case.kind == RETIRE or "name" not in orjson.loads(case.proposal.change):
        return []
    return finder.alike([case.name], case.proposal.collection, case.proposal.record)


def accept(
    transaction: Transaction, caller: Caller, identifier: str, wanted: Mapping[str, Any], version: int | None
) -> Saved:
    """Make a proposal so, with these fields as they are given here, whatever it says of them.

    Raises `Stale` where the record is not at this version, as it was looked at.
    """
    proposal = proposals.visible(transaction.connection, caller, identifier)
    draft = orjson.loads(proposal.change)
    if proposal.record is not None and version is not None:
        present = found(transaction.connection, proposal.record)
        refuse_stale(present.change, version)
        draft = merge_patch(draft_of(present.whole), draft)
    change = {name: _settling(draft.get(name), value) for name, value in wanted.items()}
    return proposals.accept(transaction, caller, identifier, change)


def undo(transaction: Transaction, caller: Caller, identifier: str) -> Saved:
    """Take back what a proposal made when it was accepted: a new record is retired, another is as it was before.

    Raises `Conflict` where it made nothing, or the record has changed since.
    """
    proposal = proposals.visible(transaction.connection, caller, identifier)
    version = proposals.standing(transaction.connection, proposal)["version"]
    if version is None or proposal.record is None:
        raise Conflict("There is nothing to undo: the proposal has changed nothing.")
    desk = Desk(transaction, caller)
    present = desk.any(proposal.record)
    if present.version != version:
        raise Conflict(f"{proposal.record} has been changed since. Its history has the way back.")
    if version == 1:
        return desk.retire(present)
    before = versions.find_version(transaction.connection, proposal.record, version - 1)
    assert before is not None
    return desk.revert(before, version)


def namesakes(snapshot: Snapshot, identifiers: Sequence[str]) -> list[list[Whole]]:
    """Those of these records that are called alike, together; without what is retired or merged by now."""
    groups: dict[tuple[str, str], list[Whole]] = {}
    present = log.latest(snapshot, identifiers)
    for identifier in identifiers:
        if identifier in present:
            whole = present[identifier].whole()
            if whole.state == State.PUBLISHED:
                groups.setdefault((whole.collection.name, name_key(whole.fields["name"])), []).append(whole)
    return [group for group in groups.values() if len(group) > 1]


def _waiting(proposal: Proposal, present: Change | None, author: str) -> Waiting:
    change: dict[str, Any] = orjson.loads(proposal.change)
    whole = None if present is None else present.whole()
    kind = _kind(proposal, change)
    return Waiting(
        proposal,
        kind,
        change.get("name", "") if whole is None else _name(whole),
        author,
        [] if kind != EDIT else list(change),
        present is not None and present.version != proposal.base_version,
    )


def _kind(proposal: Proposal, change: Mapping[str, Any]) -> str:
    if proposal.base_version is None:
        return NEW
    return RETIRE if "state" in change else EDIT


def _became(snapshot: Snapshot, proposal: Proposal) -> Whole | None:
    """The record that an accepted proposal has made or changed, as it is now."""
    accepted = proposal.state == Decision.ACCEPTED and proposal.record is not None
    return found(snapshot, proposal.record or "").whole if accepted else None


def _stands(snapshot: Snapshot, proposal: Proposal, version: int) -> bool:
    return proposal.record is not None and found(snapshot, proposal.record).version == version


def _undone(snapshot: Snapshot, proposal: Proposal, version: int | None) -> Change | None:
    """The change right after the one that a proposal made, where it was taken back by that."""
    if proposal.record is None or version is None:
        return None
    after = versions.find_version(snapshot, proposal.record, version + 1)
    before = versions.find_version(snapshot, proposal.record, version - 1)
    if after is None or before is None:
        return after if after is not None and after.action == Action.RETIRE else None
    then, now_is = before.whole(), after.whole()
    back = after.action == Action.REVERT and (draft_of(then), then.state) == (draft_of(now_is), now_is.state)
    return after if back else None


def _before(snapshot: Snapshot, proposal: Proposal, present: Saved | None) -> Whole | None:
    """What a proposal is held against: the record as it is while that is open, else as it was."""
    if present is None or proposal.base_version is None:
        return None
    if proposal.state == Decision.OPEN:
        return present.whole
    base = versions.find_version(snapshot, present.whole.id, proposal.base_version)
    assert base is not None
    return base.whole()


def _name(whole: Whole | None) -> str:
    return "" if whole is None else str(whole.fields["name"])


def _settling(would_be: Any, wanted: Any) -> Any:
    """What a merge patch must say of a field for it to become what is wanted."""
    return patch_between(would_be, wanted) if isinstance(would_be, dict) and isinstance(wanted, dict) else wanted
