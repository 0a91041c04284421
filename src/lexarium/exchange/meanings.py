"""What predicates say of a record: the tables that reading and writing RDF share."""

from collections.abc import Mapping
from typing import Literal, NamedTuple

from lexarium.domain.about import About
from lexarium.domain.collections import COLLECTIONS, DEFINITIONS
from lexarium.domain.relations import MAPPINGS, PARTOF, RELATED, RELATIONS
from lexarium.exchange.namespaces import expanded

Kind = Literal[
    "name",
    "alias",
    "notation",
    "definition",
    "note",
    "source",
    "relation",
    "deprecated",
    "state",
    "replaced_by",
    "collection",
    "created",
    "modified",
    "creator",
    "field",
    "axiom",
    "nothing",
]

BROADER = "broader"
"""Broader in some way: a kind of it, unless it is said to be a part of it."""
TRANSITIVE = "transitive"
"""Broader at some distance: counts only where nothing nearer is said."""
GENERIC = "generic"
"""A kind of it, and that is said outright."""


class Meaning(NamedTuple):
    """What a predicate says."""

    kind: Kind
    detail: str = ""
    """Of names their scope, of relations which, of fields their name."""


SCOPES: dict[str, str] = {
    "exact": "oboInOwl:hasExactSynonym",
    "narrow": "oboInOwl:hasNarrowSynonym",
    "broad": "oboInOwl:hasBroadSynonym",
    "related": "oboInOwl:hasRelatedSynonym",
}
"""What says the scope of another name outright; SKOS itself knows only that it is one."""

ALTERNATIVE = "alternative"
"""The scope of what is another name in some way: exact, unless the scope of that name is said outright."""

_MEANINGS: dict[str, Meaning] = {
    "rdf:type": Meaning("nothing"),
    "oboInOwl:id": Meaning("nothing"),
    "skos:prefLabel": Meaning("name"),
    "skosxl:prefLabel": Meaning("name"),
    "rdfs:label": Meaning("name"),
    "skos:altLabel": Meaning("alias", ALTERNATIVE),
    "skosxl:altLabel": Meaning("alias", ALTERNATIVE),
    "obo:IAO_0000118": Meaning("alias", ALTERNATIVE),
    "skos:hiddenLabel": Meaning("alias", "hidden"),
    "skosxl:hiddenLabel": Meaning("alias", "hidden"),
    **{name: Meaning("alias", scope) for scope, name in SCOPES.items()},
    "skos:notation": Meaning("notation"),
    "skos:definition": Meaning("definition"),
    "obo:IAO_0000115": Meaning("definition"),
    "skos:scopeNote": Meaning("note"),
    "dct:description": Meaning("note"),
    "dc:description": Meaning("note"),
    "rdfs:comment": Meaning("note"),
    "dct:source": Meaning("source"),
    "dc:source": Meaning("source"),
    "skos:broader": Meaning("relation", BROADER),
    "rdfs:subClassOf": Meaning("relation", GENERIC),
    "isothes:broaderGeneric": Meaning("relation", GENERIC),
    "isothes:broaderInstantial": Meaning("relation", GENERIC),
    "skos:broaderTransitive": Meaning("relation", TRANSITIVE),
    "isothes:broaderPartitive": Meaning("relation", PARTOF.name),
    "dct:isPartOf": Meaning("relation", PARTOF.name),
    "obo:BFO_0000050": Meaning("relation", PARTOF.name),
    "obo:part_of": Meaning("relation", PARTOF.name),
    "skos:related": Meaning("relation", RELATED.name),
    **{f"skos:{mapping.name}": Meaning("relation", mapping.name) for mapping in MAPPINGS},
    "oboInOwl:hasDbXref": Meaning("relation", "closeMatch"),
    "owl:deprecated": Meaning("deprecated"),
    "dct:isReplacedBy": Meaning("replaced_by"),
    "obo:IAO_0100001": Meaning("replaced_by"),
    "skos:inScheme": Meaning("collection"),
    "skos:topConceptOf": Meaning("collection"),
    "oboInOwl:hasOBONamespace": Meaning("collection"),
    "dct:created": Meaning("created"),
    "oboInOwl:creation_date": Meaning("created"),
    "dct:modified": Meaning("modified"),
    "dc:creator": Meaning("creator"),
    "dct:creator": Meaning("creator"),
    "owl:annotatedSource": Meaning("axiom"),
}

