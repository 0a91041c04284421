"""OWL, read: the classes of an ontology as records, in any syntax of RDF."""

from collections.abc import Iterator
from typing import BinaryIO

from lexarium.exchange.incoming import Incoming, Reading
from lexarium.exchange.namespaces import expanded
from lexarium.exchange.resources import Dialect, records

_CLASSES = Dialect(
    types=(expanded("owl:Class"),),
    members=(),
    names=(expanded("rdfs:label"), expanded("skos:prefLabel")),
    others={expanded("skos:Concept"): "skos"},
)


def read(stream: BinaryIO, reading: Reading) -> Iterator[Incoming]:
    """The classes of an ontology that have a label."""
    return records(stream, reading, _CLASSES)
