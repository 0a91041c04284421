"""The objects of a JSON document, one at a time: those of a top-level array, or the one the document is."""

import codecs
import json
import re
from collections.abc import Iterator
from typing import Any, BinaryIO

import orjson

from lexarium.formats.parsed import ParseError

_CHUNK_BYTES = 1 << 20
_MAX_OBJECT_CHARS = 16 << 20
"""In characters: past this an object that does not end is taken to be malformed, not merely unfinished."""

_decoder = json.JSONDecoder()
_SPACE = re.compile(r"[ \t\r\n]*+")
_OBJECT_SEPARATOR = re.compile(r"\}[ \t\r\n]*,[ \t\r\n]*\{")


def iter_objects(stream: BinaryIO) -> Iterator[tuple[int, dict[str, Any]]]:
    """Each object with the line on which it begins. Raises `Malformed` where the document is no such JSON."""
    cursor = _JsonCursor(stream)
    if cursor.peek() == "":
        raise cursor.error("the file is empty; a JSON array of records was expected")
    if cursor.peek() == "{":
        yield cursor.line, cursor.read_object()
    elif cursor.peek() == "[":
        cursor.skip()
        if cursor.peek() != "]":
            yield from cursor.read_flat_objects()
            yield cursor.line, cursor.read_object()
            while cursor.peek() == ",":
                cursor.skip()
                cursor.peek()
                yield from cursor.read_flat_objects()
                yield cursor.line, cursor.read_object()
        if cursor.peek() != "]":
            raise cursor.error("a comma or the end of the array was expected")
        cursor.skip()
    else:
        raise cursor.error("this is not JSON that holds records; an array of objects was expected")
    if cursor.peek():
        raise cursor.error("nothing was expected after the end of the document")


class _JsonCursor:
    """A window on the document that moves forward."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._decode = codecs.getincrementaldecoder("utf-8-sig")().decode
        self._window = ""
        self._position = 0
        self._at_end = False
        self.line = 1
        """The line at the present place; right after `peek`."""
        self._line_start = 0

    def peek(self) -> str:
        """The next character that is no white space, without taking it; empty at the end."""
        while True:
            space = _SPACE.match(self._window, self._position)
            assert space is not None
            self._advance_to(space.end())
            if self._position < len(self._window):
                return self._window[self._position]
            if not self._read_more():
                return ""

    def skip(self) -> None:
        """Take the character that `peek` saw."""
        self._position += 1

    def read_flat_objects(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """Take the objects that begin here, with their lines, up to one that holds others or does not end here.

        Most hold none, and so are read twice as fast. What cannot be read is left to `take_object`, which tells why.
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
        """Take the object that begins here."""
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
        """The error at the present place."""
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
        try:
            text = self._decode(data, self._at_end)
        except UnicodeDecodeError as error:
            decoded = error.object[: error.start].decode("utf-8", "replace")
            self._window = self._window[self._position :] + decoded
            self._line_start -= self._position
            self._position = 0
            self._advance_to(len(self._window))
            raise self.error("the text is not UTF-8") from None
        self._line_start -= self._position
        self._window = self._window[self._position :] + text
        self._position = 0
        return True
