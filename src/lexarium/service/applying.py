"""Applying what is staged to the catalogue, within one transaction."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import orjson

from lexarium.domain.aliases import Alias
from lexarium.domain.changes import Action, Change, State, Whole, edges_of, plain_document, relations_of
from lexarium.domain.collections import COLLECTIONS, Collection
from lexarium.domain.editing import altered
from lexarium.domain.editions import Preference, Settled, Told, Values, created, settled, untold, values_of
from lexarium.domain.hierarchy import circle_told, cycles
from lexarium.domain.identifiers import SYSTEM_USER
from lexarium.domain.merging import turned
from lexarium.domain.progress import Progress
from lexarium.domain.records import Fields
from lexarium.domain.relations import HIERARCHIES, RELATIONS, Edge
from lexarium.domain.rendering import filed_under, rendering_of
from lexarium.domain.stamps import now
from lexarium.service.identities import identify
from lexarium.service.merging import CIRCLE, impossible, not_merged, survivors
from lexarium.service.reports import Conflict, Notes, Report
from lexarium.service.retelling import retell
from lexarium.store import edges, integrity, log, records, upstream, versions
from lexarium.store.database import Database
from lexarium.store.records import BATCH
from lexarium.store.staging import Stage, Staged
from lexarium.store.transaction import Transaction

_RELATIONS = "relations"
"""Under which name relations stand among what imports told."""
_NONE: frozenset[Edge] = frozenset()
_PUBLISHED = State.PUBLISHED.value
_CLASS_COLLECTIONS = {
    refers.collection for each in COLLECTIONS.values() for refers in each.references.values() if refers.collection
}


class Application:
    """One import, being applied."""

    def __init__(  # noqa: PLR0913 (what is applied, to what, and how)
        self,
        database: Database,
        transaction: Transaction,
        stage: Stage,
        report: Report,
        prefer: Preference | None,
        *,
        looked_at: int | None = None,
    ) -> None:
        self._database = database
        self._transaction = transaction
        self._stage = stage
        self._report = report
        self._prefer = prefer
        self._looked_at = looked_at
        self._at = now()
        self._present = 0
        """How many records there were before."""
        self._related = False
        """Whether any of them had a relation."""
        self._some_untaken = False
        """Whether people have made something else of any of them than imports told."""
        self._loading = False
        """Whether more comes in than was there."""
        self._references: dict[str, str] = {}
        self._survivors: dict[str, str] = {}
        """Of those records that relations are told to, and that are merged here, what each has come to be."""
        self._classes: dict[str, str] = {}
        """The same of those that fields may name."""
        self._gone: dict[str, _Gone] = {}
        """How those records are gone that are told to have another in their place."""
        self.problems = Notes()
        """Why it cannot be applied: then the transaction is to be undone."""
        self.unseen = ""
        """A record that someone has changed since this was looked at, so that nobody has seen what becomes of it."""

    def run(self, progress: Progress) -> None:
        """Apply all of it."""
        retell(self._transaction, self._stage, self._report, progress)
        self._look_around()
        if self._stage.has_names:
            identify(self._transaction.connection, self._stage, self._report)
        self._stage.arrange()
        self._join_repeated()
        self._follow_merges()
        if self._related:
            self._drop_untold_edges()
        total = self._stage.count()
        # What is little is written so soon that it does not matter how.
        self._loading = total > max(self._present, BATCH)
        with self._database.loading(self._transaction) if self._loading else nullcontext():
            done = 0
            for identifiers in self._stage.touched(BATCH):
                self._apply(identifiers)
                done += len(identifiers)
                progress("writing", done, total)
        self._warn_of_missing_references()
        if self._report.relations_added:
            self._warn_of_waiting_edges()
            self._warn_of_cycles()
        shown = (*self._report.related, *self._report.unrelated)
        ends = {end for edge in shown for end in (edge.source, edge.target)}
        self._report.names = records.names(self._transaction.connection, sorted(ends))

    def _look_around(self) -> None:
        """See what there is: of what is not there, nothing is asked for later."""
        connection = self._transaction.connection
        self._present = records.total(connection)
        self._related = edges.any_there(connection)
        self._some_untaken = upstream.any_untaken(connection)

    def _join_repeated(self) -> None:
        """Make one of all that several files, or one several times, tell of a record; what was read last goes first."""
        for several in self._stage.repeated():
            whole = several[0]
            for item in several[1:]:
                where, there = self._place(item), self._place(whole)
                if item.collection != whole.collection:
                    what = f"{item.id} is a {item.collection} here, but a {whole.collection} in {there}"
                    self.problems.add(where, what)
                    continue
                for name in _differing(whole, item):
                    what = f"{name} of {item.id} is not what it is in {there}; this one is kept"
                    self._report.warnings.add(where, what)
                fields = {**whole.told_fields(), **item.told_fields()}
                rest = {**whole.told_rest(), **item.told_rest()}
                told = orjson.dumps(rest) if rest else b""
                whole = item._replace(fields=orjson.dumps(fields), rest=told, name=None)
            self._stage.replace(whole)

    def _drop_untold_edges(self) -> None:
        """An edge goes where a record of the import tells all its relations of that kind, and no record tells it."""
        for told in self._stage.told():
            ends = {(relation, side, identifier) for identifier, relation, side in told}
            present = edges.touching(self._transaction.connection, sorted({identifier for identifier, _, _ in told}))
            silent = present - self._stage.asserted(present)
            known = self._known({edge.source for edge in silent} | {edge.target for edge in silent})
            self._stage.drop(
                edge
                for edge in silent
                # Of a record that is not there, its teller could not have told.
                if ((edge.relation, "source", edge.source) in ends and (edge.target in known or _points_outside(edge)))
                or ((edge.relation, "target", edge.target) in ends and edge.source in known)
            )

    def _follow_merges(self) -> None:
        """Have relations and classes lead to what is merged here no more, and look into told merges.

        Relations that lead there already do so still.
        """
        connection = self._transaction.connection
        if self._present:
            for targets in self._stage.targets(BATCH):
                self._survivors |= survivors(connection, targets, alive="")
            for name in _CLASS_COLLECTIONS:
                merged = records.in_state(connection, name, State.MERGED)
                self._classes |= survivors(connection, merged, alive="")
        if self._survivors:
            names = sorted(self._survivors)
            batches = (names[start : start + BATCH] for start in range(0, len(names), BATCH))
            self._stage.turn(self._survivors, {edge for some in batches for edge in edges.touching(connection, some)})
        self._gone = {item.id: _Gone(item, self._stand_in(item)) for item in self._stage.gone()}
        self._doubt_merges()

    def _doubt_merges(self) -> None:
        """Where a record is told to be merged into what it cannot be, it is only retired."""
        connection = self._transaction.connection
        here = survivors(connection, {gone.into for gone in self._gone.values() if gone.into is not None}, alive="")
        merged: dict[str, str] = {}
        for identifier, gone in self._gone.items():
            gone.survivor = here.get(gone.into or "", gone.into)
            if gone.state == State.MERGED and gone.into is not None:
                merged[identifier] = gone.into
            elif gone.state == State.MERGED:
                gone.state = State.RETIRED
        names = sorted(set(merged.values()))
        collections = records.collections(connection, names) | dict(self._stage.collections(names))
        kinds = {identifier: self._gone[identifier].item.collection for identifier in merged}
        for identifier, why in impossible(connection, merged, kinds, collections).items():
            gone = self._gone[identifier]
            gone.state = State.RETIRED
            if why == CIRCLE:
                gone.into = gone.survivor = None
            self._report.warnings.add(self._place(gone.item), not_merged(identifier, why))

    def _known(self, identifiers: set[str]) -> set[str]:
        """Which of these records the catalogue or the import holds."""
        names = sorted(identifiers)
        there = set(self._stage.holds(names))
        for start in range(0, len(names), BATCH):
            there |= records.existing(self._transaction.connection, names[start : start + BATCH])
        return there

    def _apply(self, identifiers: list[str]) -> None:
        first, last = identifiers[0], identifiers[-1]
        connection = self._transaction.connection
        staged = self._stage.staged(first, last)
        before = log.latest(connection, identifiers) if self._present else {}
        present = edges.of_sources(connection, identifiers) if self._related else {}
        told, dropped = _by_source(self._stage.edges(first, last)), _by_source(self._stage.dropped(first, last))
        if self._loading and not (before or present or told or dropped):
            # Nothing but new records that no relation touches, as most of what is loaded.
            new = [self._loaded(staged[identifier], _UNMOVED) for identifier in identifiers]
            log.append(self._transaction, new, actor=SYSTEM_USER, at=self._at)
            return
        bases = self._bases(before)
        news: list[log.New] = []
        entries: list[log.Entry] = []
        shifts: list[_Shift] = []
        for identifier in identifiers:
            ends = present.get(identifier, _NONE), told.get(identifier, _NONE), dropped.get(identifier, _NONE)
            shift = _Shift(*ends) if any(ends) else _UNMOVED
            item, change = staged.get(identifier), before.get(identifier)
            if change is not None:
                changed = self._changed(item, change, shift, bases.get(identifier))
                # Whose value stands was said of those conflicts that were shown.
                if (changed or self._prefer) and self._looked_at is not None and change.seq > self._looked_at:
                    self.unseen = identifier
                entries += changed
            elif item is not None and self._loading:
                news.append(self._loaded(item, shift))
            elif item is not None:
                entries.append(log.Entry(self._new(item, shift), 1, Action.CREATE))
            if shift is not _UNMOVED:
                shifts.append(shift)
        log.append(self._transaction, news, actor=SYSTEM_USER, at=self._at)
        log.save(self._transaction, entries, actor=SYSTEM_USER, at=self._at)
        added = [edge for shift in shifts for edge in shift.added]
        removed = [edge for shift in shifts for edge in shift.removed]
        log.relate(self._transaction, added, removed)
        self._report.relate(added, removed)
        upstream.remember(
            self._transaction.connection, {identifier: base.untaken for identifier, base in bases.items()}
        )

    def _bases(self, before: Mapping[str, Change]) -> dict[str, "_Base"]:
        """What imports told of those records that people have edited since, or made."""
        connection = self._transaction.connection
        untaken = upstream.untaken(connection, list(before)) if self._some_untaken else {}
        edited = {identifier for identifier, change in before.items() if change.actor != SYSTEM_USER} | untaken.keys()
        imported = upstream.last_imported(connection, sorted(edited)) if edited else {}
        imported |= versions.find_versions(connection, _brought(untaken, imported))
        return {
            identifier: _Base(
                before[identifier],
                imported.get(identifier),
                untaken.get(identifier, {}),
                {**self._survivors, **self._classes},
            )
            for identifier in edited
        }

    def _loaded(self, item: Staged, shift: "_Shift") -> log.New:
        """A record that is not there, ready to be written. One whose fields are all told is as it was read."""
        if item.name is None or item.class_id in self._classes:
            whole = self._new(item, shift)
            name, filed = whole.fields["name"], filed_under(whole.fields)
            return log.New(item.id, item.collection, whole.state.value, name, whole.rendering, *filed, whole.document())
        self._report.created[item.collection] += 1
        self._report.show("created", item.id, item.collection, item.name)
        if item.class_id and item.class_id not in self._references:
            self._references[item.class_id] = self._place(item)
        rendering = rendering_of(COLLECTIONS[item.collection], item.id, item.name, item.fields)
        document = plain_document(item.fields, _NONE if shift is _UNMOVED else shift.edges)
        filed = item.class_id, item.owner, bool(item.flagged)
        return log.New(item.id, item.collection, _PUBLISHED, item.name, rendering, *filed, document)

    def _new(self, item: Staged, shift: "_Shift") -> Whole:
        whole = created(self._told(item), self._at)
        self._report.created[item.collection] += 1
        self._report.show("created", item.id, item.collection, whole.fields["name"])
        if shift is not _UNMOVED:
            whole = replace(whole, edges=shift.edges)
        self._note_references(whole.collection, whole.fields, item)
        return whole

    def _changed(self, item: Staged | None, before: Change, shift: "_Shift", base: "_Base | None") -> list[log.Entry]:
        """The record as it shall be, unless it stays as it is. What `base` says is brought up to date."""
        was = before.whole()
        if not self._acceptable(item, was):
            shift.cancel()
            return []
        told = Told(was.collection, {}) if item is None else self._told(item, was)
        if item is not None and told.state is None and _was_undone(before, was):
            told = replace(told, state=State.PUBLISHED)
        result = settled(was, None if base is None else base.values, told, self._prefer, self._at)
        if base is not None:
            base.take(result.untaken, shift, self._prefer)
        if item is not None:
            self._note_conflicts(result, item)
            self._note_references(was.collection, result.whole.fields, item)
        whole = replace(result.whole, edges=shift.edges)
        if whole == was:
            self._report.unchanged[before.collection] += 1
            return []
        retired = whole.state == State.RETIRED != was.state
        kind, counter = ("retired", self._report.retired) if retired else ("updated", self._report.updated)
        counter[before.collection] += 1
        if self._report.shows(kind):
            self._report.show(kind, was.id, before.collection, whole.fields["name"], altered(was, whole))
        return [log.Entry(whole, before.version + 1, Action.RETIRE if retired else Action.UPDATE)]

    def _acceptable(self, item: Staged | None, was: Whole) -> bool:
        if item is not None and item.collection != was.collection.name:
            what = f"{item.id} is a {item.collection} here, but a {was.collection.name} in the catalogue"
            self.problems.add(self._place(item), what)
            return False
        if was.state == State.MERGED:
            if item is not None:
                what = f"{item.id} was merged into {was.replaced_by}; what is told of it is left out"
                self._report.warnings.add(self._place(item), what)
                self._report.refused += 1
                self._report.show("refused", item.id, item.collection, was.fields["name"])
            return False
        return True

    def _told(self, item: Staged, was: Whole | None = None) -> Told:
        collection = COLLECTIONS[item.collection]
        fields = {**item.told_fields(), "id": item.id}
        if self._classes:
            _lead(collection, fields, self._classes)
        if not item.rest:
            return Told(collection, fields)
        rest = item.told_rest()
        aliases, sources, state = (rest.get(name) for name in ("aliases", "sources", "state"))
        gone = self._gone.get(item.id)
        if gone is not None:
            state = gone.state
        return Told(
            collection,
            fields,
            None if aliases is None else tuple(Alias.model_construct(**alias) for alias in aliases),
            None if sources is None else tuple(sources),
            None if state is None else State(state),
            None if gone is None else gone.stand_in(was),
        )

    def _stand_in(self, item: Staged) -> str | None:
        """What replaces a record, as an id."""
        rest = item.told_rest()
        name: str = rest["replaced_by"]
        if not rest.get("loosely"):
            return name
        identifier = self._stage.identified(name)
        if identifier is None:
            what = f"{name}, which stands in for {item.id}, is in neither the import nor the catalogue; it is left out"
            self._report.warnings.add(self._place(item), what)
        return identifier

    def _note_conflicts(self, result: Settled, item: Staged) -> None:
        for each in result.conflicts:
            self._report.conflicts.add(Conflict(self._place(item), item.id, each.field, each.before, each.after))

    def _note_references(self, collection: Collection, fields: Fields, item: Staged) -> None:
        for name in collection.class_fields:
            value = fields[name]
            if value and value not in self._references:
                self._references[value] = self._place(item)

    def _place(self, item: Staged) -> str:
        return self._stage.place(item.source, item.line)

    def _warn_of_missing_references(self) -> None:
        names = sorted(self._references)
        for start in range(0, len(names), BATCH):
            some = names[start : start + BATCH]
            there = records.existing(self._transaction.connection, some)
            for name in some:
                if name not in there:
                    self._report.warnings.add(self._references[name], f"the class {name} is not in the catalogue")

    def _warn_of_waiting_edges(self) -> None:
        waiting = integrity.dangling(self._transaction.connection)
        if waiting:
            self._report.warnings.add("relations", f"{waiting:,} wait for a record that is not in the catalogue")

    def _warn_of_cycles(self) -> None:
        told = self._stage.relations()
        for relations in HIERARCHIES.values():
            if told.intersection(relations):
                for cycle in cycles(edges.inner(self._transaction.connection, relations)):
                    self._report.warnings.add("relations", circle_told(relations, cycle))


class _Gone:
    """How a record is gone that is told to have another in its place."""

    def __init__(self, item: Staged, into: str | None) -> None:
        # Not its fields: there may be many.
        self.item = item._replace(fields=b"", rest=b"")
        self.state = State(item.told_rest()["state"])
        self.into = self.survivor = into
        """What is told to be in its place; what that has come to be here."""

    def stand_in(self, was: Whole | None) -> str | None:
        """What is in its place from now on; what was in it already stays."""
        return self.into if was is not None and was.replaced_by == self.into else self.survivor


class _Shift:
    """How the relations of one record move."""

    def __init__(self, there: frozenset[Edge], told: frozenset[Edge], dropped: frozenset[Edge]) -> None:
        self.told = told
        self.dropped = dropped
        self.added = told - there
        self.removed = dropped & there
        self._there = there

    @property
    def edges(self) -> frozenset[Edge]:
        """What it comes to."""
        return (self._there | self.added) - self.removed

    def keep_local(self, base: frozenset[Edge]) -> None:
        """What people took away since the last import does not come back, and what they added stays."""
        self.added -= base
        self.removed &= base

    def cancel(self) -> None:
        """Leave all as it is."""
        self.added = self.removed = _NONE


_UNMOVED = _Shift(_NONE, _NONE, _NONE)


class _Base:
    """What imports told of a record that people have edited since, or made."""

    def __init__(
        self, present: Change, imported: Change | None, untaken: Mapping[str, Any], survivors: Mapping[str, str]
    ) -> None:
        whole = untold(present.whole()) if imported is None else imported.whole()
        relations = untaken.get(_RELATIONS)
        self.edges = whole.edges if relations is None else edges_of(whole.id, relations)
        self.edges = turned(replace(whole, edges=self.edges), survivors).edges
        other = {name: value for name, value in untaken.items() if name not in (_RELATIONS, upstream.BROUGHT)}
        self.values: Values = values_of(whole) | other
        _lead(whole.collection, self.values, survivors)
        self.untaken = dict(untaken)
        """Where the record is something else."""
        self._brought: Values = {}
        if imported is not None and imported.actor != SYSTEM_USER:
            self._brought[upstream.BROUGHT] = imported.version

    def take(self, untaken: Values, shift: _Shift, prefer: Preference | None) -> None:
        """Hear what an import told, and move the relations but for what people made of them."""
        theirs = (self.edges - shift.dropped) | shift.told
        if prefer != "theirs":
            shift.keep_local(self.edges)
        self.untaken = {**untaken, **self._brought}
        if theirs != shift.edges:
            self.untaken[_RELATIONS] = relations_of(theirs)


def _was_undone(last: Change, was: Whole) -> bool:
    """Whether a record is retired only because the import that brought it was undone: the next may bring it again."""
    return was.state == State.RETIRED and (last.actor, last.action) == (SYSTEM_USER, Action.REVERT)


def _brought(untaken: Mapping[str, Values], imported: Mapping[str, Change]) -> list[tuple[str, int]]:
    """The versions, made elsewhere, that an import brought with a record's history and none has followed since."""
    brought = {identifier: told[upstream.BROUGHT] for identifier, told in untaken.items() if upstream.BROUGHT in told}
    return [
        (identifier, version)
        for identifier, version in brought.items()
        if identifier not in imported or imported[identifier].version < version
    ]


def _lead(collection: Collection, fields: Values, survivors: Mapping[str, str]) -> None:
    """Put survivors in place of the merged records that fields name."""
    for name in collection.class_fields:
        if fields.get(name) in survivors:
            fields[name] = survivors[fields[name]]


def _differing(one: Staged, other: Staged) -> Iterator[str]:
    """What both tell of a record, and not alike."""
    before = {**one.told_fields(), **one.told_rest()}
    for name, value in sorted({**other.told_fields(), **other.told_rest()}.items()):
        if before.get(name, value) != value:
            yield name


def _points_outside(edge: Edge) -> bool:
    return RELATIONS[edge.relation].target is None


def _by_source(several: Iterable[Edge]) -> dict[str, frozenset[Edge]]:
    found: dict[str, set[Edge]] = {}
    for edge in several:
        found.setdefault(edge.source, set()).add(edge)
    return {source: frozenset(some) for source, some in found.items()}
