"""XML, looked through before anything is made of it: well formed, not absurd, and nothing in it reaches outside."""

import codecs
import io
import re
from collections.abc import Callable, Iterator
from xml.parsers import expat
from xml.sax.saxutils import escape

from lexarium.domain.text.characters import find_unstorable_char
from lexarium.formats.parsed import ParseError
from lexarium.formats.text_encoding import BYTE_ORDER_MARKS, SupportsRead, get_xml_encoding

_BLOCK_BYTES = 1 << 16
_MAX_PROLOG_BYTES = 1 << 20
_MAX_TAG_BYTES = 4 << 20
"""In bytes: expat looks through a tag from its beginning whenever more of it comes."""
_MAX_DEPTH = 100
_MAX_ATTRIBUTES = 256
_MAX_ENTITY_CHARS = 2_000
"""In characters, all that it stands for put in: published files have namespaces in entities."""
_MAX_ENTITIES = 1_000
_REFERENCE = re.compile(r"&(#?[^;&\s]+);")
_PREDEFINED_ENTITIES = {"amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'"}
_ENCODING_SIGNATURES = BYTE_ORDER_MARKS | {b"<\0?\0": "utf-16-le", b"\0<\0?": "utf-16-be"}
"""How a document begins that is in these encodings."""


def iter_checked_xml(stream: SupportsRead) -> Iterator[bytes]:
    """The document in UTF-8, in blocks, each of which has been looked through before it is given.

    What stands before its root is given in the plainest form, with as many lines: no declaration, and of a DTD only
    entities, with all that they stand for put in. Raises `Malformed`.
    """
    checker = _XmlChecker()
    prolog: bytes | None = b""
    for block in _iter_utf8(stream):
        checker.feed(block)
        if prolog is None:
            yield block
            continue
        prolog += block
        if checker.root_offset is not None:
            yield checker.render_prolog(prolog[: checker.root_offset]) + prolog[checker.root_offset :]
            prolog = None
        elif len(prolog) > _MAX_PROLOG_BYTES:
            raise checker.error(f"an element was expected within the first {_MAX_PROLOG_BYTES >> 20} MiB")
    checker.finish()


