"""Write records as OBO stanzas, statement by statement: the reverse of `resources`."""

from collections.abc import Callable, Container, Iterable, Iterator
from itertools import chain

from lexarium.domain.identifiers import get_local_id
from lexarium.domain.identity.prefixes import OBO_BASE
from lexarium.domain.record import Record, RecordState, get_text
from lexarium.domain.schema.linkml import load_builtin_schema
from lexarium.domain.schema.predicates import contract_predicate, expand_predicate
from lexarium.domain.statement import BOOLEAN, Node, Reference, Statement, Text, Value
from lexarium.domain.text.nouns import add_article
from lexarium.domain.vocabulary import TITLE, Vocabulary, contract_obo_iri
from lexarium.formats.obo import syntax
from lexarium.formats.obo.resources import (
    FURTHER_PREDICATES,
    HEADER_PREDICATES,
    LANGUAGE,
    OBO_ID,
    QUOTED_TAGS,
    RAW_HEADER_TAGS,
    SYNONYM_PREDICATES,
    SYNONYM_TYPE,
    XREF,
)
from lexarium.formats.ontology_view import (
    FURTHER_NAME,
    STATED_PREDICATE,
    get_ontology_class,
    is_relation,
    to_ontology,
)
from lexarium.formats.parsed import WarningCounter, WriteOptions
from lexarium.formats.resources import OTHER_RESOURCE, STATE, WRITTEN_IRI, list_metadata

_SCHEMA = load_builtin_schema("obo")
_STANZAS = {"term": "Term", "typedef": "Typedef", "instance": "Instance"}
_SCOPES = {predicate: scope for scope, predicate in SYNONYM_PREDICATES.items()}
# Predicates of which a stanza has one clause, with the predicate of further ones.
_OTHER_PREDICATES = {
    "rdfs:label": SYNONYM_PREDICATES["EXACT"],
    **{name: expand_predicate(name) for name in FURTHER_PREDICATES},
}
# Tags by class and predicate.
_TAGS = {
    name: {slot.predicate: tag for tag, slot in _SCHEMA.collections[name].slots.items() if tag != "shorthand"}
    for name in _STANZAS
}
_QUOTED_TAGS = {predicate: tag for tag, predicate in QUOTED_TAGS.items()}
# Tags of relation types by the class of properties that OWL has for them.
_FLAGS = {
    f"owl:{name}Property": f"is_{tag}"
    for name, tag in {
        "Transitive": "transitive",
        "Symmetric": "symmetric",
        "Asymmetric": "asymmetric",
        "Reflexive": "reflexive",
        "Functional": "functional",
        "InverseFunctional": "inverse_functional",
    }.items()
}
# Predicates of texts that may look like flags.
_TEXT_PREDICATES = frozenset(
    slot.predicate for name in _STANZAS for slot in _SCHEMA.collections[name].slots.values() if slot.range != "boolean"
)
_HEADER_TAGS = {predicate: tag for tag, predicate in HEADER_PREDICATES.items()}
# Order of the tags in the header, as version 1.4 has it.
_HEADER_ORDER = {
    tag: place
    for place, tag in enumerate(
        (
            *("format-version", "data-version", "date", "saved-by", "auto-generated-by", "import", "subsetdef"),
            *("synonymtypedef", "default-namespace", "namespace-id-rule", "idspace", "property_value", "remark"),
            *("ontology", "owl-axioms"),
        )
    )
}
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


def write(records: Iterable[Record], options: WriteOptions) -> Iterator[bytes]:
    """Yield a document of the records of one vocabulary. Subsets and synonym types, which come first, are clauses.

    What OBO cannot express is counted as a loss.
    """
    losses = options.losses
    stated = options.head.statements if options.head else ()
    iris = frozenset(str(item.value[0]) for item in stated if item.predicate == WRITTEN_IRI)
    header = [*_iter_header(options.vocabulary, stated or list_metadata(options.vocabulary), iris, losses)]
    stanzas = iter(records)
    first: list[Record] = []
    for record in stanzas:
        if get_ontology_class(record.collection) in _STANZAS:
            first.append(record)
            break
        header.append(_format_header_record(record, losses))
    header.sort(key=lambda line: _HEADER_ORDER.get(line.partition(":")[0], len(_HEADER_ORDER)))
    yield _encode_stanza(header)
    for record in chain(first, stanzas):
        yield _encode_stanza(_format_record(record, iris, losses))


def _encode_stanza(lines: Iterable[str]) -> bytes:
    """Return the bytes of a stanza."""
    return ("\n".join(lines) + "\n\n").encode()


