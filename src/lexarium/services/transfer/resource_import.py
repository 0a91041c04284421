"""Import the resources of files into a vocabulary: every statement becomes one of a record."""

import io
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from lexarium.domain.change import Action, Change
from lexarium.domain.editing.statement_merge import ConflictPreference, GroupKey, merge_statements
from lexarium.domain.errors import InvalidInput
from lexarium.domain.identifiers import MAX_ID_BYTES, SYSTEM_USER_ID, get_local_id, is_id_too_long, qualify_id
from lexarium.domain.progress import ProgressCallback, ignore_progress
from lexarium.domain.record import Record, RecordState, Relation, get_text, parse_record
from lexarium.domain.schema.collections import Collection
from lexarium.domain.schema.predicates import SlotRole
from lexarium.domain.statement import MAX_STATEMENTS, Statement, count_statements, normalize
from lexarium.domain.text.characters import find_unstorable_char
from lexarium.domain.text.timestamps import now_ms
from lexarium.domain.vocabulary import VOCABULARIES, Vocabulary
from lexarium.formats import reading
from lexarium.formats.detection import SNIFF_BYTES, UnknownFormatError, detect_format
from lexarium.formats.parsed import ParseError
from lexarium.formats.registry import Format
from lexarium.formats.resources import ParsedResource, ResourceDocument, SourceDescription, make_slug
from lexarium.formats.text_encoding import Utf8Stream
from lexarium.services.transfer.import_report import ImportConflict, ImportReport, ProblemList
from lexarium.services.vocabularies import head_records
from lexarium.store import change_log, vocabularies
from lexarium.store.change_log import RecordWrite
from lexarium.store.database import Database
from lexarium.store.imports import base_values
from lexarium.store.imports.resource_stage import ResourceStage, StagedResource
from lexarium.store.transaction import Transaction

# A record of the log, as JSON.
MAX_RECORD_BYTES = 1 << 20
_PROGRESS_INTERVAL = 100


class _RollBackDryRun(Exception):
    """Roll back the transaction of a dry run."""


def import_resources(  # noqa: PLR0913
    database: Database,
    documents: Sequence[tuple[str, ResourceDocument]],
    *,
    vocabulary: str | None = None,
    prefer: ConflictPreference | None = None,
    dry_run: bool = False,
    progress: ProgressCallback = ignore_progress,
) -> ImportReport:
    """Import opened documents, each with its display name, into one vocabulary; raise ImportRejected.

    A vocabulary that does not exist is created, with the schema and metadata that the first document has.
    """
    report = ImportReport(dry_run)
    with closing(ResourceStage()) as stage, suppress(_RollBackDryRun), database.write() as transaction:
        report.base_revision = transaction.revision
        target = _open_vocabulary(database, transaction, documents, vocabulary, report)
        stager = _Stager(stage, target, report)
        for name, document in documents:
            stager.add_document(name, document)
        stager.problems.raise_if_any()
        stage.finish()
        if stager.head_statements:
            head_records.add_head_statements(transaction, SYSTEM_USER_ID, target.slug, stager.head_statements)
        _Applier(transaction, stage, target, stager.sources, report, prefer).apply(progress)
        report.last_revision = transaction.revision
        if dry_run:
            raise _RollBackDryRun
    if dry_run:
        database.run_read(database.follow_vocabularies)
    return report


def import_resource_files(  # noqa: PLR0913
    database: Database,
    files: Sequence[Path],
    *,
    vocabulary: str | None = None,
    format: Format | None = None,
    prefer: ConflictPreference | None = None,
    dry_run: bool = False,
    progress: ProgressCallback = ignore_progress,
) -> ImportReport:
    """Import files as `import_resources` does; raise ImportRejected with the problems of all files."""
    problems = ProblemList()
    with ExitStack() as stack:
        documents = []
        for file in files:
            try:
                for source in reading.open_documents(file):
                    documents.append((source.display_name, stack.enter_context(closing(_open(source, format)))))
            except ParseError as error:
                problems.add(f"{file}, line {error.line}, column {error.column}", error.reason)
            except OSError as error:
                problems.add(str(file), f"cannot be read: {error.strerror or error}")
            except (reading.UnreadableFileError, reading.UnsupportedFileError, UnknownFormatError) as error:
                problems.add(str(file), str(error))
        problems.raise_if_any()
        return import_resources(
            database, documents, vocabulary=vocabulary, prefer=prefer, dry_run=dry_run, progress=progress
        )


def _open(source: reading.SourceDocument, format: Format | None) -> ResourceDocument:
    reading.reject_unsupported(source.head)
    stream = io.BufferedReader(Utf8Stream(source.stream), SNIFF_BYTES)
    file_format = format or detect_format(source.file_name, stream.peek(SNIFF_BYTES))
    if not file_format.resource_module:
        raise UnknownFormatError(f"is {file_format.name}, which needs a vocabulary that is there already")
    document: ResourceDocument = file_format.open_document(stream)
    return document


