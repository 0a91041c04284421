"""Read the stanzas of an OBO file as statements."""

import re
from collections.abc import Callable, Iterator
from io import BufferedReader
from typing import IO

from lexarium.domain.identity.prefixes import OBO_BASE
from lexarium.domain.record import RecordState
from lexarium.domain.schema.linkml import load_builtin_schema
from lexarium.domain.schema.predicates import contract_predicate
from lexarium.domain.statement import BOOLEAN, Node, Reference, Statement, Text
from lexarium.domain.text.languages import canonicalize_tag, find_tag_problem
from lexarium.domain.vocabulary import Vocabulary
from lexarium.formats.obo import syntax
from lexarium.formats.obo.syntax import Clause, Stanza
from lexarium.formats.ontology_view import FURTHER_NAME, is_relation
from lexarium.formats.parsed import ParseError, WarningCounter
from lexarium.formats.reading import copy_seekable
from lexarium.formats.resources import (
    STATE,
    WRITTEN_IRI,
    ParsedResource,
    ResourceOptions,
    SourceDescription,
    make_slug,
)

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
# Tags with a text in quotes and a list of xrefs.
QUOTED_TAGS = {"def": "IAO:0000115", "expand_assertion_to": "IAO:0000425", "expand_expression_to": "IAO:0000424"}
# Predicates of which a stanza has one clause, and further values by property_value.
FURTHER_PREDICATES = ("IAO:0000115", "rdfs:comment")
# Statement for the qualifiers of an id.
OBO_ID = "oboInOwl:id"
_OBSOLETE = Statement("owl:deprecated", Text("true", "", BOOLEAN))
_MERGED = Statement(STATE, Text(RecordState.MERGED))
# Tags of the header whose value has a text in quotes in it. It is kept as it is.
RAW_HEADER_TAGS = ("idspace",)
_DESCRIPTION = re.compile(r'(?<![ \t])[ \t]++"([^"\\]*+(?:\\.[^"\\]*+)*+)"$')
_WORD = re.compile(r"(?:[^ \t\\]|\\.)+")
# Qualifier that names the language of a text.
LANGUAGE = "oboInOwl:lang"
HEADER_PREDICATES = {
    "data-version": "owl:versionInfo",
    "remark": "rdfs:comment",
    "date": "oboInOwl:date",
    "saved-by": "oboInOwl:savedBy",
}
# Tags of the header that are records, identity or form.
_OTHER_HEADER_TAGS = ("ontology", "subsetdef", "synonymtypedef", "format-version")
_OBO_ID = re.compile(r"([A-Za-z](?:[A-Za-z0-9_]*[A-Za-z])?):([A-Za-z0-9]+)")


def open_document(stream: BufferedReader, options: ResourceOptions) -> "OboDocument":
    """Read the header of an OBO file; raise ParseError."""
    file = copy_seekable(stream)
    try:
        return OboDocument(file)
    except BaseException:
        file.close()
        raise


