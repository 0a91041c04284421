"""Convert a stream of text to UTF-8; detect its encoding."""

import codecs
import io
import re
from typing import Any

from lexarium.formats.parsed import ParseError

_CHUNK_BYTES = 1 << 18
# Byte order marks, and the beginning of XML without one. If one begins with another, the longer is first.
_WIDE_ENCODINGS = {
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
    b"<\0?\0": "utf-16-le",
    b"\0<\0?": "utf-16-be",
}
_XML_ENCODING_PATTERN = re.compile(rb"""<\?xml\s[^>]*?encoding\s*=\s*["']([\w.:-]+)["']""")
_UTF8_NAMES = ("utf-8", "utf8", "us-ascii", "ascii")
_MAX_LISTED_LINES = 20


class Utf8Stream(io.RawIOBase):
    """A stream of text, converted to UTF-8 without a byte order mark.

    A byte order mark or an XML declaration may state another encoding. Otherwise bytes that are not UTF-8 are read as
    Windows-1252, and their lines are recorded.
    """

    def __init__(self, stream: io.BufferedReader) -> None:
        super().__init__()
        self._stream = stream
        head = stream.peek(1024)
        if head.startswith(codecs.BOM_UTF8):
            stream.read(len(codecs.BOM_UTF8))
        wide_encoding = next((name for start, name in _WIDE_ENCODINGS.items() if head.startswith(start)), None)
        self._has_byte_order_mark = wide_encoding is not None
        declaration = _XML_ENCODING_PATTERN.match(head)
        declared = declaration.group(1).decode().lower() if declaration else "utf-8"
        self._encoding = wide_encoding or declared
        self._decoder: codecs.IncrementalDecoder | None = None
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
        data = self._check_utf8(data) if self._encoding in _UTF8_NAMES else self._transcode(data)
        self._line_number += data.count(b"\n")
        return data

    def _transcode(self, data: bytes) -> bytes:
        try:
            if self._decoder is None:
                "".encode(self._encoding)  # Rejects codecs that are no text encodings.
                self._decoder = codecs.getincrementaldecoder(self._encoding)()
            return self._decoder.decode(data, self._at_end).encode()
        except LookupError:
            message = f"it is declared to be in {self._encoding}, which is not a known encoding"
            raise ParseError(message, 1, 1) from None
        except UnicodeError as error:
            message = f"it is declared to be in {self._encoding}, but is not"
            if self._has_byte_order_mark:
                message = f"the byte order mark says UTF-16 or UTF-32, but the text is not: {error}"
            raise ParseError(message, self._line_number, 1) from None

    def _check_utf8(self, data: bytes) -> bytes:
        data = self._partial_char + data
        try:
            _, complete = codecs.utf_8_decode(data, "strict", self._at_end)
            decoded = data[:complete]
        except UnicodeDecodeError:
            _, complete = codecs.utf_8_decode(data, "replace", self._at_end)
            decoded = self._decode_with_fallback(data[:complete])
        self._partial_char = data[complete:]
        return decoded

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
