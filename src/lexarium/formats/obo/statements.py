"""Write records as OBO stanzas, statement by statement: the reverse of `resources`."""

from collections.abc import Callable, Iterator

from lexarium.domain.identifiers import get_local_id
from lexarium.domain.record import Record, RecordState
from lexarium.domain.schema.linkml import load_builtin_schema
from lexarium.domain.statement import Node, Reference, Statement, Text
from lexarium.domain.vocabulary import Vocabulary
from lexarium.formats.obo import syntax
from lexarium.formats.obo.resources import SYNONYM_PREDICATES, SYNONYM_TYPE, XREF

_SCHEMA = load_builtin_schema("obo")
_STANZAS = {"term": "Term", "typedef": "Typedef", "instance": "Instance"}
_SCOPES = {predicate: scope for scope, predicate in SYNONYM_PREDICATES.items()}
# Tags by class and predicate.
_TAGS = {name: {slot.predicate: tag for tag, slot in _SCHEMA.collections[name].slots.items()} for name in _STANZAS}
# Order of the tags in a stanza, as version 1.4 has it.
_ORDER = {
    tag: place
    for place, tag in enumerate(
        (
            *("is_anonymous", "name", "namespace", "alt_id", "def", "comment", "subset", "synonym", "xref", "builtin"),
            *("property_value", "is_a", "intersection_of", "union_of", "equivalent_to", "disjoint_from"),
            *("relationship", "created_by", "creation_date", "is_obsolete", "replaced_by", "consider"),
        )
    )
}


def format_header(vocabulary: Vocabulary) -> Iterator[str]:
    """Yield the lines of the header."""
    yield "format-version: 1.4"
    source = next(iter(vocabulary.sources), "").removeprefix("http://purl.obolibrary.org/obo/").removesuffix(".owl")
    yield f"ontology: {source or vocabulary.slug}"


def format_record(record: Record) -> list[str]:
    """Return the lines of a stanza; of a subset or synonym type, the clause of the header."""
    stanza_type = _STANZAS.get(record.collection.local_name)
    if stanza_type is None:
        return []
    clauses = [_format_statement(record.collection.local_name, item) for item in record.statements]
    if record.state != RecordState.PUBLISHED:
        clauses.append(("is_obsolete", "true"))
    if record.replaced_by is not None:
        clauses.append(("replaced_by", syntax.format_identifier(get_local_id(record.replaced_by))))
    clauses.sort(key=lambda clause: _ORDER.get(clause[0], len(_ORDER)))
    lines = [f"[{stanza_type}]", f"id: {syntax.format_identifier(record.local_id)}"]
    return lines + [f"{tag}: {value}" for tag, value in clauses]


def _format_statement(class_name: str, statement: Statement) -> tuple[str, str]:
    predicate, value, qualifiers = statement
    write = _WRITERS.get(predicate)
    if write is not None:
        return write(statement)
    tag = _TAGS[class_name].get(predicate)
    if isinstance(value, Node):
        return _format_expression(statement)
    if tag is None and isinstance(value, Reference):
        kind = "relationship" if not predicate.startswith(("dc", "http", "skos", "schema")) else "property_value"
        target = syntax.format_identifier(value.target)
        return kind, f"{syntax.format_identifier(predicate)} {target}{_format_qualifiers(qualifiers)}"
    if tag is None:
        assert isinstance(value, Text)
        if predicate.startswith("oboInOwl:"):
            return predicate.partition(":")[2], syntax.format_unquoted(value.text) + _format_qualifiers(qualifiers)
        text = f"{syntax.format_quoted(value.text)} {value.datatype or 'xsd:string'}"
        return "property_value", f"{syntax.format_identifier(predicate)} {text}{_format_qualifiers(qualifiers)}"
    written = syntax.format_identifier(value[0]) if isinstance(value, Reference) else syntax.format_unquoted(value.text)
    return tag, written + _format_qualifiers(qualifiers)


def _format_definition(statement: Statement) -> tuple[str, str]:
    xrefs, others = _split_xrefs(statement.qualifiers)
    return "def", f"{syntax.format_quoted(_get_text(statement))} {_format_xrefs(xrefs)}{_format_qualifiers(others)}"


def _format_synonym(statement: Statement) -> tuple[str, str]:
    xrefs, others = _split_xrefs(statement.qualifiers)
    types = [syntax.format_identifier(str(item.value[0])) for item in others if item.predicate == SYNONYM_TYPE]
    rest = tuple(item for item in others if item.predicate != SYNONYM_TYPE)
    words = " ".join((_SCOPES[statement.predicate], *types))
    text = f"{syntax.format_quoted(_get_text(statement))} {words} {_format_xrefs(xrefs)}"
    return "synonym", text + _format_qualifiers(rest)


def _format_xref(statement: Statement) -> tuple[str, str]:
    labels = [_get_text(item) for item in statement.qualifiers if item.predicate == "rdfs:label"]
    others = tuple(item for item in statement.qualifiers if item.predicate != "rdfs:label")
    description = f" {syntax.format_quoted(labels[0])}" if labels else ""
    return "xref", syntax.format_xref(_get_text(statement)) + description + _format_qualifiers(others)


def _format_alternative_id(statement: Statement) -> tuple[str, str]:
    return "alt_id", syntax.format_identifier(_get_text(statement))


def _format_expression(statement: Statement) -> tuple[str, str]:
    assert isinstance(statement.value, Node)
    parts = {item.predicate: str(item.value[0]) for item in statement.value.statements}
    words = [parts[name] for name in ("owl:onProperty", "owl:someValuesFrom") if name in parts]
    return "intersection_of", " ".join(map(syntax.format_identifier, words)) + _format_qualifiers(statement.qualifiers)


def _get_text(statement: Statement) -> str:
    return str(statement.value[0])


def _split_xrefs(qualifiers: tuple[Statement, ...]) -> tuple[list[str], tuple[Statement, ...]]:
    xrefs = [_get_text(item) for item in qualifiers if item.predicate == XREF]
    return xrefs, tuple(item for item in qualifiers if item.predicate != XREF)


def _format_xrefs(xrefs: list[str]) -> str:
    return f"[{', '.join(map(syntax.format_xref, xrefs))}]"


def _format_qualifiers(qualifiers: tuple[Statement, ...]) -> str:
    items = [
        f"{item.predicate.removeprefix('oboInOwl:')}={syntax.format_quoted(_get_text(item))}"
        for item in qualifiers
        if not isinstance(item.value, Node)
    ]
    return f" {{{', '.join(items)}}}" if items else ""


_WRITERS: dict[str, Callable[[Statement], tuple[str, str]]] = {
    "IAO:0000115": _format_definition,
    **dict.fromkeys(_SCOPES, _format_synonym),
    XREF: _format_xref,
    "oboInOwl:hasAlternativeId": _format_alternative_id,
}
