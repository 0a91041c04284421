"""RDF of any syntax as statements, each with the line it is on; what is malformed or made to harm is refused."""

import re
from collections.abc import Callable, Iterator
from functools import partial
from itertools import accumulate
from typing import BinaryIO, NamedTuple

import pyoxigraph
from pyoxigraph import BlankNode, Literal, NamedNode, Quad, RdfFormat

from lexarium.exchange import markup
from lexarium.exchange.decoding import Readable
from lexarium.exchange.incoming import Malformed
from lexarium.exchange.namespaces import expanded

_BLOCK = 1 << 16
_LONGEST_IRI = 10_000
"""In characters: a prefix or a base may be long once, and used a million times."""
_MOST_CONTEXTS = 100
"""In one document of JSON-LD: each costs as much as all that are around it."""
_DEEPEST = 64
"""Levels of JSON: at thousands the parser crashes."""
_DEEPEST_TURTLE = 1_000
"""Levels of brackets: each makes statements, so that a file of nothing but brackets takes far longer than any other."""
_MOST_TRIPLE_TERMS = 100
"""Of RDF 1.2, in one statement: where thousands are nested the parser crashes."""
_PATIENCE = 50
"""Lines without a statement, after which they are handed out in larger pieces: the parser looks through a text of many
lines from its beginning whenever more of it comes."""
_LIST_CELL = {NamedNode(expanded("rdf:first")), NamedNode(expanded("rdf:rest"))}


class Text(NamedTuple):
    """A literal."""

    text: str
    language: str = ""


class Statement(NamedTuple):
    """What a document says. A name is an IRI, or begins with `_:` where it means something only in the document."""

    line: int
    subject: str
    predicate: str
    object: str | Text


