"""Read the stanzas of an OBO file as statements."""

import re
from collections.abc import Callable, Iterator, Mapping
from io import BufferedReader
from typing import IO

from lexarium.domain.identity.prefixes import OBO_BASE
from lexarium.domain.record import RecordState
from lexarium.domain.schema.linkml import load_builtin_schema
from lexarium.domain.statement import BOOLEAN, Node, Reference, Statement, Text
from lexarium.formats.obo import syntax
from lexarium.formats.obo.syntax import Clause, Stanza
from lexarium.formats.parsed import ParseError, WarningCounter
from lexarium.formats.reading import copy_seekable
from lexarium.formats.resources import ParsedResource, SourceDescription, make_slug

_SCHEMA = load_builtin_schema("obo")
_CLASSES = {"Term": "term", "Typedef": "typedef", "Instance": "instance"}
_SLOTS = {stanza_type: _SCHEMA.collections[collection].slots for stanza_type, collection in _CLASSES.items()}
SYNONYM_PREDICATES = {
    "EXACT": "oboInOwl:hasExactSynonym",
    "BROAD": "oboInOwl:hasBroadSynonym",
    "NARROW": "oboInOwl:hasNarrowSynonym",
    "RELATED": "oboInOwl:hasRelatedSynonym",
}
XREF, SYNONYM_TYPE, _LABEL = "oboInOwl:hasDbXref", "oboInOwl:hasSynonymType", "rdfs:label"
_HEADER_PREDICATES = {
    "data-version": "owl:versionInfo",
    "remark": "rdfs:comment",
    "date": "oboInOwl:date",
    "saved-by": "oboInOwl:savedBy",
}
_OBO_ID = re.compile(r"([A-Za-z](?:[A-Za-z0-9_]*[A-Za-z])?):([A-Za-z0-9]+)")


def open_document(stream: BufferedReader) -> "OboDocument":
    """Read the header of an OBO file; raise ParseError."""
    return OboDocument(copy_seekable(stream))


class OboDocument:
    """Header and stanzas of a file."""

    def __init__(self, file: IO[bytes]) -> None:
        self.warnings = WarningCounter()
        self._file = file
        self.close = file.close
        header = next(syntax.iter_stanzas(file))
        if isinstance(header, ParseError):
            raise header
        self._header = header
        self._clauses = {clause.tag: syntax.parse_unquoted(clause) for clause in header.clauses}
        if "format-version" not in self._clauses and not self._has_stanza():
            raise ParseError("there is neither `format-version:` nor a stanza, like [Term]", 1, 1)

    def _has_stanza(self) -> bool:
        self._file.seek(0)
        return any(isinstance(item, Stanza) and item.stanza_type for item in syntax.iter_stanzas(self._file))

    def describe(self) -> SourceDescription:
        """Return what the header says about the ontology."""
        ontology = self._clauses.get("ontology", "")
        iri = ontology if "://" in ontology or not ontology else f"{OBO_BASE}{ontology}.owl"
        slug = make_slug(ontology.removesuffix(".owl").rstrip("/").rpartition("/")[2])
        statements = [
            Statement(predicate, Text(syntax.parse_unquoted(clause)))
            for clause in self._header.clauses
            if (predicate := self._name_header_predicate(clause.tag))
        ]
        return SourceDescription(iri, slug, _SCHEMA.name, "", tuple(statements))

    @staticmethod
    def _name_header_predicate(tag: str) -> str | None:
        if tag in ("ontology", "subsetdef", "synonymtypedef", "format-version"):
            return None
        return _HEADER_PREDICATES.get(tag, f"oboInOwl:{tag}")

    def iter_resources(self, _prefixes: Mapping[str, str]) -> Iterator[ParsedResource]:
        """Yield terms, typedefs, instances, and the subsets and synonym types of the header."""
        for clause in self._header.clauses:
            if clause.tag in ("subsetdef", "synonymtypedef"):
                yield self._parse_definition(clause)
        self._file.seek(0)
        for stanza in syntax.iter_stanzas(self._file):
            if isinstance(stanza, ParseError):
                raise stanza
            if stanza.stanza_type in _CLASSES:
                yield self._parse_stanza(stanza)
            elif stanza.stanza_type:
                self.warnings.add(f"stanzas [{stanza.stanza_type}] are left out", f"line {stanza.line}")

    def _parse_definition(self, clause: Clause) -> ParsedResource:
        name, rest = syntax.parse_identifier(clause)
        is_subset = clause.tag == "subsetdef"
        class_name = "subset_def" if is_subset else "synonym_type_def"
        resource = ParsedResource(clause.line, name, _SCHEMA.collections[class_name].uri)
        if rest.startswith('"'):
            description, rest = syntax.parse_quoted(Clause(clause.line, clause.column, clause.tag, rest))
            predicate = "rdfs:comment" if is_subset else _LABEL
            resource.statements.append(Statement(predicate, Text(description)))
            if is_subset:
                resource.statements.append(Statement(_LABEL, Text(name)))
        if rest.strip() in SYNONYM_PREDICATES:
            resource.statements.append(Statement("oboInOwl:hasScope", Text(rest.strip())))
        return resource

    def _parse_stanza(self, stanza: Stanza) -> ParsedResource:
        resource = ParsedResource(stanza.line, "", _SCHEMA.collections[_CLASSES[stanza.stanza_type]].uri)
        replacements = []
        is_obsolete = False
        for clause in stanza.clauses:
            if clause.tag == "id":
                resource.id = syntax.parse_identifier(clause)[0]
            elif clause.tag == "is_obsolete":
                is_obsolete = syntax.parse_unquoted(clause) == "true"
            elif clause.tag == "replaced_by":
                replacements.append(syntax.parse_identifier(clause)[0])
            else:
                resource.statements.append(self._parse_clause(stanza.stanza_type, clause))
        if not resource.id:
            raise ParseError(f"a stanza [{stanza.stanza_type}] has no id", stanza.line, 1)
        match = _OBO_ID.fullmatch(resource.id)
        if match:
            resource.iri = f"{OBO_BASE}{match[1]}_{match[2]}"
        if replacements or is_obsolete:
            resource.state = RecordState.RETIRED
            resource.replaced_by = next(iter(replacements), None)
            resource.statements += [Statement("IAO:0100001", Reference(target)) for target in replacements[1:]]
        return resource

    def _parse_clause(self, stanza_type: str, clause: Clause) -> Statement:
        parse = _PARSERS.get(clause.tag)
        if parse is not None:
            return parse(clause)
        slot = _SLOTS[stanza_type].get(clause.tag)
        if slot is None:
            value, qualifiers = syntax.split_qualifiers(clause)
            return Statement(f"oboInOwl:{clause.tag}", Text(syntax.unescape(value)), qualifiers)
        if slot.is_reference:
            target, rest = syntax.parse_identifier(clause)
            return Statement(slot.predicate, Reference(target), syntax.parse_qualifiers(rest))
        value, qualifiers = syntax.split_qualifiers(clause)
        is_flag = slot.range == "boolean" and value in ("true", "false")
        return Statement(slot.predicate, Text(syntax.unescape(value), "", BOOLEAN if is_flag else ""), qualifiers)


