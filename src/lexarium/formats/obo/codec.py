"""OBO: read forgivingly, written as version 1.4 has it."""

import re
from collections.abc import Iterable, Iterator
from functools import partial
from typing import IO, BinaryIO

from lexarium.domain.record import Record
from lexarium.domain.schema.relation_types import MAPPING_TYPES
from lexarium.domain.vocabulary import Vocabulary
from lexarium.formats.obo import syntax
from lexarium.formats.obo.syntax import Clause, Stanza
from lexarium.formats.obo.term_parser import (
    HIDDEN_SYNONYM_TYPE,
    PROPERTY_FIELDS,
    RELATIONSHIP_TYPES,
    SCOPE_BY_KEYWORD,
    SKOS_NAMESPACE,
    XREF_TAG,
    OboContext,
    parse_term,
)
from lexarium.formats.obo.term_writer import format_term
from lexarium.formats.parsed import ParsedRecord, ParseError, ReadOptions
from lexarium.formats.reading import open_seekable
from lexarium.formats.registry import Format

_DCTERMS = "http://purl.org/dc/terms/"


def read(stream: BinaryIO, options: ReadOptions) -> Iterator[ParsedRecord]:
    """The terms of a file, and last what is to be told of it as a whole. In memory are only the names of its terms.

    A relation or property that the file declares or uses is told of every term: one that does not have it has none.
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
            is_obo = (
                is_obo or bool(stanza.stanza_type) or any(clause.tag == "format-version" for clause in stanza.clauses)
            )
            if not stanza.stanza_type:
                yield from _parse_header(stanza, context)
            elif stanza.stanza_type == "Term":
                yield from parse_term(stanza, context)
            elif stanza.stanza_type != "Typedef":
                context.warnings.add(f"the stanza [{stanza.stanza_type}] is not kept", f"on line {stanza.line}")
    if not is_obo:
        message = "there is neither `format-version:` nor a stanza, like [Term]"
        raise ParseError(f"{message}; an OBO document was expected", 1, 1)
    if warnings := context.warnings.messages():
        yield ParsedRecord(0, warnings=warnings)


def _scan_document(file: IO[bytes], options: ReadOptions) -> OboContext:
    """What must be known of a file before its first term is read."""
    term_ids: set[str] = set()
    used_properties: set[str] = set()
    ids = used_properties
    # In bytes, of which a character has up to four: a line that is longer is refused when the terms are read.
    for line in iter(partial(file.readline, 4 * syntax.MAX_LINE_CHARS), b""):
        if line.startswith(b"["):
            ids = term_ids if line.startswith(b"[Term]") else used_properties
        elif line.startswith(b"id:"):
            ids.update(_parse_second_token(line))
        elif line.startswith((b"relationship:", b"property_value:")):
            used_properties.update(_parse_second_token(line))
        elif line.startswith(b"xref:"):
            used_properties.add(XREF_TAG)
    return OboContext(options, term_ids, used_properties)


def _parse_second_token(line: bytes) -> list[str]:
    return [syntax.unescape(token) for token in line.decode(errors="replace").split(maxsplit=2)[1:2]]


def _parse_header(header: Stanza, context: OboContext) -> Iterator[ParsedRecord]:
    """Take what stands before the first stanza; what is wrong there is given."""
    for clause in header.clauses:
        try:
            _parse_header_clause(clause, context)
        except ParseError as error:
            yield error.to_parsed_record()


def _parse_header_clause(clause: Clause, context: OboContext) -> None:
    if clause.tag == "default-namespace":
        context.namespace = syntax.parse_unquoted(clause)
    elif clause.tag == "ontology":
        context.ontology = syntax.parse_unquoted(clause)
    elif clause.tag == "import":
        context.warnings.add(
            f"{syntax.parse_unquoted(clause)} was not fetched, though the file imports it", f"on line {clause.line}"
        )
    elif clause.tag == "synonymtypedef":
        name, rest = syntax.parse_identifier(clause)
        words = rest.rpartition('"')[2].split()
        if words and words[0] in SCOPE_BY_KEYWORD:
            context.scopes[name] = SCOPE_BY_KEYWORD[words[0]]
    elif clause.tag == "property_value":
        name, rest = syntax.parse_identifier(clause)
        if name == f"{_DCTERMS}language" and rest.startswith('"'):
            context.language = rest.split('"')[1]


def write(format: Format, vocabulary: Vocabulary, records: Iterable[Record]) -> Iterator[bytes]:
    """A document of all that OBO can say of these records."""
    yield _encode_stanza(_format_header(vocabulary))
    for record in records:
        yield _encode_stanza(format_term(record, vocabulary))
    # Declared, so that whoever reads the document knows that it tells all of them.
    for name in RELATIONSHIP_TYPES.values():
        yield _encode_stanza(["[Typedef]", f"id: {name}", f"name: {name.replace('_', ' ')}"])
    for name in [*PROPERTY_FIELDS, *(f"skos:{mapping.name}" for mapping in MAPPING_TYPES)]:
        yield _encode_stanza(
            ["[Typedef]", f"id: {name}", f"name: {name.removeprefix('skos:')}", "is_metadata_tag: true"]
        )


def _encode_stanza(lines: Iterable[str]) -> bytes:
    return ("\n".join(lines) + "\n\n").encode()


def _format_header(vocabulary: Vocabulary) -> Iterator[str]:
    yield "format-version: 1.4"
    yield f'synonymtypedef: {HIDDEN_SYNONYM_TYPE} "Only for finding the term" RELATED'
    yield f"idspace: skos {SKOS_NAMESPACE}"
    yield f"ontology: {re.sub('[^a-z0-9]+', '_', vocabulary.title.lower()).strip('_') or 'catalogue'}"
    for name, value in {
        "title": vocabulary.title,
        "license": vocabulary.licence,
        "publisher": vocabulary.publisher,
        "language": vocabulary.language,
    }.items():
        if value:
            yield f"property_value: {_DCTERMS}{name} {syntax.format_quoted(value)} xsd:string"
