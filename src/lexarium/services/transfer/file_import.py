"""Import files of any format: into the vocabulary that they belong to, as statements or by field."""

import io
import re
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path

from lexarium.domain.errors import InvalidInput
from lexarium.domain.identifiers import MAIN_VOCABULARY
from lexarium.domain.progress import ProgressCallback, ignore_progress
from lexarium.domain.text.languages import canonicalize_tag, find_tag_problem
from lexarium.domain.vocabulary import VOCABULARIES, Vocabulary
from lexarium.formats import reading
from lexarium.formats.column_mapping import require_targets
from lexarium.formats.detection import (
    SNIFF_BYTES,
    TABLE_FORMATS,
    UnknownFormatError,
    detect_document_format,
    detect_format,
)
from lexarium.formats.registry import Format
from lexarium.formats.text_encoding import Utf8Stream
from lexarium.services.transfer.field_import.importer import import_files
from lexarium.services.transfer.import_report import ImportReport
from lexarium.services.transfer.import_request import ImportMode, ImportRequest
from lexarium.services.transfer.resource_import.importer import find_table_vocabulary, import_resource_files
from lexarium.store.database import Database

# How exports of the main vocabulary by earlier versions begin, whose predicates have no meaning any more.
_OLD_EXPORT = re.compile(
    rb'lexarium"?\s*[:=]\s*["<][^">]*/vocabulary#|/vocabulary#(?:Collection|id_user)[>"]'
    rb'|^synonymtypedef: hidden "Only for finding',
    re.MULTILINE,
)


def run_import(
    database: Database, request: ImportRequest, progress: ProgressCallback = ignore_progress
) -> ImportReport:
    """Import files together, all of them or nothing; raise ImportRejected with the problems of all files."""
    if request.language:
        problem = find_tag_problem(request.language)
        if problem:
            raise InvalidInput(problem)
        request = replace(request, language=canonicalize_tag(request.language))
    is_piped = any(file == reading.STANDARD_INPUT or file.is_fifo() for file in request.files)
    if is_piped and request.vocabulary and not request.format:
        raise InvalidInput("Use --format when importing from a pipe.")
    if request.collection and not request.vocabulary:
        request = replace(request, vocabulary=MAIN_VOCABULARY)
    elif not request.vocabulary and _are_tables(request):
        request = replace(request, vocabulary=find_table_vocabulary(database, request))
    if request.vocabulary:
        request.require_access(request.vocabulary)
    if _are_statements(request):
        return import_resource_files(database, request, progress)
    if request.adopt:
        raise InvalidInput("Only terms of files that are read as statements, such as RDF and OBO, have ids to adopt.")
    require_targets(request.column_mapping)
    has_history = any(_is_history(file, request) for file in request.files)
    if request.mode == ImportMode.REPLACE or (request.mode == ImportMode.ADD and has_history):
        modes = [ImportMode.UPDATE] if has_history else [ImportMode.UPDATE, ImportMode.ADD]
        raise InvalidInput(f"These files can only be imported in the mode {' or '.join(modes)}.")
    target = _find_target(request.vocabulary) if request.vocabulary else None
    return import_files(
        database,
        request.files,
        vocabulary=target,
        format=request.format,
        collection=target.get_collection(request.collection) if target and request.collection else None,
        column_mapping=request.column_mapping,
        only_adds=request.mode == ImportMode.ADD,
        prefer=request.prefer,
        dry_run=request.dry_run,
        previewed_revision=request.previewed_revision,
        actor=request.actor,
        require_access=request.require_access,
        progress=progress,
    )


def _find_target(slug: str) -> Vocabulary:
    """Return a vocabulary; of one that does not exist, which JSON Lines create, only the slug."""
    return VOCABULARIES.get(slug) or Vocabulary(slug)


def _are_tables(request: ImportRequest) -> bool:
    """Return whether all files are tables of records, which can be read several times."""
    formats = [_detect_format(file, request)[0] for file in request.files if file.is_file()]
    return len(formats) == len(request.files) and all(item and item.name in TABLE_FORMATS for item in formats)


def _is_history(file: Path, request: ImportRequest) -> bool:
    file_format = _detect_format(file, request)[0]
    return file_format is not None and file_format.name == "jsonl"


def _are_statements(request: ImportRequest) -> bool:
    """Return whether files are read as statements; raise InvalidInput if some are and others are not."""
    kinds = {file: _is_statement_file(file, request) for file in request.files}
    if len(set(kinds.values())) > 1:
        first, second = (next(file for file, kind in kinds.items() if kind is wanted) for wanted in (True, False))
        raise InvalidInput(f"{first} is a separate vocabulary and {second} is not; import them one after the other.")
    return all(kinds.values())


def _detect_format(file: Path, request: ImportRequest) -> tuple[Format | None, bytes]:
    """Return the format and the first bytes of a file; of an archive, those of the first member that can be read.

    Return no format if there is none, and no bytes of a pipe, which can be read only once.
    """
    schema = _find_target(request.vocabulary or MAIN_VOCABULARY).schema
    with suppress(OSError, reading.UnreadableFileError, UnknownFormatError):
        if not file.is_file():
            return request.format or detect_format(file.name, b"", schema=schema), b""
        with closing(reading.open_documents(file)) as documents:
            for document in documents:
                head = io.BufferedReader(Utf8Stream(document.stream), SNIFF_BYTES).peek(SNIFF_BYTES)
                with suppress(reading.UnsupportedFileError, UnknownFormatError):
                    reading.reject_unsupported(document.head)
                    return detect_document_format(document, head, request.format, schema), head
    return None, b""


def _is_statement_file(file: Path, request: ImportRequest) -> bool:
    """Return whether a file is read as statements. What cannot be read is left to the importer to report.

    The main vocabulary reads JSON and tables by field. Raise InvalidInput for what cannot be read any more.
    """
    file_format, head = _detect_format(file, request)
    if file_format is None:
        return False
    if file_format.names_vocabulary:
        if _OLD_EXPORT.search(head):
            raise InvalidInput(f"{file} was exported by an earlier version, and is not read: export it again.")
        if request.column_mapping:
            raise InvalidInput(f"{file} has no columns: what its predicates mean cannot be said by --map.")
    if file_format.names_vocabulary or file_format.needs_records:
        return True
    return request.vocabulary not in ("", MAIN_VOCABULARY) and file_format.name != "jsonl"
