"""Convert a stream of text to UTF-8; detect its encoding."""

import codecs
import io
import re
from typing import Any, BinaryIO, Protocol

from lexarium.formats.parsed import ParseError

_CHUNK_BYTES = 1 << 18
# If one begins with another, the longer is first.
BYTE_ORDER_MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_XML_ENCODING_PATTERN = re.compile(rb"""<\?xml\s[^>]*?encoding\s*=\s*["']([\w.:-]+)["']""")
_UTF8_NAMES = (b"utf-8", b"utf8", b"us-ascii", b"ascii")
_MAX_LISTED_LINES = 20


class SupportsRead(Protocol):
    """A binary stream."""

    def read(self, size: int = ..., /) -> bytes:
        """Return at most `size` bytes; none at the end."""


def get_xml_encoding(head: bytes) -> str | None:
    """Return the encoding that an XML document declares; None if that is UTF-8, or none."""
    match = _XML_ENCODING_PATTERN.match(head.removeprefix(codecs.BOM_UTF8))
    return None if match is None or match.group(1).lower() in _UTF8_NAMES else match.group(1).decode().lower()


class Utf8Stream(io.RawIOBase):
    """A stream of text, converted to UTF-8 without a byte order mark.

    Bytes that are not UTF-8 are read as Windows-1252, and their lines are recorded. An XML document that declares
    another encoding is passed through: the XML parser handles that.
    """

    def __init__(self, stream: BinaryIO) -> None:
        super().__init__()
        self._stream = stream
        head = stream.peek(1024) if isinstance(stream, io.BufferedReader) else b""
        encoding = next((name for bom, name in BYTE_ORDER_MARKS.items() if head.startswith(bom)), "utf-8")
        is_wide = not encoding.startswith("utf-8")
        self._pass_through = get_xml_encoding(head) is not None or (is_wide and b"<\0?\0x" in head)
        self._decoder = codecs.getincrementaldecoder(encoding)() if is_wide else None
        if encoding == "utf-8-sig":
            stream.read(len(codecs.BOM_UTF8))
        self._buffer = b""
        self._partial_char = b""
        self._at_end = False
        self._line_number = 1
        self._fallback_lines: list[int] = []
        self._fallback_count = 0

    @property
    def warning(self) -> str | None:
        """A warning about the lines read so far that are not UTF-8."""
        if not self._fallback_count:
            return None
        listed = ", ".join(f"{line:,}" for line in self._fallback_lines)
        more = self._fallback_count - len(self._fallback_lines)
        lines = f"lines {listed}{f' and {more:,} more' * (more > 0)} are"
        lines = f"line {listed} is" if self._fallback_count == 1 else lines
        return f"{lines} not UTF-8; what is not was read as Windows-1252"

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._buffer and not self._at_end:
            self._buffer = self._read_chunk()
        size = min(len(buffer), len(self._buffer))
        buffer[:size] = self._buffer[:size]
        self._buffer = self._buffer[size:]
        return size

    def _read_chunk(self) -> bytes:
        data = self._stream.read(_CHUNK_BYTES)
        self._at_end = not data
        if self._pass_through:
            return data
        if self._decoder is not None:
            try:
                data = self._decoder.decode(data, self._at_end).encode()
            except UnicodeError as error:
                message = "the byte order mark says UTF-16 or UTF-32, but the text is not"
                raise ParseError(f"{message}: {error}", self._line_number, 1) from None
        else:
            data = self._partial_char + data
            complete = len(data) if self._at_end else _complete_length(data)
            data, self._partial_char = data[:complete], data[complete:]
            try:
                data.decode()
            except UnicodeDecodeError:
                data = self._decode_with_fallback(data)
        self._line_number += data.count(b"\n")
        return data

    def _decode_with_fallback(self, data: bytes) -> bytes:
        lines = data.splitlines(keepends=True) if b"\n" in data else [data]
        line_number = self._line_number
        for index, line in enumerate(lines):
            try:
                line.decode()
            except UnicodeDecodeError:
                lines[index] = self._decode_line(line, line_number)
            line_number += line.endswith(b"\n")
        return b"".join(lines)

    def _decode_line(self, line: bytes, line_number: int) -> bytes:
        try:
            text = line.decode(errors=_FALLBACK_HANDLER)
        except UnicodeDecodeError as error:
            message = f"the byte {error.object[error.start]:02X} is neither UTF-8 nor Windows-1252"
            raise ParseError(message, line_number, error.start + 1) from None
        if not self._fallback_lines or self._fallback_lines[-1] != line_number:
            self._fallback_count += 1
            if len(self._fallback_lines) < _MAX_LISTED_LINES:
                self._fallback_lines.append(line_number)
        return text.encode()


_FALLBACK_HANDLER = "lexarium-windows-1252"


def _decode_windows_1252(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeDecodeError)
    try:
        return error.object[error.start : error.end].decode("windows-1252"), error.end
    except UnicodeDecodeError:
        raise error from None


codecs.register_error(_FALLBACK_HANDLER, _decode_windows_1252)


def _complete_length(data: bytes) -> int:
    """Return the length of the data without an incomplete character at its end."""
    for back in range(1, min(4, len(data) + 1)):
        byte = data[-back]
        if byte >= 0xC0:
            length = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return len(data) - back if length > back else len(data)
        if byte < 0x80:
            break
    return len(data)
