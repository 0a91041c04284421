"""Parse RDF of any syntax to triples with line numbers; reject malformed and malicious documents."""

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from itertools import accumulate
from typing import IO, NamedTuple
from xml.etree import ElementTree

import pyoxigraph
from pyoxigraph import BlankNode, Literal, NamedNode, RdfFormat

from lexarium.domain.schema.predicates import expand_predicate
from lexarium.formats.parsed import ParseError, WarningCounter
from lexarium.formats.rdf import xml_guard

_BLOCK_BYTES = 1 << 16
# A long prefix or base may be used a million times.
_MAX_IRI_CHARS = 10_000
# Each JSON-LD context costs as much as all that contain it.
_MAX_CONTEXTS = 100
# With thousands of levels the parser crashes.
_MAX_JSON_DEPTH = 64
# Each bracket makes triples, so that a file of brackets takes far longer than any other.
_MAX_TURTLE_DEPTH = 1_000
# Triple terms of RDF 1.2 in one statement. With thousands of nested ones the parser crashes.
_MAX_TRIPLE_TERMS = 100
# After so many lines without a triple, read whole blocks: the parser scans a long text from its start with each read.
_MAX_LINES_WITHOUT_TRIPLE = 50
_MAX_LIST_CELLS = 2_000_000
_LIST_PREDICATES = tuple(expand_predicate(f"rdf:{name}") for name in ("first", "rest"))


class RdfLiteral(NamedTuple):
    """A literal with a language or a datatype, or with neither."""

    text: str
    language: str = ""
    # IRI; empty for a string.
    datatype: str = ""


class ParsedTriple(NamedTuple):
    """A triple with its line. Nodes are IRIs, or blank nodes, which begin with `_:`."""

    line: int
    subject: str
    predicate: str
    object: str | RdfLiteral


def detect_syntax(head: bytes) -> RdfFormat:
    """Return the syntax of a document that begins with these bytes."""
    start = head.lstrip(b" \t\r\n")
    if re.match(rb"<(\?xml|!DOCTYPE|!--|([\w.-]+:)?RDF\b)", start):
        return RdfFormat.RDF_XML
    if start.startswith(b"{") or re.match(rb"\[\s*[{\]]", start):
        return RdfFormat.JSON_LD
    # N-Triples is Turtle too.
    return RdfFormat.TURTLE


def parse_triples(
    stream: IO[bytes], syntax: RdfFormat, warnings: WarningCounter | None = None
) -> Iterator[ParsedTriple]:
    """Yield the triples of a document while it is read; raise ParseError.

    Those that have triples as terms, as RDF 1.2 allows, are skipped and counted.

    JSON-LD that is not streamable is read completely before the first triple, and has no line numbers.
    """
    has_line_numbers = syntax != RdfFormat.JSON_LD
    reader = _LineTrackingReader(_GUARDS[syntax](iter(partial(stream.read, _BLOCK_BYTES), b"")))
    cells = 0
    try:
        for quad in pyoxigraph.parse(reader, syntax, lenient=True):  # type: ignore[arg-type]
            triple_line = reader.mark_triple()
            line = triple_line if has_line_numbers else 0
            subject, predicate = _convert_node(quad.subject, line), _convert_node(quad.predicate, line)
            if predicate in _LIST_PREDICATES and isinstance(quad.subject, BlankNode):
                # A small file with a long list would fill the disk with its cells.
                cells += 1
                if cells > _MAX_LIST_CELLS:
                    raise ParseError(f"its lists have more than {_MAX_LIST_CELLS // 2:,} members", max(line, 1), 1)
            value = _convert_node(quad.object, line)
            if isinstance(value, RdfLiteral) and value.datatype == _XML_LITERAL and syntax == RdfFormat.RDF_XML:
                value = value._replace(text=_canonicalize_xml(value.text))
            if isinstance(subject, str) and isinstance(predicate, str) and value is not None:
                yield ParsedTriple(line, subject, predicate, value)
            elif warnings is not None:
                location = f"line {line}" if line else ""
                warnings.add("a triple about a triple (RDF 1.2) was skipped", location, is_loss=True)
    except SyntaxError as error:
        raise _to_parse_error(error, syntax, reader.line) from None
    except MemoryError:
        raise ParseError("a value is longer than 16 MiB", reader.line, 1) from None


