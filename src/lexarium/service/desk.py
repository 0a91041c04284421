"""Writing records: what one caller does within one transaction, held to every rule."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import orjson

from lexarium.domain import drafts
from lexarium.domain.changes import Action, Change, Proposed, State, Whole, edges_of
from lexarium.domain.collections import Collection
from lexarium.domain.editing import created, draft_of, edited, merge_patch
from lexarium.domain.errors import Conflict, Gone, Invalid, Moved, NotFound, Problem, Stale
from lexarium.domain.merging import merged, named, survivor, turned
from lexarium.domain.proposals import Proposal
from lexarium.domain.relations import HIERARCHICAL, Edge, Relation, why_not_outside
from lexarium.domain.stamps import now
from lexarium.domain.text import unstorable
from lexarium.service.access import Caller, Deed
from lexarium.service.merging import footprints, refuse_entangled, survivors
from lexarium.store import edges, log, records, versions
from lexarium.store.backend import Snapshot
from lexarium.store.transaction import Transaction

_DEEPEST = 1_000


@dataclass(frozen=True)
class Saved:
    """A record as it is written, and the change that made it so."""

    whole: Whole
    change: Change
    warnings: tuple[str, ...] = ()
    """What the one who wrote it should know."""

    @property
    def version(self) -> int:
        """The version that it has now."""
        return self.change.version


Write = tuple[Change | None, Whole, Action]
"""A record's last change (None: it is new), what it shall be, and what that does to it."""


