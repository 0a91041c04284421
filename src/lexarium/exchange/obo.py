"""OBO: read forgivingly, written as version 1.4 has it."""

import re
from collections.abc import Iterable, Iterator
from functools import partial
from typing import IO, BinaryIO

from lexarium.domain.about import About
from lexarium.domain.changes import Whole
from lexarium.domain.relations import MAPPINGS
from lexarium.exchange import obo_syntax as syntax
from lexarium.exchange.formats import Format
from lexarium.exchange.incoming import Incoming, Malformed, Reading
from lexarium.exchange.obo_syntax import Clause, Stanza
from lexarium.exchange.obo_terms import (
    HIDDEN,
    PROPERTIES,
    RELATIONSHIPS,
    SCOPES,
    SKOS,
    XREF,
    Surroundings,
    incoming_of,
    lines_of,
)
from lexarium.exchange.twice import kept

_TERMS = "http://purl.org/dc/terms/"


def read(stream: BinaryIO, reading: Reading) -> Iterator[Incoming]:
    """The terms of a file, and last what is to be told of it as a whole. In memory are only the names of its terms.

    A relation or property that the file declares or uses is told of every term: one that does not have it has none.
    """
    with kept(stream) as file:
        around = _surveyed(file, reading)
        file.seek(0)
        known = False
        for stanza in syntax.stanzas(file):
            if isinstance(stanza, Malformed):
                known = True
                yield stanza.incoming()
                continue
            known = known or bool(stanza.kind) or any(clause.tag == "format-version" for clause in stanza.clauses)
            if not stanza.kind:
                yield from _headed(stanza, around)
            elif stanza.kind == "Term":
                yield from incoming_of(stanza, around)
            elif stanza.kind != "Typedef":
                around.remarks.add(f"the stanza [{stanza.kind}] is not kept", f"on line {stanza.line}")
    if not known:
        what = "there is neither `format-version:` nor a stanza, like [Term]"
        raise Malformed(f"{what}; an OBO document was expected", 1, 1)
    if warnings := around.remarks.sentences():
        yield Incoming(0, warnings=warnings)


def _surveyed(file: IO[bytes], reading: Reading) -> Surroundings:
    """What must be known of a file before its first term is read."""
    terms: set[str] = set()
    used: set[str] = set()
    names = used
    # In bytes, of which a character has up to four: a line that is longer is refused when the terms are read.
    for line in iter(partial(file.readline, 4 * syntax.LONGEST_LINE), b""):
        if line.startswith(b"["):
            names = terms if line.startswith(b"[Term]") else used
        elif line.startswith(b"id:"):
            names.update(_second_word(line))
        elif line.startswith((b"relationship:", b"property_value:")):
            used.update(_second_word(line))
        elif line.startswith(b"xref:"):
            used.add(XREF)
    return Surroundings(reading, terms, used)


def _second_word(line: bytes) -> list[str]:
    return [syntax.unescaped(word) for word in line.decode(errors="replace").split(maxsplit=2)[1:2]]


def _headed(header: Stanza, around: Surroundings) -> Iterator[Incoming]:
    """Take what stands before the first stanza; what is wrong there is given."""
    for clause in header.clauses:
        try:
            _take_header(clause, around)
        except Malformed as error:
            yield error.incoming()


def _take_header(clause: Clause, around: Surroundings) -> None:
    if clause.tag == "default-namespace":
        around.namespace = syntax.plain_text(clause)
    elif clause.tag == "ontology":
        around.ontology = syntax.plain_text(clause)
    elif clause.tag == "import":
        around.remarks.add(
            f"{syntax.plain_text(clause)} was not fetched, though the file imports it", f"on line {clause.line}"
        )
    elif clause.tag == "synonymtypedef":
        name, rest = syntax.first_name(clause)
        after = rest.rpartition('"')[2].split()
        if after and after[0] in SCOPES:
            around.scopes[name] = SCOPES[after[0]]
    elif clause.tag == "property_value":
        name, rest = syntax.first_name(clause)
        if name == f"{_TERMS}language" and rest.startswith('"'):
            around.language = rest.split('"')[1]


def write(format: Format, about: About, wholes: Iterable[Whole]) -> Iterator[bytes]:
    """A document of all that OBO can say of these records."""
    yield _text(_header(about))
    for whole in wholes:
        yield _text(lines_of(whole, about))
    # Declared, so that whoever reads the document knows that it tells all of them.
    for name in RELATIONSHIPS.values():
        yield _text(["[Typedef]", f"id: {name}", f"name: {name.replace('_', ' ')}"])
    for name in [*PROPERTIES, *(f"skos:{each.name}" for each in MAPPINGS)]:
        yield _text(["[Typedef]", f"id: {name}", f"name: {name.removeprefix('skos:')}", "is_metadata_tag: true"])


def _text(lines: Iterable[str]) -> bytes:
    return ("\n".join(lines) + "\n\n").encode()


def _header(about: About) -> Iterator[str]:
    yield "format-version: 1.4"
    yield f'synonymtypedef: {HIDDEN} "Only for finding the term" RELATED'
    yield f"idspace: skos {SKOS}"
    yield f"ontology: {re.sub('[^a-z0-9]+', '_', about.title.lower()).strip('_') or 'catalogue'}"
    for name, value in {
        "title": about.title,
        "license": about.licence,
        "publisher": about.publisher,
        "language": about.language,
    }.items():
        if value:
            yield f"property_value: {_TERMS}{name} {syntax.as_quoted(value)} xsd:string"
