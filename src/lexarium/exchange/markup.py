"""XML, looked through before anything is made of it: well formed, not absurd, and nothing in it reaches outside."""

import codecs
import io
import re
from collections.abc import Callable, Iterator
from xml.parsers import expat
from xml.sax.saxutils import escape

from lexarium.domain.text import unstorable
from lexarium.exchange.decoding import MARKS, Readable, declared
from lexarium.exchange.incoming import Malformed

_BLOCK = 1 << 16
_LONGEST_PROLOG = 1 << 20
_LONGEST_TAG = 4 << 20
"""In bytes: expat looks through a tag from its beginning whenever more of it comes."""
_DEEPEST = 100
_MOST_ATTRIBUTES = 256
_LONGEST_ENTITY = 2_000
"""In characters, all that it stands for put in: published files have namespaces in entities."""
_MOST_ENTITIES = 1_000
_REFERENCE = re.compile(r"&(#?[^;&\s]+);")
_BUILT_IN = {"amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'"}
_BEGINNINGS = MARKS | {b"<\0?\0": "utf-16-le", b"\0<\0?": "utf-16-be"}
"""How a document begins that is in these encodings."""


def checked(stream: Readable) -> Iterator[bytes]:
    """The document in UTF-8, in blocks, each of which has been looked through before it is given.

    What stands before its root is given in the plainest form, with as many lines: no declaration, and of a DTD only
    entities, with all that they stand for put in. Raises `Malformed`.
    """
    check = _Check()
    before: bytes | None = b""
    for block in _utf8(stream):
        check.feed(block)
        if before is None:
            yield block
            continue
        before += block
        if check.root is not None:
            yield check.prolog(before[: check.root]) + before[check.root :]
            before = None
        elif len(before) > _LONGEST_PROLOG:
            raise check.malformed(f"an element was expected within the first {_LONGEST_PROLOG >> 20} MiB")
    check.end()


class _Check:
    """Follows a document as it is read."""

    def __init__(self) -> None:
        self.root: int | None = None
        """The byte at which the root element begins."""
        self._entities: dict[str, str] = {}
        self._depth = 0
        self._fed = 0
        # The declared encoding has been heeded, and does not count here.
        self._parser = expat.ParserCreate("utf-8")
        self._parser.StartDoctypeDeclHandler = self._doctype
        self._parser.EntityDeclHandler = self._entity
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end

    def feed(self, block: bytes) -> None:
        self._fed += len(block)
        self._parse(block, False)
        if self._fed - self._parser.CurrentByteIndex > _LONGEST_TAG:
            raise self.malformed(f"a tag, or a comment, is longer than {_LONGEST_TAG >> 20} MiB")

    def end(self) -> None:
        self._parse(b"", True)

    def prolog(self, given: bytes) -> bytes:
        """What stands for the document's own prolog."""
        declared = "".join(f'<!ENTITY {name} "{_quoted(text)}">' for name, text in self._entities.items())
        doctype = f"<!DOCTYPE rdf:RDF [{declared}]>" if declared else ""
        return doctype.encode() + b"\n" * given.count(b"\n")

    def malformed(self, reason: str) -> Malformed:
        """Something is wrong where the document has been read to."""
        return Malformed(reason, self._parser.CurrentLineNumber, self._parser.CurrentColumnNumber + 1)

    def _parse(self, block: bytes, last: bool) -> None:
        try:
            self._parser.Parse(block, last)
        except expat.ExpatError as error:
            reason = f"this is not well-formed XML: {expat.ErrorString(error.code)}"
            raise Malformed(reason, error.lineno, error.offset + 1) from None

    def _doctype(self, name: str, system: str | None, public: str | None, internal: int) -> None:
        if system is not None or public is not None:
            raise self.malformed("the DTD is another file, and other files are not read: take it out of the DOCTYPE")

    def _entity(  # noqa: PLR0913, PLR0917 (as expat calls it)
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
            raise self.malformed(f"the entity {name} is another file, and other files are not read")
        if is_parameter:
            raise self.malformed(f"{name} is a parameter entity, which is not read: write out what it stands for")
        if name in _BUILT_IN or name in self._entities:
            return
        if "<" in value:
            raise self.malformed(f"the entity {name} holds markup; only plain text is read")
        text = _REFERENCE.sub(self._referred, value)
        if len(text) > _LONGEST_ENTITY or len(self._entities) >= _MOST_ENTITIES:
            most = f"at most {_MOST_ENTITIES:,} entities of {_LONGEST_ENTITY:,} characters each"
            raise self.malformed(f"the entity {name} is too much: {most} are read")
        self._entities[name] = text

    def _referred(self, match: re.Match[str]) -> str:
        name = match.group(1)
        if name in _BUILT_IN:
            return _BUILT_IN[name]
        text = _character(name) if name.startswith("#") else self._entities.get(name)
        if text is None:
            raise self.malformed(f"the entity {name} is used, but not declared before")
        return text

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        if self.root is None:
            self.root = self._parser.CurrentByteIndex
        self._depth += 1
        if self._depth > _DEEPEST:
            raise self.malformed(f"elements are nested more than {_DEEPEST} deep")
        if len(attributes) > _MOST_ATTRIBUTES:
            raise self.malformed(f"an element has more than {_MOST_ATTRIBUTES} attributes")

    def _end(self, name: str) -> None:
        self._depth -= 1


def _character(reference: str) -> str | None:
    """What a number such as `#233` or `#xE9` stands for; None where that is nothing."""
    try:
        char = chr(int(reference[2:], 16) if reference.startswith("#x") else int(reference[1:]))
    except (ValueError, OverflowError):
        return None
    return None if unstorable(char) else char


def _quoted(text: str) -> str:
    return escape(text, {'"': "&quot;", "%": "&#37;"})


def _utf8(stream: Readable) -> Iterator[bytes]:
    head = stream.read(_BLOCK)
    encoding = _encoding(head)
    recode = _verbatim if encoding is None else _recoder(encoding)
    block = head
    while block:
        yield recode(block)
        block = stream.read(_BLOCK)


def _verbatim(block: bytes) -> bytes:
    return block


def _encoding(head: bytes) -> str | None:
    """What a document says that it is in, where that is not UTF-8 without a mark."""
    for beginning, encoding in _BEGINNINGS.items():
        if head.startswith(beginning):
            return encoding
    return declared(head)


def _recoder(encoding: str) -> Callable[[bytes], bytes]:
    try:
        # Whether it is one of text: Python has others under such names too.
        io.TextIOWrapper(io.BytesIO(), encoding)
        decoder = codecs.getincrementaldecoder(encoding)()
    except LookupError:
        raise Malformed(f"it is declared to be in {encoding}, which is no encoding known here", 1, 1) from None

    def recoded(block: bytes) -> bytes:
        try:
            return decoder.decode(block).encode()
        except UnicodeError:
            raise Malformed(f"it is declared to be in {encoding}, but is not", 1, 1) from None

    return recoded