_INVERSES: dict[str, str] = {
    "skos:narrower": "skos:broader",
    "skos:narrowerTransitive": "skos:broaderTransitive",
    "isothes:narrowerGeneric": "isothes:broaderGeneric",
    "isothes:narrowerInstantial": "isothes:broaderInstantial",
    "isothes:narrowerPartitive": "isothes:broaderPartitive",
    "dct:hasPart": "dct:isPartOf",
    "dct:replaces": "dct:isReplacedBy",
    "skos:hasTopConcept": "skos:topConceptOf",
    # An axiom is found from what it is about.
    "owl:annotatedSource": "owl:annotatedSource",
}

INVERSES: dict[str, str] = {expanded(name): expanded(other) for name, other in _INVERSES.items()}
"""What is said the other way round: read as what it says of its object."""


def _camel(label: str) -> str:
    first, *others = label.split()
    return first + "".join(word.capitalize() for word in others)


OWN_RELATIONS: dict[str, str] = {
    name: _camel(relation.label)
    for name, relation in RELATIONS.items()
    if not relation.hierarchical and relation is not RELATED and relation not in MAPPINGS
}
"""What relations are called in Lexarium's own vocabulary that no other has."""

_COMMON = ("id", "name", "alias", *DEFINITIONS)
OWN_FIELDS: dict[str, str] = {
    field: "class" if field == "id_concept_class" else field
    for collection in COLLECTIONS.values()
    for field in collection.fields
    if field not in _COMMON
}
"""What fields are called there."""

_VOCABULARY = "vocabulary#"

STATE = "state"
"""What a record's state is called there, where it is more than deprecated."""


def meanings(about: About, told: Mapping[str, str]) -> dict[str, Meaning]:
    """What predicates mean, by IRI. `told` is what people say of some: IRIs or CURIEs, and fields or relations."""
    known = {expanded(name): meaning for name, meaning in _MEANINGS.items()}
    own = {name: Meaning("relation", relation) for relation, name in OWN_RELATIONS.items()}
    own |= {name: Meaning("field", field) for field, name in OWN_FIELDS.items()}
    own[STATE] = Meaning("state")
    known |= {vocabulary(about) + name: meaning for name, meaning in own.items()}
    return known | {expanded(name): _said(meaning) for name, meaning in told.items()}


def _said(meaning: str) -> Meaning:
    """What a field or relation is that people name as the meaning of a predicate."""
    named: dict[str, Meaning] = {
        "name": Meaning("name"),
        "alias": Meaning("alias", "exact"),
        "aliases": Meaning("alias", "exact"),
        "sources": Meaning("source"),
        "state": Meaning("state"),
        "replaced_by": Meaning("replaced_by"),
        "collection": Meaning("collection"),
    }
    if meaning in named:
        return named[meaning]
    if meaning in RELATIONS:
        return Meaning("relation", meaning)
    return Meaning("definition") if meaning in DEFINITIONS else Meaning("field", meaning)


COLLECTION = "Collection"
"""What a collection is an instance of there: by that a document tells where its records had their home."""


def home(subject: str, kind: str) -> str | None:
    """The base IRI of the catalogue, this or another, that calls one of its collections so; None where it is none."""
    base = kind.removesuffix(f"{_VOCABULARY}{COLLECTION}")
    return base if base != kind and subject.removeprefix(base) in COLLECTIONS else None


def vocabulary(about: About) -> str:
    """What the IRIs of Lexarium's own vocabulary begin with."""
    return about.base + _VOCABULARY
