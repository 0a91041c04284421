"""Iterate over the objects of a JSON document: those of its top-level array, or the one that it is or contains."""

import codecs
import json
import re
from collections.abc import Callable, Iterator
from typing import IO, Any, BinaryIO, NamedTuple

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
        yield from cursor.iter_array()
    else:
        raise cursor.error("this is not JSON that holds records; an array of objects was expected")
    cursor.expect_end()


def iter_members(stream: IO[bytes], array_key: str) -> Iterator[tuple[int, str, Any]]:
    """Yield the line, key and value of each member of the object that a document is; raise ParseError.

    The value of `array_key` is an iterator over the objects of an array, as `iter_objects` yields them.
    """
    cursor = _JsonCursor(stream)
    for line, key in cursor.iter_keys("this is not a JSON object"):
        if key == array_key:
            if cursor.peek() != "[":
                raise cursor.error(f"{array_key} is not an array of objects")
            objects = cursor.iter_array()
            yield line, key, objects
            # The rest, if the caller did not want it.
            for _ in objects:
                pass
        else:
            yield line, key, cursor.read_value()
    cursor.expect_end()


class JsonItem(NamedTuple):
    """Item of an array or object that is a member of the document, or a member that is neither."""

    line: int
    # Key of the member; empty if the document is an array.
    member: str
    # Key of the item if the member is an object.
    key: str | None
    value: Any


def iter_items(stream: IO[bytes]) -> Iterator[JsonItem]:
    """Yield the items of a document one by one; raise ParseError."""
    cursor = _JsonCursor(stream)
    if cursor.peek() == "[":
        for line, value in cursor.iter_array(cursor.read_value):
            yield JsonItem(line, "", None, value)
    else:
        for line, member in cursor.iter_keys("this is neither a JSON object nor an array"):
            if cursor.peek() == "[":
                for item_line, value in cursor.iter_array(cursor.read_value):
                    yield JsonItem(item_line, member, None, value)
            elif cursor.peek() == "{":
                for item_line, key in cursor.iter_keys(""):
                    yield JsonItem(item_line, member, key, cursor.read_value())
            else:
                yield JsonItem(line, member, None, cursor.read_value())
    cursor.expect_end()


class _JsonCursor:
    """A position in the document, with a window of text around it."""

    def __init__(self, stream: IO[bytes]) -> None:
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

    def expect(self, char: str, reason: str) -> None:
        """Consume a character and white space before it; raise ParseError if another follows."""
        if self.peek() != char:
            raise self.error(reason)
        self.skip()

    def expect_end(self) -> None:
        """Raise ParseError unless nothing but white space follows."""
        if self.peek():
            raise self.error("nothing was expected after the end of the document")

    def iter_array(self, read_item: Callable[[], Any] | None = None) -> Iterator[tuple[int, Any]]:
        """Read the array that begins here, by default of objects; yield each item with its line."""
        read_item = read_item or self.read_object
        self.skip()
        has_more = self.peek() != "]"
        while has_more:
            yield from self.read_flat_objects()
            yield self.line, read_item()
            has_more = self.peek() == ","
            if has_more:
                self.skip()
                self.peek()
        self.expect("]", "a comma or the end of the array was expected")

    def iter_keys(self, reason: str) -> Iterator[tuple[int, str]]:
        """Read the object that begins here; yield each key with its line, before the value, which the caller reads."""
        self.expect("{", reason)
        has_more = self.peek() != "}"
        while has_more:
            self.peek()
            line, key = self.line, self.read_key()
            self.expect(":", "a colon was expected")
            self.peek()
            yield line, key
            has_more = self.peek() == ","
            if has_more:
                self.skip()
        self.expect("}", "a comma or the end of the object was expected")

    def read_key(self) -> str:
        """Read the key of a member, which begins here."""
        if self._window[self._position : self._position + 1] != '"':
            raise self.error("a key in double quotes was expected")
        key: str = self.read_value()
        return key

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
        value: dict[str, Any] = self.read_value()
        return value

    def read_value(self) -> Any:
        """Read the value that begins here."""
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
                raise self.error("the record has a number with too many digits") from None
            if end == len(self._window) and self._read_more():
                # A number may go on.
                continue
            self._advance_to(end)
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