def _iter_header(
    vocabulary: Vocabulary, stated: Iterable[Statement], iris: Container[str], losses: WarningCounter
) -> Iterator[str]:
    yield "format-version: 1.4"
    source = next(iter(vocabulary.sources), "")
    if source.startswith(OBO_BASE):
        source = source.removeprefix(OBO_BASE).removesuffix(".owl")
    yield f"ontology: {source or vocabulary.slug}"
    written: set[str] = set()
    for statement in stated:
        predicate, value, qualifiers = _flatten(statement)
        is_placeholder = predicate == TITLE and value == Text(vocabulary.slug)
        if predicate == OTHER_RESOURCE:
            losses.add("a resource that is no record is skipped", str(statement.value[-1]))
        elif isinstance(value, Node) and not predicate.startswith("lexarium:"):
            losses.add(f"{predicate} of the vocabulary is a node and is skipped")
        if predicate.startswith(("lexarium:", "rdf:")) or isinstance(value, Node) or is_placeholder:
            continue
        _count_losses(Statement(predicate, value, qualifiers), vocabulary.slug, losses)
        # A further version is not that of the header.
        tag = None if predicate in written else _HEADER_TAGS.get(predicate)
        if predicate == "owl:versionInfo":
            written.add(predicate)
        if tag is None and predicate.startswith("oboInOwl:"):
            tag = predicate.partition(":")[2]
        if tag and isinstance(value, Text):
            text = value.text if tag in RAW_HEADER_TAGS else syntax.format_unquoted(value.text)
            yield f"{tag}: {text}{_format_qualifiers(qualifiers)}"
        else:
            name = expand_predicate(predicate) if predicate in iris else predicate
            yield ": ".join(_format_property(name, value, qualifiers))


_HEADER_RECORD_PREDICATES = ("rdfs:label", "rdfs:comment", "oboInOwl:hasScope", OBO_ID)


def _format_header_record(record: Record, losses: WarningCounter) -> str:
    name, definition = record.fields["name"], record.definition
    for item in record.statements:
        if item.predicate not in _HEADER_RECORD_PREDICATES:
            losses.add(f"{item.predicate} of {add_article(record.collection.label)} is skipped", record.local_id)
    identifier, qualifiers = syntax.format_identifier(record.local_id), _format_id_qualifiers(record.statements)
    if record.collection.local_name == "subset_def":
        return f"subsetdef: {identifier} {syntax.format_quoted(definition)}{qualifiers}"
    scopes = [_format_target(item.value) for item in record.statements if item.predicate == "oboInOwl:hasScope"]
    words = ("synonymtypedef:", identifier, syntax.format_quoted(name), *(_SCOPES.get(item, item) for item in scopes))
    return " ".join(words) + qualifiers


def _format_id_qualifiers(statements: Iterable[Statement]) -> str:
    return _format_qualifiers(tuple(item for entry in statements if entry.predicate == OBO_ID for item in entry[2]))


def _format_record(record: Record, iris: Container[str], losses: WarningCounter) -> list[str]:
    """Return the lines of a stanza."""
    class_name, stated = get_ontology_class(record.collection), to_ontology(record)
    flat = [_flatten(item) if isinstance(item.value, Node) else item for item in stated]
    clauses = []
    for item in _qualify_languages(flat, record.collection.language):
        if item.predicate == OBO_ID:
            continue
        clause = _format_statement(class_name, item)
        if clause is None:
            losses.add(f"{contract_predicate(item.predicate)} of a record is a node and is skipped", record.local_id)
        else:
            if clause[0] == "property_value" and item.predicate in iris:
                clause = clause[0], clause[1].replace(item.predicate, expand_predicate(item.predicate), 1)
            clauses.append(clause)
            if item.qualifiers or isinstance(item.value, Node):
                _count_losses(item, record.local_id, losses)
    if record.state != RecordState.PUBLISHED or record.replaced_by is not None:
        # Of several replacements the first is the record's own.
        clauses[:0] = _format_state(record, {(item.predicate, item.value[0]) for item in stated})
    clauses.sort(key=lambda clause: _ORDER.get(clause[0], len(_ORDER)))
    identifier = syntax.format_identifier(record.local_id) + _format_id_qualifiers(stated)
    lines = [f"[{_STANZAS[class_name]}]", f"id: {identifier}"]
    return lines + [f"{tag}: {value}" for tag, value in clauses]


def _format_state(record: Record, stated: Container[tuple[str, object]]) -> Iterator[tuple[str, str]]:
    """Yield what a record does not state itself."""
    if record.state == RecordState.MERGED:
        yield _format_property(STATE, Text(record.state), ())
    if record.state != RecordState.PUBLISHED and ("owl:deprecated", "true") not in stated:
        yield "is_obsolete", "true"
    replacement = None if record.replaced_by is None else get_local_id(record.replaced_by)
    if replacement is not None and ("IAO:0100001", replacement) not in stated:
        yield "replaced_by", syntax.format_identifier(replacement)