class OboDocument:
    """Header and stanzas of a file."""

    covers = None

    def __init__(self, file: IO[bytes]) -> None:
        self.warnings = WarningCounter()
        # Predicates that the file has as IRIs.
        self._written_iris: set[str] = set()
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
            self._drop_unread(clause, _parse_header_clause(clause))
            for clause in self._header.clauses
            if clause.tag not in _OTHER_HEADER_TAGS
        ]
        return SourceDescription(iri, slug, _SCHEMA.name, "", tuple(statements))

    def iter_resources(self, _vocabulary: Vocabulary) -> Iterator[ParsedResource]:
        """Yield terms, typedefs, instances, and the subsets and synonym types of the header."""
        for clause in self._header.clauses:
            if clause.tag == "property_value":
                self._note_iri(clause)
            if clause.tag in ("subsetdef", "synonymtypedef"):
                yield self._parse_definition(clause)
        self._file.seek(0)
        for stanza in syntax.iter_stanzas(self._file):
            if isinstance(stanza, ParseError):
                yield _reject(stanza)
            elif stanza.stanza_type in _CLASSES:
                try:
                    yield self._parse_stanza(stanza)
                except ParseError as error:
                    yield _reject(error)
            elif stanza.stanza_type:
                self.warnings.add(f"stanzas [{stanza.stanza_type}] are skipped", f"line {stanza.line}", is_loss=True)
        written = [Statement(WRITTEN_IRI, Text(name)) for name in sorted(self._written_iris)]
        if written:
            yield ParsedResource(0, "", "", written)

    def _parse_definition(self, clause: Clause) -> ParsedResource:
        identifier, quote, rest = clause.value.partition('"')
        name, rest = (syntax.unescape(identifier.strip()), quote + rest) if quote else syntax.parse_identifier(clause)
        is_subset = clause.tag == "subsetdef"
        class_name = "subset_def" if is_subset else "synonym_type_def"
        resource = ParsedResource(clause.line, name, _SCHEMA.collections[class_name].uri)
        if rest.startswith('"'):
            description, rest = syntax.parse_quoted(Clause(clause.line, clause.column, clause.tag, rest))
            predicate = "rdfs:comment" if is_subset else _LABEL
            resource.statements.append(Statement(predicate, Text(description)))
            if is_subset:
                resource.statements.append(Statement(_LABEL, Text(name)))
        scope, qualifiers = syntax.split_qualifiers(Clause(clause.line, clause.column, clause.tag, rest))
        if scope in SYNONYM_PREDICATES and not is_subset:
            resource.statements.append(Statement("oboInOwl:hasScope", Text(scope)))
        elif scope:
            self._warn_unread(clause, scope)
        if qualifiers:
            resource.statements.append(Statement(OBO_ID, Text(resource.id), qualifiers))
        return resource

    def _parse_stanza(self, stanza: Stanza) -> ParsedResource:
        resource = ParsedResource(stanza.line, "", _SCHEMA.collections[_CLASSES[stanza.stanza_type]].uri)
        is_obsolete = False
        for clause in stanza.clauses:
            if clause.tag == "id":
                resource.id, qualifiers = syntax.parse_only_identifier(clause)
                identifier = self._drop_unread(clause, Statement(OBO_ID, Text(resource.id), qualifiers))
                resource.statements += [identifier] if identifier.qualifiers else []
                continue
            statement = self._read_clause(stanza.stanza_type, clause)
            if statement is None:
                continue
            if statement == _OBSOLETE:
                is_obsolete = True
                continue
            is_obsolete = is_obsolete or statement[:2] == _OBSOLETE[:2]
            if clause.tag == "replaced_by" and isinstance(statement.value, Reference) and not resource.replaced_by:
                resource.replaced_by = statement.value.target
                if not statement.qualifiers:
                    continue
            resource.statements.append(statement)
        if not resource.id:
            raise ParseError(f"a stanza [{stanza.stanza_type}] has no id", stanza.line, 1)
        resource.iri = _find_iri(resource.id)
        if resource.replaced_by or is_obsolete:
            is_merged = _MERGED in resource.statements
            resource.state = RecordState.MERGED if is_merged else RecordState.RETIRED
            resource.statements = [item for item in resource.statements if item != _MERGED]
        return resource

    def _read_clause(self, stanza_type: str, clause: Clause) -> Statement | None:
        """Return the statement of a clause, or None if it has no value. What cannot be read of it is counted."""
        if not clause.value:
            location = f"line {clause.line}, {clause.tag}"
            self.warnings.add("clauses without a value were left out", location, is_loss=True)
            return None
        if clause.tag == "property_value":
            self._note_iri(clause)
        statement = self._parse_clause(stanza_type, clause)
        if not statement.qualifiers:
            return statement
        statement = _take_language(self._drop_unread(clause, statement))
        if FURTHER_NAME not in statement.qualifiers:
            return statement
        others = tuple(item for item in statement.qualifiers if item != FURTHER_NAME)
        return Statement(_LABEL, statement.value, others)

    def _note_iri(self, clause: Clause) -> None:
        """Remember the property of a clause, if it is an IRI that a predicate abbreviates."""
        if clause.value.startswith("http"):
            name = contract_predicate(syntax.parse_identifier(clause)[0])
            if "://" not in name and name not in FURTHER_PREDICATES:
                self._written_iris.add(name)

    def _drop_unread(self, clause: Clause, statement: Statement) -> Statement:
        """Return a statement without what could not be read of its clause, which is counted."""
        unread = [item for item in statement.qualifiers if item.predicate == syntax.UNREAD]
        for item in unread:
            self._warn_unread(clause, str(item.value[0]))
        if not unread:
            return statement
        return statement._replace(qualifiers=tuple(item for item in statement.qualifiers if item not in unread))

    def _warn_unread(self, clause: Clause, text: str) -> None:
        example = f"line {clause.line}, {clause.tag}: {text}"
        self.warnings.add("text after the value of a clause was skipped", example, is_loss=True)

    def _parse_clause(self, stanza_type: str, clause: Clause) -> Statement:
        parse = _PARSERS.get(clause.tag)
        if parse is not None:
            return parse(clause)
        if clause.tag == "property_value":
            return _parse_property_value(clause, is_term=stanza_type == "Term")
        slot = _SLOTS[stanza_type].get(clause.tag)
        if slot is None:
            value, qualifiers = syntax.split_qualifiers(clause)
            return Statement(f"oboInOwl:{clause.tag}", Text(syntax.unescape(value)), qualifiers)
        if slot.is_reference:
            target, qualifiers = syntax.parse_only_identifier(clause)
            return Statement(slot.predicate, Reference(target), qualifiers)
        value, qualifiers = syntax.split_qualifiers(clause)
        is_flag = slot.range == "boolean" and value in ("true", "false")
        return Statement(slot.predicate, Text(syntax.unescape(value), "", BOOLEAN if is_flag else ""), qualifiers)