def choose_slug(description: SourceDescription, file_name: str) -> str:
    """Return the slug of the vocabulary that a file belongs to: the one with its IRI, else one made of its header."""
    if description.iri:
        for slug, item in VOCABULARIES.items():
            if description.iri in item.sources:
                return slug
    return description.slug or make_slug(Path(file_name).name.partition(".")[0])


def _open_vocabulary(
    database: Database,
    transaction: Transaction,
    documents: Sequence[tuple[str, ResourceDocument]],
    slug: str | None,
    report: ImportReport,
) -> Vocabulary:
    name, document = documents[0]
    description = document.describe()
    slug = slug or choose_slug(description, name)
    if not slug:
        raise InvalidInput(f"{name} does not say which vocabulary it is: name one with --vocabulary.")
    vocabulary = VOCABULARIES.get(slug)
    if vocabulary is None:
        values: dict[str, Any] = {"schema": description.schema, "title": slug, "base": description.namespace}
        values["languages"] = list(description.languages) or ["en"]
        values["prefixes"] = {slug: description.namespace} if description.namespace else {}
        values["sources"] = [description.iri] if description.iri else []
        head_records.create_vocabulary(transaction, SYSTEM_USER_ID, slug, values, description.statements)
        database.follow_vocabularies(transaction.flush(), transaction.position)
        vocabulary = VOCABULARIES[slug]
        report.created_vocabulary = slug
    return vocabulary


@dataclass
class _Stager:
    """Stage the resources of documents; collect problems, warnings, and what belongs to the head record."""

    stage: ResourceStage
    vocabulary: Vocabulary
    report: ImportReport

    def __post_init__(self) -> None:
        self._collections = {item.schema_class.uri: item for item in self.vocabulary.collections}
        self.problems = ProblemList()
        self.head_statements: list[Statement] = []
        # Identity of each document, as the source of an import.
        self.sources: list[str] = []

    def add_document(self, name: str, document: ResourceDocument) -> None:
        """Stage the resources of a document."""
        self.stage.sources.append(name)
        self.sources.append(document.describe().iri or self.vocabulary.slug)
        try:
            for resource in document.iter_resources(self.vocabulary.prefixes):
                problem = self._stage_resource(resource)
                if problem:
                    self.problems.add(f"{name}, line {resource.line}", f"{resource.id[:100]} {problem}")
        except ParseError as error:
            self.problems.add(f"{name}, line {error.line}, column {error.column}", error.reason)
        for message in document.warnings:
            self.report.warnings.add(name, document.warnings.format_message(message))

    def _stage_resource(self, resource: ParsedResource) -> str | None:
        """Stage a resource, or return what is wrong with it."""
        if not resource.class_uri:
            self.head_statements += resource.statements
            return None
        collection = self._collections.get(resource.class_uri)
        if collection is None:
            return f"is a {resource.class_uri}, which the schema of {self.vocabulary.slug} does not have"
        problem = _find_problem(resource)
        if problem:
            return problem
        slug = self.vocabulary.slug
        record = Record(
            collection,
            qualify_id(slug, resource.id),
            normalize(resource.statements),
            resource.state or RecordState.PUBLISHED,
            resource.iri,
            None if resource.replaced_by is None else qualify_id(slug, resource.replaced_by),
        )
        document = record.to_document()
        if len(document) > MAX_RECORD_BYTES:
            return "has more than 1 MiB"
        source = len(self.sources) - 1
        self.stage.add(StagedResource(record.id, collection.name, source, resource.line, document))
        return None


def _find_problem(resource: ParsedResource) -> str | None:
    if is_id_too_long(resource.id):
        return f"is longer than {MAX_ID_BYTES} bytes"
    if find_unstorable_char(resource.id):
        return "has a character that cannot be stored"
    if count_statements(resource.statements) > MAX_STATEMENTS:
        return f"has more than {MAX_STATEMENTS:,} statements"
    return None


