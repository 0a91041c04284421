"""RDF of any syntax as statements, each with the line it is on; what is malformed or made to harm is refused."""

import re
from collections.abc import Callable, Iterator
from functools import partial
from itertools import accumulate
from typing import BinaryIO, NamedTuple

import pyoxigraph
from pyoxigraph import BlankNode, Literal, NamedNode, Quad, RdfFormat

from lexarium.formats.parsed import ParseError
from lexarium.formats.rdf import xml_guard
from lexarium.formats.rdf.predicates import expand_curie
from lexarium.formats.text_encoding import SupportsRead

_BLOCK_BYTES = 1 << 16
_MAX_IRI_CHARS = 10_000
"""In characters: a prefix or a base may be long once, and used a million times."""
_MAX_CONTEXTS = 100
"""In one document of JSON-LD: each costs as much as all that are around it."""
_MAX_JSON_DEPTH = 64
"""Levels of JSON: at thousands the parser crashes."""
_MAX_TURTLE_DEPTH = 1_000
"""Levels of brackets: each makes statements, so that a file of nothing but brackets takes far longer than any other."""
_MAX_TRIPLE_TERMS = 100
"""Of RDF 1.2, in one statement: where thousands are nested the parser crashes."""
_MAX_LINES_WITHOUT_TRIPLE = 50
"""Lines without a statement, after which they are handed out in larger pieces: the parser looks through a text of many
lines from its beginning whenever more of it comes."""
_LIST_PREDICATES = {NamedNode(expand_curie("rdf:first")), NamedNode(expand_curie("rdf:rest"))}


class RdfLiteral(NamedTuple):
    """A literal."""

    text: str
    language: str = ""


class ParsedTriple(NamedTuple):
    """What a document says. A name is an IRI, or begins with `_:` where it means something only in the document."""

    line: int
    subject: str
    predicate: str
    object: str | RdfLiteral


class RdfInput:
    """A document in some syntax, told by its beginning."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._head = stream.read(_BLOCK_BYTES)
        self.syntax = _detect_syntax(self._head)

    def read(self, size: int = _BLOCK_BYTES) -> bytes:
        """The next bytes of it, from the first on."""
        head, self._head = self._head[:size], self._head[size:]
        return head or self._stream.read(size)


def _detect_syntax(head: bytes) -> RdfFormat:
    start = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    if re.match(rb"<(\?xml|!DOCTYPE|!--|([\w.-]+:)?RDF\b)", start) or b"\0" in start[:4]:
        return RdfFormat.RDF_XML
    if start.startswith(b"{") or re.match(rb"\[\s*[{\]]", start):
        return RdfFormat.JSON_LD
    # N-Triples is Turtle too.
    return RdfFormat.TURTLE


def parse_triples(stream: SupportsRead, syntax: RdfFormat) -> Iterator[ParsedTriple]:
    """What a document says, as it is read, without the cells of lists. Raises `Malformed`.

    In JSON-LD, unless it is that for streaming, all of it is read before the first is known, and no lines are.
    """
    has_line_numbers = syntax != RdfFormat.JSON_LD
    reader = _LineTrackingReader(_GUARDS.get(syntax, _iter_blocks)(stream))
    try:
        for quad in pyoxigraph.parse(reader, syntax, lenient=True):  # type: ignore[arg-type]
            reader.mark_triple()
            # No codec follows lists, and one of a few bytes a member would fill the disk with its cells.
            if quad.predicate in _LIST_PREDICATES and isinstance(quad.subject, BlankNode):
                continue
            triple = _to_triple(reader.line if has_line_numbers else 0, quad)
            if triple is not None:
                yield triple
    except SyntaxError as error:
        raise _to_parse_error(error, syntax, reader.line) from None
    except MemoryError:
        raise ParseError("something here is longer than 16 MiB", reader.line, 1) from None


class _LineTrackingReader:
    """Hands a document to the parser line by line, so that it is known on which line a statement was found."""

    def __init__(self, blocks: Iterator[bytes]) -> None:
        self._blocks = blocks
        self._block = b""
        self._position = 0
        self._line_count = 0
        self._is_inside_line = False
        self.mark_triple()

    @property
    def line(self) -> int:
        """The line of the last byte that was handed out."""
        return self._line_count + self._is_inside_line

    def mark_triple(self) -> None:
        """There was a statement."""
        self._lines_until_block_mode = _MAX_LINES_WITHOUT_TRIPLE
        self._triple_terms = 0

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


def _iter_blocks(stream: SupportsRead) -> Iterator[bytes]:
    return iter(partial(stream.read, _BLOCK_BYTES), b"")


def _check_json_depth(stream: SupportsRead) -> Iterator[bytes]:
    """The blocks of a JSON document, each of which has been looked through before it is given."""
    depth, contexts, line, in_string, tail = 0, 0, 1, False, b""
    for block in _iter_blocks(stream):
        unescaped = _JSON_ESCAPE.sub(_unescape_match, tail + block)
        # The end of a block may stand between a backslash and what it escapes.
        tail = b"\\" if unescaped.endswith(b"\\") else b""
        parts = unescaped.removesuffix(tail).split(b'"')
        depths = [
            depth,
            *accumulate(map(_DEPTH_STEPS.__getitem__, _extract_brackets(parts[in_string::2])), initial=depth),
        ]
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
    """Letters that were escaped as themselves, so that no key can hide; nothing of other pairs."""
    return bytes.fromhex(match[1].decode()) if match[1] else b""


def _extract_brackets(parts: list[bytes]) -> bytes:
    return b"".join(parts).translate(None, _NO_BRACKETS)


def _check_nesting(stream: SupportsRead) -> Iterator[bytes]:
    """Yield the blocks of a Turtle document; raise `Malformed` at the bracket that is nested too deeply.

    Brackets in strings, IRIs, comments and escapes are passed over. Every byte is looked at once.
    """
    depth, line, column, open_token, tail = 0, 1, 1, b"", b""
    for block in _iter_blocks(stream):
        text, position = tail + block, 0
        # The longest token that decides anything has three bytes: what may begin one is looked at with the next block.
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


_TURTLE_TOKENS = {
    b"": re.compile(rb"""\"{3}|'{3}|["'#]|<<|<|\\.|[(\[{]+|[)\]}]+""", re.DOTALL),
    b'"': re.compile(rb'"|\\.', re.DOTALL),
    b"'": re.compile(rb"'|\\.", re.DOTALL),
    b'"""': re.compile(rb'"{3}|\\.', re.DOTALL),
    b"'''": re.compile(rb"'{3}|\\.", re.DOTALL),
    b"<": re.compile(rb">"),
    b"#": re.compile(rb"[\r\n]"),
}
"""What to look for next: outside of everything (the empty key), and within what these tokens begin, its end."""
_CONTINUATION = bytes(range(0x80, 0xC0))