class Desk:
    """Where one caller, who needs the role that publishes, writes within one transaction.

    A record that is to be changed is handed over as `current` has read it in the same transaction. Where a `proposal`
    is accepted, what is written is its author's, but for what the caller puts in its place. With an `actor` the log
    names that one in place of the caller.
    """

    def __init__(
        self, transaction: Transaction, caller: Caller, proposal: Proposal | None = None, actor: str | None = None
    ) -> None:
        caller.require(Deed.PUBLISH)
        self._transaction = transaction
        self._actor = actor or caller.account.id
        self._proposal = proposal
        self._at = now()

    def create(self, collection: Collection, given: Mapping[str, Any]) -> Saved:
        """Publish a new record from a draft of v1."""
        return self.save_new([self.draft_new(collection, given)])[0]

    def create_valpha(self, collection: Collection, draft: Mapping[str, Any]) -> Saved:
        """Publish a new record from a checked draft of v-alpha."""
        return self.save_new([self._created(collection, draft)])[0]

    def draft_new(self, collection: Collection, given: Mapping[str, Any]) -> Whole:
        """A new record from a draft of v1, held to the rules; it is there once `save_new` has saved it."""
        return self._created(collection, checked(self._transaction, collection, given))

    def save_new(self, wholes: Sequence[Whole]) -> list[Saved]:
        """Publish new records, many as fast as one."""
        return self._save([(None, whole, Action.CREATE) for whole in wholes])

    def patch(self, before: Saved, patch: Mapping[str, Any]) -> Saved:
        """Apply a JSON merge patch to the draft of a record."""
        return self.edit(before, merge_patch(draft_of(before.whole), patch))

    def edit(self, before: Saved, given: Mapping[str, Any]) -> Saved:
        """Put a whole draft in place of what a record has; one that stays as it is keeps its version."""
        draft = checked(self._transaction, before.whole.collection, given, before.whole)
        return self._write(before, self._drafted(before.whole, draft), Action.UPDATE)

    def retire(self, before: Saved, replaced_by: str | None = None) -> Saved:
        """Take a record out of use; it keeps its history, and its identifier is never used again."""
        refuse_stand_in(self._transaction.connection, before.whole.id, replaced_by)
        whole = replace(before.whole, state=State.RETIRED, replaced_by=replaced_by)
        warnings = still_named(self._transaction.connection, before.whole)
        return replace(self._write(before, whole, Action.RETIRE), warnings=tuple(warnings))

    def relate(self, before: Saved, name: str, target: str) -> Saved:
        """Add a relation; one that is there already changes nothing."""
        edge, collection = Edge(before.whole.id, name, target), before.whole.collection
        if edge in before.whole.edges:
            return before
        relation = collection.relations.get(name)
        if relation is None:
            raise Invalid("The relation cannot be made.", [Problem("relation", _no_relation(collection))])
        why = _unrelatable(self._transaction, relation, before.whole.id, target)
        if why:
            raise Invalid("The relation cannot be made.", [Problem("target", why)])
        whole = replace(before.whole, edges=before.whole.edges | {edge})
        return self._write(before, self._touched(whole), Action.UPDATE)

    def unrelate(self, before: Saved, name: str, target: str) -> Saved:
        """Take a relation away. Raises `NotFound` where it is not there."""
        edge = Edge(before.whole.id, name, target)
        if edge not in before.whole.edges:
            raise NotFound(f"{edge.source} has no relation {name} to {target}.")
        whole = replace(before.whole, edges=before.whole.edges - {edge})
        return self._write(before, self._touched(whole), Action.UPDATE)

    def revert(self, past: Change, version: int) -> Saved:
        """Make a record what it was at an earlier version, as a new version. A retired one is published again.

        What it named then and is merged now is named by its survivor. One that is so already keeps its version.
        Raises `Conflict` for a version at which it was merged.
        """
        before = found(self._transaction.connection, past.record)
        refuse_stale(before.change, version)
        was = past.whole()
        if was.state == State.MERGED:
            raise Conflict(f"{past.record} was merged at version {past.version}. To merge it again, merge it.")
        if before.whole.state == State.MERGED:
            return self._unmerge(before, was)
        own = ("creation_time", "event_stamp", "last_updated")
        fields = {name: before.whole.fields[name] if name in own else value for name, value in was.fields.items()}
        after = self._followed(replace(was, fields=fields))
        return self._write(before, after if after == before.whole else self._touched(after), Action.REVERT)

    def set_back(self, several: Iterable[tuple[Change, Change | None]]) -> list[Saved]:
        """Make records, each handed over as it is and as it was, what they were; one that was not there is retired."""
        writes: list[Write] = []
        for present, past in several:
            after = replace(present.whole(), state=State.RETIRED) if past is None else self._followed(past.whole())
            writes.append((present, self._touched(after), Action.REVERT))
        return self._save(writes)

    def merge(self, gone: Saved, into: str) -> Saved:
        """Merge a record into another, which keeps its fields and gains names and relations; the survivor.

        Records that named the merged one, as what they relate to or as their class, name the survivor from then on.
        """
        identifier = gone.whole.id
        if into == identifier:
            raise Conflict("A record cannot be merged into itself.")
        kept = self.current(gone.whole.collection, into)
        writes: list[Write] = [
            (gone.change, merged(gone.whole, into), Action.MERGE),
            # Not held to the rules: an old record may break them, and what it has is not to be lost.
            (kept.change, self._drafted(kept.whole, survivor(kept.whole, gone.whole)), Action.MERGE),
        ]
        connection = self._transaction.connection
        pointing = {edge.source for edge in edges.touching(connection, [identifier])}
        if kept.whole.collection.is_class:
            pointing.update(versions.in_class(connection, identifier))
        for change in log.latest(connection, sorted(pointing - {identifier, into})).values():
            whole = change.whole()
            if whole.state != State.MERGED:
                writes.append((change, self._touched(turned(whole, {identifier: into})), Action.MERGE))
        return self._save(writes)[1]

    def current(self, collection: Collection, identifier: str, version: int | None = None) -> Saved:
        """The record as it is; raises where it is not there, gone, moved, or not at this version."""
        return current(self._transaction.connection, collection, identifier, version)

    def any(self, identifier: str) -> Saved:
        """The record of this identifier as it is, of whatever collection and state."""
        return found(self._transaction.connection, identifier)

    def _unmerge(self, before: Saved, was: Whole) -> Saved:
        """Undo a merge: what it added to other records is taken away again, whatever else they have become since."""
        connection = self._transaction.connection
        merge = versions.turning(connection, before.whole.id, State.MERGED)
        touched = footprints(connection, merge)
        refuse_entangled(connection, merge, touched, was)
        writes: list[Write] = [(before.change, self._touched(self._followed(was)), Action.REVERT)]
        for identifier, change in log.latest(connection, sorted(touched)).items():
            footprint, present = touched[identifier], change.whole()
            after = footprint.spelt(self._drafted(present, footprint.undone(present)))
            writes.append((change, after, Action.REVERT))
        return self._save(writes)[0]

    def _followed(self, whole: Whole) -> Whole:
        """The record with survivors in place of the merged ones that it names, and without relations to itself."""
        after = turned(whole, survivors(self._transaction.connection, named(whole), alive=whole.id))
        return replace(after, edges=frozenset(edge for edge in after.edges if edge.target != whole.id))

    def _created(self, collection: Collection, draft: Mapping[str, Any]) -> Whole:
        author = self._proposal.author if self._proposal else self._actor
        return created(collection, draft, author, self._definer(draft), self._at)

    def _drafted(self, whole: Whole, draft: Mapping[str, Any]) -> Whole:
        return edited(whole, draft, self._definer(draft), self._at)

    def _definer(self, draft: Mapping[str, Any]) -> str:
        """Whose the definition of a draft is, should it be new."""
        if self._proposal is None:
            return self._actor
        proposed = orjson.loads(self._proposal.change).get("definition_text")
        return self._proposal.author if draft.get("definition_text") == proposed else self._actor

    def _touched(self, whole: Whole) -> Whole:
        """The record with the mark of an edit."""
        if "last_updated" not in whole.fields:
            return whole
        return replace(whole, fields={**whole.fields, "last_updated": self._at})

    def _write(self, before: Saved, after: Whole, action: Action) -> Saved:
        if after == before.whole:
            return before
        return self._save([(before.change, after, action)])[0]

    def _save(self, writes: Sequence[Write]) -> list[Saved]:
        entries, added, removed = [], set[Edge](), set[Edge]()
        for before, after, action in writes:
            # Of an identifier that was minted just now nobody can have told yet.
            was: frozenset[Edge] = before.whole().edges if before else frozenset()
            added |= after.edges - was
            removed |= was - after.edges
            entries.append(log.Entry(after, before.version + 1 if before else 1, action))
        proposed = Proposed(self._proposal.id, self._proposal.author) if self._proposal else None
        changes = log.save(self._transaction, entries, actor=self._actor, at=self._at, proposed=proposed)
        log.relate(self._transaction, added, removed)
        if any(action in (Action.MERGE, Action.REVERT) for _, _, action in writes):
            self._refuse_circles(added)
        return [Saved(entry.whole, change) for entry, change in zip(entries, changes, strict=True)]

    def _refuse_circles(self, added: Iterable[Edge]) -> None:
        """Raise where one of these relations, which are written already, closes a circle."""
        for edge in sorted(added):
            if edge.relation in HIERARCHICAL:
                above = edges.walk(
                    self._transaction.connection, edge.target, HIERARCHICAL, upward=True, deepest=_DEEPEST
                )
                if edge.source in above or edge.source == edge.target:
                    raise Conflict(f"{edge.source} {edge.relation} {edge.target} would close a circle.")


