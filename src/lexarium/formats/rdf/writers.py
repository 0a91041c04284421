"""Serialize resources as N-Triples, Turtle, RDF/XML or JSON-LD, one by one and in constant memory."""

import re
from collections.abc import Callable
from itertools import groupby
from operator import itemgetter
from typing import Any
from xml.sax.saxutils import escape, quoteattr

import orjson

from lexarium.domain.schema.collections import MAIN_COLLECTIONS, MAPPING_TYPES
from lexarium.domain.vocabulary import Vocabulary
from lexarium.formats.rdf import predicates
from lexarium.formats.rdf.exporter import LEXARIUM_PREFIX, ResourceTriples, TypedLiteral
from lexarium.formats.rdf.parser import RdfLiteral
from lexarium.formats.rdf.predicates import LEXARIUM_FIELDS, NAMESPACES

_WRITTEN_PREFIXES = ("skos", "rdf", "xsd", "owl", "isothes", "dct", "dc", "oboInOwl")


class RdfWriter:
    """Serialize resources as N-Triples; the base class of the other writers."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._namespaces = {
            "id": vocabulary.record_iri(""),
            LEXARIUM_PREFIX: predicates.lexarium_namespace(vocabulary),
            **{prefix: NAMESPACES[prefix] for prefix in _WRITTEN_PREFIXES},
        }

    def write_header(self) -> bytes:
        """Return the beginning of a document."""
        return b""

    def write_resource(self, resource: ResourceTriples) -> bytes:
        """Return one resource."""
        subject = f"<{resource.subject}>"
        return "".join(
            f"{subject} {self._format_curie(predicate)} {self._format_object(value)} .\n"
            for predicate, value in resource.properties
        ).encode()

    def write_footer(self) -> bytes:
        """Return the end of a document."""
        return b""

    def _format_object(self, value: str | RdfLiteral | TypedLiteral) -> str:
        if isinstance(value, str):
            return self._format_iri(value)
        literal = f'"{_SPECIAL_CHARS.sub(_escape_char, value.text)}"'
        if isinstance(value, TypedLiteral):
            return f"{literal}^^{self._format_curie(value.datatype)}"
        return f"{literal}@{value.language}" if value.language else literal

    def _expand_curie(self, curie: str) -> str:
        prefix, _, local = curie.partition(":")
        return self._namespaces[prefix] + local

    def _format_curie(self, curie: str) -> str:
        return f"<{self._expand_curie(curie)}>"

    def _format_iri(self, iri: str) -> str:
        return f"<{iri}>"


class TurtleWriter(RdfWriter):
    """Serialize resources as Turtle, grouped by predicate, with prefixes."""

    def write_header(self) -> bytes:
        return "".join(f"@prefix {prefix}: <{name}> .\n" for prefix, name in self._namespaces.items()).encode()

    def write_resource(self, resource: ResourceTriples) -> bytes:
        body = ""
        for predicate, group in groupby(resource.properties, itemgetter(0)):
            objects = [self._format_object(value) for _, value in group]
            verb = "a" if predicate == "rdf:type" else predicate
            body += f"{' ;' if body else ''}\n    {verb} " + ",\n        ".join(objects)
        return f"\n{self._format_iri(resource.subject)}{body} .\n".encode()

    def _format_curie(self, curie: str) -> str:
        return curie

    def _format_iri(self, iri: str) -> str:
        for prefix, namespace in self._namespaces.items():
            if iri.startswith(namespace) and _LOCAL_NAME.fullmatch(iri, len(namespace)):
                return f"{prefix}:{iri[len(namespace) :]}"
        return f"<{iri}>"


class RdfXmlWriter(RdfWriter):
    """Serialize resources as RDF/XML: an element per resource, an element per triple."""

    def write_header(self) -> bytes:
        declarations = "".join(f"\n    xmlns:{prefix}={quoteattr(name)}" for prefix, name in self._namespaces.items())
        return f'<?xml version="1.0" encoding="UTF-8"?>\n<rdf:RDF{declarations}>\n'.encode()

    def write_resource(self, resource: ResourceTriples) -> bytes:
        elements = "".join(
            f"    {self._format_element(predicate, value)}\n" for predicate, value in resource.properties
        )
        subject = quoteattr(resource.subject)
        return f"  <rdf:Description rdf:about={subject}>\n{elements}  </rdf:Description>\n".encode()

    def write_footer(self) -> bytes:
        return b"</rdf:RDF>\n"

    def _format_element(self, predicate: str, value: str | RdfLiteral | TypedLiteral) -> str:
        if isinstance(value, str):
            return f"<{predicate} rdf:resource={quoteattr(value)}/>"
        if isinstance(value, RdfLiteral):
            attribute = f' xml:lang="{value.language}"' if value.language else ""
        else:
            attribute = f" rdf:datatype={quoteattr(self._expand_curie(value.datatype))}"
        # XML cannot represent most control characters.
        text = escape(_INVALID_XML_CHARS.sub("\ufffd", value.text), {"\r": "&#13;"})
        return f"<{predicate}{attribute}>{text}</{predicate}>"


class JsonLdWriter(RdfWriter):
    """Serialize resources as JSON-LD: a list of objects, one a line, with one context."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        super().__init__(vocabulary)
        self._separator = b"\n"

    def write_header(self) -> bytes:
        # No prefixes: with them, a mapping to `dc:1` would mean something else.
        terms: dict[str, Any] = {}
        for curie, value_type in _TERM_TYPES.items():
            iri = self._expand_curie(curie)
            if value_type == "@language":
                terms[_get_local_name(curie)] = {"@id": iri, "@container": "@language"}
            elif value_type:
                type_iri = value_type if value_type == "@id" else self._expand_curie(value_type)
                terms[_get_local_name(curie)] = {"@id": iri, "@type": type_iri}
            else:
                terms[_get_local_name(curie)] = iri
        return b'{"@context":' + orjson.dumps(terms) + b',"@graph":['

    def write_resource(self, resource: ResourceTriples) -> bytes:
        separator, self._separator = self._separator, b",\n"
        return separator + orjson.dumps(_compact(resource))

    def write_footer(self) -> bytes:
        return b"\n]}\n"


