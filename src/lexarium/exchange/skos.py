"""SKOS in Turtle, RDF/XML, N-Triples and JSON-LD; OWL, read only."""

from collections.abc import Iterable, Iterator, Sequence
from typing import BinaryIO

from lexarium.domain.about import About
from lexarium.domain.changes import Whole
from lexarium.domain.relations import Related
from lexarium.exchange.descriptions import of_page, of_record, of_scheme, of_term
from lexarium.exchange.formats import Format
from lexarium.exchange.incoming import Incoming, Reading
from lexarium.exchange.namespaces import expanded
from lexarium.exchange.resources import Dialect, records
from lexarium.exchange.syntaxes import SYNTAXES
from lexarium.exchange.vocabulary import terms

_CONCEPTS = Dialect(
    types=(expanded("skos:Concept"),),
    members=(expanded("skos:inScheme"), expanded("skos:topConceptOf")),
    names=(expanded("skos:prefLabel"), expanded("skosxl:prefLabel"), expanded("rdfs:label")),
    others={expanded("owl:Class"): "owl"},
)
_CLASSES = Dialect(
    types=(expanded("owl:Class"),),
    members=(),
    names=(expanded("rdfs:label"), expanded("skos:prefLabel")),
    others={expanded("skos:Concept"): "skos"},
)


def read(stream: BinaryIO, reading: Reading) -> Iterator[Incoming]:
    """The concepts of a document; the labelled classes of an ontology."""
    return records(stream, reading, _CLASSES if reading.format.name == "owl" else _CONCEPTS)


def write(format: Format, about: About, wholes: Iterable[Whole]) -> Iterator[bytes]:
    """The records as concepts, each collection as a scheme before the first of its own. Takes constant memory."""
    syntax = SYNTAXES[format.name](about)
    schemes: set[str] = set()
    yield syntax.start()
    for whole in wholes:
        if whole.collection.name not in schemes:
            schemes.add(whole.collection.name)
            yield syntax.resource(of_scheme(about, whole.collection))
        yield syntax.resource(of_record(about, whole))
    yield syntax.end()


def one(format: Format, about: About, whole: Whole, related: Sequence[Related]) -> bytes:
    """One record with what those around it are called, to be shown at its own address."""
    syntax = SYNTAXES[format.name](about)
    pages = [of_scheme(about, whole.collection), *of_page(about, whole, related)]
    return b"".join([syntax.start(), *map(syntax.resource, pages), syntax.end()])


def vocabulary(format: Format, about: About) -> bytes:
    """What the terms of our own vocabulary mean, to be shown where their IRIs lead."""
    syntax = SYNTAXES[format.name](about)
    return b"".join([syntax.start(), *(syntax.resource(of_term(about, term)) for term in terms()), syntax.end()])
