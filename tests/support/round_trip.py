"""Files that are read as resources and written again, without a database."""

import io
from collections.abc import Iterable
from contextlib import closing
from typing import NamedTuple

from pyoxigraph import CanonicalizationAlgorithm, Dataset, RdfFormat, parse

from lexarium.domain.identifiers import MAIN_VOCABULARY, qualify_id
from lexarium.domain.record import Record, RecordState, parse_record
from lexarium.domain.schema.collections import VOCABULARY, Collection
from lexarium.domain.statement import Reference, Statement, normalize
from lexarium.domain.vocabulary import VOCABULARIES, Vocabulary, register_vocabularies
from lexarium.formats.parsed import WarningCounter, WriteOptions
from lexarium.formats.registry import FORMATS
from lexarium.formats.resources import ParsedResource, ResourceOptions
from lexarium.services.transfer.import_report import ImportReport, ProblemList
from lexarium.services.transfer.resource_import.staging import ResourceStager
from lexarium.store.imports.resource_stage import ResourceStage
from tests.support.imports import open_text

SYNTAXES = {
    "skos": RdfFormat.TURTLE,
    "rdfxml": RdfFormat.RDF_XML,
    "ntriples": RdfFormat.N_TRIPLES,
    "jsonld": RdfFormat.JSON_LD,
    "owl": RdfFormat.RDF_XML,
}
_SLUG = "made"


def rewrite(data: bytes, source_format: str, target_format: str, losses: WarningCounter | None = None) -> bytes:
    """Read a file and write its records in another format; count what that cannot express."""
    file_format = FORMATS[target_format]
    stream = io.BufferedReader(io.BytesIO(data))
    document = FORMATS[source_format].open_document(stream, ResourceOptions())
    try:
        description = document.describe()
        vocabulary = Vocabulary(
            _SLUG,
            title=_SLUG,
            schema_source=description.schema,
            languages=description.languages or ("en",),
            prefixes={_SLUG: description.namespace} if description.namespace else {},
            sources=(description.iri,) if description.iri else (),
        )
        register_vocabularies([vocabulary])
        head = Record(VOCABULARY, qualify_id("", _SLUG), normalize(description.statements))
        records: dict[str, Record] = {}
        for resource in document.iter_resources(vocabulary):
            if resource.class_uri:
                record = _build_record(vocabulary, resource, records.get(resource.id))
                records[resource.id] = record
            else:
                head = head.add_statements(resource.statements)
        assert list(document.warnings) == []
    finally:
        document.close()
    leading = file_format.leading_collections
    ordered = sorted(records.values(), key=lambda item: item.collection.local_name not in leading)
    counter = WarningCounter() if losses is None else losses
    options = WriteOptions(file_format, vocabulary, 0, vocabulary.collections, head, counter)
    return b"".join(file_format.codec.write(ordered, options))


def _build_record(vocabulary: Vocabulary, resource: ParsedResource, known: Record | None) -> Record:
    collection = next(item for item in vocabulary.collections if item.schema_class.uri == resource.class_uri)
    replaced_by = None if resource.replaced_by is None else qualify_id(_SLUG, resource.replaced_by)
    state = resource.state or (known.state if known else RecordState.PUBLISHED)
    statements = normalize((*(known.statements if known else ()), *resource.statements))
    if known and known.replaced_by:
        further = Statement(
            collection.schema_class.slots["replaced_by"].predicate, Reference(resource.replaced_by or "")
        )
        is_stated = any(item[:2] == further[:2] for item in statements)
        if replaced_by not in (None, known.replaced_by) and not is_stated:
            statements += (further,)
        replaced_by = known.replaced_by
    return Record(collection, qualify_id(_SLUG, resource.id), statements, state, resource.iri, replaced_by)


class ReadFile(NamedTuple):
    """Content of a file as an import would stage it."""

    records: dict[str, Record]
    # Without locations.
    warnings: list[str]
    problems: list[str]
    # Of the problems.
    locations: list[str]


def read_file(
    data: str | bytes, format: str, vocabulary: Vocabulary | None = None, collection: Collection | None = None
) -> ReadFile:
    """Read a file into a vocabulary, by default the main one, without a database."""
    report, problems = ImportReport(dry_run=True), ProblemList()
    stream = open_text(data.encode() if isinstance(data, str) else data)
    with (
        closing(ResourceStage()) as stage,
        closing(FORMATS[format].open_document(stream, ResourceOptions())) as document,
    ):
        stager = ResourceStager(
            stage, vocabulary or VOCABULARIES[MAIN_VOCABULARY], report, problems, default_collection=collection
        )
        stager.add_document("file", document, document.describe())
        stage.finish()
        staged = [group[0] for batch in stage.iter_batches() for group in batch]
    records = {item.id: parse_record(item.collection, item.document) for item in staged}
    return ReadFile(
        records,
        [item.detail for item in report.warnings.items],
        [item.detail for item in problems.items],
        [item.field for item in problems.items],
    )


def write_records(records: Iterable[Record], format: str, vocabulary: Vocabulary) -> bytes:
    """Write records of the main vocabulary."""
    return b"".join(FORMATS[format].codec.write(records, WriteOptions(FORMATS[format], vocabulary)))


def parse_rdf(document: bytes, format: str) -> set[str]:
    """Return the triples of a document with canonical labels of blank nodes."""
    dataset = Dataset(parse(document, SYNTAXES[format], base_iri="https://base.example/"))
    dataset.canonicalize(CanonicalizationAlgorithm.UNSTABLE)
    return {str(quad.triple) for quad in dataset}
