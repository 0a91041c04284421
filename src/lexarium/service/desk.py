"""Writing records: what one caller does within one transaction, held to every rule."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from lexarium.domain import drafts
from lexarium.domain.changes import Action, Change, State, Whole, edges_of
from lexarium.domain.collections import Collection
from lexarium.domain.editing import created, draft_of, edited, merge_patch
from lexarium.domain.errors import Conflict, Gone, Invalid, Moved, NotFound, Problem, Stale
from lexarium.domain.relations import RELATIONS, Edge, Relation
from lexarium.domain.stamps import now
from lexarium.domain.text import unstorable
from lexarium.service.access import Caller, Deed
from lexarium.store import edges, log, records, versions
from lexarium.store.transaction import Transaction

_OUTSIDE = re.compile(r"(?:https?://|urn:)\S+|[A-Za-z_][\w.-]*:\S+")
_DEEPEST = 1_000


@dataclass(frozen=True)
class Saved:
    """A record as it was written."""

    whole: Whole
    change: Change

    @property
    def version(self) -> int:
        """The version that it has now."""
        return self.change.version


class Desk:
    """Where one caller writes, within one transaction. Every method needs the role that publishes."""

    def __init__(self, transaction: Transaction, caller: Caller) -> None:
        caller.require(Deed.PUBLISH)
        self._transaction = transaction
        self._author = caller.account.id
        self._at = now()

    def create(self, collection: Collection, given: Mapping[str, Any]) -> Saved:
        """Publish a new record from a draft of v1."""
        return self.save_new([self.draft_new(collection, given)])[0]

    def create_valpha(self, collection: Collection, draft: Mapping[str, Any]) -> Saved:
        """Publish a new record from a checked draft of v-alpha."""
        return self.save_new([created(collection, draft, self._author, self._at)])[0]

    def draft_new(self, collection: Collection, given: Mapping[str, Any]) -> Whole:
        """A new record from a draft of v1, held to the rules; it is there once `save_new` has saved it."""
        draft = checked(self._transaction, collection, given)
        return created(collection, draft, self._author, self._at)

    def save_new(self, wholes: Sequence[Whole]) -> list[Saved]:
        """Publish new records, many as fast as one."""
        return self._save([(None, whole, Action.CREATE) for whole in wholes])

    def replace(self, collection: Collection, identifier: str, given: Mapping[str, Any], version: int) -> Saved:
        """Put a whole draft in place of what a record has; a record that stays as it is keeps its version."""
        before = self.current(collection, identifier, version)
        draft = checked(self._transaction, collection, given, before.whole())
        return self._edit(before, edited(before.whole(), draft, self._author, self._at), Action.UPDATE)

    def patch(self, collection: Collection, identifier: str, patch: Mapping[str, Any], version: int) -> Saved:
        """Apply a JSON merge patch to the draft of a record."""
        before = self.current(collection, identifier, version)
        return self.replace(collection, identifier, merge_patch(draft_of(before.whole()), patch), version)

    def retire(self, collection: Collection, identifier: str, version: int, replaced_by: str | None = None) -> Saved:
        """Take a record out of use; it keeps its history, and its identifier is never used again."""
        before = self.current(collection, identifier, version)
        if replaced_by is not None:
            stand_in = None if unstorable(replaced_by) else records.find(self._transaction.connection, replaced_by)
            if stand_in is None or stand_in.state != State.PUBLISHED or replaced_by == identifier:
                raise Invalid(
                    "The record cannot be retired so.", [Problem("replaced_by", "names no published record.")]
                )
        whole = replace(before.whole(), state=State.RETIRED, replaced_by=replaced_by)
        return self._edit(before, whole, Action.RETIRE)

    def relate(self, collection: Collection, identifier: str, version: int, name: str, target: str) -> Saved:
        """Add a relation; one that is there already changes nothing."""
        relations = self.current(collection, identifier, version).whole().relations
        targets = relations.get(name, [])
        patch = {"relations": {name: targets if target in targets else [*targets, target]}}
        return self.patch(collection, identifier, patch, version)

    def unrelate(self, collection: Collection, identifier: str, version: int, name: str, target: str) -> Saved:
        """Take a relation away. Raises `NotFound` where it is not there."""
        before = self.current(collection, identifier, version)
        edge = Edge(identifier, name, target)
        if edge not in before.whole().edges:
            raise NotFound(f"{identifier} has no relation {name} to {target}.")
        whole = replace(before.whole(), edges=before.whole().edges - {edge})
        return self._edit(before, self._touched(whole), Action.UPDATE)

    def revert(self, past: Change, version: int) -> Saved:
        """Make a record what it was at an earlier version, as a new version. A retired one is published again.

        One that is so already keeps its version. Raises `Conflict` for a version at which it was merged.
        """
        before = log.latest(self._transaction.connection, [past.record])[past.record]
        refuse_stale(before, version)
        was, present = past.whole(), before.whole()
        if was.state == State.MERGED:
            raise Conflict(f"{past.record} was merged at version {past.version}. To merge it again, merge it.")
        if present.state == State.MERGED:
            return self._unmerge(before, past)
        own = ("creation_time", "event_stamp", "last_updated")
        fields = {name: present.fields[name] if name in own else value for name, value in was.fields.items()}
        after = replace(was, fields=fields)
        return self._edit(before, after if after == present else self._touched(after), Action.REVERT)

    def merge(self, collection: Collection, identifier: str, version: int, into: str) -> Saved:
        """Merge a record into another, which keeps its fields and gains names and relations; the survivor."""
        before = self.current(collection, identifier, version)
        if into == identifier:
            raise Conflict("A record cannot be merged into itself.")
        survivor = self.current(collection, into)
        gone, kept = before.whole(), survivor.whole()
        names = {alias.text.casefold() for alias in kept.alias_list} | {kept.fields["name"].casefold()}
        gained = [{"text": gone.fields["name"]}, *(alias.model_dump() for alias in gone.alias_list)]
        new = {alias["text"].casefold(): alias for alias in gained if alias["text"].casefold() not in names}
        draft = draft_of(kept)
        draft["aliases"] += new.values()
        moved = {replace(edge, source=into) for edge in gone.edges if edge.target != into}
        draft["relations"] = replace(
            kept, edges=kept.edges - {Edge(into, r, identifier) for r in RELATIONS} | moved
        ).relations
        writes: list[tuple[Change | None, Whole, Action]] = [
            (before, replace(gone, state=State.MERGED, replaced_by=into, edges=frozenset()), Action.MERGE),
            # Not held to the rules: an old record may break them, and what it has is not to be lost.
            (survivor, edited(kept, draft, self._author, self._at), Action.MERGE),
        ]
        pointing = edges.touching(self._transaction.connection, [identifier])
        sources = sorted({edge.source for edge in pointing} - {identifier, into})
        for change in log.latest(self._transaction.connection, sources).values():
            whole = change.whole()
            turned = {replace(edge, target=into) if edge.target == identifier else edge for edge in whole.edges}
            writes.append((change, self._touched(replace(whole, edges=frozenset(turned))), Action.MERGE))
        return self._save(writes)[1]

    def current(self, collection: Collection, identifier: str, version: int | None = None) -> Change:
        """The record as it is; raises where it is not there, gone, moved, or not at this version."""
        found = (
            None if unstorable(identifier) else log.latest(self._transaction.connection, [identifier]).get(identifier)
        )
        if found is None or found.collection != collection.name:
            raise NotFound(f"There is no {collection.name} with the id {identifier!r}.")
        refuse_gone(found.whole())
        if version is not None:
            refuse_stale(found, version)
        return found

    def any(self, identifier: str) -> Change:
        """The record of this identifier as it is, of whatever collection and state."""
        found = (
            None if unstorable(identifier) else log.latest(self._transaction.connection, [identifier]).get(identifier)
        )
        if found is None:
            raise NotFound(f"There is no record with the id {identifier!r}.")
        return found

    def _unmerge(self, merged: Change, past: Change) -> Saved:
        """Undo a merge: what it added to other records is taken away again, whatever else they have become since."""
        writes: list[tuple[Change | None, Whole, Action]] = [(merged, self._touched(past.whole()), Action.REVERT)]
        for made in versions.in_batch(self._transaction.connection, merged.batch):
            if made.record == merged.record:
                continue
            was = versions.find_version(self._transaction.connection, made.record, made.version - 1)
            present = log.latest(self._transaction.connection, [made.record])[made.record]
            assert was is not None
            if present.whole().state == State.MERGED:
                continue
            before, after, whole = was.whole(), made.whole(), present.whole()
            aliases = tuple(
                alias for alias in whole.alias_list if alias in before.alias_list or alias not in after.alias_list
            )
            own = whole.edges - (after.edges - before.edges) | (before.edges - after.edges)
            draft = {**draft_of(whole), "aliases": [alias.model_dump() for alias in aliases]}
            draft["relations"] = replace(whole, edges=own).relations
            writes.append((present, edited(whole, draft, self._author, self._at), Action.REVERT))
        return self._save(writes)[0]

    def _touched(self, whole: Whole) -> Whole:
        """The record with the mark of an edit."""
        if "last_updated" not in whole.fields:
            return whole
        return replace(whole, fields={**whole.fields, "last_updated": self._at})

    def _edit(self, before: Change, after: Whole, action: Action) -> Saved:
        if after == before.whole():
            return Saved(after, before)
        return self._save([(before, after, action)])[0]

    def _save(self, writes: Sequence[tuple[Change | None, Whole, Action]]) -> list[Saved]:
        entries, added, removed = [], set[Edge](), set[Edge]()
        for before, after, action in writes:
            # Of an identifier that was minted just now nobody can have told yet.
            was: frozenset[Edge] = before.whole().edges if before else frozenset()
            added |= after.edges - was
            removed |= was - after.edges
            entries.append(log.Entry(after, before.version + 1 if before else 1, action))
        changes = log.save(self._transaction, entries, actor=self._author, at=self._at)
        log.relate(self._transaction, added, removed)
        if any(action in (Action.MERGE, Action.REVERT) for _, _, action in writes):
            self._refuse_circles(added)
        return [Saved(entry.whole, change) for entry, change in zip(entries, changes, strict=True)]

    def _refuse_circles(self, added: Iterable[Edge]) -> None:
        """Raise where one of these relations, which are written already, closes a circle."""
        for edge in sorted(added):
            if RELATIONS[edge.relation].hierarchical:
                above = edges.walk(
                    self._transaction.connection, edge.target, [edge.relation], upward=True, deepest=_DEEPEST
                )
                if edge.source in above or edge.source == edge.target:
                    raise Conflict(f"{edge.source} {edge.relation} {edge.target} would close a circle.")


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
        relation = RELATIONS.get(name)
        if relation is None or relation.source not in (None, collection.name):
            usable = ", ".join(each.name for each in RELATIONS.values() if each.source in (None, collection.name))
            problems.append(Problem(f"relations/{name}", f"is no relation of a {collection.name}; there are {usable}."))
            continue
        for place, target in enumerate(targets):
            if identifier is None or Edge(identifier, name, target) not in known:
                why = _unrelatable(transaction, relation, identifier, target)
                if why:
                    problems.append(Problem(f"relations/{name}/{place}", why))
    return problems


def _unrelatable(transaction: Transaction, relation: Relation, source: str | None, target: str) -> str | None:
    """Why a relation cannot be made, or None."""
    if relation.target is None:
        return None if _OUTSIDE.fullmatch(target) else "is neither an IRI nor a CURIE."
    found = records.find(transaction.connection, target)
    if found is None or found.collection != relation.target or found.state != State.PUBLISHED:
        return f"names no {relation.target} that is in the catalogue."
    if relation.hierarchical and source is not None:
        above = edges.walk(transaction.connection, target, [relation.name], upward=True, deepest=_DEEPEST)
        if source == target or source in above:
            return f"would close a circle: {target} is below {source} already."
    return None