class Document:
    """A document in some syntax, told by its beginning."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._head = stream.read(_BLOCK)
        self.syntax = _syntax(self._head)

    def read(self, size: int = _BLOCK) -> bytes:
        """The next bytes of it, from the first on."""
        head, self._head = self._head[:size], self._head[size:]
        return head or self._stream.read(size)


def _syntax(head: bytes) -> RdfFormat:
    start = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    if re.match(rb"<(\?xml|!DOCTYPE|!--|([\w.-]+:)?RDF\b)", start) or b"\0" in start[:4]:
        return RdfFormat.RDF_XML
    if start.startswith(b"{") or re.match(rb"\[\s*[{\]]", start):
        return RdfFormat.JSON_LD
    # N-Triples is Turtle too.
    return RdfFormat.TURTLE


def statements(stream: Readable, syntax: RdfFormat) -> Iterator[Statement]:
    """What a document says, as it is read, without the cells of lists. Raises `Malformed`.

    In JSON-LD, unless it is that for streaming, all of it is read before the first is known, and no lines are.
    """
    known = syntax != RdfFormat.JSON_LD
    feed = _Feed(_CHECKED.get(syntax, _blocks)(stream))
    try:
        for quad in pyoxigraph.parse(feed, syntax, lenient=True):  # type: ignore[arg-type]
            feed.found()
            # No codec follows lists, and one of a few bytes a member would fill the disk with its cells.
            if quad.predicate in _LIST_CELL and isinstance(quad.subject, BlankNode):
                continue
            statement = _statement(feed.line if known else 0, quad)
            if statement is not None:
                yield statement
    except SyntaxError as error:
        raise _malformed(error, syntax, feed.line) from None
    except MemoryError:
        raise Malformed("something here is longer than 16 MiB", feed.line, 1) from None


class _Feed:
    """Hands a document to the parser line by line, so that it is known on which line a statement was found."""

    def __init__(self, blocks: Iterator[bytes]) -> None:
        self._blocks = blocks
        self._block = b""
        self._place = 0
        self._lines = 0
        self._open = False
        self.found()

    @property
    def line(self) -> int:
        """The line of the last byte that was handed out."""
        return self._lines + self._open

    def found(self) -> None:
        """There was a statement."""
        self._patience = _PATIENCE
        self._terms = 0

    def read(self, size: int) -> bytes:
        if self._place == len(self._block):
            self._block = next(self._blocks, b"")
            self._place = 0
        end = min(self._place + size, len(self._block))
        if self._patience:
            self._patience -= 1
            end = self._block.find(b"\n", self._place, end) + 1 or end
        piece = self._block[self._place : end]
        self._place = end
        if piece:
            self._lines += piece.count(b"\n")
            self._open = not piece.endswith(b"\n")
            self._terms += piece.count(b"<<(")
            if self._terms > _MOST_TRIPLE_TERMS:
                raise Malformed(f"more than {_MOST_TRIPLE_TERMS} triple terms are in one statement", self.line, 1)
        return piece


def _blocks(stream: Readable) -> Iterator[bytes]:
    return iter(partial(stream.read, _BLOCK), b"")


def _shallow(stream: Readable) -> Iterator[bytes]:
    """The blocks of a JSON document, each of which has been looked through before it is given."""
    depth, contexts, line, in_text, rest = 0, 0, 1, False, b""
    for block in _blocks(stream):
        plain = _ESCAPED.sub(_unescaped, rest + block)
        # The end of a block may stand between a backslash and what it escapes.
        rest = b"\\" if plain.endswith(b"\\") else b""
        parts = plain.removesuffix(rest).split(b'"')
        depths = [depth, *accumulate(map(_STEPS.__getitem__, _brackets(parts[in_text::2])), initial=depth)]
        contexts += parts[not in_text :: 2].count(b"@context")
        in_text ^= len(parts) % 2 == 0
        depth = depths[-1]
        if max(depths) > _DEEPEST:
            raise Malformed(f"it is nested more than {_DEEPEST} deep", line, 1)
        if contexts > _MOST_CONTEXTS:
            raise Malformed(f"it has more than {_MOST_CONTEXTS} contexts: put them into one", line, 1)
        line += block.count(b"\n")
        yield block


_ESCAPED = re.compile(rb"\\(?:u00([467][0-9A-Fa-f])|.)", re.DOTALL)
_STEPS = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}
_NO_BRACKETS = bytes(set(range(256)) - set(_STEPS))


def _unescaped(match: re.Match[bytes]) -> bytes:
    """Letters that were escaped as themselves, so that no key can hide; nothing of other pairs."""
    return bytes.fromhex(match[1].decode()) if match[1] else b""


def _brackets(parts: list[bytes]) -> bytes:
    return b"".join(parts).translate(None, _NO_BRACKETS)


def _check_nesting(stream: Readable) -> Iterator[bytes]:
    """Yield the blocks of a Turtle document; raise `Malformed` at the bracket that is nested too deeply.

    Brackets in strings, IRIs, comments and escapes are passed over. Every byte is looked at once.
    """
    depth, line, column, within, tail = 0, 1, 1, b"", b""
    for block in _blocks(stream):
        text, place = tail + block, 0
        # The longest token that decides anything has three bytes: what may begin one is looked at with the next block.
        certain = len(text) - 2
        while (found := _TURTLE_TOKENS[within].search(text, place)) and found.start() < certain:
            token, place = found.group(), found.end()
            if token.startswith(b"\\"):
                continue
            if within:
                within = b""
            elif token in _TURTLE_TOKENS:
                within = token
            elif token[0] in b"([{":
                if depth + len(token) > _DEEPEST_TURTLE:
                    before = text[: found.start() + _DEEPEST_TURTLE - depth]
                    reason = f"it is nested more than {_DEEPEST_TURTLE:,} deep"
                    raise Malformed(reason, *_advance(line, column, before))
                depth += len(token)
            elif token[0] in b")]}":
                depth -= len(token)
        passed = max(place, certain, 0)
        line, column = _advance(line, column, text[:passed])
        tail = text[passed:]
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


_CHECKED: dict[RdfFormat, Callable[[Readable], Iterator[bytes]]] = {
    RdfFormat.RDF_XML: markup.checked,
    RdfFormat.TURTLE: _check_nesting,
    RdfFormat.JSON_LD: _shallow,
    RdfFormat.STREAMING_JSON_LD: _shallow,
}


def _statement(line: int, quad: Quad) -> Statement | None:
    """What a quad says; None where it is of triples themselves."""
    subject, value = quad.subject, quad.object
    if isinstance(value, Literal):
        said: str | Text = Text(value.value, value.language or "")
    else:
        named = _name(value, line)
        if named is None:
            return None
        said = named
    name = _name(subject, line)
    return None if name is None else Statement(line, name, _checked_iri(quad.predicate.value, line), said)


def _name(node: object, line: int) -> str | None:
    if isinstance(node, NamedNode):
        return _checked_iri(node.value, line)
    return f"_:{node.value}" if isinstance(node, BlankNode) else None


def _checked_iri(iri: str, line: int) -> str:
    if len(iri) > _LONGEST_IRI:
        raise Malformed(f"an IRI has more than {_LONGEST_IRI:,} characters: {iri[:60]}…", line, 1)
    return iri


def _malformed(error: SyntaxError, syntax: RdfFormat, line: int) -> Malformed:
    """What the parser says, at the place that it names, else where the document has been read to."""
    told = error.msg.split(": ", 1)[1] if error.lineno else error.msg
    reason = f"this is not valid {syntax.name}: {told}"
    if "LoadDocumentCallback" in told:
        reason = "the JSON-LD context is on another server, and nothing is fetched: put the context into the document"
    return Malformed(reason, error.lineno or max(line, 1), error.offset or 1)
