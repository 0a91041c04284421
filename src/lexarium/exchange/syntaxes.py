"""Statements as bytes, in each of the syntaxes that are written: a beginning, resources one by one, an end."""

import re
from collections.abc import Callable
from itertools import groupby
from operator import itemgetter
from typing import Any, Protocol
from xml.sax.saxutils import escape, quoteattr

import orjson

from lexarium.domain.about import About
from lexarium.domain.collections import COLLECTIONS
from lexarium.domain.relations import MAPPINGS
from lexarium.exchange.descriptions import OWN, Description, Typed
from lexarium.exchange.meanings import OWN_FIELDS, OWN_RELATIONS, SCOPES, STATE, vocabulary
from lexarium.exchange.namespaces import NAMESPACES
from lexarium.exchange.rdf import Text

_USED = ("skos", "rdf", "xsd", "owl", "isothes", "dct", "dc", "oboInOwl")
_Object = str | Text | Typed


class Syntax(Protocol):
    """How statements are written."""

    def start(self) -> bytes:
        """What comes before the first resource."""

    def resource(self, description: Description) -> bytes:
        """One resource."""

    def end(self) -> bytes:
        """What comes after the last."""


def prefixes(about: About) -> dict[str, str]:
    """The prefixes of what is written, with their namespaces."""
    own = {"id": about.iri(""), OWN: vocabulary(about)}
    return own | {prefix: NAMESPACES[prefix] for prefix in _USED}


class NTriples:
    """One statement a line."""

    def __init__(self, about: About) -> None:
        self._namespaces = prefixes(about)

    def start(self) -> bytes:
        return b""

    def resource(self, description: Description) -> bytes:
        subject = f"<{description.subject}>"
        return "".join(
            f"{subject} {self._iri(predicate)} {self._object(value)} .\n" for predicate, value in description.said
        ).encode()

    def end(self) -> bytes:
        return b""

    def _iri(self, curie: str) -> str:
        prefix, _, local = curie.partition(":")
        return f"<{self._namespaces[prefix]}{local}>"

    def _object(self, value: _Object) -> str:
        if isinstance(value, Text):
            return f"{_quoted(value.text)}@{value.language}" if value.language else _quoted(value.text)
        return f"{_quoted(value.text)}^^{self._iri(value.datatype)}" if isinstance(value, Typed) else f"<{value}>"


class Turtle:
    """Grouped by resource and predicate, with prefixes."""

    def __init__(self, about: About) -> None:
        self._namespaces = prefixes(about)

    def start(self) -> bytes:
        return "".join(f"@prefix {prefix}: <{name}> .\n" for prefix, name in self._namespaces.items()).encode()

    def resource(self, description: Description) -> bytes:
        said = ""
        for predicate, same in groupby(description.said, itemgetter(0)):
            objects = [self._object(value) for _, value in same]
            verb = "a" if predicate == "rdf:type" else predicate
            said += f"{' ;' if said else ''}\n    {verb} " + ",\n        ".join(objects)
        return f"\n{self._iri(description.subject)}{said} .\n".encode()

    def end(self) -> bytes:
        return b""

    def _object(self, value: _Object) -> str:
        if isinstance(value, Text):
            return f"{_quoted(value.text)}@{value.language}" if value.language else _quoted(value.text)
        return f"{_quoted(value.text)}^^{value.datatype}" if isinstance(value, Typed) else self._iri(value)

    def _iri(self, iri: str) -> str:
        for prefix, namespace in self._namespaces.items():
            if iri.startswith(namespace) and _LOCAL.fullmatch(iri, len(namespace)):
                return f"{prefix}:{iri[len(namespace) :]}"
        return f"<{iri}>"


class RdfXml:
    """One element a resource, one a statement."""

    def __init__(self, about: About) -> None:
        self._namespaces = prefixes(about)

    def start(self) -> bytes:
        declared = "".join(f"\n    xmlns:{prefix}={quoteattr(name)}" for prefix, name in self._namespaces.items())
        return f'<?xml version="1.0" encoding="UTF-8"?>\n<rdf:RDF{declared}>\n'.encode()

    def resource(self, description: Description) -> bytes:
        said = "".join(f"    {self._element(predicate, value)}\n" for predicate, value in description.said)
        about = quoteattr(description.subject)
        return f"  <rdf:Description rdf:about={about}>\n{said}  </rdf:Description>\n".encode()

    def end(self) -> bytes:
        return b"</rdf:RDF>\n"

    def _element(self, predicate: str, value: _Object) -> str:
        if isinstance(value, str):
            return f"<{predicate} rdf:resource={quoteattr(value)}/>"
        if isinstance(value, Text):
            mark = f' xml:lang="{value.language}"' if value.language else ""
        else:
            prefix, _, local = value.datatype.partition(":")
            mark = f" rdf:datatype={quoteattr(self._namespaces[prefix] + local)}"
        return f"<{predicate}{mark}>{_escaped(value.text)}</{predicate}>"


