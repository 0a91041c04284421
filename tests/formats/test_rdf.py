"""Malformed and malicious RDF: rejected with its location, before it does harm."""

import io
from collections.abc import Iterator
from contextlib import closing, suppress

import pytest

from lexarium.domain.statement import Text
from lexarium.domain.vocabulary import Vocabulary
from lexarium.formats.parsed import ParseError
from lexarium.formats.rdf import parser
from lexarium.formats.rdf.resources import open_document
from lexarium.formats.resources import ParsedResource, ResourceOptions
from tests.support.imports import open_text

RDF = b"""<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"
    xmlns:rdfs="http://www.w3.org/2000/01/rdf-schema#" xmlns:owl="http://www.w3.org/2002/07/owl#">
"""
CLASS = b'<owl:Class rdf:about="http://a.example/1"><rdfs:label>dog</rdfs:label></owl:Class>\n'
END = b"</rdf:RDF>"


def read_owl(data: bytes) -> list[ParsedResource]:
    with closing(open_document(open_text(data), ResourceOptions())) as document:
        document.describe()
        return list(document.iter_resources(Vocabulary()))


def get_label(resource: ParsedResource) -> str:
    [statement] = [item for item in resource.statements if item.predicate == "rdfs:label"]
    assert isinstance(statement.value, Text)
    return statement.value.text


def catch_malformed(document: bytes) -> ParseError:
    with pytest.raises(ParseError) as caught:
        read_owl(document)
    return caught.value


@pytest.mark.parametrize(
    ("document", "line", "column", "reason"),
    [
        (RDF + b"<owl:Class>\n  </owl:Clas>" + END, 4, 5, "not well-formed XML: mismatched tag"),
        (RDF + CLASS, 4, 1, "not well-formed XML: no element found"),
        (RDF + b"&nbsp;" + END, 3, 1, "undefined entity"),
        (RDF + b"<owl:Class>text</owl:Class>" + END, 3, 1, "not valid RDF/XML"),
        (b"@prefix a: <http://a/> .\na:b a:c\n  [ .", 3, 5, "not valid Turtle"),
        (b"a:b a:c 1 .", 1, 1, "prefix a: has not been declared"),
        (b'<http://a> <http://b> "open .\n', 1, 23, "not valid Turtle"),
        (b'{"@id": "http://a",\n "http://b": }', 2, 14, "not valid JSON-LD"),
        (b'{"@id": "http://a"', 1, 19, "not valid JSON-LD"),
        (b'{"@context": "https://schema.org/"}', 1, 1, "context is on another server, and nothing is fetched"),
        (b'{"@context": {"@import": "file:///etc/passwd"}}', 1, 1, "nothing is fetched"),
    ],
)
def test_a_malformed_document_is_rejected_with_line_and_column(
    document: bytes, line: int, column: int, reason: str
) -> None:
    error = catch_malformed(document)
    assert (error.line, error.column) == (line, column)
    assert reason in error.reason


