"""Bringing files into the catalogue: all of them or nothing."""

import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from typing import Self

from lexarium.domain.errors import VersionConflict
from lexarium.domain.import_merge import ConflictPreference
from lexarium.domain.progress import ProgressCallback, ignore_progress
from lexarium.domain.schema.collections import COLLECTIONS, Collection
from lexarium.domain.vocabulary import Vocabulary
from lexarium.formats.detection import SNIFF_BYTES, UnknownFormatError, detect_format, has_known_extension
from lexarium.formats.parsed import ParsedRecord, ParseError, ReadOptions
from lexarium.formats.reading import (
    STANDARD_INPUT,
    SourceDocument,
    UnreadableFileError,
    UnsupportedFileError,
    open_documents,
    reject_unsupported,
)
from lexarium.formats.registry import FORMATS, Format
from lexarium.formats.text_encoding import Utf8Stream
from lexarium.services.transfer import import_history
from lexarium.services.transfer.import_apply import ImportApplier
from lexarium.services.transfer.import_report import ImportReport, ProblemList, raise_if_problems
from lexarium.services.transfer.import_staging import RecordStager
from lexarium.store.database import Database
from lexarium.store.imports.stage import ImportStage
from lexarium.store.records import BATCH_SIZE

_DEFAULT_VOCABULARY = Vocabulary()
_NO_MAPPING: Mapping[str, str] = {}
_PROGRESS_INTERVAL = 100
"""After how many records progress is told."""


class _RollBackDryRun(Exception):
    """Undoes the transaction of a dry run."""


def import_files(  # noqa: PLR0913 (files, how they are to be read, and what is to be done with them)
    database: Database,
    files: Sequence[Path],
    *,
    vocabulary: Vocabulary = _DEFAULT_VOCABULARY,
    format: Format | None = None,
    collection: Collection | None = None,
    column_mapping: Mapping[str, str] = _NO_MAPPING,
    prefer: ConflictPreference | None = None,
    dry_run: bool = False,
    previewed_revision: int | None = None,
    progress: ProgressCallback = ignore_progress,
) -> ImportReport:
    """Import files, in any order, together. Raises `ImportRefused` with every problem, all files' alike.

    `looked_at` is the revision that a dry run was held against: it raises `Stale` where what that has shown is no
    longer what it would do to records that were there.

    The files are read and checked before the catalogue is locked; records are compared with those that are there,
    so that what is the same already stays untouched, and so does what people have changed since the last import.
    """
    options = ReadOptions(format or FORMATS["v-alpha"], vocabulary, collection, column_mapping=column_mapping)
    with _ImportRun(database, prefer, dry_run, progress, previewed_revision) as run:
        total = sum(_size(file) for file in files)
        bytes_done = 0
        for file in files:
            try:
                for document in open_documents(file):
                    run.read_document(document, options, format, bytes_done, total)
            except OSError as error:
                run.problems.add(str(file), f"cannot be read: {error.strerror or error}")
            except UnreadableFileError as error:
                run.problems.add("standard input" if file == STANDARD_INPUT else str(file), str(error))
            run.report_skipped()
            bytes_done += _size(file)
        return run.apply()


def import_records(  # noqa: PLR0913 (the same, for records that come from elsewhere)
    database: Database,
    source: str,
    records: Iterable[ParsedRecord],
    *,
    prefer: ConflictPreference | None = None,
    dry_run: bool = False,
    progress: ProgressCallback = ignore_progress,
) -> ImportReport:
    """Import records that are no file's, all of them or nothing, as `import_files` does. `source` names where from.

    `Malformed`, where `records` raises it, is a problem like any other.
    """
    with _ImportRun(database, prefer, dry_run, progress) as run:
        run.stage_records(source, records)
        return run.apply()