def _find_iri(name: str) -> str | None:
    """Return the IRI of an id: that of the OBO Foundry, or itself."""
    match = _OBO_ID.fullmatch(name)
    if match:
        return f"{OBO_BASE}{match[1]}_{match[2]}"
    return name if name.startswith(("http://", "https://")) else None


def _reject(error: ParseError) -> ParsedResource:
    """Return a rejected resource, so that the other stanzas are looked at too."""
    return ParsedResource(error.line, "", "", problems=[(error.column, error.reason)])


def _take_language(statement: Statement) -> Statement:
    """Return a statement whose text is in the language that a qualifier names."""
    predicate, value, qualifiers = statement
    tag = next((str(item.value[0]) for item in qualifiers if item.predicate == LANGUAGE), "")
    if not tag or not isinstance(value, Text) or value.datatype or find_tag_problem(tag):
        return statement
    others = tuple(item for item in qualifiers if item.predicate != LANGUAGE)
    return Statement(predicate, Text(value.text, canonicalize_tag(tag)), others)


def _parse_header_clause(clause: Clause) -> Statement:
    if clause.tag == "property_value":
        return _parse_property_value(clause)
    predicate = HEADER_PREDICATES.get(clause.tag, f"oboInOwl:{clause.tag}")
    value, qualifiers = syntax.split_qualifiers(clause)
    return Statement(predicate, Text(value if clause.tag in RAW_HEADER_TAGS else syntax.unescape(value)), qualifiers)


def _parse_definition_text(clause: Clause) -> Statement:
    text, rest = syntax.parse_quoted(clause)
    words, xrefs, qualifiers = syntax.parse_trailer(rest)
    if words.strip():
        qualifiers = [*qualifiers, (syntax.UNREAD, words.strip())]
    details = (*_state_xrefs(xrefs), *syntax.state_qualifiers(qualifiers))
    return Statement(QUOTED_TAGS[clause.tag], Text(text), details)


