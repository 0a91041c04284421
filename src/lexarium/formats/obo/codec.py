"""OBO: read leniently, write version 1.4."""

import re
from collections.abc import Iterable, Iterator
from functools import partial
from typing import IO, BinaryIO

from lexarium.domain.identifiers import MAIN_VOCABULARY, has_prefix
from lexarium.domain.labels import Alias
from lexarium.domain.record import Record, RecordState
from lexarium.domain.schema.collections import MAPPING_TYPES
from lexarium.domain.text.timestamps import is_timestamp
from lexarium.domain.vocabulary import Vocabulary
from lexarium.formats.foreign_ids import format_id
from lexarium.formats.obo import statements, syntax, term_parser
from lexarium.formats.obo.syntax import Clause
from lexarium.formats.obo.term_parser import MAPPING_NAMES, PROPERTY_FIELDS, RELATIONSHIP_TYPES, OboContext, parse_term
from lexarium.formats.parsed import ParsedRecord, ParseError, ReadOptions, WriteOptions
from lexarium.formats.reading import open_seekable

_DCTERMS = "http://purl.org/dc/terms/"


def read(stream: BinaryIO, options: ReadOptions) -> Iterator[ParsedRecord]:
    """Yield the terms of a file, and last the warnings about the whole file. Keep only the term ids in memory.

    A relation or property that the file declares or uses is complete for every term: a term without it has none.
    """
    with open_seekable(stream) as file:
        context = _scan_document(file, options)
        file.seek(0)
        is_obo = False
        for stanza in syntax.iter_stanzas(file):
            if isinstance(stanza, ParseError):
                is_obo = True
                yield stanza.to_parsed_record()
                continue
            if not stanza.stanza_type:
                is_obo = is_obo or any(clause.tag == "format-version" for clause in stanza.clauses)
                yield from syntax.parse_clauses(stanza, partial(_parse_header_clause, context))
                continue
            is_obo = True
            if stanza.stanza_type == "Term":
                yield from parse_term(stanza, context)
            elif stanza.stanza_type != "Typedef":
                context.warnings.add(f"the stanza [{stanza.stanza_type}] is not kept", f"on line {stanza.line}")
    if not is_obo:
        message = "there is neither `format-version:` nor a stanza, like [Term]"
        raise ParseError(f"{message}; an OBO document was expected", 1, 1)
    yield from context.warnings.to_parsed_records()


def _scan_document(file: IO[bytes], options: ReadOptions) -> OboContext:
    """Collect what must be known of a file before its first term is parsed."""
    term_ids: set[str] = set()
    used_properties: set[str] = set()
    ids = used_properties
    # A character has up to four bytes. Longer lines are rejected when the terms are parsed.
    for line in iter(partial(file.readline, 4 * syntax.MAX_LINE_CHARS), b""):
        if line.startswith(b"["):
            ids = term_ids if line.startswith(b"[Term]") else used_properties
        elif line.startswith(b"id:"):
            ids.update(_parse_second_token(line))
        elif line.startswith((b"relationship:", b"property_value:")):
            used_properties.update(_parse_second_token(line))
        elif line.startswith(b"xref:"):
            used_properties.add(term_parser.XREF_TAG)
    return OboContext(options, term_ids, used_properties)


def _parse_second_token(line: bytes) -> list[str]:
    return [syntax.unescape(token) for token in line.decode(errors="replace").split(maxsplit=2)[1:2]]


def _parse_header_clause(context: OboContext, clause: Clause) -> None:
    if clause.tag == "default-namespace":
        context.namespace = syntax.parse_unquoted(clause)
    elif clause.tag == "ontology":
        context.ontology = syntax.parse_unquoted(clause)
    elif clause.tag == "import":
        message = f"{syntax.parse_unquoted(clause)} was not fetched, though the file imports it"
        context.warnings.add(message, f"on line {clause.line}")
    elif clause.tag == "synonymtypedef":
        name, rest = syntax.parse_identifier(clause)
        words = rest.rpartition('"')[2].split()
        if words and words[0] in term_parser.SCOPE_BY_KEYWORD:
            context.scopes[name] = term_parser.SCOPE_BY_KEYWORD[words[0]]
    elif clause.tag == "property_value":
        name, rest = syntax.parse_identifier(clause)
        if name == f"{_DCTERMS}language" and rest.startswith('"'):
            context.language = rest.split('"')[1]


