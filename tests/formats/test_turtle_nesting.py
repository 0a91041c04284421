"""Turtle nesting is bounded before parsing, and so is the length of lists."""

import io

import pytest
from pyoxigraph import RdfFormat

from lexarium.formats.parsed import ParseError
from lexarium.formats.rdf import parser

PREFIX = b"@prefix a: <http://a.example/> .\n"
MAX_DEPTH = 1_000


class SmallReads(io.BytesIO):
    """Stream that returns one byte at a time, which splits every token."""

    def read(self, size: int | None = -1) -> bytes:
        return super().read(1)


def parse_statements(document: bytes) -> list[parser.ParsedTriple]:
    return list(parser.parse_triples(io.BytesIO(document), RdfFormat.TURTLE))


def build_nested(opening: bytes, closing: bytes, depth: int) -> bytes:
    return PREFIX + b"a:s a:p " + opening * depth + b"a:o" + closing * depth + b" .\n"


PAIRS = [(b"(", b")"), (b"[a:p ", b"]"), (b"(\n", b"\n)"), (b"[a:p\n\n(", b")]"), (b"[a:q 1 ; a:p ", b"] ")]


@pytest.mark.parametrize(("opening", "closing"), PAIRS)
def test_nesting_up_to_the_limit_is_accepted(opening: bytes, closing: bytes) -> None:
    levels = MAX_DEPTH // (opening.count(b"(") + opening.count(b"["))
    assert parse_statements(build_nested(opening, closing, levels))
    with pytest.raises(ParseError, match="nested more than 1,000 deep"):
        parse_statements(build_nested(opening, closing, levels + 1))


def test_annotations_count_as_nesting() -> None:
    opening = b"{| a:p a:o "
    assert parse_statements(PREFIX + b"a:s a:p a:o " + opening * MAX_DEPTH + b"|}" * MAX_DEPTH + b" .")
    with pytest.raises(ParseError, match="nested more than 1,000 deep"):
        parse_statements(PREFIX + b"a:s a:p a:o " + opening * (MAX_DEPTH + 1) + b"|}" * (MAX_DEPTH + 1) + b" .")


@pytest.mark.parametrize(
    ("before", "line", "column"),
    [
        (b"", 2, 9 + MAX_DEPTH),
        ("a:s a:p 'æ' .\n".encode() * 10_000, 10_002, 9 + MAX_DEPTH),
        ("a:s a:p 'æ' . ".encode() * 10_000, 2, 14 * 10_000 + 9 + MAX_DEPTH),
    ],
)
def test_too_deep_nesting_is_rejected_with_line_and_column(before: bytes, line: int, column: int) -> None:
    with pytest.raises(ParseError) as caught:
        parse_statements(PREFIX + before + build_nested(b"(", b")", MAX_DEPTH + 1).removeprefix(PREFIX))
    assert (caught.value.line, caught.value.column) == (line, column)


def test_too_deep_nesting_is_rejected_before_the_rest_is_read() -> None:
    stream = io.BytesIO(build_nested(b"(", b")", 2_000_000))
    with pytest.raises(ParseError, match="nested more than 1,000 deep"):
        list(parser.parse_triples(stream, RdfFormat.TURTLE))
    assert stream.tell() <= 1 << 16


@pytest.mark.parametrize(
    "token",
    [
        b'"(["',
        b"'(['",
        b'"""([" (""\n["""',
        b"'''([' (''\n['''",
        b'"\\"(["',
        b'"""\\"""(["""',
        b'"\\\\" , "([("',
        b'"", "(["',
        b"<http://a.example/(('%28[[#>",
        b"a:\\(\\(\\#b",
        b"1 # ([ \" ''' <\n",
    ],
)
@pytest.mark.parametrize("stream", [io.BytesIO, SmallReads])
def test_brackets_inside_tokens_do_not_count_as_nesting(token: bytes, stream: type[io.BytesIO]) -> None:
    document = PREFIX + b"a:s a:p " + b" , ".join([token] * (MAX_DEPTH + 1)) + b" ."
    assert list(parser.parse_triples(stream(document), RdfFormat.TURTLE))


@pytest.mark.parametrize("stream", [io.BytesIO, SmallReads])
def test_brackets_after_such_tokens_count_as_nesting(stream: type[io.BytesIO]) -> None:
    tokens = b"""("" '' <http://a.example/> "\\"" '''((''' 1 # ((\n a:b\\( """
    document = PREFIX + b"a:s a:p " + tokens * (MAX_DEPTH + 1) + b")" * (MAX_DEPTH + 1) + b" ."
    with pytest.raises(ParseError, match="nested more than 1,000 deep"):
        list(parser.parse_triples(stream(document), RdfFormat.TURTLE))


def test_the_length_of_lists_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parser, "_MAX_LIST_CELLS", 100)
    assert len(parse_statements(PREFIX + b"a:s a:p (" + b"a:o " * 50 + b") .")) == 101
    with pytest.raises(ParseError, match="lists have more than 50 members"):
        parse_statements(PREFIX + b"a:s a:p (" + b"a:o " * 51 + b") .")


def test_list_predicates_outside_of_lists_are_kept() -> None:
    first = b"<http://www.w3.org/1999/02/22-rdf-syntax-ns#first>"
    assert len(parse_statements(PREFIX + b"a:s " + first + b" a:o .")) == 1