class _ImportRun:
    """One import: what has been read of it so far, and what there is to tell."""

    def __init__(
        self,
        database: Database,
        prefer: ConflictPreference | None,
        dry_run: bool,
        progress: ProgressCallback,
        previewed_revision: int | None = None,
    ) -> None:
        self.report = ImportReport(dry_run)
        self.problems = ProblemList()
        self._database = database
        self._prefer = prefer
        self._progress = progress
        self._previewed_revision = previewed_revision
        self._stage = ImportStage()
        self._stager = RecordStager(self._stage, self.problems, self.report.warnings)
        self._skipped: list[tuple[str, str]] = []
        """What of the present file was not read, and why."""
        self._has_read_any = False
        """Whether anything else of it was."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._stage.close()

    def read_document(
        self, document: SourceDocument, defaults: ReadOptions, format: Format | None, bytes_before: int, total: int
    ) -> None:
        """Take all that a document holds. So many bytes have been read before it, of so many in all."""
        text = Utf8Stream(document.stream)
        stream = io.BufferedReader(text, SNIFF_BYTES)
        try:
            reject_unsupported(document.head)
            file_format = _detect_format(document, stream.peek(SNIFF_BYTES), format)
        except (UnsupportedFileError, UnknownFormatError) as error:
            self._skipped.append((document.display_name, str(error)))
            return
        except ParseError as error:
            self._add_problem(document.display_name, error)
            return
        self._has_read_any = True
        options = replace(
            defaults, format=file_format, default_collection=COLLECTIONS.get(document.file_name.split(".")[0])
        )
        counts_before = self._stager.staged_count, self.problems.count
        self.stage_records(
            document.display_name,
            self._with_progress(file_format.codec.read(stream, options), document, bytes_before, total),
        )
        if counts_before == (self._stager.staged_count, self.problems.count):
            self.report.warnings.add(document.display_name, f"holds no records, read as {file_format.name}")
        if text.warning is not None:
            self.report.warnings.add(document.display_name, text.warning)

    def report_skipped(self) -> None:
        """What was not read of a file is only told of where something else of it was; else it is a mistake."""
        for location, reason in self._skipped:
            if self._has_read_any:
                self.report.warnings.add(location, f"was passed over: it {reason}")
            else:
                self.problems.add(location, reason)
        self._skipped.clear()
        self._has_read_any = False

    def stage_records(self, source: str, records: Iterable[ParsedRecord]) -> None:
        """Put records where they wait."""
        self._stager.set_source(source)
        try:
            for parsed in records:
                self._stager.stage(parsed)
        except ParseError as error:
            self._add_problem(source, error)

    def apply(self) -> ImportReport:
        """Apply all that was taken."""
        import_history.validate_versions(self._stage, self.problems)
        raise_if_problems(self.problems)
        is_large = self._stage.added_count > BATCH_SIZE
        with (
            self._database.initial_load() if is_large else nullcontext(),
            suppress(_RollBackDryRun),
            self._database.write() as transaction,
        ):
            self.report.base_revision = transaction.revision
            applier = ImportApplier(
                self._database,
                transaction,
                self._stage,
                self.report,
                self._prefer,
                previewed_revision=self._previewed_revision,
            )
            applier.apply(self._progress)
            raise_if_problems(applier.problems)
            self.report.last_revision = transaction.revision
            if applier.changed_since_preview:
                raise VersionConflict(
                    f"{applier.changed_since_preview} was changed after this was looked at. Nothing was imported."
                )
            if self.report.dry_run:
                raise _RollBackDryRun
        return self.report

    def _add_problem(self, source: str, error: ParseError) -> None:
        self.problems.add(f"{source}, line {error.line}, column {error.column}", error.reason)

    def _with_progress(
        self, records: Iterator[ParsedRecord], document: SourceDocument, bytes_before: int, total: int
    ) -> Iterator[ParsedRecord]:
        for number, parsed in enumerate(records):
            if number % _PROGRESS_INTERVAL == 0:
                self._progress("reading", bytes_before + document.bytes_read(), total)
            yield parsed


def _detect_format(document: SourceDocument, head: bytes, format: Format | None) -> Format:
    """How a document that begins so is to be read. Raises `Unrecognised`."""
    siblings_match = any(has_known_extension(name, format) for name in document.sibling_names)
    if format is None:
        return detect_format(document.file_name, head, allow_tables=not siblings_match)
    if siblings_match and not has_known_extension(document.file_name, format):
        raise UnknownFormatError(f"is not named as {format.name}, and others beside it are")
    return format


def _size(file: Path) -> int:
    return file.stat().st_size if file.is_file() else 0
