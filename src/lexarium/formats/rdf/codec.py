"""SKOS in Turtle, RDF/XML, N-Triples and JSON-LD; OWL, read only."""

from collections.abc import Iterable, Iterator, Sequence
from io import BufferedReader

from lexarium.domain.identifiers import MAIN_VOCABULARY
from lexarium.domain.record import Record, RelatedRecord
from lexarium.domain.vocabulary import Vocabulary
from lexarium.formats.parsed import ParsedRecord, ReadOptions, WriteOptions
from lexarium.formats.rdf import exporter
from lexarium.formats.rdf.importer import OWL_PROFILE, SKOS_PROFILE, import_records
from lexarium.formats.rdf.predicates import list_lexarium_terms
from lexarium.formats.rdf.statements import write_statements
from lexarium.formats.rdf.writers import WRITERS
from lexarium.formats.registry import Format


def read(stream: BufferedReader, options: ReadOptions) -> Iterator[ParsedRecord]:
    """Yield the concepts of a SKOS document, or the labelled classes of an ontology."""
    return import_records(stream, options, OWL_PROFILE if options.format.name == "owl" else SKOS_PROFILE)


def write(records: Iterable[Record], options: WriteOptions) -> Iterator[bytes]:
    """Yield the records as concepts, each collection as a scheme before its first record, in constant memory."""
    if options.vocabulary.slug != MAIN_VOCABULARY:
        return write_statements(records, options.format.name, options.vocabulary)
    return _serialize(options.format, options.vocabulary, _describe(options.vocabulary, records))


def _describe(vocabulary: Vocabulary, records: Iterable[Record]) -> Iterator[exporter.ResourceTriples]:
    schemes: set[str] = set()
    for record in records:
        if record.collection.name not in schemes:
            schemes.add(record.collection.name)
            yield exporter.describe_scheme(vocabulary, record.collection)
        yield exporter.describe_record(vocabulary, record)


def _serialize(
    format: Format, vocabulary: Vocabulary, resources: Iterable[exporter.ResourceTriples]
) -> Iterator[bytes]:
    writer = WRITERS[format.name](vocabulary)
    yield writer.write_header()
    yield from map(writer.write_resource, resources)
    yield writer.write_footer()


def render_record(format: Format, vocabulary: Vocabulary, record: Record, related: Sequence[RelatedRecord]) -> bytes:
    """Render one record with the names of its neighbours, for its own IRI."""
    scheme = exporter.describe_scheme(vocabulary, record.collection)
    resources = [scheme, *exporter.describe_neighbourhood(vocabulary, record, related)]
    return b"".join(_serialize(format, vocabulary, resources))


def render_vocabulary(format: Format, vocabulary: Vocabulary) -> bytes:
    """Render the terms of Lexarium's own vocabulary, for their IRIs."""
    resources = (exporter.describe_term(vocabulary, term) for term in list_lexarium_terms())
    return b"".join(_serialize(format, vocabulary, resources))