def _parse_synonym(clause: Clause) -> Statement:
    text, rest = syntax.parse_quoted(clause)
    words, xrefs, qualifiers = syntax.parse_trailer(rest)
    # Older files have the scope in the tag.
    old_scope = [clause.tag.removesuffix("_synonym").upper()] if clause.tag != "synonym" else []
    scope, *types = [*old_scope, *map(syntax.unescape, words.split())] or ["RELATED"]
    if scope not in SYNONYM_PREDICATES:
        scope, types = "RELATED", [scope, *types]
    stated_types = [Statement(SYNONYM_TYPE, Reference(name)) for name in types]
    details = (*stated_types, *_state_xrefs(xrefs), *syntax.state_qualifiers(qualifiers))
    return Statement(SYNONYM_PREDICATES[scope], Text(text), details)


def _parse_xref(clause: Clause) -> Statement:
    value, qualifiers = syntax.split_qualifiers(clause)
    match = _DESCRIPTION.search(value)
    name, description = (value[: match.start()], match[1]) if match else (value, "")
    described = [Statement(_LABEL, Text(syntax.unescape(description)))] if description else []
    return Statement(XREF, Text(syntax.unescape(name)), (*described, *qualifiers))


def _parse_alternative_id(clause: Clause) -> Statement:
    name, qualifiers = syntax.parse_only_identifier(clause)
    return Statement("oboInOwl:hasAlternativeId", Text(name), qualifiers)


def _parse_relationship(clause: Clause) -> Statement:
    relation, rest = syntax.parse_identifier(clause)
    target, rest = syntax.parse_identifier(Clause(clause.line, clause.column, clause.tag, rest))
    if is_relation(relation):
        return Statement(relation, Reference(target), syntax.parse_qualifiers(rest))
    # A predicate of annotations is a relation only if a restriction says so.
    return Statement("rdfs:subClassOf", _build_restriction([relation], target), syntax.parse_qualifiers(rest))


def _build_restriction(relation: list[str], target: str) -> Node:
    parts = [Statement("owl:onProperty", Reference(name)) for name in relation]
    return Node((*parts, Statement("owl:someValuesFrom", Reference(target))))


def _parse_intersection(clause: Clause) -> Statement:
    value, qualifiers = syntax.split_qualifiers(clause)
    words = [syntax.unescape(word) for word in _WORD.findall(value)]
    if len(words) not in (1, 2):
        raise clause.error("a term, or a relation and a term,")
    return Statement("owl:intersectionOf", _build_restriction(words[:-1], words[-1]), qualifiers)


def _parse_property_value(clause: Clause, *, is_term: bool = False) -> Statement:
    identifier, rest = syntax.parse_identifier(clause)
    name = contract_predicate(identifier)
    value = Clause(clause.line, clause.column, clause.tag, rest)
    if not rest.startswith('"'):
        target, rest = syntax.parse_identifier(value)
        words, _, qualifiers = syntax.parse_trailer(rest) if rest.startswith("xsd:") else ("", [], [])
        if words:
            return Statement(name, _make_literal(target, words), syntax.state_qualifiers(qualifiers))
        annotated = Node((), target) if is_term and is_relation(name) else Reference(target)
        return Statement(name, annotated, syntax.parse_qualifiers(rest))
    text, rest = syntax.parse_quoted(value)
    words, xrefs, qualifiers = syntax.parse_trailer(rest)
    details = (*_state_xrefs(xrefs), *syntax.state_qualifiers(qualifiers))
    return Statement(name, _make_literal(text, words), details)


def _make_literal(text: str, datatype: str) -> Text:
    datatype = datatype.strip()
    return Text(text, "", "" if datatype == "xsd:string" else datatype)


def _state_xrefs(xrefs: list[tuple[str, str]]) -> list[Statement]:
    return [
        Statement(XREF, Text(name), (Statement(_LABEL, Text(description)),) if description else ())
        for name, description in xrefs
    ]


_PARSERS: dict[str, Callable[[Clause], Statement]] = {
    **dict.fromkeys(QUOTED_TAGS, _parse_definition_text),
    **dict.fromkeys(("synonym", *(f"{scope.lower()}_synonym" for scope in SYNONYM_PREDICATES)), _parse_synonym),
    "xref": _parse_xref,
    "alt_id": _parse_alternative_id,
    "relationship": _parse_relationship,
    "intersection_of": _parse_intersection,
}
