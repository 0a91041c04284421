"""Statements as bytes, in each of the syntaxes that are written: a beginning, resources one by one, an end."""

import re
from collections.abc import Callable
from itertools import groupby
from operator import itemgetter
from typing import Any, Protocol
from xml.sax.saxutils import escape, quoteattr

import orjson

from lexarium.domain.schema.collections import COLLECTIONS
from lexarium.domain.schema.relation_types import MAPPING_TYPES
from lexarium.domain.vocabulary import Vocabulary
from lexarium.formats.rdf.exporter import LEXARIUM_PREFIX, ResourceTriples, TypedLiteral
from lexarium.formats.rdf.parser import RdfLiteral
from lexarium.formats.rdf.predicates import (
    LEXARIUM_FIELDS,
    LEXARIUM_RELATIONS,
    NAMESPACES,
    STATE_PROPERTY,
    SYNONYM_PREDICATES,
    lexarium_namespace,
)

_WRITTEN_PREFIXES = ("skos", "rdf", "xsd", "owl", "isothes", "dct", "dc", "oboInOwl")
_RdfObject = str | RdfLiteral | TypedLiteral


class RdfWriter(Protocol):
    """How statements are written."""

    def write_header(self) -> bytes:
        """What comes before the first resource."""

    def write_resource(self, resource: ResourceTriples) -> bytes:
        """One resource."""

    def write_footer(self) -> bytes:
        """What comes after the last."""


def build_prefix_map(vocabulary: Vocabulary) -> dict[str, str]:
    """The prefixes of what is written, with their namespaces."""
    own_namespaces = {"id": vocabulary.record_iri(""), LEXARIUM_PREFIX: lexarium_namespace(vocabulary)}
    return own_namespaces | {prefix: NAMESPACES[prefix] for prefix in _WRITTEN_PREFIXES}


class NTriplesWriter:
    """One statement a line."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._namespaces = build_prefix_map(vocabulary)

    def write_header(self) -> bytes:
        return b""

    def write_resource(self, resource: ResourceTriples) -> bytes:
        subject = f"<{resource.subject}>"
        return "".join(
            f"{subject} {self._format_iri(predicate)} {self._format_object(value)} .\n"
            for predicate, value in resource.properties
        ).encode()

    def write_footer(self) -> bytes:
        return b""

    def _format_iri(self, curie: str) -> str:
        prefix, _, local = curie.partition(":")
        return f"<{self._namespaces[prefix]}{local}>"

    def _format_object(self, value: _RdfObject) -> str:
        if isinstance(value, RdfLiteral):
            return f"{_quote(value.text)}@{value.language}" if value.language else _quote(value.text)
        return (
            f"{_quote(value.text)}^^{self._format_iri(value.datatype)}"
            if isinstance(value, TypedLiteral)
            else f"<{value}>"
        )


class TurtleWriter:
    """Grouped by resource and predicate, with prefixes."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._namespaces = build_prefix_map(vocabulary)

    def write_header(self) -> bytes:
        return "".join(f"@prefix {prefix}: <{name}> .\n" for prefix, name in self._namespaces.items()).encode()

    def write_resource(self, resource: ResourceTriples) -> bytes:
        body = ""
        for predicate, group in groupby(resource.properties, itemgetter(0)):
            objects = [self._format_object(value) for _, value in group]
            verb = "a" if predicate == "rdf:type" else predicate
            body += f"{' ;' if body else ''}\n    {verb} " + ",\n        ".join(objects)
        return f"\n{self._format_iri(resource.subject)}{body} .\n".encode()

    def write_footer(self) -> bytes:
        return b""

    def _format_object(self, value: _RdfObject) -> str:
        if isinstance(value, RdfLiteral):
            return f"{_quote(value.text)}@{value.language}" if value.language else _quote(value.text)
        return f"{_quote(value.text)}^^{value.datatype}" if isinstance(value, TypedLiteral) else self._format_iri(value)

    def _format_iri(self, iri: str) -> str:
        for prefix, namespace in self._namespaces.items():
            if iri.startswith(namespace) and _LOCAL_NAME.fullmatch(iri, len(namespace)):
                return f"{prefix}:{iri[len(namespace) :]}"
        return f"<{iri}>"


class RdfXmlWriter:
    """One element a resource, one a statement."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._namespaces = build_prefix_map(vocabulary)

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

    def _format_element(self, predicate: str, value: _RdfObject) -> str:
        if isinstance(value, str):
            return f"<{predicate} rdf:resource={quoteattr(value)}/>"
        if isinstance(value, RdfLiteral):
            attribute = f' xml:lang="{value.language}"' if value.language else ""
        else:
            prefix, _, local = value.datatype.partition(":")
            attribute = f" rdf:datatype={quoteattr(self._namespaces[prefix] + local)}"
        return f"<{predicate}{attribute}>{_escape_xml(value.text)}</{predicate}>"


class JsonLdWriter:
    """One object a line, in a list, with one context."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._context = _build_context(build_prefix_map(vocabulary))
        self._separator = b"\n"

    def write_header(self) -> bytes:
        return b'{"@context":' + orjson.dumps(self._context) + b',"@graph":['

    def write_resource(self, resource: ResourceTriples) -> bytes:
        separator, self._separator = self._separator, b",\n"
        return separator + orjson.dumps(_compact(resource))

    def write_footer(self) -> bytes:
        return b"\n]}\n"