class _LineTrackingReader:
    """Pass a document to the parser line by line, so that the line of each triple is known."""

    def __init__(self, blocks: Iterator[bytes]) -> None:
        self._blocks = blocks
        self._block = b""
        self._position = 0
        self._line_count = 0
        self._is_inside_line = False
        self.mark_triple()

    @property
    def line(self) -> int:
        """The line of the last byte that was read."""
        return self._line_count + self._is_inside_line

    def mark_triple(self) -> int:
        """Record that the parser has returned a triple, and return its line."""
        self._lines_until_block_mode = _MAX_LINES_WITHOUT_TRIPLE
        self._triple_terms = 0
        return self._line_count + self._is_inside_line

    def read(self, size: int) -> bytes:
        if self._position == len(self._block):
            self._block = next(self._blocks, b"")
            self._position = 0
        end = min(self._position + size, len(self._block))
        if self._lines_until_block_mode:
            self._lines_until_block_mode -= 1
            end = self._block.find(b"\n", self._position, end) + 1 or end
        chunk = self._block[self._position : end]
        self._position = end
        if chunk:
            self._line_count += chunk.count(b"\n")
            self._is_inside_line = not chunk.endswith(b"\n")
            self._triple_terms += chunk.count(b"<<(")
            if self._triple_terms > _MAX_TRIPLE_TERMS:
                raise ParseError(f"more than {_MAX_TRIPLE_TERMS} triple terms are in one statement", self.line, 1)
        return chunk