def still_named(connection: Snapshot, whole: Whole) -> Iterator[str]:
    """What to tell of the published records that name one which is retired, or is to be."""
    related = edges.count_sources(connection, whole.id)
    if related:
        yield f"{_counted(related)} still related to it."
    members = versions.count_in_class(connection, whole.id) if whole.collection.is_class else 0
    if members:
        yield f"{_counted(members)} still in this class."


def _counted(number: int) -> str:
    return "1 record is" if number == 1 else f"{number:,} records are"


def found(connection: Snapshot, identifier: str, collection: Collection | None = None) -> Saved:
    """The record of this identifier as it is, in whatever state. Raises `NotFound` where there is none."""
    change = None if unstorable(identifier) else log.latest(connection, [identifier]).get(identifier)
    if change is None or (collection is not None and change.collection != collection.name):
        raise NotFound(f"There is no {collection.name if collection else 'record'} with the id {identifier!r}.")
    return Saved(change.whole(), change)


def current(connection: Snapshot, collection: Collection, identifier: str, version: int | None = None) -> Saved:
    """A published record as it is; raises where it is not there, gone, moved, or not at this version."""
    there = found(connection, identifier, collection)
    refuse_gone(there.whole)
    if version is not None:
        refuse_stale(there.change, version)
    return there


