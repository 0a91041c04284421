"""Check XML before it is parsed as RDF: well-formed, within limits, without external entities."""

import re
from collections.abc import Iterable, Iterator
from xml.parsers import expat
from xml.sax.saxutils import escape

from lexarium.domain.text.characters import find_unstorable_char
from lexarium.formats.parsed import ParseError

_MAX_PROLOG_BYTES = 1 << 20
# expat scans an incomplete tag from its start again with each block.
_MAX_TAG_BYTES = 4 << 20
_MAX_DEPTH = 100
_MAX_ATTRIBUTES = 256
# Expanded. Published files use entities for namespaces.
_MAX_ENTITY_CHARS = 2_000
_MAX_ENTITIES = 1_000
_REFERENCE = re.compile(r"&(#?[^;&\s]+);")
_PREDEFINED_ENTITIES = {"amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'"}


def iter_checked_xml(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the blocks of a document in UTF-8 after they have been checked; raise ParseError.

    The prolog is replaced by a minimal one with the same number of lines: no declaration, and of the DTD only the
    entities, expanded.
    """
    checker = _XmlChecker()
    prolog: bytes | None = b""
    for block in blocks:
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
    """Check a document while it is read."""

    def __init__(self) -> None:
        self.root_offset: int | None = None
        self._entities: dict[str, str] = {}
        self._depth = 0
        self._bytes_fed = 0
        # The document is already converted, whatever encoding it declares.
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
        """Return the replacement of the document's prolog."""
        values = {name: escape(text, {'"': "&quot;", "%": "&#37;"}) for name, text in self._entities.items()}
        entity_declarations = "".join(f'<!ENTITY {name} "{value}">' for name, value in values.items())
        doctype = f"<!DOCTYPE rdf:RDF [{entity_declarations}]>" if entity_declarations else ""
        return doctype.encode() + b"\n" * original.count(b"\n")

    def error(self, reason: str) -> ParseError:
        """Return an error at the current position."""
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

    def _on_entity(self, name: str, is_parameter: int, value: str | None, *_: str | None) -> None:
        if value is None:
            raise self.error(f"the entity {name} is another file, and other files are not read")
        if is_parameter:
            raise self.error(f"{name} is a parameter entity, which is not read: write out its content")
        if name in _PREDEFINED_ENTITIES or name in self._entities:
            return
        if "<" in value:
            raise self.error(f"the entity {name} contains markup; only plain text is read")
        text = _REFERENCE.sub(self._expand_reference, value)
        if len(text) > _MAX_ENTITY_CHARS or len(self._entities) >= _MAX_ENTITIES:
            limits = f"at most {_MAX_ENTITIES:,} entities of {_MAX_ENTITY_CHARS:,} characters each"
            raise self.error(f"the entity {name} exceeds the limits: {limits}")
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
    """Return the character of a reference such as `#233` or `#xE9`; None if it is invalid."""
    try:
        char = chr(int(reference[2:], 16) if reference.startswith("#x") else int(reference[1:]))
    except (ValueError, OverflowError):
        return None
    return None if find_unstorable_char(char) else char
