"""Iterate over the objects of a JSON document: those of its top-level array, or the one that it is."""

import codecs
import json
import re
from collections.abc import Iterator
from typing import Any, BinaryIO

import orjson

from lexarium.formats.parsed import ParseError

_CHUNK_BYTES = 1 << 20
# An object that does not end within so many characters is malformed.
_MAX_OBJECT_CHARS = 16 << 20

_decoder = json.JSONDecoder()
_SPACE = re.compile(r"[ \t\r\n]*+")
_OBJECT_SEPARATOR = re.compile(r"\}[ \t\r\n]*,[ \t\r\n]*\{")


def iter_objects(stream: BinaryIO) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield each object with the line on which it begins; raise ParseError."""
    cursor = _JsonCursor(stream)
    if cursor.peek() == "":
        raise cursor.error("the file is empty; a JSON array of records was expected")
    if cursor.peek() == "{":
        yield cursor.line, cursor.read_object()
    elif cursor.peek() == "[":
        cursor.skip()
        has_more = cursor.peek() != "]"
        while has_more:
            yield from cursor.read_flat_objects()
            yield cursor.line, cursor.read_object()
            has_more = cursor.peek() == ","
            if has_more:
                cursor.skip()
                cursor.peek()
        if cursor.peek() != "]":
            raise cursor.error("a comma or the end of the array was expected")
        cursor.skip()
    else:
        raise cursor.error("this is not JSON that holds records; an array of objects was expected")
    if cursor.peek():
        raise cursor.error("nothing was expected after the end of the document")


class _JsonCursor:
    """A position in the document, with a window of text around it."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._decode = codecs.getincrementaldecoder("utf-8-sig")().decode
        self._window = ""
        self._position = 0
        self._at_end = False
        # The line of the position; correct after `peek`.
        self.line = 1
        self._line_start = 0

    def peek(self) -> str:
        """Return the next character that is not white space without consuming it; empty at the end."""
        while True:
            space = _SPACE.match(self._window, self._position)
            assert space is not None
            self._advance_to(space.end())
            if self._position < len(self._window):
                return self._window[self._position]
            if not self._read_more():
                return ""

    def skip(self) -> None:
        """Consume the character that `peek` returned."""
        self._position += 1

    def read_flat_objects(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """Read the objects in the window, with their lines, up to one that is nested or incomplete.

        Most are flat, and so are read twice as fast. `read_object` reads the others, and reports errors.
        """
        window, position, line = self._window, self._position, self.line
        for separator in _OBJECT_SEPARATOR.finditer(window, position):
            try:
                value = orjson.loads(window[position : separator.start() + 1])
            except ValueError:
                break
            yield line, value
            next_position = separator.end() - 1
            line += window.count("\n", position, next_position)
            position = next_position
        self._advance_to(position)

    def read_object(self) -> dict[str, Any]:
        """Read the object that begins here."""
        if self._window[self._position : self._position + 1] != "{":
            raise self.error("an object, one record, was expected")
        while True:
            try:
                value, end = _decoder.raw_decode(self._window, self._position)
            except json.JSONDecodeError as error:
                if len(self._window) - self._position < _MAX_OBJECT_CHARS and self._read_more():
                    continue
                self._advance_to(error.pos)
                raise self.error(error.msg[0].lower() + error.msg[1:].removesuffix(" starting at")) from None
            except RecursionError:
                raise self.error("the record is nested too deeply") from None
            except ValueError:
                raise self.error("the record holds a number with too many digits") from None
            self._advance_to(end)
            assert isinstance(value, dict)
            return value

    def error(self, reason: str) -> ParseError:
        """Return an error at the current position."""
        return ParseError(reason, self.line, self._position - self._line_start + 1)

    def _advance_to(self, position: int) -> None:
        newlines = self._window.count("\n", self._position, position)
        if newlines:
            self.line += newlines
            self._line_start = self._window.rindex("\n", self._position, position) + 1
        self._position = position

    def _read_more(self) -> bool:
        if self._at_end:
            return False
        data = self._stream.read(_CHUNK_BYTES)
        self._at_end = not data
        is_valid = True
        try:
            text = self._decode(data, self._at_end)
        except UnicodeDecodeError as error:
            is_valid, text = False, error.object[: error.start].decode("utf-8", "replace")
        self._line_start -= self._position
        self._window = self._window[self._position :] + text
        self._position = 0
        if not is_valid:
            self._advance_to(len(self._window))
            raise self.error("the text is not UTF-8")
        return True
