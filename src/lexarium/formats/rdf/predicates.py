"""What predicates say of a record: the tables that reading and writing RDF share."""

import re
from collections.abc import Iterator, Mapping
from typing import Literal, NamedTuple

from lexarium.domain.schema.collections import COLLECTIONS, DEFINITION_FIELDS
from lexarium.domain.schema.relation_types import MAPPING_TYPES, PARTOF, RELATED, RELATION_TYPES
from lexarium.domain.vocabulary import Vocabulary

NAMESPACES: dict[str, str] = {
    "rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
    "xsd": "http://www.w3.org/2001/XMLSchema#",
    "owl": "http://www.w3.org/2002/07/owl#",
    "skos": "http://www.w3.org/2004/02/skos/core#",
    "skosxl": "http://www.w3.org/2008/05/skos-xl#",
    "isothes": "http://purl.org/iso25964/skos-thes#",
    "dct": "http://purl.org/dc/terms/",
    "dc": "http://purl.org/dc/elements/1.1/",
    "oboInOwl": "http://www.geneontology.org/formats/oboInOwl#",
    "obo": "http://purl.obolibrary.org/obo/",
    "foaf": "http://xmlns.com/foaf/0.1/",
    "prov": "http://www.w3.org/ns/prov#",
    "schema": "http://schema.org/",
}

_OBO_IRI = re.compile(re.escape(NAMESPACES["obo"]) + r"([A-Za-z][A-Za-z0-9_.-]*)_([A-Za-z0-9]+)")


def expand_curie(name: str) -> str:
    """The IRI that a CURIE with one of these prefixes stands for; any other name is itself."""
    prefix, colon, local = name.partition(":")
    return NAMESPACES[prefix] + local if colon and prefix in NAMESPACES else name


def to_curie(iri: str) -> str:
    """An IRI as people know it: as a CURIE where its vocabulary is one of these."""
    for prefix, namespace in NAMESPACES.items():
        if iri.startswith(namespace):
            return f"{prefix}:{iri.removeprefix(namespace)}"
    return iri


def to_obo_curie(iri: str) -> str:
    """What the OBO Foundry calls something: `DOID:3324` where its IRI there ends in `DOID_3324`; else its IRI."""
    match = _OBO_IRI.fullmatch(iri)
    return f"{match[1]}:{match[2]}" if match else iri