def _flatten(statement: Statement) -> Statement:
    """Return a label or note that is a node of its own as a text, with what else the node states as qualifiers."""
    predicate, value, qualifiers = statement
    text = get_text(value) if isinstance(value, Node) else None
    if text is None or not isinstance(value, Node):
        return statement
    details = [item for item in value.statements if item.value is not text]
    if value.iri and not value.iri.startswith("_:"):
        details.append(Statement(OBO_ID, Text(value.iri)))
    return Statement(predicate, text, (*qualifiers, *details))


def _count_losses(statement: Statement, subject: str, losses: WarningCounter) -> None:
    """Count what a clause lacks: statements of a node with an IRI, and qualifiers that are nodes or have qualifiers."""
    if isinstance(statement.value, Node) and statement.value.iri and statement.value.statements:
        losses.add(f"statements of the node that is {statement.predicate} of a record are skipped", subject)
    for predicate, value, details in map(_flatten, statement.qualifiers):
        if isinstance(value, Node):
            losses.add(f"the qualifier {predicate} is a node and is skipped", subject)
        if any((predicate, detail.predicate) != (XREF, "rdfs:label") for detail in details):
            losses.add(f"qualifiers of the qualifier {predicate} are skipped", subject)


def _qualify_languages(statements: Iterable[Statement], language: str) -> Iterator[Statement]:
    """Yield statements with the language of a text as a qualifier. Names in other languages are synonyms."""
    singles: set[str] = set()
    # A node may have no text, and others should not give way to it.
    ordered = sorted(
        statements,
        key=lambda item: (
            item.value.lang not in ("", language) if isinstance(item.value, Text) else 2 * isinstance(item.value, Node)
        ),
    )
    for statement in ordered:
        predicate, value, qualifiers = statement
        written = statement
        if isinstance(value, Text) and value.lang not in ("", language):
            written = Statement(predicate, Text(value.text), (*qualifiers, Statement(LANGUAGE, Text(value.lang))))
        if predicate in singles:
            written = written._replace(predicate=_OTHER_PREDICATES[predicate])
            if predicate == "rdfs:label" and all(item.predicate != STATED_PREDICATE for item in qualifiers):
                written = written._replace(qualifiers=(*written.qualifiers, FURTHER_NAME))
        elif predicate in _OTHER_PREDICATES:
            singles.add(predicate)
        yield written


def _format_statement(class_name: str, statement: Statement) -> tuple[str, str] | None:
    """Return a clause, or None for what OBO cannot express."""
    predicate, value, qualifiers = statement
    if isinstance(value, Node):
        return _format_node(class_name, statement, value)
    write = _WRITERS.get(predicate)
    if write is not None:
        return write(statement)
    tag = _TAGS[class_name].get(predicate)
    if tag and isinstance(value, Text) and not _is_tag_value(predicate, value):
        tag = None
    if class_name == "typedef" and predicate == "rdf:type" and value[0] in _FLAGS:
        return _FLAGS[str(value[0])], "true" + _format_qualifiers(qualifiers)
    if tag is None:
        # Other programs know relations of instances as properties only.
        if isinstance(value, Reference) and is_relation(predicate) and class_name != "instance":
            target = syntax.format_identifier(value.target)
            return "relationship", f"{syntax.format_identifier(predicate)} {target}{_format_qualifiers(qualifiers)}"
        return _format_property(predicate, value, qualifiers)
    written = syntax.format_identifier(value[0]) if isinstance(value, Reference) else syntax.format_unquoted(value.text)
    return tag, written + _format_qualifiers(qualifiers)


def _format_node(class_name: str, statement: Statement, node: Node) -> tuple[str, str] | None:
    """Return a clause of a resource that is no record, by its IRI, or of a class expression; None for other nodes."""
    if not node.iri or node.iri.startswith("_:"):
        return _format_expression(statement)
    if is_relation(statement.predicate):
        return _format_property(statement.predicate, Reference(node.iri), statement.qualifiers)
    return _format_statement(class_name, statement._replace(value=Reference(_contract(node.iri))))


def _is_tag_value(predicate: str, value: Text) -> bool:
    """Return whether a tag has values of a datatype: it is a text, a flag or a date."""
    is_flag = value.datatype == BOOLEAN and predicate not in _TEXT_PREDICATES
    is_date = predicate == "oboInOwl:creation_date" and value.datatype == "xsd:dateTime"
    return not value.datatype or is_flag or is_date