def _advance(line: int, column: int, text: bytes) -> tuple[int, int]:
    """Return the line and column after a text in UTF-8 that begins at the given ones."""
    _, newline, rest = text.rpartition(b"\n")
    return line + text.count(b"\n"), (1 if newline else column) + len(rest.translate(None, _CONTINUATION))


_GUARDS: dict[RdfFormat, Callable[[SupportsRead], Iterator[bytes]]] = {
    RdfFormat.RDF_XML: xml_guard.iter_checked_xml,
    RdfFormat.TURTLE: _check_nesting,
    RdfFormat.JSON_LD: _check_json_depth,
    RdfFormat.STREAMING_JSON_LD: _check_json_depth,
}


def _to_triple(line: int, quad: Quad) -> ParsedTriple | None:
    """What a quad says; None where it is of triples themselves."""
    subject, value = quad.subject, quad.object
    if isinstance(value, Literal):
        object_value: str | RdfLiteral = RdfLiteral(value.value, value.language or "")
    else:
        object_name = _format_node(value, line)
        if object_name is None:
            return None
        object_value = object_name
    subject_name = _format_node(subject, line)
    return (
        None
        if subject_name is None
        else ParsedTriple(line, subject_name, _check_iri_length(quad.predicate.value, line), object_value)
    )


def _format_node(node: object, line: int) -> str | None:
    if isinstance(node, NamedNode):
        return _check_iri_length(node.value, line)
    return f"_:{node.value}" if isinstance(node, BlankNode) else None


def _check_iri_length(iri: str, line: int) -> str:
    if len(iri) > _MAX_IRI_CHARS:
        raise ParseError(f"an IRI has more than {_MAX_IRI_CHARS:,} characters: {iri[:60]}…", line, 1)
    return iri


def _to_parse_error(error: SyntaxError, syntax: RdfFormat, line: int) -> ParseError:
    """What the parser says, at the place that it names, else where the document has been read to."""
    message = error.msg.split(": ", 1)[1] if error.lineno else error.msg
    reason = f"this is not valid {syntax.name}: {message}"
    if "LoadDocumentCallback" in message:
        reason = "the JSON-LD context is on another server, and nothing is fetched: put the context into the document"
    return ParseError(reason, error.lineno or max(line, 1), error.offset or 1)