WRITERS: dict[str, Callable[[Vocabulary], RdfWriter]] = {
    "skos": TurtleWriter,
    "rdfxml": RdfXmlWriter,
    "ntriples": NTriplesWriter,
    "jsonld": JsonLdWriter,
}
"""By the name of the format."""

_LOCAL_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SPECIAL_CHARS = re.compile(r'["\\\x00-\x1f\x7f-\x9f]')
_NAMED_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_INVALID_XML_CHARS = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def _quote(text: str) -> str:
    return f'"{_SPECIAL_CHARS.sub(_escape_char, text)}"'


def _escape_char(match: re.Match[str]) -> str:
    char = match.group()
    return _NAMED_ESCAPES.get(char) or f"\\u{ord(char):04X}"


def _escape_xml(text: str) -> str:
    """The text for XML, which has no way to say most control characters."""
    return escape(_INVALID_XML_CHARS.sub("\ufffd", text), {"\r": "&#13;"})


_IRI_TERMS = (
    *("skos:inScheme", "skos:topConceptOf", "skos:broader", "skos:narrower", "skos:related"),
    *(f"skos:{mapping.name}" for mapping in MAPPING_TYPES),
    *("isothes:broaderGeneric", "isothes:broaderPartitive", "dct:source", "dct:license", "dct:isReplacedBy"),
    *(f"{LEXARIUM_PREFIX}:{name}" for name in LEXARIUM_RELATIONS.values()),
    f"{LEXARIUM_PREFIX}:{LEXARIUM_FIELDS['id_concept_class']}",
)
_LANGUAGE_TERMS = (
    *("skos:prefLabel", "skos:altLabel", "skos:hiddenLabel", "skos:definition", "dct:title", "dct:description"),
    *SYNONYM_PREDICATES.values(),
)
_TYPED_TERMS = {
    "dct:created": "xsd:dateTime",
    "dct:modified": "xsd:dateTime",
    "owl:deprecated": "xsd:boolean",
    **{
        f"{LEXARIUM_PREFIX}:{LEXARIUM_FIELDS[field]}": "xsd:integer"
        for collection in COLLECTIONS.values()
        for field, field_type in collection.field_types.items()
        if field_type is int
    },
}
_PLAIN_TERMS = (
    *(
        "skos:notation",
        "dct:rights",
        "dc:publisher",
        "dc:language",
        "dc:creator",
        f"{LEXARIUM_PREFIX}:{STATE_PROPERTY}",
    ),
    *(f"{LEXARIUM_PREFIX}:{name}" for name in LEXARIUM_FIELDS.values()),
)


def _build_context(namespaces: dict[str, str]) -> dict[str, Any]:
    """What the keys of JSON-LD mean. No prefixes: a mapping to `dc:1` would mean something else with them."""

    def expand(curie: str) -> str:
        prefix, _, local = curie.partition(":")
        return namespaces[prefix] + local

    terms: dict[str, Any] = {_get_local_name(name): expand(name) for name in _PLAIN_TERMS}
    terms |= {_get_local_name(name): {"@id": expand(name), "@type": "@id"} for name in _IRI_TERMS}
    terms |= {_get_local_name(name): {"@id": expand(name), "@container": "@language"} for name in _LANGUAGE_TERMS}
    return terms | {
        _get_local_name(name): {"@id": expand(name), "@type": expand(datatype)}
        for name, datatype in _TYPED_TERMS.items()
    }


def _get_local_name(curie: str) -> str:
    return curie.partition(":")[2]


def _compact(resource: ResourceTriples) -> dict[str, Any]:
    """A resource as the context lets it be said."""
    document: dict[str, Any] = {"@id": resource.subject}
    for predicate, value in resource.properties:
        if predicate == "rdf:type":
            _append_value(document, "@type", value)
        elif predicate in _LANGUAGE_TERMS and isinstance(value, RdfLiteral):
            _append_value(document.setdefault(_get_local_name(predicate), {}), value.language or "@none", value.text)
        elif predicate in _IRI_TERMS and isinstance(value, RdfLiteral):
            _append_value(document, _get_local_name(predicate), {"@value": value.text})
        else:
            _append_value(document, _get_local_name(predicate), value if isinstance(value, str) else value.text)
    return document


def _append_value(target: dict[str, Any], key: str, value: Any) -> None:
    """One value as itself, several as a list."""
    if key not in target:
        target[key] = value
    elif isinstance(target[key], list):
        target[key].append(value)
    else:
        target[key] = [target[key], value]