@dataclass
class _Applier:
    """Write staged resources and fill the report."""

    transaction: Transaction
    stage: ResourceStage
    vocabulary: Vocabulary
    # Identity of each source file.
    sources: Sequence[str]
    report: ImportReport
    prefer: ConflictPreference | None

    def __post_init__(self) -> None:
        self._connection = self.transaction.flush()
        self._at = now_ms()

    def apply(self, progress: ProgressCallback) -> None:
        """Create and update records, batch by batch."""
        done = 0
        for batch in self.stage.iter_batches():
            self._apply_batch(batch)
            done += len(batch)
            progress("writing", done, self.stage.count)

    def _apply_batch(self, groups: list[list[StagedResource]]) -> None:
        latest = change_log.find_latest(self._connection, [group[0].id for group in groups])
        bases = self._load_bases(latest)
        before: list[Record] = []
        writes: list[RecordWrite] = []
        stated: dict[str, tuple[Statement, ...] | None] = {}
        source = self.sources[groups[0][0].source]
        for group in groups:
            imported = self._join(group)
            change = latest.get(imported.id)
            if change is None:
                writes.append(RecordWrite(imported, 1, Action.CREATE))
                if not self._is_first_source:
                    stated[imported.id] = imported.statements
                self._add_to_report("created", imported)
                continue
            current = change.to_record()
            merged = self._merge(group, current, imported, bases.get(imported.id, ()))
            # The last change that an import made is the base, unless it is not what the source states.
            stated[imported.id] = None if set(merged.statements) == set(imported.statements) else imported.statements
            if merged == current:
                self.report.unchanged[current.collection.local_name] += 1
                continue
            before.append(current)
            is_retired = merged.state != current.state and merged.state == RecordState.RETIRED
            action = Action.RETIRE if is_retired else Action.UPDATE
            writes.append(RecordWrite(merged, change.version + 1, action))
            self._add_to_report("retired" if is_retired else "updated", merged)
        if not self._is_first_source:
            self._keep_first_base([write.record.id for write in writes])
        base_values.save_statements(self._connection, source, stated)
        change_log.save_records(self.transaction, writes, actor=SYSTEM_USER_ID, at=self._at)
        self._update_derived_rows(before, [write.record for write in writes])

    def _load_bases(self, latest: Mapping[str, Change]) -> dict[str, tuple[Statement, ...]]:
        source = self.sources[0]
        bases = base_values.find_statements(self._connection, list(latest), source)
        if self._is_first_source:
            imports = base_values.find_last_imports(self._connection, [item for item in latest if item not in bases])
            bases |= {record_id: change.to_record().statements for record_id, change in imports.items()}
        return bases

    @property
    def _first_source(self) -> str:
        return next(iter(self.vocabulary.sources), self.vocabulary.slug)

    @property
    def _is_first_source(self) -> bool:
        return self.sources[0] == self._first_source

    def _keep_first_base(self, record_ids: Sequence[str]) -> None:
        """Keep what the first source stated about records before another one writes to them."""
        known = base_values.find_statements(self._connection, record_ids, self._first_source)
        missing = [record_id for record_id in record_ids if record_id not in known]
        imports = base_values.find_last_imports(self._connection, missing)
        bases = {item: imports[item].to_record().statements if item in imports else () for item in missing}
        base_values.save_statements(self._connection, self._first_source, bases)

    def _join(self, group: list[StagedResource]) -> Record:
        """Return one record of all resources with an id. An absent value never removes one."""
        first, *others = [parse_record(item.collection, item.document) for item in group]
        for other in others:
            first = first.add_statements(other.statements)
            if other.collection is not first.collection:
                first = first.with_class(other.collection, {})
            if first.state == RecordState.PUBLISHED:
                first = replace(first, state=other.state, replaced_by=other.replaced_by)
            first = replace(first, iri=first.iri or other.iri)
        return first

    def _merge(
        self, group: list[StagedResource], current: Record, imported: Record, base: Iterable[Statement]
    ) -> Record:
        result = merge_statements(
            base, current.statements, imported.statements, _build_group_key(current.collection), self.prefer
        )
        for conflict in result.conflicts:
            where, (first, *_) = self.stage.format_location(group[-1]), conflict.theirs or conflict.ours
            ours, theirs = ([_to_text(item) for item in side] for side in conflict)
            self.report.conflicts.append(
                ImportConflict(where, imported.local_id, first.predicate, "; ".join(ours), "; ".join(theirs))
            )
        merged = replace(current, statements=result.statements, iri=current.iri or imported.iri)
        if current.state not in (imported.state, RecordState.MERGED):
            merged = replace(merged, state=imported.state, replaced_by=imported.replaced_by)
        return merged

    def _update_derived_rows(self, before: Sequence[Record], after: Sequence[Record]) -> None:
        old = {relation for record in before for relation in record.relations}
        new = {relation for record in after for relation in record.relations}
        added, removed = sorted(new - old), sorted(old - new)
        change_log.update_relations(self.transaction, added, removed)
        vocabularies.update_derived_rows(self.transaction, before, after)
        self.report.add_relations([_to_local(item) for item in added], [_to_local(item) for item in removed])

    def _add_to_report(self, kind: Any, record: Record) -> None:
        self.report.add_record(kind, record.local_id, record.collection.local_name, record.fields["name"])


def _to_local(relation: Relation) -> Relation:
    return Relation(get_local_id(relation.source), relation.relation, get_local_id(relation.target))


def _to_text(statement: Statement) -> str:
    text = get_text(statement.value)
    return text.text if text else str(statement.value[0])


def _build_group_key(collection: Collection) -> GroupKey:
    """Return the function that groups statements of which a record should have one: a name in a language, a date."""
    slots = collection.schema_class.slots_by_predicate

    def get_key(statement: Statement) -> tuple[str, str] | None:
        slot, text = slots.get(statement.predicate), get_text(statement.value)
        if slot is None:
            return None
        if slot.role in (SlotRole.NAME, SlotRole.DEFINITION):
            return statement.predicate, (text.lang if text else "") or collection.language
        return None if slot.multivalued else (statement.predicate, "")

    return get_key
