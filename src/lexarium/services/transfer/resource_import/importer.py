"""Import the resources of files into a vocabulary: every statement becomes one of a record."""

import io
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack, closing, suppress
from copy import deepcopy
from dataclasses import replace
from itertools import chain, islice
from pathlib import PurePath
from typing import Any

from lexarium.domain.editing.statement_merge import merge_statements
from lexarium.domain.errors import Conflict, InvalidInput, LexariumError
from lexarium.domain.identifiers import MAIN_VOCABULARY, get_local_id, qualify_id
from lexarium.domain.labels import DEFAULT_LANGUAGE
from lexarium.domain.progress import ProgressCallback, ignore_progress
from lexarium.domain.schema.collections import SCHEMA, VOCABULARY
from lexarium.domain.statement import Reference, Statement
from lexarium.domain.text.languages import get_primary_subtag
from lexarium.domain.vocabulary import RULES, VOCABULARIES, Vocabulary, find_valpha_vocabulary
from lexarium.formats import reading
from lexarium.formats.detection import SNIFF_BYTES, UnknownFormatError, detect_document_format
from lexarium.formats.parsed import ParseError
from lexarium.formats.registry import FORMATS
from lexarium.formats.resources import ResourceDocument, ResourceOptions, SourceDescription, make_slug
from lexarium.formats.tables.header import is_main_table
from lexarium.formats.text_encoding import Utf8Stream
from lexarium.services.transfer.import_report import ImportReport, ProblemList, list_statement_changes
from lexarium.services.transfer.import_request import ImportMode, ImportRequest, RollBackDryRun
from lexarium.services.transfer.name_check import report_relation_names, report_repeated_names
from lexarium.services.transfer.reference_check import report_missing_targets
from lexarium.services.transfer.resource_import.adoption import RecordAdopter
from lexarium.services.transfer.resource_import.apply import ResourceApplier, build_group_key, extend_base
from lexarium.services.transfer.resource_import.staging import ResourceStager
from lexarium.services.vocabularies import head_records
from lexarium.store import change_log, records
from lexarium.store.database import Database
from lexarium.store.imports import base_values
from lexarium.store.imports.resource_stage import ResourceStage
from lexarium.store.transaction import Transaction

# Records of a file that are looked for in each vocabulary.
_MAX_SAMPLE = 1_000
# Vocabularies of the schema `obo` are exported with this type in any case.
_ONTOLOGY_TYPE = Statement("rdf:type", Reference("owl:Ontology"))
_NO_VOCABULARY = "does not name its vocabulary; choose one with --vocabulary."


def import_resources(
    database: Database,
    documents: Iterable[tuple[str, ResourceDocument]],
    request: ImportRequest,
    progress: ProgressCallback = ignore_progress,
    skipped: Iterable[tuple[str, str]] = (),
) -> ImportReport:
    """Import opened documents, each with its display name, into one vocabulary; raise ImportRejected.

    A vocabulary that does not exist is created, with the schema and metadata that the first document has. The report
    names those that were skipped, each with the reason.
    """
    report = ImportReport(request.dry_run)
    for name, reason in skipped:
        report.warnings.add(name, f"was skipped: it {reason}", is_loss=True)
    problems = ProblemList()
    described = []
    for name, document in documents:
        try:
            described.append((name, document, document.describe()))
        except ParseError as error:
            problems.add(f"{name}, line {error.line}, column {error.column}", error.reason)
    problems.raise_if_any()
    # Files that create records come before those that are about records.
    described.sort(key=lambda item: not item[2].schema)
    if not request.vocabulary and not described[0][2].schema:
        request = replace(request, vocabulary=_find_subject(database, request, *described[0][:2]))
    with ExitStack() as stack, suppress(RollBackDryRun), database.write() as transaction:
        # If nothing is committed, a vocabulary that the import has created is not there.
        stack.callback(database.run_read, database.follow_vocabularies)
        report.base_revision = transaction.revision
        descriptions = [description for _, _, description in described]
        target = _open_vocabulary(database, transaction, described[0][0], descriptions, request, report)
        collection = target.get_collection(request.collection) if request.collection else None
        stagers: dict[str, ResourceStager] = {}
        for name, document, description in described:
            languages = _find_translation_languages(description, target, request, report)
            source = _name_source(description, target, request, languages)
            if source not in stagers:
                stage = stack.enter_context(closing(ResourceStage()))
                stagers[source] = ResourceStager(
                    stage, target, report, problems, request.language, languages, collection
                )
            stagers[source].add_document(name, document, description)
        problems.raise_if_any()
        # Other files may create what translations are about.
        for source, stager in sorted(stagers.items(), key=lambda item: bool(item[1].translation_languages)):
            stager.stage.finish()
            _update_head_record(transaction, stager, source, request)
            edited = RecordAdopter(transaction, stager, request.actor).adopt() if request.adopt else frozenset[str]()
            ResourceApplier(transaction, stager, source, request, edited).apply(progress)
            base_values.mark_import(transaction, request.actor)
        imported_ids = chain.from_iterable(stager.stage.iter_ids() for stager in stagers.values())

        def is_imported(record_id: str) -> bool:
            return any(stager.stage.contains(record_id) for stager in stagers.values())

        report_repeated_names(transaction.flush(), report, target.slug, imported_ids, is_imported)
        report_missing_targets(transaction.flush(), report, lambda relation: is_imported(relation.source))
        report_relation_names(transaction.flush(), report)
        report.last_revision = transaction.revision
        if request.dry_run:
            raise RollBackDryRun
    return report


