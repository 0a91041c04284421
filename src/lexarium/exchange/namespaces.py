"""The vocabularies that RDF is written in, by their usual prefixes, and names of OBO as CURIEs."""

import re

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

_OBO = re.compile(re.escape(NAMESPACES["obo"]) + r"([A-Za-z][A-Za-z0-9_.-]*)_([A-Za-z0-9]+)")


def expanded(name: str) -> str:
    """The IRI that a CURIE with one of these prefixes stands for; any other name is itself."""
    prefix, colon, local = name.partition(":")
    return NAMESPACES[prefix] + local if colon and prefix in NAMESPACES else name


def shortened(iri: str) -> str:
    """An IRI as people know it: as a CURIE where its vocabulary is one of these."""
    for prefix, namespace in NAMESPACES.items():
        if iri.startswith(namespace):
            return f"{prefix}:{iri.removeprefix(namespace)}"
    return iri


def curie(iri: str) -> str:
    """What the OBO Foundry calls something: `DOID:3324` where its IRI there ends in `DOID_3324`; else its IRI."""
    match = _OBO.fullmatch(iri)
    return f"{match[1]}:{match[2]}" if match else iri
