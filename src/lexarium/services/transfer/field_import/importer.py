"""Import files or parsed records in one transaction, or try it in a dry run."""

import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing, nullcontext, suppress
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

from lexarium.domain.editing.import_merge import ConflictPreference
from lexarium.domain.identifiers import SYSTEM_USER_ID
from lexarium.domain.progress import ProgressCallback, ignore_progress
from lexarium.domain.schema.collections import VOCABULARY, Collection, find_collection
from lexarium.domain.vocabulary import VOCABULARIES, Vocabulary, get_default_vocabulary
from lexarium.formats import reading
from lexarium.formats.detection import SNIFF_BYTES, UnknownFormatError, detect_document_format
from lexarium.formats.json import jsonl
from lexarium.formats.parsed import ParsedRecord, ParseError, ReadOptions
from lexarium.formats.registry import FORMATS, Format
from lexarium.formats.text_encoding import Utf8Stream
from lexarium.services.transfer.field_import import history
from lexarium.services.transfer.field_import.apply import ImportApplier
from lexarium.services.transfer.field_import.heads import HeadStage
from lexarium.services.transfer.field_import.staging import RecordStager
from lexarium.services.transfer.import_report import ImportReport, ProblemList
from lexarium.services.transfer.import_request import RollBackDryRun
from lexarium.services.transfer.name_check import report_repeated_names
from lexarium.store.database import Database
from lexarium.store.imports import base_values
from lexarium.store.imports.stage import ImportStage
from lexarium.store.records import BATCH_SIZE

_DEFAULT_VOCABULARY = Vocabulary()
_NO_MAPPING: Mapping[str, str] = {}
_PROGRESS_INTERVAL = 100


def import_files(  # noqa: PLR0913
    database: Database,
    files: Sequence[Path],
    *,
    vocabulary: Vocabulary | None = _DEFAULT_VOCABULARY,
    format: Format | None = None,
    collection: Collection | None = None,
    column_mapping: Mapping[str, str] = _NO_MAPPING,
    only_adds: bool = False,
    prefer: ConflictPreference | None = None,
    dry_run: bool = False,
    previewed_revision: int | None = None,
    actor: str = SYSTEM_USER_ID,
    require_access: Callable[[str], None] = lambda slug: None,
    progress: ProgressCallback = ignore_progress,
) -> ImportReport:
    """Import files together, in any order; raise ImportRejected with the problems of all files.

    The files are read and validated before the catalogue is locked. Records that are equal stay untouched, and so do
    values that people have changed since the last import. With `only_adds` nothing is removed from them or replaced.

    Without a vocabulary, JSON Lines go into the one that they name, all else into the default one. JSON Lines create
    it if it is not there.

    `require_access` is called with each vocabulary that the import writes to, and raises if it may not.

    `previewed_revision` is the base revision of a dry run: raise VersionConflict if the import would now do something
    else to existing records.
    """
    target = vocabulary or get_default_vocabulary()
    options = ReadOptions(format or FORMATS["v-alpha"], target, collection, column_mapping=column_mapping)
    with closing(
        _ImportRun(
            database,
            prefer,
            dry_run,
            progress,
            previewed_revision=previewed_revision,
            # A collection that does not fit is more often a mistake of the user than a further class.
            may_add_classes=collection is None,
            actor=actor,
            require_access=require_access,
            only_adds=only_adds,
        )
    ) as run:
        run.total_bytes = sum(map(_size, files))
        run.follows_files = vocabulary is None
        for file in files:
            try:
                for document in reading.open_documents(file):
                    run.read_document(document, options, format)
            except OSError as error:
                run.problems.add(str(file), f"cannot be read: {error.strerror or error}")
            except reading.UnreadableFileError as error:
                run.problems.add("standard input" if file == reading.STANDARD_INPUT else str(file), str(error))
            run.report_skipped()
            run.bytes_done += _size(file)
        return run.apply()


def import_records(  # noqa: PLR0913
    database: Database,
    source: str,
    records: Iterable[ParsedRecord],
    *,
    prefer: ConflictPreference | None = None,
    dry_run: bool = False,
    progress: ProgressCallback = ignore_progress,
) -> ImportReport:
    """Import records from a source other than files, as `import_files` does. They may raise ParseError."""
    with closing(_ImportRun(database, prefer, dry_run, progress)) as run:
        run.stage_records(source, records)
        return run.apply()