def import_resource_files(
    database: Database, request: ImportRequest, progress: ProgressCallback = ignore_progress
) -> ImportReport:
    """Import files as `import_resources` does; raise ImportRejected with the problems of all files."""
    problems = ProblemList()
    documents: list[tuple[str, ResourceDocument]] = []
    skipped: list[tuple[str, str]] = []
    with ExitStack() as stack:
        for file in request.files:
            count, unread = len(documents), []
            try:
                for source in reading.open_documents(file):
                    try:
                        document = stack.enter_context(closing(_open(source, request)))
                    except ParseError as error:
                        location = f"{source.display_name}, line {error.line}, column {error.column}"
                        problems.add(location, error.reason)
                    except (reading.UnsupportedFileError, UnknownFormatError) as error:
                        unread.append((source.display_name, str(error)))
                    else:
                        documents.append((source.display_name, document))
            except OSError as error:
                problems.add(str(file), f"cannot be read: {error.strerror or error}")
            except reading.UnreadableFileError as error:
                problems.add(str(file), str(error))
            if len(documents) > count:
                skipped += unread
            else:
                for name, reason in unread:
                    problems.add(name, reason)
        problems.raise_if_any()
        return import_resources(database, documents, request, progress, skipped)


def _open(source: reading.SourceDocument, request: ImportRequest) -> ResourceDocument:
    reading.reject_unsupported(source.head)
    text = Utf8Stream(source.stream)
    stream = io.BufferedReader(text, SNIFF_BYTES)
    target = VOCABULARIES.get(request.vocabulary)
    schema = SCHEMA if target is None else target.schema
    file_format = detect_document_format(source, stream.peek(SNIFF_BYTES), request.format, schema)
    if file_format.name == "v-alpha":
        # That of other vocabularies than the main one is JSON by their schema.
        file_format = FORMATS["linkml"]
    options = ResourceOptions(request.language, request.collection, request.column_mapping)
    document: ResourceDocument = file_format.open_document(stream, options)
    if text.warning is not None:
        document.warnings.add(text.warning)
    return document


def _find_translation_languages(
    description: SourceDescription, vocabulary: Vocabulary, request: ImportRequest, report: ImportReport
) -> frozenset[str]:
    """Return the languages of a file whose texts are all in further languages of a vocabulary; else none."""
    tags = frozenset({request.language} if request.language else description.languages)
    default = get_primary_subtag(vocabulary.language)
    # A text without a tag is one in the default language.
    is_own = report.is_new_vocabulary or "" in tags or default in map(get_primary_subtag, tags)
    return frozenset() if is_own else tags


def _name_source(
    description: SourceDescription, vocabulary: Vocabulary, request: ImportRequest, languages: frozenset[str]
) -> str:
    """Return the identity of a file as the source of an import. A translation is a source of its own."""
    name = description.iri or request.source or "/".join(filter(None, (vocabulary.slug, description.kind)))
    return f"{name}@{','.join(sorted(languages))}" if languages else name