def _format_property(predicate: str, value: Text | Reference, qualifiers: tuple[Statement, ...]) -> tuple[str, str]:
    if isinstance(value, Reference):
        text = syntax.format_identifier(value.target)
    else:
        text = f"{syntax.format_quoted(value.text)} {value.datatype or 'xsd:string'}"
    return "property_value", f"{syntax.format_identifier(predicate)} {text}{_format_qualifiers(qualifiers)}"


def _format_definition(statement: Statement) -> tuple[str, str]:
    xrefs, others = _split_xrefs(statement.qualifiers)
    return _QUOTED_TAGS[
        statement.predicate
    ], f"{syntax.format_quoted(_get_text(statement))} {_format_xrefs(xrefs)}{_format_qualifiers(others)}"


def _format_synonym(statement: Statement) -> tuple[str, str]:
    xrefs, others = _split_xrefs(statement.qualifiers)
    types = [_format_target(item.value) for item in others if item.predicate == SYNONYM_TYPE]
    rest = tuple(item for item in others if item.predicate != SYNONYM_TYPE)
    words = " ".join((_SCOPES[statement.predicate], *filter(None, types)))
    text = f"{syntax.format_quoted(_get_text(statement))} {words} {_format_xrefs(xrefs)}"
    return "synonym", text + _format_qualifiers(rest)


def _format_xref(statement: Statement) -> tuple[str, str]:
    others = tuple(item for item in statement.qualifiers if item.predicate != "rdfs:label")
    return "xref", _format_described(statement) + _format_qualifiers(others)


def _format_described(statement: Statement) -> str:
    """Return an xref with its description."""
    labels = [_get_text(item) for item in statement.qualifiers if item.predicate == "rdfs:label"]
    description = f" {syntax.format_quoted(labels[0])}" if labels else ""
    return syntax.format_xref(_get_text(statement)) + description


def _format_alternative_id(statement: Statement) -> tuple[str, str]:
    return "alt_id", syntax.format_identifier(_get_text(statement)) + _format_qualifiers(statement.qualifiers)


def _format_expression(statement: Statement) -> tuple[str, str] | None:
    """Return a part of a logical definition or a restriction; None for other nodes, which OBO cannot express."""
    assert isinstance(statement.value, Node)
    tag = {"owl:intersectionOf": "intersection_of", "rdfs:subClassOf": "relationship"}.get(statement.predicate)
    parts = {item.predicate: item.value for item in statement.value.statements if isinstance(item.value, Reference)}
    parts.pop("rdf:type", None)
    is_simple = parts.keys() <= {"owl:onProperty", "owl:someValuesFrom"} and "owl:someValuesFrom" in parts
    if tag is None or not is_simple or any(not isinstance(item.value, Reference) for item in statement.value[0]):
        return None
    words = [parts[name].target for name in ("owl:onProperty", "owl:someValuesFrom") if name in parts]
    return tag, " ".join(map(syntax.format_identifier, words)) + _format_qualifiers(statement.qualifiers)


def _format_target(value: Value) -> str:
    """Return the identifier of a resource; of a node without one an empty text."""
    name = _contract(value.iri) if isinstance(value, Node) else str(value[0])
    return "" if name.startswith("_:") else syntax.format_identifier(name)


def _contract(iri: str) -> str:
    """Return the CURIE of a node, as a record would have it."""
    return contract_obo_iri(iri) or contract_predicate(iri)


def _get_text(statement: Statement) -> str:
    return str(statement.value[0])


def _split_xrefs(qualifiers: tuple[Statement, ...]) -> tuple[list[Statement], tuple[Statement, ...]]:
    xrefs = [item for item in qualifiers if item.predicate == XREF]
    return xrefs, tuple(item for item in qualifiers if item.predicate != XREF)


def _format_xrefs(xrefs: list[Statement]) -> str:
    return f"[{', '.join(map(_format_described, xrefs))}]"


def _format_qualifiers(qualifiers: tuple[Statement, ...]) -> str:
    if not qualifiers:
        return ""
    items = [
        f"{item.predicate.removeprefix('oboInOwl:')}={syntax.format_quoted(_get_text(item))}"
        for item in map(_flatten, qualifiers)
        if not isinstance(item.value, Node)
    ]
    return f" {{{', '.join(items)}}}" if items else ""


_WRITERS: dict[str, Callable[[Statement], tuple[str, str]]] = {
    **dict.fromkeys(_QUOTED_TAGS, _format_definition),
    **dict.fromkeys(_SCOPES, _format_synonym),
    XREF: _format_xref,
    "oboInOwl:hasAlternativeId": _format_alternative_id,
}
