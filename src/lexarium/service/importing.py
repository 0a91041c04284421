"""Bringing files into the catalogue: all of them or nothing."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from lexarium.domain.changes import Action, Change, Whole
from lexarium.domain.collections import COLLECTIONS, Collection
from lexarium.domain.completion import complete
from lexarium.domain.errors import ImportRefused, Problem
from lexarium.domain.hierarchy import cycles
from lexarium.domain.identifiers import SYSTEM_USER
from lexarium.domain.records import Fields
from lexarium.domain.relations import RELATIONS, Edge
from lexarium.domain.stamps import now
from lexarium.exchange import valpha
from lexarium.exchange.incoming import Incoming, Malformed
from lexarium.store import edges, integrity, log, records
from lexarium.store.database import Database
from lexarium.store.records import BATCH
from lexarium.store.staging import Stage, Staged
from lexarium.store.transaction import Transaction

KEPT = 1_000
"""How many warnings and problems are kept word by word; past that they are only counted."""

Progress = Callable[[str, int, int], None]
"""Called as work goes on: what is being done, how much is done, of how much."""


@dataclass
class Notes:
    """Things to tell, the first of them word by word."""

    kept: list[Problem] = field(default_factory=list)
    count: int = 0

    def add(self, where: str, what: str) -> None:
        """Note something about a place."""
        self.count += 1
        if len(self.kept) < KEPT:
            self.kept.append(Problem(where, what))


@dataclass
class Report:
    """What an import did, or with `dry_run` would do."""

    dry_run: bool
    created: Counter[str] = field(default_factory=Counter)
    updated: Counter[str] = field(default_factory=Counter)
    unchanged: Counter[str] = field(default_factory=Counter)
    relations_added: int = 0
    relations_removed: int = 0
    warnings: Notes = field(default_factory=Notes)

    @property
    def changed(self) -> bool:
        """Whether anything is other than before."""
        return bool(self.created or self.updated or self.relations_added or self.relations_removed)


class _DryRun(Exception):
    """Undoes the transaction of a dry run."""


def import_files(
    database: Database,
    files: Sequence[Path],
    *,
    collection: Collection | None = None,
    dry_run: bool = False,
    progress: Progress = lambda what, done, total: None,
) -> Report:
    """Import v-alpha JSON files, in any order, together. Raises `ImportRefused` with every problem, all files' alike.

    The files are read and checked before the catalogue is locked; records are compared with those that are there,
    so that what is the same already stays untouched.
    """
    report = Report(dry_run)
    problems = Notes()
    with Stage() as stage:
        total = sum(file.stat().st_size for file in files if file.is_file())
        done = 0
        for file in files:
            for incoming, read in _incoming(file, collection, problems):
                _stage(stage, incoming, f"{file}, line {incoming.line}", problems, report.warnings)
                progress("reading", done + read, total)
            done += file.stat().st_size if file.is_file() else 0
        _refuse(problems)
        try:
            with database.write() as transaction:
                _Application(transaction, stage, report, problems, progress).run()
                _refuse(problems)
                if dry_run:
                    raise _DryRun
        except _DryRun:
            pass
    return report


def _refuse(problems: Notes) -> None:
    if problems.count:
        count = "1 problem" if problems.count == 1 else f"{problems.count} problems"
        raise ImportRefused(f"Nothing was imported: {count}.", problems.kept)


def _incoming(file: Path, collection: Collection | None, problems: Notes) -> Iterator[tuple[Incoming, int]]:
    """The records of a file, each with how many bytes of it have been read."""
    named = COLLECTIONS.get(file.name.split(".")[0])
    try:
        with file.open("rb") as stream:
            for incoming in valpha.read(stream, collection, named):
                yield incoming, stream.tell()
    except OSError as error:
        problems.add(str(file), f"cannot be read: {error.strerror or error}")
    except Malformed as error:
        problems.add(f"{file}, line {error.line}, column {error.column}", error.reason)


def _stage(stage: Stage, incoming: Incoming, where: str, problems: Notes, warnings: Notes) -> None:
    for problem in incoming.problems:
        problems.add(where, problem)
    for warning in incoming.warnings:
        warnings.add(where, warning)
    if incoming.problems:
        return
    item = Staged(incoming.fields["id"], incoming.collection, incoming.fields, where)
    there = stage.add(item)
    if there is not None:
        if there.collection != item.collection:
            problems.add(where, f"{item.id} is a {item.collection} here, but a {there.collection} in {there.origin}")
            return
        for name in sorted(
            name for name in item.fields if there.fields.get(name, item.fields[name]) != item.fields[name]
        ):
            warnings.add(where, f"{name} of {item.id} is not what it is in {there.origin}; this one is kept")
        stage.replace(Staged(item.id, item.collection, there.fields | item.fields, where))
    stage.tell(item.id, incoming.edges, incoming.told)


def _definition(fields: Fields, otherwise: Fields) -> object:
    return fields.get("definition_text", otherwise.get("definition_text"))


class _Application:
    """Applies what is staged to the catalogue, within one transaction."""

    def __init__(
        self, transaction: Transaction, stage: Stage, report: Report, problems: Notes, progress: Progress
    ) -> None:
        self._transaction = transaction
        self._stage = stage
        self._report = report
        self._problems = problems
        self._progress = progress
        self._at = now()
        self._references: dict[str, str] = {}

    def run(self) -> None:
        self._drop_untold_edges()
        total = self._stage.count()
        done = 0
        for identifiers in self._stage.touched(BATCH):
            self._apply(identifiers)
            done += len(identifiers)
            self._progress("writing", done, total)
        self._warn_of_missing_references()
        if self._report.relations_added:
            self._warn_of_waiting_edges()
            self._warn_of_cycles()

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
                if ((edge.relation, "source", edge.source) in ends and edge.target in known)
                or ((edge.relation, "target", edge.target) in ends and edge.source in known)
            )

    def _known(self, identifiers: set[str]) -> set[str]:
        """Which of these records the catalogue or the import holds."""
        names = sorted(identifiers)
        there = set(self._stage.holds(names))
        for start in range(0, len(names), BATCH):
            there |= records.existing(self._transaction.connection, names[start : start + BATCH])
        return there

    def _apply(self, identifiers: list[str]) -> None:
        first, last = identifiers[0], identifiers[-1]
        staged = self._stage.staged(first, last)
        before = log.latest(self._transaction.connection, identifiers)
        present = edges.of_sources(self._transaction.connection, identifiers)
        told, dropped = set(self._stage.edges(first, last)), set(self._stage.dropped(first, last))
        there = {edge for several in present.values() for edge in several}
        added, removed = told - there, dropped & there
        by_source: dict[str, set[Edge]] = {identifier: set() for identifier in identifiers}
        for edge in (there | added) - removed:
            by_source[edge.source].add(edge)
        entries = []
        for identifier in identifiers:
            own = frozenset(by_source[identifier])
            entry = self._entry(staged.get(identifier), before.get(identifier), own)
            if entry is not None:
                entries.append(entry)
        log.save(self._transaction, entries, actor=SYSTEM_USER, at=self._at)
        log.relate(self._transaction, added, removed)
        self._report.relations_added += len(added)
        self._report.relations_removed += len(removed)

    def _entry(self, staged: Staged | None, before: Change | None, own: frozenset[Edge]) -> log.Entry | None:
        """The record as it shall be; None where it stays as it is, or is not there and only has relations."""
        if before is None:
            if staged is None:
                return None
            collection = COLLECTIONS[staged.collection]
            self._report.created[collection.name] += 1
            whole = Whole(collection, complete(collection, staged.fields, self._at), own)
            self._note_references(whole, staged.origin)
            return log.Entry(whole, 1, Action.CREATE)
        was = before.whole()
        whole = replace(was, edges=own)
        if staged is not None:
            if staged.collection != before.collection:
                what = f"{staged.id} is a {staged.collection} here, but a {before.collection} in the catalogue"
                self._problems.add(staged.origin, what)
                return None
            kept = was.fields
            if "def_id" not in staged.fields and _definition(staged.fields, kept) != _definition(kept, kept):
                # It is another definition, and whose and since when it is was not told.
                kept = {name: value for name, value in kept.items() if not name.startswith("def_")}
            whole = replace(whole, fields=complete(was.collection, kept | staged.fields, self._at))
            self._note_references(whole, staged.origin)
        if whole == was:
            self._report.unchanged[before.collection] += 1
            return None
        self._report.updated[before.collection] += 1
        return log.Entry(whole, before.version + 1, Action.UPDATE)

    def _note_references(self, whole: Whole, origin: str) -> None:
        for name, refers in whole.collection.references.items():
            if refers.collection and whole.fields[name]:
                self._references.setdefault(whole.fields[name], origin)

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
        for name in sorted(self._stage.relations()):
            if RELATIONS[name].hierarchical:
                for cycle in cycles(edges.named(self._transaction.connection, [name])):
                    self._report.warnings.add(name, f"comes back to where it began: {' → '.join(cycle)}")