def find_table_vocabulary(database: Database, request: ImportRequest) -> str:
    """Return the slug of the vocabulary that has most of the records of tables; raise InvalidInput.

    If none has, tables of the shape of v-alpha go to its vocabulary. Return an empty text if they cannot be read, which
    is left to the importer to report.
    """
    # A codec, which is imported on first use.
    from lexarium.formats.tables.resources import VocabularyTable  # noqa: PLC0415

    tables: list[tuple[reading.SourceDocument, VocabularyTable]] = []
    with ExitStack() as stack:
        for file in request.files:
            with suppress(OSError, LexariumError):
                for source in reading.open_documents(file):
                    with suppress(LexariumError):
                        table = stack.enter_context(closing(_open(source, request)))
                        if isinstance(table, VocabularyTable):
                            tables.append((source, table))

        def list_ids(vocabulary: Vocabulary) -> set[str]:
            return {item for _, table in tables for item in islice(table.iter_ids(vocabulary), _MAX_SAMPLE)}

        slug = _find_vocabulary(database, request, list_ids)
        is_main = all(is_main_table(source.file_name, table.titles, list_ids(Vocabulary())) for source, table in tables)
    if slug or not tables:
        return slug
    if not is_main:
        raise InvalidInput(f"{tables[0][0].display_name} {_NO_VOCABULARY}")
    valpha = find_valpha_vocabulary()
    return valpha.slug if valpha else MAIN_VOCABULARY


def _find_subject(database: Database, request: ImportRequest, name: str, document: ResourceDocument) -> str:
    """Return the slug of the vocabulary that a file without records of its own is about; raise InvalidInput."""
    warnings = deepcopy(document.warnings)

    def list_ids(vocabulary: Vocabulary) -> set[str]:
        return {item.id for item in islice(document.iter_resources(vocabulary), _MAX_SAMPLE)}

    slug = _find_vocabulary(database, request, list_ids)
    # The file is read again for the import, which warns again.
    document.warnings = warnings
    if not slug:
        raise InvalidInput(f"{name} {_NO_VOCABULARY}")
    return slug


def _find_vocabulary(database: Database, request: ImportRequest, list_ids: Callable[[Vocabulary], set[str]]) -> str:
    """Return the slug of the vocabulary that has most of the records that files are about; an empty text if none has.

    Only those that the caller may know are looked at. If several have as many, the one that defines the prefixes is
    meant; raise InvalidInput if there is none.
    """
    counts: dict[str, tuple[int, int]] = {}
    for vocabulary in head_records.list_vocabularies():
        ids = list_ids(vocabulary) if request.is_known(vocabulary.slug) else set()
        found: list[str] = []
        with database.read() as snapshot:
            for batch in records.batched([qualify_id(vocabulary.slug, item) for item in ids]):
                found += records.find_existing_ids(snapshot, batch)
        if 2 * len(found) > len(ids):
            defined = sum(get_local_id(item).partition(":")[0] in vocabulary.defines for item in found)
            counts[vocabulary.slug] = len(found), defined
    best = [slug for slug, count in counts.items() if count == max(counts.values())]
    if len(best) > 1:
        raise InvalidInput(f"The records are in several vocabularies, {', '.join(best)}; choose one with --vocabulary.")
    return next(iter(best), "")


def _choose_slug(description: SourceDescription, request: ImportRequest, file_slug: str = "") -> str:
    """Return the slug of the vocabulary that a file belongs to: the one with its IRI, else one made of its header.

    If only the IRI is specific, and not its end, it is `file_slug`. Return an empty text if the file does not say, and
    raise InvalidInput if another vocabulary has that slug.
    """
    iri = _normalize_iri(description.iri)
    known = {slug: item for slug, item in VOCABULARIES.items() if request.is_known(slug)}
    for slug, item in known.items():
        if iri and iri in map(_normalize_iri, item.sources):
            return slug
    slug = description.slug or (file_slug if iri else "")
    other = known.get(slug)
    if other is not None and iri and other.sources:
        raise InvalidInput(
            f"The file is {description.iri}, and the vocabulary {other.slug} is {other.sources[0]}. Choose the"
            f" vocabulary with --vocabulary: a new one, or {other.slug} to add the file to it."
        )
    return slug