class JsonLd:
    """One object a line, in a list, with one context."""

    def __init__(self, about: About) -> None:
        self._context = _context(prefixes(about))
        self._before = b"\n"

    def start(self) -> bytes:
        return b'{"@context":' + orjson.dumps(self._context) + b',"@graph":['

    def resource(self, description: Description) -> bytes:
        before, self._before = self._before, b",\n"
        return before + orjson.dumps(_compacted(description))

    def end(self) -> bytes:
        return b"\n]}\n"


SYNTAXES: dict[str, Callable[[About], Syntax]] = {
    "skos": Turtle,
    "rdfxml": RdfXml,
    "ntriples": NTriples,
    "jsonld": JsonLd,
}
"""By the name of the format."""

_LOCAL = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SPECIAL = re.compile(r'["\\\x00-\x1f\x7f-\x9f]')
_NAMED = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def _quoted(text: str) -> str:
    return f'"{_SPECIAL.sub(_backslashed, text)}"'


def _backslashed(match: re.Match[str]) -> str:
    char = match.group()
    return _NAMED.get(char) or f"\\u{ord(char):04X}"


def _escaped(text: str) -> str:
    """The text for XML, which has no way to say most control characters."""
    return escape(_NOT_XML.sub("\ufffd", text), {"\r": "&#13;"})


_LINKS = (
    *("skos:inScheme", "skos:topConceptOf", "skos:broader", "skos:narrower", "skos:related"),
    *(f"skos:{mapping.name}" for mapping in MAPPINGS),
    *("isothes:broaderGeneric", "isothes:broaderPartitive", "dct:source", "dct:license", "dct:isReplacedBy"),
    *(f"{OWN}:{name}" for name in OWN_RELATIONS.values()),
    f"{OWN}:{OWN_FIELDS['id_concept_class']}",
)
_LABELS = (
    *("skos:prefLabel", "skos:altLabel", "skos:hiddenLabel", "skos:definition", "dct:title", "dct:description"),
    *SCOPES.values(),
)
_TYPES = {
    "dct:created": "xsd:dateTime",
    "dct:modified": "xsd:dateTime",
    "owl:deprecated": "xsd:boolean",
    **{
        f"{OWN}:{OWN_FIELDS[field]}": "xsd:integer"
        for collection in COLLECTIONS.values()
        for field, kind in collection.types.items()
        if kind is int
    },
}
_PLAIN = (
    *("skos:notation", "dct:rights", "dc:publisher", "dc:language", "dc:creator", f"{OWN}:{STATE}"),
    *(f"{OWN}:{name}" for name in OWN_FIELDS.values()),
)


def _context(namespaces: dict[str, str]) -> dict[str, Any]:
    """What the keys of JSON-LD mean. No prefixes: a mapping to `dc:1` would mean something else with them."""

    def iri(curie: str) -> str:
        prefix, _, local = curie.partition(":")
        return namespaces[prefix] + local

    terms: dict[str, Any] = {_term(name): iri(name) for name in _PLAIN}
    terms |= {_term(name): {"@id": iri(name), "@type": "@id"} for name in _LINKS}
    terms |= {_term(name): {"@id": iri(name), "@container": "@language"} for name in _LABELS}
    return terms | {_term(name): {"@id": iri(name), "@type": iri(datatype)} for name, datatype in _TYPES.items()}


def _term(curie: str) -> str:
    return curie.partition(":")[2]


def _compacted(description: Description) -> dict[str, Any]:
    """A resource as the context lets it be said."""
    found: dict[str, Any] = {"@id": description.subject}
    for predicate, value in description.said:
        if predicate == "rdf:type":
            _put(found, "@type", value)
        elif predicate in _LABELS and isinstance(value, Text):
            _put(found.setdefault(_term(predicate), {}), value.language or "@none", value.text)
        elif predicate in _LINKS and isinstance(value, Text):
            _put(found, _term(predicate), {"@value": value.text})
        else:
            _put(found, _term(predicate), value if isinstance(value, str) else value.text)
    return found


def _put(into: dict[str, Any], key: str, value: Any) -> None:
    """One value as itself, several as a list."""
    if key not in into:
        into[key] = value
    elif isinstance(into[key], list):
        into[key].append(value)
    else:
        into[key] = [into[key], value]