@dataclass
class _ImportRun:
    database: Database
    prefer: ConflictPreference | None
    dry_run: bool
    progress: ProgressCallback
    previewed_revision: int | None = None
    may_add_classes: bool = True
    actor: str = SYSTEM_USER_ID
    require_access: Callable[[str], None] = lambda slug: None
    only_adds: bool = False

    def __post_init__(self) -> None:
        self.report = ImportReport(self.dry_run)
        self.problems = ProblemList()
        self.bytes_done = self.total_bytes = 0
        self._stage = ImportStage()
        self._stager = RecordStager(self._stage, self.problems, self.report.warnings)
        # Documents of the current file that were not read, with the reason.
        self._skipped: list[tuple[str, str]] = []
        self._has_read_any = False
        # Whether JSON Lines go into the vocabulary that they name.
        self.follows_files = False
        self._heads = HeadStage(self.problems, self.report)

    def close(self) -> None:
        self._stage.close()
        self._heads.close(self.database)

    def read_document(self, document: reading.SourceDocument, defaults: ReadOptions, format: Format | None) -> None:
        text = Utf8Stream(document.stream)
        stream = io.BufferedReader(text, SNIFF_BYTES)
        try:
            reading.reject_unsupported(document.head)
            file_format = _detect_format(document, stream.peek(SNIFF_BYTES), format)
        except (reading.UnsupportedFileError, UnknownFormatError) as error:
            self._skipped.append((document.display_name, str(error)))
            return
        except ParseError as error:
            self._add_problem(document.display_name, error)
            return
        self._has_read_any = True
        default_collection = find_collection(document.file_name.split(".")[0])
        options = replace(defaults, format=file_format, default_collection=default_collection)
        named = jsonl.find_vocabularies(stream.peek(SNIFF_BYTES)) if file_format.name == "jsonl" else []
        if len(named) > 1 and not self.follows_files:
            message = f"has several vocabularies, {', '.join(named)}; import it without --vocabulary"
            self.problems.add(document.display_name, message)
            return
        if named and self.follows_files:
            options = replace(options, vocabulary=VOCABULARIES.get(named[0]) or Vocabulary(named[0]))
        for slug in named if self.follows_files and named else [options.vocabulary.slug]:
            self.require_access(slug)
        self.report.vocabulary = options.vocabulary.slug
        counts_before = self._stager.staged_count, self.problems.count
        self.stage_records(document.display_name, file_format.codec.read(stream, options), document)
        if counts_before == (self._stager.staged_count, self.problems.count):
            self.report.warnings.add(document.display_name, f"has no records, read as {file_format.name}")
        if text.warning is not None:
            self.report.warnings.add(document.display_name, text.warning)

    def report_skipped(self) -> None:
        """Warn of skipped documents of an archive. If nothing of a file was read, they are problems."""
        for location, reason in self._skipped:
            if self._has_read_any:
                self.report.warnings.add(location, f"was skipped: it {reason}", is_loss=True)
            else:
                self.problems.add(location, reason)
        self._skipped.clear()
        self._has_read_any = False

    def stage_records(
        self, source: str, records: Iterable[ParsedRecord], document: reading.SourceDocument | None = None
    ) -> None:
        self._stager.set_source(source)
        try:
            for number, parsed in enumerate(records):
                if number % _PROGRESS_INTERVAL == 0 and document is not None:
                    self.progress("reading", self.bytes_done + document.bytes_read(), self.total_bytes)
                if parsed.collection == VOCABULARY.name and not parsed.problems:
                    self._heads.add(source, parsed)
                else:
                    self._heads.register()
                    self._stager.stage(parsed)
            self._heads.register()
        except ParseError as error:
            self._add_problem(source, error)

    def apply(self) -> ImportReport:
        self._stager.report_counted_warnings()
        history.validate_versions(self._stage, self.problems)
        self.problems.raise_if_any()
        is_large = self._stage.added_count + self._stage.history.added_count > BATCH_SIZE
        with (
            self.database.initial_load() if is_large else nullcontext(),
            suppress(RollBackDryRun),
            self.database.write() as transaction,
        ):
            self.report.base_revision = transaction.revision
            self._heads.apply(self.database, transaction)
            history.apply_history(self.database, transaction, self._stage, self.report, self.progress)
            applier = ImportApplier(
                self.database,
                transaction,
                self._stage,
                self.report,
                self.prefer,
                self.previewed_revision,
                self.actor,
                self.may_add_classes,
                self.only_adds,
            )
            applier.apply(self.progress)
            imported_ids = chain(self._stage.history.iter_ids(), self._stage.iter_ids())
            report_repeated_names(
                transaction.flush(), self.report, self.report.vocabulary, imported_ids, self._stage.contains
            )
            base_values.mark_import(transaction, self.actor)
            self.report.last_revision = transaction.revision
            if self.dry_run:
                raise RollBackDryRun
        return self.report

    def _add_problem(self, source: str, error: ParseError) -> None:
        self.problems.add(f"{source}, line {error.line}, column {error.column}", error.reason)


def _detect_format(document: reading.SourceDocument, head: bytes, format: Format | None) -> Format:
    """Return the format of a document; raise UnknownFormatError."""
    if format is not None and format.needs_records:
        raise UnknownFormatError(
            f"is read as {format.name}, which is about records of a vocabulary; choose it with --vocabulary"
        )
    detected = detect_document_format(document, head, format)
    if detected.needs_records:
        raise UnknownFormatError(f"is about existing records; use --format {detected.name}")
    if detected.names_vocabulary:
        raise UnknownFormatError(f"cannot be imported with others; import it alone with --format {detected.name}")
    return detected


def _size(file: Path) -> int:
    return file.stat().st_size if file.is_file() else 0
