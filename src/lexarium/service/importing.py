"""Bringing files into the catalogue: all of them or nothing."""

import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from typing import Self

from lexarium.domain.about import About
from lexarium.domain.collections import COLLECTIONS, Collection
from lexarium.domain.editions import Preference
from lexarium.domain.errors import Stale
from lexarium.domain.progress import Progress, silent
from lexarium.exchange.decoding import Utf8
from lexarium.exchange.formats import FORMATS, Format
from lexarium.exchange.incoming import Incoming, Malformed, Reading
from lexarium.exchange.opening import STANDARD_INPUT, Foreign, Part, Unreadable, parts, refuse_foreign
from lexarium.exchange.recognition import HEAD, Unrecognised, recognise, tells
from lexarium.service import retelling
from lexarium.service.applying import Application
from lexarium.service.intake import Intake
from lexarium.service.reports import Notes, Report, refuse
from lexarium.store.database import Database
from lexarium.store.records import BATCH
from lexarium.store.staging import Stage

_ABOUT = About()
_NOTHING: Mapping[str, str] = {}
_STEP = 100
"""After how many records progress is told."""


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
    looked_at: int | None = None,
    progress: Progress = silent,
) -> Report:
    """Import files, in any order, together. Raises `ImportRefused` with every problem, all files' alike.

    `looked_at` is the revision that a dry run was held against: it raises `Stale` where what that has shown is no
    longer what it would do to records that were there.

    The files are read and checked before the catalogue is locked; records are compared with those that are there,
    so that what is the same already stays untouched, and so does what people have changed since the last import.
    """
    reading = Reading(format or FORMATS["v-alpha"], about, collection, map=map)
    with _Import(database, prefer, dry_run, progress, looked_at) as work:
        total = sum(_size(file) for file in files)
        done = 0
        for file in files:
            try:
                for part in parts(file):
                    work.read(part, reading, format, done, total)
            except OSError as error:
                work.problems.add(str(file), f"cannot be read: {error.strerror or error}")
            except Unreadable as error:
                work.problems.add("standard input" if file == STANDARD_INPUT else str(file), str(error))
            work.tell_passed_over()
            done += _size(file)
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
        work.take(source, records)
        return work.finish()


class _Import:
    """One import: what has been read of it so far, and what there is to tell."""

    def __init__(
        self,
        database: Database,
        prefer: Preference | None,
        dry_run: bool,
        progress: Progress,
        looked_at: int | None = None,
    ) -> None:
        self.report = Report(dry_run)
        self.problems = Notes()
        self._database = database
        self._prefer = prefer
        self._progress = progress
        self._looked_at = looked_at
        self._stage = Stage()
        self._intake = Intake(self._stage, self.problems, self.report.warnings)
        self._passed_over: list[tuple[str, str]] = []
        """What of the present file was not read, and why."""
        self._read_any = False
        """Whether anything else of it was."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._stage.close()

    def read(self, part: Part, reading: Reading, format: Format | None, before: int, total: int) -> None:
        """Take all that a document holds. So many bytes have been read before it, of so many in all."""
        text = Utf8(part.stream)
        stream = io.BufferedReader(text, HEAD)
        try:
            refuse_foreign(part.head)
            found = _format_of(part, stream.peek(HEAD), format)
        except (Foreign, Unrecognised) as error:
            self._passed_over.append((part.place, str(error)))
            return
        except Malformed as error:
            self._note(part.place, error)
            return
        self._read_any = True
        how = replace(reading, format=found, fallback=COLLECTIONS.get(part.name.split(".")[0]))
        before_it = self._intake.taken, self.problems.count
        self.take(part.place, self._watched(found.codec.read(stream, how), part, before, total))
        if before_it == (self._intake.taken, self.problems.count):
            self.report.warnings.add(part.place, f"holds no records, read as {found.name}")
        if text.warning is not None:
            self.report.warnings.add(part.place, text.warning)

    def tell_passed_over(self) -> None:
        """What was not read of a file is only told of where something else of it was; else it is a mistake."""
        for place, why in self._passed_over:
            if self._read_any:
                self.report.warnings.add(place, f"was passed over: it {why}")
            else:
                self.problems.add(place, why)
        self._passed_over.clear()
        self._read_any = False

    def take(self, source: str, records: Iterable[Incoming]) -> None:
        """Put records where they wait."""
        self._intake.begin(source)
        try:
            for incoming in records:
                self._intake.take(incoming)
        except Malformed as error:
            self._note(source, error)

    def finish(self) -> Report:
        """Apply all that was taken."""
        retelling.check(self._stage, self.problems)
        refuse(self.problems)
        much = self._stage.added > BATCH
        with (
            self._database.alone() if much else nullcontext(),
            suppress(_DryRun),
            self._database.write() as transaction,
        ):
            self.report.revision = transaction.revision
            application = Application(
                self._database, transaction, self._stage, self.report, self._prefer, looked_at=self._looked_at
            )
            application.run(self._progress)
            refuse(application.problems)
            self.report.until = transaction.revision
            if application.unseen:
                raise Stale(f"{application.unseen} was changed after this was looked at. Nothing was imported.")
            if self.report.dry_run:
                raise _DryRun
        return self.report

    def _note(self, source: str, error: Malformed) -> None:
        self.problems.add(f"{source}, line {error.line}, column {error.column}", error.reason)

    def _watched(self, records: Iterator[Incoming], part: Part, before: int, total: int) -> Iterator[Incoming]:
        for number, incoming in enumerate(records):
            if number % _STEP == 0:
                self._progress("reading", before + part.consumed(), total)
            yield incoming


def _format_of(part: Part, head: bytes, format: Format | None) -> Format:
    """How a document that begins so is to be read. Raises `Unrecognised`."""
    others_tell = any(tells(name, format) for name in part.beside)
    if format is None:
        return recognise(part.name, head, guess=not others_tell)
    if others_tell and not tells(part.name, format):
        raise Unrecognised(f"is not named as {format.name}, and others beside it are")
    return format


def _size(file: Path) -> int:
    return file.stat().st_size if file.is_file() else 0
