"""SKOS in Turtle, RDF/XML, N-Triples and JSON-LD; OWL, read only."""

from collections.abc import Iterable, Iterator, Sequence
from typing import BinaryIO

from lexarium.domain.record import Record, RelatedRecord
from lexarium.domain.vocabulary import Vocabulary
from lexarium.formats.parsed import ParsedRecord, ReadOptions
from lexarium.formats.rdf.exporter import describe_neighbourhood, describe_record, describe_scheme, describe_term
from lexarium.formats.rdf.importer import RdfProfile, import_records
from lexarium.formats.rdf.predicates import expand_curie, list_lexarium_terms
from lexarium.formats.rdf.writers import WRITERS
from lexarium.formats.registry import Format

_SKOS_PROFILE = RdfProfile(
    record_types=(expand_curie("skos:Concept"),),
    membership_predicates=(expand_curie("skos:inScheme"), expand_curie("skos:topConceptOf")),
    name_predicates=(expand_curie("skos:prefLabel"), expand_curie("skosxl:prefLabel"), expand_curie("rdfs:label")),
    format_by_type={expand_curie("owl:Class"): "owl"},
)
_OWL_PROFILE = RdfProfile(
    record_types=(expand_curie("owl:Class"),),
    membership_predicates=(),
    name_predicates=(expand_curie("rdfs:label"), expand_curie("skos:prefLabel")),
    format_by_type={expand_curie("skos:Concept"): "skos"},
)


def read(stream: BinaryIO, options: ReadOptions) -> Iterator[ParsedRecord]:
    """The concepts of a document; the labelled classes of an ontology."""
    return import_records(stream, options, _OWL_PROFILE if options.format.name == "owl" else _SKOS_PROFILE)


def write(format: Format, vocabulary: Vocabulary, records: Iterable[Record]) -> Iterator[bytes]:
    """The records as concepts, each collection as a scheme before the first of its own. Takes constant memory."""
    writer = WRITERS[format.name](vocabulary)
    schemes: set[str] = set()
    yield writer.write_header()
    for record in records:
        if record.collection.name not in schemes:
            schemes.add(record.collection.name)
            yield writer.write_resource(describe_scheme(vocabulary, record.collection))
        yield writer.write_resource(describe_record(vocabulary, record))
    yield writer.write_footer()


def render_record(format: Format, vocabulary: Vocabulary, record: Record, related: Sequence[RelatedRecord]) -> bytes:
    """One record with what those around it are called, to be shown at its own address."""
    writer = WRITERS[format.name](vocabulary)
    resources = [describe_scheme(vocabulary, record.collection), *describe_neighbourhood(vocabulary, record, related)]
    return b"".join([writer.write_header(), *map(writer.write_resource, resources), writer.write_footer()])


def render_vocabulary(format: Format, vocabulary: Vocabulary) -> bytes:
    """What the terms of our own vocabulary mean, to be shown where their IRIs lead."""
    writer = WRITERS[format.name](vocabulary)
    return b"".join(
        [
            writer.write_header(),
            *(writer.write_resource(describe_term(vocabulary, term)) for term in list_lexarium_terms()),
            writer.write_footer(),
        ]
    )
