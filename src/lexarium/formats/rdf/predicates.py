"""Map RDF predicates to the parts of a record, for import and export."""

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from lexarium.domain.schema.collections import (
    ALIAS_FIELDS,
    DEFINITION_FIELDS,
    MAIN_COLLECTIONS,
    MAIN_RELATION_TYPES,
    MAPPING_TYPES,
    PARTOF,
    RELATED,
    RELATION_TYPES,
)
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
    """Return the IRI of a CURIE with a known prefix; any other name unchanged."""
    prefix, colon, local = name.partition(":")
    return NAMESPACES[prefix] + local if colon and prefix in NAMESPACES else name


def expand_curies(names: str) -> tuple[str, ...]:
    """Return the IRIs of CURIEs that are separated by spaces."""
    return tuple(map(expand_curie, names.split()))


def to_curie(iri: str) -> str:
    """Return the CURIE of an IRI in a known namespace; any other IRI unchanged."""
    for prefix, namespace in NAMESPACES.items():
        if iri.startswith(namespace):
            return f"{prefix}:{iri.removeprefix(namespace)}"
    return iri


def to_obo_curie(iri: str) -> str:
    """Return the CURIE of an OBO Foundry IRI: `DOID:3324` for `…/DOID_3324`; any other IRI unchanged."""
    match = _OBO_IRI.fullmatch(iri)
    return f"{match[1]}:{match[2]}" if match else iri


# Targets of the role `relation` that are no relation types.
BROADER = "broader"  # a kind of it, unless it is stated to be a part of it
BROADER_TRANSITIVE = "transitive"  # counts only if there is no direct parent
BROADER_GENERIC = "generic"  # explicitly a kind of it

# The scope of an alternative label: exact, unless another predicate states the scope of the same label.
UNSCOPED = "alternative"

# The language tag of text in no language: a notation is stored as a hidden alias with it.
NO_LANGUAGE = "zxx"


class PredicateMapping(NamedTuple):
    """The part of a record that a predicate states, and its scope, relation type or field."""

    role: str
    target: str = ""


# Predicates for the scopes of aliases, which SKOS does not have.
SYNONYM_PREDICATES: dict[str, str] = {
    "exact": "oboInOwl:hasExactSynonym",
    "narrow": "oboInOwl:hasNarrowSynonym",
    "broad": "oboInOwl:hasBroadSynonym",
    "related": "oboInOwl:hasRelatedSynonym",
}

_PREDICATES_BY_MAPPING: dict[PredicateMapping, str] = {
    PredicateMapping("nothing"): "rdf:type oboInOwl:id",
    PredicateMapping("name"): "skos:prefLabel skosxl:prefLabel rdfs:label",
    PredicateMapping("alias", UNSCOPED): "skos:altLabel skosxl:altLabel obo:IAO_0000118",
    PredicateMapping("alias", "hidden"): "skos:hiddenLabel skosxl:hiddenLabel",
    **{PredicateMapping("alias", scope): name for scope, name in SYNONYM_PREDICATES.items()},
    PredicateMapping("notation"): "skos:notation",
    PredicateMapping("definition"): "skos:definition obo:IAO_0000115",
    PredicateMapping("note"): "skos:scopeNote dct:description dc:description rdfs:comment",
    PredicateMapping("source"): "dct:source dc:source",
    PredicateMapping("relation", BROADER): "skos:broader",
    PredicateMapping("relation", BROADER_GENERIC): "rdfs:subClassOf isothes:broaderGeneric isothes:broaderInstantial",
    PredicateMapping("relation", BROADER_TRANSITIVE): "skos:broaderTransitive",
    PredicateMapping("relation", PARTOF.name): "isothes:broaderPartitive dct:isPartOf obo:BFO_0000050 obo:part_of",
    PredicateMapping("relation", RELATED.name): "skos:related",
    **{PredicateMapping("relation", mapping.name): f"skos:{mapping.name}" for mapping in MAPPING_TYPES},
    PredicateMapping("relation", "closeMatch"): "skos:closeMatch oboInOwl:hasDbXref",
    PredicateMapping("deprecated"): "owl:deprecated",
    PredicateMapping("replaced_by"): "dct:isReplacedBy obo:IAO_0100001",
    PredicateMapping("collection"): "skos:inScheme skos:topConceptOf oboInOwl:hasOBONamespace",
    PredicateMapping("created"): "dct:created oboInOwl:creation_date",
    PredicateMapping("modified"): "dct:modified",
    PredicateMapping("creator"): "dc:creator dct:creator",
    PredicateMapping("axiom"): "owl:annotatedSource",
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
    # An axiom is looked up by its subject.
    "owl:annotatedSource": "owl:annotatedSource",
}

