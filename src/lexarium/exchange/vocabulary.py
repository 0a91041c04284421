"""Lexarium's own vocabulary, told of: what its few terms mean, by which RDF says what no other vocabulary can."""

from collections.abc import Iterator
from typing import NamedTuple

from lexarium.domain.collections import COLLECTIONS
from lexarium.domain.relations import RELATIONS
from lexarium.exchange.meanings import COLLECTION, OWN_FIELDS, OWN_RELATIONS, STATE


class Term(NamedTuple):
    """A term of it."""

    name: str
    kind: str
    """What it is an instance of, as a CURIE."""
    meaning: str


def terms() -> Iterator[Term]:
    """All of them."""
    yield Term(COLLECTION, "owl:Class", "A collection of records of one kind, which is a concept scheme too.")
    for field, name in OWN_FIELDS.items():
        told = next(each.fields[field] for each in COLLECTIONS.values() if field in each.fields)
        yield Term(name, "rdf:Property", told.description or f"The field {field} of a record.")
    for relation, name in OWN_RELATIONS.items():
        each = RELATIONS[relation]
        yield Term(name, "rdf:Property", f"The relation {relation}, from a {each.source} to a {each.target}.")
    yield Term(STATE, "rdf:Property", "The state of a record that is more than deprecated: merged.")
