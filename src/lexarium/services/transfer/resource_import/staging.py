"""Validate the resources of files and stage them; collect problems and warnings."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import orjson

from lexarium.domain.editing.validation import find_size_problem
from lexarium.domain.identifiers import MAIN_VOCABULARY, MAX_ID_BYTES, is_id_too_long, qualify_id
from lexarium.domain.record import NODE_TEXTS, Record, RecordState, get_text
from lexarium.domain.schema.collections import VOCABULARY, Collection
from lexarium.domain.schema.predicates import STANDARD_ROLES, SlotRole
from lexarium.domain.statement import (
    Node,
    Reference,
    Statement,
    Text,
    normalize,
    pack_statements,
)
from lexarium.domain.text.characters import find_direction_control, find_unstorable_char
from lexarium.domain.text.nouns import add_article
from lexarium.domain.vocabulary import Vocabulary
from lexarium.formats.ontology_view import NAMESPACE, from_ontology, has_own_classes
from lexarium.formats.parsed import ParseError
from lexarium.formats.resources import ParsedResource, ResourceDocument, SourceDescription
from lexarium.services.transfer.import_report import ImportReport, ProblemList
from lexarium.store.imports.resource_stage import ResourceStage, StagedResource

# PostgreSQL stores no text with it.
_NUL = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")
# Classes that say nothing more than that a resource is a term.
_CONCEPT, _CLASS, _INDIVIDUAL = "skos:Concept", "owl:Class", "owl:NamedIndividual"
_PROSE_ROLES = (SlotRole.NAME, SlotRole.ALIAS, SlotRole.DEFINITION, SlotRole.NOTE)


@dataclass
class ResourceStager:
    """Stage the resources of the documents of one source, and collect what belongs to the head record."""

    stage: ResourceStage
    vocabulary: Vocabulary
    report: ImportReport
    problems: ProblemList
    # Language of texts that have none.
    language: str = ""
    # Languages of translations; empty for other files.
    translation_languages: frozenset[str] = frozenset()
    # Collection of terms whose class has none.
    default_collection: Collection | None = None

    def __post_init__(self) -> None:
        self._collections = {item.schema_class.uri: item for item in self.vocabulary.collections}
        self._has_own_classes = has_own_classes(self.vocabulary.schema)
        slots = (
            slot for item in (*self.vocabulary.collections, VOCABULARY) for slot in item.schema_class.slots.values()
        )
        # Predicates of texts for people.
        self._prose = {slot.predicate for slot in slots if slot.role in _PROSE_ROLES}
        self._prose |= {predicate for predicate, role in STANDARD_ROLES.items() if role in _PROSE_ROLES}
        # Records that files say are merged, with those that they are merged into.
        self.merges: dict[str, str] = {}
        self.head_statements: list[Statement] = []
        self._coverages: list[Callable[[Statement], bool] | None] = []

    def covers(self, statement: Statement) -> bool:
        """Return whether one of the documents would have a statement if it were true."""
        return any(covers is None or covers(statement) for covers in self._coverages)

    @property
    def is_partial(self) -> bool:
        """Return whether all documents have only parts of records."""
        return None not in self._coverages

    def add_document(self, name: str, document: ResourceDocument, description: SourceDescription) -> None:
        """Stage the resources of a document with this display name."""
        self.stage.files.append(name)
        if description.slug != self.vocabulary.slug or self.vocabulary.slug != MAIN_VOCABULARY:
            self._add_head_statements(name, description.statements)
        coverage: Callable[[Statement], bool] | None = self._covers_translation if self.translation_languages else None
        before = self.stage.count, self.problems.count, self.report.warnings.count
        try:
            for resource in document.iter_resources(self.vocabulary):
                if resource.is_update and document.covers is None:
                    coverage = _cover_nothing
                self._add_resource(name, resource, is_partial=bool(document.covers or coverage))
        except ParseError as error:
            self.problems.add(f"{name}, line {error.line}, column {error.column}", error.reason)
        self._coverages.append(document.covers or coverage)
        problem = _find_document_problem(self.head_statements, orjson.dumps(pack_statements(self.head_statements)))
        if problem:
            self.problems.add(name, f"the metadata of the vocabulary {problem}")
        if not self.stage.count and self.report.is_new_vocabulary and not self.problems.count:
            self.problems.add(name, "has no concept, class or other resource that can be a record")
        elif before == (self.stage.count, self.problems.count, self.report.warnings.count):
            self.report.warnings.add(name, "has no records")
        for message in document.warnings:
            for example in document.warnings.get_examples(message):
                self.report.warnings.add(name, message, example, is_loss=document.warnings.is_loss(message))

    def _add_head_statements(self, location: str, statements: Iterable[Statement]) -> None:
        """Take what a file says about its vocabulary. The main one has metadata of its own."""
        if self.vocabulary.slug != MAIN_VOCABULARY:
            self.head_statements += map(self._add_language, statements)
            return
        for statement in statements:
            if not statement.predicate.startswith("lexarium:") or isinstance(statement.value, Node):
                message = "what the file says about itself, and about what is no term, was left out"
                self.report.warnings.add(location, message, statement.predicate, is_loss=True)

    def _covers_translation(self, statement: Statement) -> bool:
        text = get_text(statement.value)
        return text is not None and text.lang in self.translation_languages

    def _add_resource(self, name: str, resource: ParsedResource, *, is_partial: bool) -> None:
        location = f"{name}, line {resource.line}" if resource.line else name
        for column, reason in resource.problems:
            if column:
                self.problems.add(f"{location}, column {column}", reason)
            else:
                self.problems.add(location, f"{resource.id[:100]} {reason}")
        if resource.problems:
            return
        if not resource.class_uri and not resource.is_update:
            self._add_head_statements(location, resource.statements)
            return
        problem = self._stage_resource(resource, location, is_partial=is_partial)
        if problem:
            self.problems.add(location, f"{resource.id[:100]} {problem}")

    def _stage_resource(self, resource: ParsedResource, location: str, *, is_partial: bool) -> str | None:
        """Stage a resource, or return what is wrong with it."""
        collection = self._choose_collection(resource)
        if collection is None:
            kind = add_article(resource.class_uri)
            message = f"is {kind}, which the schema of {self.vocabulary.slug} does not have"
            if not self._has_own_classes:
                return message
            self.report.warnings.add(location, f"{message}; it was left out", resource.id, is_loss=True)
            return None
        if self._has_own_classes and not resource.is_update:
            resource.statements = from_ontology(resource.statements, collection)
        if resource.state == RecordState.MERGED:
            if resource.replaced_by in (None, resource.id):
                resource.state = RecordState.RETIRED
            else:
                self.merges[qualify_id(self.vocabulary.slug, resource.id)] = qualify_id(
                    self.vocabulary.slug, str(resource.replaced_by)
                )
        problem = _find_problem(resource)
        if problem:
            return problem
        slug = self.vocabulary.slug
        record = Record(
            collection,
            qualify_id(slug, resource.id),
            normalize(map(self._add_language, resource.statements)),
            resource.state or RecordState.PUBLISHED,
            resource.iri,
            None if resource.replaced_by is None else qualify_id(slug, resource.replaced_by),
        )
        document = record.to_document()
        problem = _find_document_problem(resource.statements, document)
        if problem:
            return problem
        for message in iter_warnings(record):
            self.report.warnings.add(location, message, resource.id)
        # A translation creates no records.
        name = "" if resource.is_update or self.translation_languages else collection.name
        keeps_state = (is_partial or resource.is_update) and resource.state is None
        file = len(self.stage.files) - 1
        self.stage.add(StagedResource(record.id, name, file, resource.line, document, keeps_state))
        return None

    def _choose_collection(self, resource: ParsedResource) -> Collection | None:
        """Return the collection of a resource, or None if the schema has no class for it.

        Terms of a file whose classes the schema does not have are of the collection that their namespace names.
        """
        if resource.is_update:
            # It is known when the update is applied; any will do until then.
            return self.vocabulary.collections[0]
        if not self._has_own_classes:
            return self._collections.get(resource.class_uri)
        if resource.class_uri in (_CLASS, _INDIVIDUAL):
            names = {item.local_name: item for item in self.vocabulary.collections}
            for statement in resource.statements:
                if statement.predicate == NAMESPACE and statement.value[0] in names:
                    resource.statements.remove(statement)
                    return names[str(statement.value[0])]
        if resource.class_uri in (_CLASS, _CONCEPT):
            return self.default_collection or self._collections.get(_CONCEPT)
        return self._collections.get(resource.class_uri)

    def _add_language(self, statement: Statement, is_in_text: bool = False) -> Statement:
        """Return a statement whose texts for people are in the language that was given, if they have none.

        `is_in_text` is True for the statements of a name, definition or note that is a node.
        """
        predicate, value, _ = statement
        is_text = predicate in self._prose or (is_in_text and predicate in NODE_TEXTS)
        if not self.language or isinstance(value, Reference):
            return statement
        if isinstance(value, Node):
            inner = tuple(self._add_language(item, is_text) for item in value.statements)
            return statement._replace(value=value._replace(statements=inner))
        return (
            statement._replace(value=Text(value.text, self.language))
            if is_text and value[1:] == ("", "")
            else statement
        )


def _cover_nothing(_statement: Statement) -> bool:
    """Return False: a file that only adds to records has none of their statements."""
    return False


def _find_problem(resource: ParsedResource) -> str | None:
    if is_id_too_long(resource.id):
        return f"is longer than {MAX_ID_BYTES} bytes"
    if find_unstorable_char(resource.id):
        return "has a character that cannot be stored"
    return None


def _find_document_problem(statements: Sequence[Statement], document: bytes) -> str | None:
    """Return why statements cannot be stored in one record, given their JSON, or None."""
    problem = find_size_problem(statements, document)
    if problem is None and _NUL.search(document):
        return "has a character that cannot be stored"
    return problem


def iter_warnings(record: Record) -> Iterator[str]:
    """Yield what is doubtful about a record as its files state it."""
    slots = record.collection.schema_class.slots_by_predicate
    repeated = Counter(_iter_single_values(record.collection, record.statements))
    for predicate in dict.fromkeys(predicate for (predicate, _), count in repeated.items() if count > 1):
        name = "names" if slots[predicate].role == SlotRole.NAME else f"values of {slots[predicate].name}"
        yield f"has several {name} in one language; the first is shown"
    broader, related = (
        {item.value for item in record.statements if item.predicate == predicate}
        for predicate in ("skos:broader", "skos:related")
    )
    if broader & related:
        yield "is related to a concept that is also broader"
    for predicate, value, _ in record.statements:
        if STANDARD_ROLES.get(predicate) in (SlotRole.NAME, SlotRole.ALIAS):
            text = get_text(value)
            if text and not text.text.isascii() and (char := find_direction_control(text.text)):
                yield f"has a name with the bidirectional control character {char}"


def _iter_single_values(collection: Collection, statements: tuple[Statement, ...]) -> Iterator[tuple[str, str]]:
    """Yield the predicate and language of the names, and of other texts of which a record should have one."""
    slots = collection.schema_class.slots_by_predicate
    for statement in statements:
        slot, text = slots.get(statement.predicate), get_text(statement.value)
        is_single = slot is not None and (
            slot.role == SlotRole.NAME if slot.multivalued else not has_own_classes(collection.schema)
        )
        if is_single and text:
            yield statement.predicate, text.lang or collection.language