# Predicates that are read as the inverse one with subject and object exchanged.
INVERSE_PREDICATES = {expand_curie(name): expand_curie(inverse) for name, inverse in _INVERSE_CURIES.items()}


def _to_camel_case(label: str) -> str:
    first, *rest = label.split()
    return first + "".join(word.capitalize() for word in rest)


# Names of relation types in our own vocabulary.
LEXARIUM_RELATIONS: dict[str, str] = {
    name: _to_camel_case(relation.label)
    for name, relation in MAIN_RELATION_TYPES.items()
    if not relation.is_hierarchical and relation != RELATED and relation not in MAPPING_TYPES
}

_STANDARD_FIELDS = ("id", "name", *ALIAS_FIELDS, *DEFINITION_FIELDS)
# Names of fields in our own vocabulary.
LEXARIUM_FIELDS: dict[str, str] = {
    field: "class" if field == "id_concept_class" else field
    for collection in MAIN_COLLECTIONS.values()
    for field in collection.core_fields
    if field not in _STANDARD_FIELDS
}

_NAMESPACE_SUFFIX = "vocabulary#"
# The name of the property for a state other than deprecated.
STATE_PROPERTY = "state"
# The class of our collections. It shows the base IRI of the catalogue that a document was exported from.
COLLECTION_CLASS = "Collection"


def build_predicate_map(vocabulary: Vocabulary, column_mapping: Mapping[str, str]) -> dict[str, PredicateMapping]:
    """Return the mappings of all predicates by IRI; a user's column mapping takes precedence."""
    mappings = {
        expand_curie(name): mapping for mapping, names in _PREDICATES_BY_MAPPING.items() for name in names.split()
    }
    own_mappings = {name: PredicateMapping("relation", relation) for relation, name in LEXARIUM_RELATIONS.items()}
    own_mappings |= {name: PredicateMapping("field", field) for field, name in LEXARIUM_FIELDS.items()}
    own_mappings[STATE_PROPERTY] = PredicateMapping("state")
    mappings |= {lexarium_namespace(vocabulary) + name: mapping for name, mapping in own_mappings.items()}
    return mappings | {expand_curie(name): _map_field(mapping) for name, mapping in column_mapping.items()}


def _map_field(field: str) -> PredicateMapping:
    """Return the mapping to a field or relation type that a user names."""
    if field in ("name", "state", "replaced_by", "collection"):
        return PredicateMapping(field)
    if field in ("alias", "aliases"):
        return PredicateMapping("alias", "exact")
    if field == "sources":
        return PredicateMapping("source")
    if field in RELATION_TYPES:
        return PredicateMapping("relation", field)
    return PredicateMapping("definition") if field in DEFINITION_FIELDS else PredicateMapping("field", field)


def find_catalogue_base(subject: str, rdf_type: str) -> str | None:
    """Return the base IRI of the catalogue that a collection belongs to; None if the subject is no collection."""
    base = rdf_type.removesuffix(f"{_NAMESPACE_SUFFIX}{COLLECTION_CLASS}")
    return base if base != rdf_type and subject.removeprefix(base) in MAIN_COLLECTIONS else None


def lexarium_namespace(vocabulary: Vocabulary) -> str:
    """Return the namespace of our own vocabulary."""
    return vocabulary.base + _NAMESPACE_SUFFIX


class LexariumTerm(NamedTuple):
    """A term of our own vocabulary; its type is a CURIE."""

    name: str
    rdf_type: str
    definition: str


def list_lexarium_terms() -> Iterator[LexariumTerm]:
    """Yield all terms of our own vocabulary."""
    definition = "A collection of records of one kind, which is a concept scheme too."
    yield LexariumTerm(COLLECTION_CLASS, "owl:Class", definition)
    for field, name in LEXARIUM_FIELDS.items():
        field_info = next(entry.fields[field] for entry in MAIN_COLLECTIONS.values() if field in entry.fields)
        yield LexariumTerm(name, "rdf:Property", field_info.description or f"The field {field} of a record.")
    for relation, name in LEXARIUM_RELATIONS.items():
        entry = RELATION_TYPES[relation]
        ends = (f"from a {source} to a {' or '.join(targets)}" for source, targets in entry.targets.items())
        definition = f"The relation {relation}, {'; '.join(ends)}."
        yield LexariumTerm(name, "rdf:Property", definition)
    yield LexariumTerm(STATE_PROPERTY, "rdf:Property", "The state of a record that is more than deprecated: merged.")
