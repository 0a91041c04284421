"""Bringing files into the catalogue: all of them or nothing."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Literal, Self

from lexarium.domain.about import About
from lexarium.domain.changes import Action, Change, Whole
from lexarium.domain.collections import COLLECTIONS, Collection
from lexarium.domain.completion import complete
from lexarium.domain.hierarchy import cycles
from lexarium.domain.identifiers import SYSTEM_USER
from lexarium.domain.records import Fields
from lexarium.domain.relations import RELATIONS, Edge
from lexarium.domain.stamps import now
from lexarium.exchange.formats import FORMATS, Format
from lexarium.exchange.incoming import Incoming, Malformed, Reading
from lexarium.service.reports import Notes, Progress, Report, refuse, silent
from lexarium.store import edges, integrity, log, records
from lexarium.store.database import Database
from lexarium.store.records import BATCH
from lexarium.store.staging import Stage, Staged
from lexarium.store.transaction import Transaction

Preference = Literal["theirs", "ours"]
"""Whose value stands where a file and people have changed the same: the file's, or ours; both without remark."""

_ABOUT = About()
_NOTHING: Mapping[str, str] = {}


class _DryRun(Exception):
    """Undoes the transaction of a dry run."""


def import_files(  # noqa: PLR0913 (files, how they are to be read, and what is to be done with them)
    database: Database,
    files: Sequence[Path],
    *,
    about: About = _ABOUT,
    format: Format | None = None,
    collection: Collection | None = None,
    map: Mapping[str, str] = _NOTHING,
    prefer: Preference | None = None,
    dry_run: bool = False,
    progress: Progress = silent,
) -> Report:
    """Import files, in any order, together. Raises `ImportRefused` with every problem, all files' alike.

    The files are read and checked before the catalogue is locked; records are compared with those that are there,
    so that what is the same already stays untouched.
    """
    reading = Reading(format or FORMATS["v-alpha"], about, collection, map=map)
    with _Import(database, prefer, dry_run, progress) as work:
        total = sum(file.stat().st_size for file in files if file.is_file())
        done = 0
        for file in files:
            for incoming, read in _incoming(file, reading, work.problems):
                work.take(str(file), incoming)
                progress("reading", done + read, total)
            done += file.stat().st_size if file.is_file() else 0
        return work.finish()


def import_records(  # noqa: PLR0913 (the same, for records that come from elsewhere)
    database: Database,
    source: str,
    records: Iterable[Incoming],
    *,
    prefer: Preference | None = None,
    dry_run: bool = False,
    progress: Progress = silent,
) -> Report:
    """Import records that are no file's, all of them or nothing, as `import_files` does. `source` names where from.

    `Malformed`, where `records` raises it, is a problem like any other.
    """
    with _Import(database, prefer, dry_run, progress) as work:
        try:
            for incoming in records:
                work.take(source, incoming)
        except Malformed as error:
            work.problems.add(f"{source}, line {error.line}, column {error.column}", error.reason)
        return work.finish()


class _Import:
    """One import: what has been read of it so far, and what there is to tell."""

    def __init__(self, database: Database, prefer: Preference | None, dry_run: bool, progress: Progress) -> None:
        self.report = Report(dry_run)
        self.problems = Notes()
        self._database = database
        self._progress = progress
        self._stage = Stage()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._stage.close()

    def take(self, source: str, incoming: Incoming) -> None:
        """Put a record where it waits."""
        where = f"{source}, line {incoming.line}" if incoming.line else source
        _stage(self._stage, incoming, where, self.problems, self.report.warnings)

    def finish(self) -> Report:
        """Apply all that was taken."""
        refuse(self.problems)
        with suppress(_DryRun), self._database.write() as transaction:
            _Application(transaction, self._stage, self.report, self.problems, self._progress).run()
            refuse(self.problems)
            if self.report.dry_run:
                raise _DryRun
        return self.report


def _incoming(file: Path, reading: Reading, problems: Notes) -> Iterator[tuple[Incoming, int]]:
    """The records of a file, each with how many bytes of it have been read."""
    named = COLLECTIONS.get(file.name.split(".")[0])
    try:
        with file.open("rb") as stream:
            for incoming in reading.format.codec.read(stream, replace(reading, fallback=named)):
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
