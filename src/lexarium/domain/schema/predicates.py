"""Predicates of statements: how they are written, and the role that standard ones have in every vocabulary."""

import re
from enum import StrEnum


class SlotRole(StrEnum):
    """Part of a record that a slot holds."""

    NAME = "name"
    ALIAS = "alias"
    DEFINITION = "definition"
    NOTE = "note"
    NOTATION = "notation"
    HIERARCHY = "hierarchy"
    MAPPING = "mapping"
    REFERENCE = "reference"


# Prefixes that predicates are written with. They are fixed, so that a stored predicate never changes its meaning.
NAMESPACES: dict[str, str] = {
    "babelon": "https://w3id.org/babelon/",
    "cogat": "https://w3id.org/rwblair/legacy-cogat-linkml/",
    "dc": "http://purl.org/dc/elements/1.1/",
    "dcterms": "http://purl.org/dc/terms/",
    "foaf": "http://xmlns.com/foaf/0.1/",
    "lexarium": "urn:lexarium:term:",
    "isothes": "http://purl.org/iso25964/skos-thes#",
    "linkml": "https://w3id.org/linkml/",
    "oboInOwl": "http://www.geneontology.org/formats/oboInOwl#",
    "owl": "http://www.w3.org/2002/07/owl#",
    "prov": "http://www.w3.org/ns/prov#",
    "rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
    "schema": "http://schema.org/",
    "skos": "http://www.w3.org/2004/02/skos/core#",
    "skosxl": "http://www.w3.org/2008/05/skos-xl#",
    "sssom": "https://w3id.org/sssom/",
    "uneskos": "http://purl.org/umu/uneskos#",
    "xsd": "http://www.w3.org/2001/XMLSchema#",
    **{name: f"http://purl.obolibrary.org/obo/{name}_" for name in ("BFO", "IAO", "OMO", "RO")},
}

# Qualifiers of mappings, by their keys in drafts (SSSOM).
MAPPING_QUALIFIERS = {
    "justification": "sssom:mapping_justification",
    "confidence": "sssom:confidence",
    "author": "sssom:author_id",
    "date": "sssom:mapping_date",
}
# Qualifier of a translation: the text that it translates.
TRANSLATION_SOURCE = "lexarium:source"

_LOCAL_NAME = re.compile(r"[\w.-]+")

_CURIES_BY_ROLE: dict[SlotRole, str] = {
    SlotRole.NAME: "skos:prefLabel skosxl:prefLabel rdfs:label schema:name",
    SlotRole.ALIAS: (
        "skos:altLabel skos:hiddenLabel skosxl:altLabel skosxl:hiddenLabel IAO:0000118 oboInOwl:hasExactSynonym "
        "oboInOwl:hasNarrowSynonym oboInOwl:hasBroadSynonym oboInOwl:hasRelatedSynonym"
    ),
    SlotRole.DEFINITION: "skos:definition IAO:0000115",
    SlotRole.NOTE: (
        "skos:note skos:changeNote skos:editorialNote skos:example skos:historyNote skos:scopeNote rdfs:comment"
    ),
    SlotRole.NOTATION: "skos:notation",
    SlotRole.HIERARCHY: (
        "skos:broader rdfs:subClassOf rdfs:subPropertyOf "
        "isothes:broaderGeneric isothes:broaderInstantial isothes:broaderPartitive"
    ),
    SlotRole.MAPPING: (
        "skos:exactMatch skos:closeMatch skos:broadMatch skos:narrowMatch skos:relatedMatch skos:mappingRelation "
        "oboInOwl:hasDbXref"
    ),
    SlotRole.REFERENCE: "dcterms:source dc:source",
}
# Membership in a concept scheme, a collection or group, or a subset.
GROUPING_PREDICATES = frozenset({"skos:inScheme", "skos:topConceptOf", "uneskos:memberOf", "oboInOwl:inSubset"})

# Predicates of SKOS that follow from others, so that people do not state them.
IMPLIED_PREDICATES = frozenset(
    {"skos:broaderTransitive", "skos:narrowerTransitive", "skos:semanticRelation", "skos:mappingRelation"}
)


def expand_predicate(predicate: str) -> str:
    """Return the IRI of a predicate."""
    prefix, colon, local = predicate.partition(":")
    return NAMESPACES[prefix] + local if colon and prefix in NAMESPACES else predicate


def contract_predicate(iri: str) -> str:
    """Return an IRI as predicates are written: as a CURIE if its namespace is one of `NAMESPACES`, else unchanged."""
    for prefix, namespace in NAMESPACES.items():
        if iri.startswith(namespace) and _LOCAL_NAME.fullmatch(iri, len(namespace)):
            return f"{prefix}:{iri[len(namespace) :]}"
    return iri


# Roles of standard predicates in every vocabulary, whether or not a slot declares them.
STANDARD_ROLES: dict[str, SlotRole] = {
    curie: role for role, curies in _CURIES_BY_ROLE.items() for curie in curies.split()
} | {"https://schema.org/name": SlotRole.NAME}