def write(records: Iterable[Record], options: WriteOptions) -> Iterator[bytes]:
    """Yield an OBO document of the records."""
    if options.vocabulary.slug != MAIN_VOCABULARY:
        yield _encode_stanza(statements.format_header(options.vocabulary))
        yield from (_encode_stanza(lines) for record in records if (lines := statements.format_record(record)))
        return
    yield _encode_stanza(_format_header(options.vocabulary))
    for record in records:
        yield _encode_stanza(_format_term(record, options.vocabulary))
    # Declare all of them, so that a reader knows that they are complete.
    for name in RELATIONSHIP_TYPES.values():
        yield _encode_stanza(["[Typedef]", f"id: {name}", f"name: {name.replace('_', ' ')}"])
    for name in [*PROPERTY_FIELDS, *(f"skos:{mapping.name}" for mapping in MAPPING_TYPES)]:
        label = name.removeprefix("skos:")
        yield _encode_stanza(["[Typedef]", f"id: {name}", f"name: {label}", "is_metadata_tag: true"])


def _encode_stanza(lines: Iterable[str]) -> bytes:
    return ("\n".join(lines) + "\n\n").encode()


def _format_header(vocabulary: Vocabulary) -> Iterator[str]:
    yield "format-version: 1.4"
    yield f'synonymtypedef: {term_parser.HIDDEN_SYNONYM_TYPE} "Only for finding the term" RELATED'
    yield f"idspace: skos {term_parser.SKOS_NAMESPACE}"
    yield f"ontology: {re.sub('[^a-z0-9]+', '_', vocabulary.title.lower()).strip('_') or 'catalogue'}"
    for name, value in {
        "title": vocabulary.title,
        "license": vocabulary.licence,
        "publisher": vocabulary.publisher,
        "language": vocabulary.language,
    }.items():
        if value:
            yield f"property_value: {_DCTERMS}{name} {syntax.format_quoted(value)} xsd:string"


def _format_term(record: Record, vocabulary: Vocabulary) -> Iterator[str]:
    """Yield the clauses of a record's term in the order that the format requires."""
    yield "[Term]"
    yield f"id: {_format_id(record.id, vocabulary)}"
    if record.fields["name"]:
        yield f"name: {syntax.format_unquoted(record.fields['name'])}"
    yield f"namespace: {record.collection.name}"
    if record.definition or record.sources:
        yield f"def: {syntax.format_quoted(record.definition)} [{', '.join(map(syntax.format_xref, record.sources))}]"
    for alias in record.aliases:
        yield _format_synonym(alias, vocabulary)
    yield from _format_mappings(record)
    if record.state is RecordState.MERGED:
        yield f"property_value: {term_parser.OBSOLESCENCE_REASON} {term_parser.TERMS_MERGED}"
    yield from _format_relations(record, vocabulary)
    if has_prefix(record.fields.get("id_user", ""), term_parser.USER_PREFIXES):
        yield f"created_by: {record.fields['id_user']}"
    if is_timestamp(record.fields.get("event_stamp", "")):
        yield f"creation_date: {record.fields['event_stamp']}"
    if record.state is not RecordState.PUBLISHED:
        yield "is_obsolete: true"
    if record.replaced_by is not None:
        yield f"replaced_by: {_format_id(record.replaced_by, vocabulary)}"


def _format_id(record_id: str, vocabulary: Vocabulary) -> str:
    return syntax.format_identifier(format_id(record_id, vocabulary))


def _format_synonym(alias: Alias, vocabulary: Vocabulary) -> str:
    scope = f"RELATED {term_parser.HIDDEN_SYNONYM_TYPE}" if alias.scope == "hidden" else alias.scope.upper()
    language = f' {{lang="{alias.lang}"}}' if alias.lang != vocabulary.language else ""
    return f"synonym: {syntax.format_quoted(alias.text)} {scope} []{language}"


def _format_mappings(record: Record) -> Iterator[str]:
    mappings = [relation for relation in sorted(record.relations) if relation.relation in MAPPING_NAMES]
    # Repeat these as xrefs for programs that know no other mappings.
    close_mappings = (relation for relation in mappings if relation.relation in ("exactMatch", "closeMatch"))
    for target in dict.fromkeys(relation.target for relation in close_mappings):
        yield f"xref: {syntax.format_identifier(target)}"
    for name in PROPERTY_FIELDS:
        if name in record.fields and record.fields[name] != record.collection.field_defaults[name]:
            yield f"property_value: {name} {syntax.format_quoted(str(record.fields[name]))} xsd:string"
    for relation in mappings:
        yield f"property_value: skos:{relation.relation} {syntax.format_identifier(relation.target)}"


def _format_relations(record: Record, vocabulary: Vocabulary) -> Iterator[str]:
    relations = [relation for relation in sorted(record.relations) if relation.relation not in MAPPING_NAMES]
    for relation in relations:
        if relation.relation in term_parser.HIERARCHY_NAMES:
            yield f"is_a: {_format_id(relation.target, vocabulary)}"
    for relation in relations:
        if relation.relation not in term_parser.HIERARCHY_NAMES:
            name = RELATIONSHIP_TYPES.get(relation.relation, relation.relation)
            yield f"relationship: {name} {_format_id(relation.target, vocabulary)}"