class _XmlChecker:
    """Follows a document as it is read."""

    def __init__(self) -> None:
        self.root_offset: int | None = None
        """The byte at which the root element begins."""
        self._entities: dict[str, str] = {}
        self._depth = 0
        self._bytes_fed = 0
        # The declared encoding has been heeded, and does not count here.
        self._parser = expat.ParserCreate("utf-8")
        self._parser.StartDoctypeDeclHandler = self._on_doctype
        self._parser.EntityDeclHandler = self._on_entity
        self._parser.StartElementHandler = self._on_start
        self._parser.EndElementHandler = self._on_end

    def feed(self, block: bytes) -> None:
        self._bytes_fed += len(block)
        self._parse(block, False)
        if self._bytes_fed - self._parser.CurrentByteIndex > _MAX_TAG_BYTES:
            raise self.error(f"a tag, or a comment, is longer than {_MAX_TAG_BYTES >> 20} MiB")

    def finish(self) -> None:
        self._parse(b"", True)

    def render_prolog(self, original: bytes) -> bytes:
        """What stands for the document's own prolog."""
        entity_declarations = "".join(
            f'<!ENTITY {name} "{_escape_entity_value(text)}">' for name, text in self._entities.items()
        )
        doctype = f"<!DOCTYPE rdf:RDF [{entity_declarations}]>" if entity_declarations else ""
        return doctype.encode() + b"\n" * original.count(b"\n")

    def error(self, reason: str) -> ParseError:
        """Something is wrong where the document has been read to."""
        return ParseError(reason, self._parser.CurrentLineNumber, self._parser.CurrentColumnNumber + 1)

    def _parse(self, block: bytes, is_final: bool) -> None:
        try:
            self._parser.Parse(block, is_final)
        except expat.ExpatError as error:
            reason = f"this is not well-formed XML: {expat.ErrorString(error.code)}"
            raise ParseError(reason, error.lineno, error.offset + 1) from None

    def _on_doctype(self, name: str, system: str | None, public: str | None, internal: int) -> None:
        if system is not None or public is not None:
            raise self.error("the DTD is another file, and other files are not read: take it out of the DOCTYPE")

    def _on_entity(  # noqa: PLR0913, PLR0917 (as expat calls it)
        self,
        name: str,
        is_parameter: int,
        value: str | None,
        base: str | None,
        system: str | None,
        public: str | None,
        notation: str | None,
    ) -> None:
        if value is None:
            raise self.error(f"the entity {name} is another file, and other files are not read")
        if is_parameter:
            raise self.error(f"{name} is a parameter entity, which is not read: write out what it stands for")
        if name in _PREDEFINED_ENTITIES or name in self._entities:
            return
        if "<" in value:
            raise self.error(f"the entity {name} holds markup; only plain text is read")
        text = _REFERENCE.sub(self._expand_reference, value)
        if len(text) > _MAX_ENTITY_CHARS or len(self._entities) >= _MAX_ENTITIES:
            limits = f"at most {_MAX_ENTITIES:,} entities of {_MAX_ENTITY_CHARS:,} characters each"
            raise self.error(f"the entity {name} is too much: {limits} are read")
        self._entities[name] = text

    def _expand_reference(self, match: re.Match[str]) -> str:
        name = match.group(1)
        if name in _PREDEFINED_ENTITIES:
            return _PREDEFINED_ENTITIES[name]
        text = _decode_char_reference(name) if name.startswith("#") else self._entities.get(name)
        if text is None:
            raise self.error(f"the entity {name} is used, but not declared before")
        return text

    def _on_start(self, name: str, attributes: dict[str, str]) -> None:
        if self.root_offset is None:
            self.root_offset = self._parser.CurrentByteIndex
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise self.error(f"elements are nested more than {_MAX_DEPTH} deep")
        if len(attributes) > _MAX_ATTRIBUTES:
            raise self.error(f"an element has more than {_MAX_ATTRIBUTES} attributes")

    def _on_end(self, name: str) -> None:
        self._depth -= 1


def _decode_char_reference(reference: str) -> str | None:
    """What a number such as `#233` or `#xE9` stands for; None where that is nothing."""
    try:
        char = chr(int(reference[2:], 16) if reference.startswith("#x") else int(reference[1:]))
    except (ValueError, OverflowError):
        return None
    return None if find_unstorable_char(char) else char


def _escape_entity_value(text: str) -> str:
    return escape(text, {'"': "&quot;", "%": "&#37;"})


def _iter_utf8(stream: SupportsRead) -> Iterator[bytes]:
    head = stream.read(_BLOCK_BYTES)
    encoding = _detect_encoding(head)
    transcode = _identity if encoding is None else _make_transcoder(encoding)
    block = head
    while block:
        yield transcode(block)
        block = stream.read(_BLOCK_BYTES)


def _identity(block: bytes) -> bytes:
    return block


def _detect_encoding(head: bytes) -> str | None:
    """What a document says that it is in, where that is not UTF-8 without a mark."""
    for signature, encoding in _ENCODING_SIGNATURES.items():
        if head.startswith(signature):
            return encoding
    return get_xml_encoding(head)


def _make_transcoder(encoding: str) -> Callable[[bytes], bytes]:
    try:
        # Whether it is one of text: Python has others under such names too.
        io.TextIOWrapper(io.BytesIO(), encoding)
        decoder = codecs.getincrementaldecoder(encoding)()
    except LookupError:
        raise ParseError(f"it is declared to be in {encoding}, which is no encoding known here", 1, 1) from None

    def transcode(block: bytes) -> bytes:
        try:
            return decoder.decode(block).encode()
        except UnicodeError:
            raise ParseError(f"it is declared to be in {encoding}, but is not", 1, 1) from None

    return transcode