def build_entity_document(*declared: bytes, use: bytes = b"") -> bytes:
    label = b'<owl:Class rdf:about="http://a.example/1"><rdfs:label>' + use + b"</rdfs:label></owl:Class>"
    return b'<?xml version="1.0"?>\n<!DOCTYPE rdf:RDF [\n' + b"\n".join(declared) + b"]>\n" + RDF + label + END


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        (build_entity_document(b'<!ENTITY a SYSTEM "file:///etc/passwd">', use=b"&a;"), "other files are not read"),
        (build_entity_document(b'<!ENTITY a PUBLIC "x" "http://a.example/x">'), "other files are not read"),
        (build_entity_document(b'<!ENTITY a SYSTEM "x.gif" NDATA gif>'), "other files are not read"),
        (b'<!DOCTYPE rdf:RDF SYSTEM "http://a.example/x.dtd">' + RDF + END, "the DTD is another file"),
        (build_entity_document(b'<!ENTITY % a "x">', b"%a;"), "parameter entity"),
        (build_entity_document(b'<!ENTITY a "&b;">', b'<!ENTITY b "&a;">'), "not declared before"),
        (build_entity_document(b'<!ENTITY a "<rdfs:label/>">'), "contains markup"),
        (build_entity_document(b'<!ENTITY a "&#38;#xFFFFFFFF;">'), "not declared before"),
        (build_entity_document(*(b'<!ENTITY a%d "a">' % number for number in range(1_001))), "exceeds the limits"),
        (build_entity_document(b'<!ENTITY a "' + b"x" * 2_000 + b'">', use=b"&a;" * 100_000), "amplification"),
        (b"<!--" + b"x" * (2 << 20) + b"-->" + RDF + END, "an element was expected"),
        (RDF + b'<owl:Class a="' + b"x" * (5 << 20) + b'"/>' + END, "longer than 4 MiB"),
        (RDF + b"<owl:Class><rdfs:seeAlso>" * 60, "nested more than 100 deep"),
        (RDF + b"<owl:Class " + b" ".join(b'a%d=""' % n for n in range(300)) + b"/>" + END, "attributes"),
        (b'<?xml version="1.0" encoding="hex"?>' + RDF + END, "not a known encoding"),
        (b'<?xml version="1.0" encoding="ascii-armour"?>' + RDF + END, "not a known encoding"),
        (b'<?xml version="1.0" encoding="euc-jp"?>' + RDF + b"\xff\xff" + END, "declared to be in euc-jp, but is not"),
        (b'{"http://a":' * 10_000, "nested more than 64 deep"),
        (b'{"http://a":' + b"[" * 10_000, "nested more than 64 deep"),
        (b"[" + b'{"@conte\\u0078t":{}},' * 101 + b"{}]", "more than 100 contexts"),
        (b"<http://a> <http://b> " + b"<<( <http://a> <http://b> " * 500, "triple terms"),
        (b"<http://a> <http://b> " + b"<<( <http://a> <http://b> " * 30_000, "nested more than 1,000 deep"),
        (b"@prefix a: <http://a/" + b"x" * 20_000 + b"> .\n" + b"a:b a:c a:d .\n" * 10_000, "than 10,000 characters"),
        (b'<http://a> <http://b> "' + b"x" * (17 << 20) + b'" .', "longer than 16 MiB"),
    ],
)  # fmt: skip
def test_a_malicious_document_is_rejected(document: bytes, reason: str) -> None:
    assert reason in catch_malformed(document).reason


def test_an_entity_bomb_is_rejected_before_expansion() -> None:
    bomb = [b'<!ENTITY a0 "lol">', *(b'<!ENTITY a%d "%s">' % (n, b"&a%d;" % (n - 1) * 10) for n in range(1, 12))]
    error = catch_malformed(build_entity_document(*bomb, use=b"&a11;"))
    assert (error.line, "exceeds the limits" in error.reason) == (6, True)


def test_plain_entities_are_expanded() -> None:
    [record] = read_owl(
        build_entity_document(
            b'<!ENTITY base "http://a.example/">',
            b"<!ENTITY name 'dog &amp; &#34;&base;&#34; 100&#37;'>",
            b"<!-- a comment --><!ELEMENT x ANY>",
            use=b"&name; &lt;&#233;",
        )
    )
    assert get_label(record) == 'dog & "http://a.example/" 100% <é'
    assert record.line == 8


@pytest.mark.parametrize("encoding", ["iso-8859-1", "utf-16", "windows-1252", "UTF-8"])
def test_xml_is_decoded_by_its_declared_encoding(encoding: str) -> None:
    declared = f'<?xml version="1.0" encoding="{encoding}"?>\n'
    [record] = read_owl((declared + (RDF + CLASS + END).decode().replace("dog", "dög")).encode(encoding))
    assert (get_label(record), record.line) == ("dög", 4)


def test_brackets_in_strings_do_not_count_as_nesting() -> None:
    document = b'[{"@id":"http://a","@type":"http://www.w3.org/2002/07/owl#Class",' + (
        b'"http://www.w3.org/2000/01/rdf-schema#label":"' + rb"[{\"\\" * 30_000 + b'"}]'
    )
    [record] = read_owl(document)
    assert get_label(record) == '[{"\\' * 30_000


def test_a_multiline_literal_is_read() -> None:
    document = b'<http://a> <http://b> """' + b"a line of text\n" * 200_000 + b'""" .'
    [statement] = parser.parse_triples(io.BytesIO(document), parser.detect_syntax(document))
    assert isinstance(statement.object, parser.RdfLiteral)
    assert len(statement.object.text) == 3_000_000


def iter_garbage() -> Iterator[bytes]:
    yield b""
    yield bytes(range(256)) * 100
    yield b"\xff\xfe\x00\xd8" * 100
    for document in (
        RDF + CLASS + END,
        b'@prefix a: <http://a/> . a:b a a:c ; a:d "x"@en .',
        b'[{"@id":"http://a","b":[1]}]',
    ):
        for index in range(0, len(document), 7):
            yield document[:index]
            yield document[:index] + b"\x00<>&\"'{[" + document[index:]
            yield document[:index] + document[index + 3 :]


def test_arbitrary_bytes_raise_no_other_error() -> None:
    for document in iter_garbage():
        with suppress(ParseError):
            read_owl(document)