def _check_json_depth(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the blocks of a JSON document; raise ParseError if it has too many levels or contexts."""
    depth, contexts, line, in_string, tail = 0, 0, 1, False, b""
    for block in blocks:
        unescaped = _JSON_ESCAPE.sub(_unescape_match, tail + block)
        # A block may end within an escape sequence.
        tail = b"\\" if unescaped.endswith(b"\\") else b""
        parts = unescaped.removesuffix(tail).split(b'"')
        brackets = b"".join(parts[in_string::2]).translate(None, _NO_BRACKETS)
        depths = list(accumulate(map(_DEPTH_STEPS.__getitem__, brackets), initial=depth))
        contexts += parts[not in_string :: 2].count(b"@context")
        in_string ^= len(parts) % 2 == 0
        depth = depths[-1]
        if max(depths) > _MAX_JSON_DEPTH:
            raise ParseError(f"it is nested more than {_MAX_JSON_DEPTH} deep", line, 1)
        if contexts > _MAX_CONTEXTS:
            raise ParseError(f"it has more than {_MAX_CONTEXTS} contexts: put them into one", line, 1)
        line += block.count(b"\n")
        yield block


_JSON_ESCAPE = re.compile(rb"\\(?:u00([467][0-9A-Fa-f])|.)", re.DOTALL)
_DEPTH_STEPS = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}
_NO_BRACKETS = bytes(set(range(256)) - set(_DEPTH_STEPS))


def _unescape_match(match: re.Match[bytes]) -> bytes:
    """Return an escaped letter itself, so that no key can hide; drop other escape sequences."""
    return bytes.fromhex(match[1].decode()) if match[1] else b""


def _check_nesting(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the blocks of a Turtle document; raise ParseError at the bracket that is nested too deeply.

    Brackets in strings, IRIs, comments and escapes are skipped. Every byte is scanned once.
    """
    depth, line, column, open_token, tail = 0, 1, 1, b"", b""
    for block in blocks:
        text, position = tail + block, 0
        # The longest significant token has three bytes. One that may continue is scanned with the next block.
        safe_end = len(text) - 2
        while (match := _TURTLE_TOKENS[open_token].search(text, position)) and match.start() < safe_end:
            token, position = match.group(), match.end()
            if token.startswith(b"\\"):
                continue
            if open_token:
                open_token = b""
            elif token in _TURTLE_TOKENS:
                open_token = token
            elif token[0] in b"([{":
                if depth + len(token) > _MAX_TURTLE_DEPTH:
                    before = text[: match.start() + _MAX_TURTLE_DEPTH - depth]
                    reason = f"it is nested more than {_MAX_TURTLE_DEPTH:,} deep"
                    raise ParseError(reason, *_advance(line, column, before))
                depth += len(token)
            elif token[0] in b")]}":
                depth -= len(token)
        consumed = max(position, safe_end, 0)
        line, column = _advance(line, column, text[:consumed])
        tail = text[consumed:]
        yield block


# The tokens to look for next: outside of everything (the empty key), and within each kind of token its end.
_TURTLE_TOKENS = {
    b"": re.compile(rb"""\"{3}|'{3}|["'#]|<<|<|\\.|[(\[{]+|[)\]}]+""", re.DOTALL),
    b'"': re.compile(rb'"|\\.', re.DOTALL),
    b"'": re.compile(rb"'|\\.", re.DOTALL),
    b'"""': re.compile(rb'"{3}|\\.', re.DOTALL),
    b"'''": re.compile(rb"'{3}|\\.", re.DOTALL),
    b"<": re.compile(rb">"),
    b"#": re.compile(rb"[\r\n]"),
}
_CONTINUATION = bytes(range(0x80, 0xC0))


def _advance(line: int, column: int, text: bytes) -> tuple[int, int]:
    """Return the line and column after a text in UTF-8 that begins at the given ones."""
    _, newline, rest = text.rpartition(b"\n")
    return line + text.count(b"\n"), (1 if newline else column) + len(rest.translate(None, _CONTINUATION))


_GUARDS: dict[RdfFormat, Callable[[Iterable[bytes]], Iterator[bytes]]] = {
    RdfFormat.RDF_XML: xml_guard.iter_checked_xml,
    RdfFormat.TURTLE: _check_nesting,
    RdfFormat.JSON_LD: _check_json_depth,
    RdfFormat.STREAMING_JSON_LD: _check_json_depth,
}


_XML_LITERAL = expand_predicate("rdf:XMLLiteral")
_NAMESPACE_DECLARATION = re.compile(r'(?<=\s)xmlns(?::[\w.-]+)?="[^"]*"')


def _canonicalize_xml(text: str) -> str:
    """Return an XML literal as RDF/XML defines it: with the namespaces that it uses.

    The parser declares all namespaces of the document at each outer element, and one that the element declares twice.
    """
    if 'xmlns:rdf="' not in text:
        return text
    with suppress(ElementTree.ParseError):
        wrapped = _XML_TAG.sub(_remove_repeated_declarations, f"<x>{text}</x>")
        return ElementTree.canonicalize(wrapped).removeprefix("<x>").removesuffix("</x>")
    return text


_XML_TAG = re.compile(r"<[^<>]*>")


def _remove_repeated_declarations(tag: re.Match[str]) -> str:
    seen: set[str] = set()

    def keep_first(match: re.Match[str]) -> str:
        name = match.group().partition("=")[0]
        is_first = name not in seen
        seen.add(name)
        return match.group() if is_first else ""

    return _NAMESPACE_DECLARATION.sub(keep_first, tag.group())


_STRINGS = [NamedNode(expand_predicate(name)) for name in ("xsd:string", "rdf:langString")]


def _convert_node(node: object, line: int) -> str | RdfLiteral | None:
    """Convert a node; return None for a triple term."""
    if isinstance(node, Literal):
        return RdfLiteral(node.value, node.language or "", "" if node.datatype in _STRINGS else node.datatype.value)
    if not isinstance(node, NamedNode):
        return f"_:{node.value}" if isinstance(node, BlankNode) else None
    iri = node.value
    if len(iri) > _MAX_IRI_CHARS:
        raise ParseError(f"an IRI has more than {_MAX_IRI_CHARS:,} characters: {iri[:60]}…", line, 1)
    return iri


def _to_parse_error(error: SyntaxError, syntax: RdfFormat, line: int) -> ParseError:
    """Convert an error of the parser; its position is that of the error, or else of the last byte read."""
    message = error.msg.split(": ", 1)[1] if error.lineno else error.msg
    reason = f"this is not valid {syntax.name}: {message}"
    if "LoadDocumentCallback" in message:
        reason = "the JSON-LD context is on another server, and nothing is fetched: put the context into the document"
    return ParseError(reason, error.lineno or max(line, 1), error.offset or 1)