# By the name of the format.
WRITERS: dict[str, Callable[[Vocabulary], RdfWriter]] = {
    "skos": TurtleWriter,
    "rdfxml": RdfXmlWriter,
    "ntriples": RdfWriter,
    "jsonld": JsonLdWriter,
}

_LOCAL_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SPECIAL_CHARS = re.compile(r'["\\\x00-\x1f\x7f-\x9f]')
_NAMED_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_INVALID_XML_CHARS = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def _escape_char(match: re.Match[str]) -> str:
    char = match.group()
    return _NAMED_ESCAPES.get(char) or f"\\u{ord(char):04X}"


# The types of the values of JSON-LD terms; empty: any text.
_TERM_TYPES: dict[str, str] = {
    **dict.fromkeys(("skos:notation", "dct:rights", "dc:publisher", "dc:language", "dc:creator"), ""),
    f"{LEXARIUM_PREFIX}:{predicates.STATE_PROPERTY}": "",
    **{f"{LEXARIUM_PREFIX}:{name}": "" for name in LEXARIUM_FIELDS.values()},
    **dict.fromkeys(("skos:inScheme", "skos:topConceptOf", "skos:broader", "skos:narrower", "skos:related"), "@id"),
    **{f"skos:{mapping.name}": "@id" for mapping in MAPPING_TYPES},
    **dict.fromkeys(("isothes:broaderGeneric", "isothes:broaderPartitive"), "@id"),
    **dict.fromkeys(("dct:source", "dct:license", "dct:isReplacedBy"), "@id"),
    **{f"{LEXARIUM_PREFIX}:{name}": "@id" for name in predicates.LEXARIUM_RELATIONS.values()},
    f"{LEXARIUM_PREFIX}:{LEXARIUM_FIELDS['id_concept_class']}": "@id",
    **dict.fromkeys(("skos:prefLabel", "skos:altLabel", "skos:hiddenLabel", "skos:definition"), "@language"),
    **dict.fromkeys(("dct:title", "dct:description", *predicates.SYNONYM_PREDICATES.values()), "@language"),
    **dict.fromkeys(("dct:created", "dct:modified"), "xsd:dateTime"),
    "owl:deprecated": "xsd:boolean",
    **{
        f"{LEXARIUM_PREFIX}:{LEXARIUM_FIELDS[field]}": "xsd:integer"
        for collection in MAIN_COLLECTIONS.values()
        for field, field_type in collection.field_types.items()
        if field_type is int
    },
}


def _get_local_name(curie: str) -> str:
    return curie.partition(":")[2]


def _compact(resource: ResourceTriples) -> dict[str, Any]:
    """Return a resource as a JSON object with the keys of the context."""
    document: dict[str, Any] = {"@id": resource.subject}
    for predicate, value in resource.properties:
        if predicate == "rdf:type":
            _append_value(document, "@type", value)
        elif _TERM_TYPES.get(predicate) == "@language" and isinstance(value, RdfLiteral):
            _append_value(document.setdefault(_get_local_name(predicate), {}), value.language or "@none", value.text)
        elif _TERM_TYPES.get(predicate) == "@id" and isinstance(value, RdfLiteral):
            _append_value(document, _get_local_name(predicate), {"@value": value.text})
        else:
            _append_value(document, _get_local_name(predicate), value if isinstance(value, str) else value.text)
    return document


def _append_value(target: dict[str, Any], key: str, value: Any) -> None:
    """Add a value; a single one is stored as itself, several as a list."""
    if key not in target:
        target[key] = value
    elif isinstance(target[key], list):
        target[key].append(value)
    else:
        target[key] = [target[key], value]