PredicateRole = Literal[
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
BROADER_TRANSITIVE = "transitive"
"""Broader at some distance: counts only where nothing nearer is said."""
BROADER_GENERIC = "generic"
"""A kind of it, and that is said outright."""


class PredicateMapping(NamedTuple):
    """What a predicate says."""

    role: PredicateRole
    target: str = ""
    """Of names their scope, of relations which, of fields their name."""


SYNONYM_PREDICATES: dict[str, str] = {
    "exact": "oboInOwl:hasExactSynonym",
    "narrow": "oboInOwl:hasNarrowSynonym",
    "broad": "oboInOwl:hasBroadSynonym",
    "related": "oboInOwl:hasRelatedSynonym",
}
"""What says the scope of another name outright; SKOS itself knows only that it is one."""

UNSCOPED = "alternative"
"""The scope of what is another name in some way: exact, unless the scope of that name is said outright."""

_STANDARD_PREDICATES: dict[str, PredicateMapping] = {
    "rdf:type": PredicateMapping("nothing"),
    "oboInOwl:id": PredicateMapping("nothing"),
    "skos:prefLabel": PredicateMapping("name"),
    "skosxl:prefLabel": PredicateMapping("name"),
    "rdfs:label": PredicateMapping("name"),
    "skos:altLabel": PredicateMapping("alias", UNSCOPED),
    "skosxl:altLabel": PredicateMapping("alias", UNSCOPED),
    "obo:IAO_0000118": PredicateMapping("alias", UNSCOPED),
    "skos:hiddenLabel": PredicateMapping("alias", "hidden"),
    "skosxl:hiddenLabel": PredicateMapping("alias", "hidden"),
    **{name: PredicateMapping("alias", scope) for scope, name in SYNONYM_PREDICATES.items()},
    "skos:notation": PredicateMapping("notation"),
    "skos:definition": PredicateMapping("definition"),
    "obo:IAO_0000115": PredicateMapping("definition"),
    "skos:scopeNote": PredicateMapping("note"),
    "dct:description": PredicateMapping("note"),
    "dc:description": PredicateMapping("note"),
    "rdfs:comment": PredicateMapping("note"),
    "dct:source": PredicateMapping("source"),
    "dc:source": PredicateMapping("source"),
    "skos:broader": PredicateMapping("relation", BROADER),
    "rdfs:subClassOf": PredicateMapping("relation", BROADER_GENERIC),
    "isothes:broaderGeneric": PredicateMapping("relation", BROADER_GENERIC),
    "isothes:broaderInstantial": PredicateMapping("relation", BROADER_GENERIC),
    "skos:broaderTransitive": PredicateMapping("relation", BROADER_TRANSITIVE),
    "isothes:broaderPartitive": PredicateMapping("relation", PARTOF.name),
    "dct:isPartOf": PredicateMapping("relation", PARTOF.name),
    "obo:BFO_0000050": PredicateMapping("relation", PARTOF.name),
    "obo:part_of": PredicateMapping("relation", PARTOF.name),
    "skos:related": PredicateMapping("relation", RELATED.name),
    **{f"skos:{mapping.name}": PredicateMapping("relation", mapping.name) for mapping in MAPPING_TYPES},
    "oboInOwl:hasDbXref": PredicateMapping("relation", "closeMatch"),
    "owl:deprecated": PredicateMapping("deprecated"),
    "dct:isReplacedBy": PredicateMapping("replaced_by"),
    "obo:IAO_0100001": PredicateMapping("replaced_by"),
    "skos:inScheme": PredicateMapping("collection"),
    "skos:topConceptOf": PredicateMapping("collection"),
    "oboInOwl:hasOBONamespace": PredicateMapping("collection"),
    "dct:created": PredicateMapping("created"),
    "oboInOwl:creation_date": PredicateMapping("created"),
    "dct:modified": PredicateMapping("modified"),
    "dc:creator": PredicateMapping("creator"),
    "dct:creator": PredicateMapping("creator"),
    "owl:annotatedSource": PredicateMapping("axiom"),
}

_INVERSE_CURIES: dict[str, str] = {
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

INVERSE_PREDICATES: dict[str, str] = {
    expand_curie(name): expand_curie(inverse) for name, inverse in _INVERSE_CURIES.items()
}
"""What is said the other way round: read as what it says of its object."""


def _to_camel_case(label: str) -> str:
    first, *rest = label.split()
    return first + "".join(word.capitalize() for word in rest)


LEXARIUM_RELATIONS: dict[str, str] = {
    name: _to_camel_case(relation.label)
    for name, relation in RELATION_TYPES.items()
    if not relation.is_hierarchical and relation is not RELATED and relation not in MAPPING_TYPES
}
"""What relations are called in Lexarium's own vocabulary that no other has."""

_STANDARD_FIELDS = ("id", "name", "alias", *DEFINITION_FIELDS)
LEXARIUM_FIELDS: dict[str, str] = {
    field: "class" if field == "id_concept_class" else field
    for collection in COLLECTIONS.values()
    for field in collection.fields
    if field not in _STANDARD_FIELDS
}
"""What fields are called there."""

_NAMESPACE_SUFFIX = "vocabulary#"

STATE_PROPERTY = "state"
"""What a record's state is called there, where it is more than deprecated."""


def build_predicate_map(vocabulary: Vocabulary, column_mapping: Mapping[str, str]) -> dict[str, PredicateMapping]:
    """What predicates mean, by IRI. `told` is what people say of some: IRIs or CURIEs, and fields or relations."""
    mappings = {expand_curie(name): mapping for name, mapping in _STANDARD_PREDICATES.items()}
    own_mappings = {name: PredicateMapping("relation", relation) for relation, name in LEXARIUM_RELATIONS.items()}
    own_mappings |= {name: PredicateMapping("field", field) for field, name in LEXARIUM_FIELDS.items()}
    own_mappings[STATE_PROPERTY] = PredicateMapping("state")
    mappings |= {lexarium_namespace(vocabulary) + name: mapping for name, mapping in own_mappings.items()}
    return mappings | {expand_curie(name): _map_field(mapping) for name, mapping in column_mapping.items()}


def _map_field(field: str) -> PredicateMapping:
    """What a field or relation is that people name as the meaning of a predicate."""
    mapping_by_field: dict[str, PredicateMapping] = {
        "name": PredicateMapping("name"),
        "alias": PredicateMapping("alias", "exact"),
        "aliases": PredicateMapping("alias", "exact"),
        "sources": PredicateMapping("source"),
        "state": PredicateMapping("state"),
        "replaced_by": PredicateMapping("replaced_by"),
        "collection": PredicateMapping("collection"),
    }
    if field in mapping_by_field:
        return mapping_by_field[field]
    if field in RELATION_TYPES:
        return PredicateMapping("relation", field)
    return PredicateMapping("definition") if field in DEFINITION_FIELDS else PredicateMapping("field", field)


COLLECTION_CLASS = "Collection"
"""What a collection is an instance of there: by that a document tells where its records had their home."""


def find_catalogue_base(subject: str, rdf_type: str) -> str | None:
    """The base IRI of the catalogue, this or another, that calls one of its collections so; None where it is none."""
    base = rdf_type.removesuffix(f"{_NAMESPACE_SUFFIX}{COLLECTION_CLASS}")
    return base if base != rdf_type and subject.removeprefix(base) in COLLECTIONS else None


def lexarium_namespace(vocabulary: Vocabulary) -> str:
    """What the IRIs of Lexarium's own vocabulary begin with."""
    return vocabulary.base + _NAMESPACE_SUFFIX


class LexariumTerm(NamedTuple):
    """A term of it."""

    name: str
    rdf_type: str
    """What it is an instance of, as a CURIE."""
    definition: str


def list_lexarium_terms() -> Iterator[LexariumTerm]:
    """All of them."""
    yield LexariumTerm(
        COLLECTION_CLASS, "owl:Class", "A collection of records of one kind, which is a concept scheme too."
    )
    for field, name in LEXARIUM_FIELDS.items():
        field_info = next(entry.fields[field] for entry in COLLECTIONS.values() if field in entry.fields)
        yield LexariumTerm(name, "rdf:Property", field_info.description or f"The field {field} of a record.")
    for relation, name in LEXARIUM_RELATIONS.items():
        entry = RELATION_TYPES[relation]
        yield LexariumTerm(
            name,
            "rdf:Property",
            f"The relation {relation}, from a {entry.source_collection} to a {entry.target_collection}.",
        )
    yield LexariumTerm(STATE_PROPERTY, "rdf:Property", "The state of a record that is more than deprecated: merged.")