def refuse_gone(whole: Whole) -> None:
    """Raise where a record is retired or merged."""
    if whole.state == State.RETIRED:
        raise Gone(whole.id, whole.replaced_by)
    if whole.state == State.MERGED:
        assert whole.replaced_by is not None
        raise Moved(whole.id, whole.replaced_by)


def refuse_stale(found: Change, version: int) -> None:
    """Raise where a record is not at this version."""
    if found.version != version:
        what = f"{found.record} is at version {found.version} now, not at {version}."
        raise Stale(f"{what} Read it again, and change that.", version=found.version)


def refuse_stand_in(connection: Snapshot, identifier: str, replaced_by: str | None) -> None:
    """Raise `Invalid` where one record, which is not None, cannot stand in for another."""
    if replaced_by is None:
        return
    stand_in = None if unstorable(replaced_by) else records.find(connection, replaced_by)
    if stand_in is None or stand_in.state != State.PUBLISHED or replaced_by == identifier:
        raise Invalid("The record cannot be retired so.", [Problem("replaced_by", "names no other published record.")])


def checked(
    transaction: Transaction, collection: Collection, given: Mapping[str, Any], before: Whole | None = None
) -> dict[str, Any]:
    """A draft of v1, held to the rules, with every record it refers to looked up. All problems at once.

    Of an old record, only what is changed is held to them.
    """
    kept = draft_of(before) if before else None
    problems: list[Problem] = []
    draft: dict[str, Any] = {}
    try:
        draft = drafts.checked(collection, given, kept)
    except Invalid as error:
        problems += error.problems
    wrong = {problem.field.split("/")[0] for problem in problems}
    problems += dangling(transaction, collection, {k: v for k, v in given.items() if k not in wrong}, kept or {})
    if "relations" in given and "relations" not in wrong:
        known = edges_of(before.id, before.relations) if before else frozenset()
        problems += _misrelated(transaction, collection, before.id if before else None, given["relations"], known)
    if problems:
        raise Invalid(f"This is not a valid {collection.name}.", problems)
    return draft


def dangling(
    transaction: Transaction, collection: Collection, given: Mapping[str, Any], kept: Mapping[str, Any]
) -> list[Problem]:
    """What is wrong with the fields that name other records, where they are not as `kept` says."""
    problems = []
    for name, refers in collection.references.items():
        value = given.get(name)
        if refers.collection and isinstance(value, str) and value and value != kept.get(name):
            found = records.find(transaction.connection, value)
            if found is None or found.collection != refers.collection or found.state != State.PUBLISHED:
                problems.append(Problem(name, f"names no {refers.collection} that is in the catalogue."))
    return problems


def _misrelated(
    transaction: Transaction,
    collection: Collection,
    identifier: str | None,
    given: Mapping[str, Sequence[str]],
    known: frozenset[Edge],
) -> list[Problem]:
    problems = []
    for name, targets in given.items():
        relation = collection.relations.get(name)
        if relation is None:
            problems.append(Problem(f"relations/{name}", _no_relation(collection)))
            continue
        for place, target in enumerate(targets):
            if identifier is None or Edge(identifier, name, target) not in known:
                why = _unrelatable(transaction, relation, identifier, target)
                if why:
                    problems.append(Problem(f"relations/{name}/{place}", why))
    return problems


def _no_relation(collection: Collection) -> str:
    return f"is no relation of a {collection.name}; there are {', '.join(collection.relations)}."


def _unrelatable(transaction: Transaction, relation: Relation, source: str | None, target: str) -> str | None:
    """Why a relation cannot be made, or None."""
    if relation.target is None:
        return why_not_outside(target)
    stored = None if unstorable(target) else records.find(transaction.connection, target)
    if stored is None or stored.collection != relation.target or stored.state != State.PUBLISHED:
        return f"names no {relation.target} that is in the catalogue."
    if source == target:
        return "is the record itself, which cannot be related to itself."
    if relation.hierarchical and source is not None:
        above = edges.walk(transaction.connection, target, HIERARCHICAL, upward=True, deepest=_DEEPEST)
        if source in above:
            return f"would close a circle: {target} is below {source} already."
    return None