def _normalize_iri(iri: str) -> str:
    return iri.replace("https://", "http://", 1).rstrip("/#")


def _open_vocabulary(  # noqa: PLR0913, PLR0917 (a step of an import)
    database: Database,
    transaction: Transaction,
    name: str,
    descriptions: Sequence[SourceDescription],
    request: ImportRequest,
    report: ImportReport,
) -> Vocabulary:
    """Return the vocabulary to import into; create it if it does not exist."""
    description = descriptions[0]
    path = PurePath(name)
    # Standard input has no ending.
    file_slug = make_slug(path.name.partition(".")[0]) if path.suffix else ""
    slug = request.vocabulary or _choose_slug(description, request, file_slug)
    if not slug:
        raise InvalidInput(f"{name} {_NO_VOCABULARY}")
    if not request.vocabulary:
        for other in descriptions[1:]:
            other_slug = _choose_slug(other, request)
            if other_slug not in (slug, ""):
                raise InvalidInput(f"The files are of several vocabularies, {slug} and {other_slug}.")
    request.require_access(slug)
    report.vocabulary = slug
    if slug in VOCABULARIES and VOCABULARIES[slug].is_removed:
        raise Conflict(f"The vocabulary {slug} is removed. Restore it first, or import into another one.")
    if slug not in VOCABULARIES:
        if not description.schema:
            message = f"Vocabulary {slug} not found, and {name} does not describe one"
            raise InvalidInput(f"{message}. Create it first with `lexarium vocabulary add {slug} --schema NAME`.")
        values: dict[str, Any] = {"schema": description.schema, "title": slug, "base": description.namespace}
        default = request.language or DEFAULT_LANGUAGE
        values["languages"] = [tag or default for tag in description.languages] or [default]
        values["prefixes"] = {slug: description.namespace} if description.namespace else {}
        values["sources"] = [description.iri] if description.iri else []
        head_records.create_vocabulary(transaction, request.actor, slug, values)
        database.follow_vocabularies(transaction.flush(), transaction.position)
        report.is_new_vocabulary = True
    known = head_records.get_vocabulary(slug).sources
    new = [item.iri for item in descriptions if item.iri and item.schema and item.iri not in known]
    if new and slug != MAIN_VOCABULARY:
        head_records.update_vocabulary(transaction, request.actor, slug, {"sources": [*known, *dict.fromkeys(new)]})
        database.follow_vocabularies(transaction.flush(), transaction.position)
    return head_records.get_vocabulary(slug)


def _update_head_record(transaction: Transaction, stager: ResourceStager, source: str, request: ImportRequest) -> None:
    """Merge what a source states about the vocabulary into its head record. A part of it removes nothing."""
    slug = stager.vocabulary.slug
    record_id = qualify_id("", slug)
    implied = {_ONTOLOGY_TYPE} if stager.vocabulary.schema.name == "obo" else set()
    stated = tuple(item for item in stager.head_statements if item.predicate not in RULES and item not in implied)
    connection = transaction.flush()
    base = base_values.find_statements(connection, [record_id]).get(record_id, {}).get(source, ())
    keeps_all = request.mode == ImportMode.ADD or stager.is_partial
    if set(stated) == set(base) or (keeps_all and set(stated) <= set(base)):
        return
    for change in change_log.find_latest(connection, [record_id]).values():
        request.require_same(change, transaction.write_id)

    get_key = build_group_key(VOCABULARY)
    new_base = stated

    def merge(current: tuple[Statement, ...]) -> tuple[Statement, ...]:
        nonlocal new_base
        before = () if keeps_all else base
        result = merge_statements(before, current, stated, get_key, request.prefer)
        for conflict in result.conflicts:
            stager.report.add_conflict(source, slug, conflict)
        if not stager.report.is_new_vocabulary:
            stager.report.metadata += list_statement_changes(current, result.statements, VOCABULARY)
        if keeps_all:
            new_base = extend_base(base, stated, result.statements, get_key)
        return result.statements

    head_records.merge_head_statements(transaction, request.actor, slug, merge)
    base_values.save_statements(connection, source, {record_id: new_base})
