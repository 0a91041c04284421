"""The objects of a JSON document, one at a time: those of a top-level array, or the one the document is."""

import codecs
import json
import re
from collections.abc import Iterator
from typing import Any, BinaryIO

import orjson

from lexarium.exchange.incoming import Malformed

_CHUNK = 1 << 20
_LARGEST_OBJECT = 16 << 20
"""In characters: past this an object that does not end is taken to be malformed, not merely unfinished."""

_decoder = json.JSONDecoder()
_SPACE = re.compile(r"[ \t\r\n]*+")
_BETWEEN = re.compile(r"\}[ \t\r\n]*,[ \t\r\n]*\{")


def objects(stream: BinaryIO) -> Iterator[tuple[int, dict[str, Any]]]:
    """Each object with the line on which it begins. Raises `Malformed` where the document is no such JSON."""
    text = _Text(stream)
    if text.peek() == "":
        raise text.malformed("the file is empty; a JSON array of records was expected")
    if text.peek() == "{":
        yield text.line, text.take_object()
    elif text.peek() == "[":
        text.skip()
        if text.peek() != "]":
            yield from text.take_simple_objects()
            yield text.line, text.take_object()
            while text.peek() == ",":
                text.skip()
                text.peek()
                yield from text.take_simple_objects()
                yield text.line, text.take_object()
        if text.peek() != "]":
            raise text.malformed("a comma or the end of the array was expected")
        text.skip()
    else:
        raise text.malformed("this is not JSON that holds records; an array of objects was expected")
    if text.peek():
        raise text.malformed("nothing was expected after the end of the document")


class _Text:
    """A window on the document that moves forward."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._decode = codecs.getincrementaldecoder("utf-8-sig")().decode
        self._window = ""
        self._place = 0
        self._ended = False
        self.line = 1
        """The line at the present place; right after `peek`."""
        self._line_start = 0

    def peek(self) -> str:
        """The next character that is no white space, without taking it; empty at the end."""
        while True:
            space = _SPACE.match(self._window, self._place)
            assert space is not None
            self._go_to(space.end())
            if self._place < len(self._window):
                return self._window[self._place]
            if not self._more():
                return ""

    def skip(self) -> None:
        """Take the character that `peek` saw."""
        self._place += 1

    def take_simple_objects(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """Take the objects that begin here, with their lines, up to one that holds others or does not end here.

        Most hold none, and so are read twice as fast. What cannot be read is left to `take_object`, which tells why.
        """
        window, place, line = self._window, self._place, self.line
        for between in _BETWEEN.finditer(window, place):
            try:
                value = orjson.loads(window[place : between.start() + 1])
            except ValueError:
                break
            yield line, value
            after = between.end() - 1
            line += window.count("\n", place, after)
            place = after
        self._go_to(place)

    def take_object(self) -> dict[str, Any]:
        """Take the object that begins here."""
        if self._window[self._place : self._place + 1] != "{":
            raise self.malformed("an object, one record, was expected")
        while True:
            try:
                value, end = _decoder.raw_decode(self._window, self._place)
            except json.JSONDecodeError as error:
                if len(self._window) - self._place < _LARGEST_OBJECT and self._more():
                    continue
                self._go_to(error.pos)
                raise self.malformed(error.msg[0].lower() + error.msg[1:].removesuffix(" starting at")) from None
            except RecursionError:
                raise self.malformed("the record is nested too deeply") from None
            except ValueError:
                raise self.malformed("the record holds a number with too many digits") from None
            self._go_to(end)
            assert isinstance(value, dict)
            return value

    def malformed(self, reason: str) -> Malformed:
        """The error at the present place."""
        return Malformed(reason, self.line, self._place - self._line_start + 1)

    def _go_to(self, place: int) -> None:
        breaks = self._window.count("\n", self._place, place)
        if breaks:
            self.line += breaks
            self._line_start = self._window.rindex("\n", self._place, place) + 1
        self._place = place

    def _more(self) -> bool:
        if self._ended:
            return False
        data = self._stream.read(_CHUNK)
        self._ended = not data
        try:
            added = self._decode(data, self._ended)
        except UnicodeDecodeError as error:
            before = error.object[: error.start].decode("utf-8", "replace")
            self._window = self._window[self._place :] + before
            self._line_start -= self._place
            self._place = 0
            self._go_to(len(self._window))
            raise self.malformed("the text is not UTF-8") from None
        self._line_start -= self._place
        self._window = self._window[self._place :] + added
        self._place = 0
        return True