def _parse_definition_text(clause: Clause) -> Statement:
    text, rest = syntax.parse_quoted(clause)
    _, xrefs, qualifiers = syntax.parse_trailer(rest)
    return Statement("IAO:0000115", Text(text), (*_state_xrefs(xrefs), *syntax.state_qualifiers(qualifiers)))


def _parse_synonym(clause: Clause) -> Statement:
    text, rest = syntax.parse_quoted(clause)
    words, xrefs, qualifiers = syntax.parse_trailer(rest)
    scope, *types = words.split() or ["RELATED"]
    if scope not in SYNONYM_PREDICATES:
        scope, types = "RELATED", [scope, *types]
    stated_types = [Statement(SYNONYM_TYPE, Reference(name)) for name in types]
    details = (*stated_types, *_state_xrefs(xrefs), *syntax.state_qualifiers(qualifiers))
    return Statement(SYNONYM_PREDICATES[scope], Text(text), details)


def _parse_xref(clause: Clause) -> Statement:
    value, qualifiers = syntax.split_qualifiers(clause)
    name, _, description = value.partition('"')
    described = (
        [Statement(_LABEL, Text(syntax.unescape(description.rstrip().removesuffix('"'))))] if description else []
    )
    return Statement(XREF, Text(syntax.unescape(name.strip())), (*described, *qualifiers))


def _parse_alternative_id(clause: Clause) -> Statement:
    return Statement("oboInOwl:hasAlternativeId", Text(syntax.parse_identifier(clause)[0]))


def _parse_relationship(clause: Clause) -> Statement:
    relation, rest = syntax.parse_identifier(clause)
    target, rest = syntax.parse_identifier(Clause(clause.line, clause.column, clause.tag, rest))
    return Statement(relation, Reference(target), syntax.parse_qualifiers(rest))


def _parse_intersection(clause: Clause) -> Statement:
    value, qualifiers = syntax.split_qualifiers(clause)
    *relation, target = (syntax.unescape(word) for word in value.split())
    parts = [Statement("owl:onProperty", Reference(name)) for name in relation[:1]]
    return Statement(
        "owl:intersectionOf", Node((*parts, Statement("owl:someValuesFrom", Reference(target)))), qualifiers
    )


def _parse_property_value(clause: Clause) -> Statement:
    name, rest = syntax.parse_identifier(clause)
    value = Clause(clause.line, clause.column, clause.tag, rest)
    if not rest.startswith('"'):
        target, rest = syntax.parse_identifier(value)
        return Statement(name, Reference(target), syntax.parse_qualifiers(rest))
    text, rest = syntax.parse_quoted(value)
    words, _, qualifiers = syntax.parse_trailer(rest)
    datatype = words.strip()
    return Statement(
        name, Text(text, "", "" if datatype == "xsd:string" else datatype), syntax.state_qualifiers(qualifiers)
    )


def _state_xrefs(xrefs: list[str]) -> list[Statement]:
    return [Statement(XREF, Text(xref)) for xref in xrefs]


_PARSERS: dict[str, Callable[[Clause], Statement]] = {
    "def": _parse_definition_text,
    "synonym": _parse_synonym,
    "xref": _parse_xref,
    "alt_id": _parse_alternative_id,
    "relationship": _parse_relationship,
    "intersection_of": _parse_intersection,
    "property_value": _parse_property_value,
}
