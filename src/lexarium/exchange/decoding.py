"""Text as UTF-8, whatever it was: other encodings are found out as it is read."""

import codecs
import io
import re
from typing import Any, BinaryIO, Protocol

from lexarium.exchange.incoming import Malformed

_CHUNK = 1 << 18
MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
"""Byte order marks, with the longer first where one begins like another."""
_DECLARED = re.compile(rb"""<\?xml\s[^>]*?encoding\s*=\s*["']([\w.:-]+)["']""")
_UNICODE = (b"utf-8", b"utf8", b"us-ascii", b"ascii")
_NAMED = 20
"""How many lines are named."""


class Readable(Protocol):
    """What bytes can be read from."""

    def read(self, size: int = ..., /) -> bytes:
        """At most so many; none at the end."""


def declared(start: bytes) -> str | None:
    """The encoding that an XML document, which begins so, says that it is in, where that is not UTF-8."""
    found = _DECLARED.match(start.removeprefix(codecs.BOM_UTF8))
    return None if found is None or found.group(1).lower() in _UNICODE else found.group(1).decode().lower()


class Utf8(io.RawIOBase):
    """The text of a stream as UTF-8 without a byte order mark.

    Bytes that are not UTF-8 are read as Windows-1252 and their lines remembered. An XML document that declares
    another encoding is left as it is: whoever reads XML heeds that.
    """

    def __init__(self, stream: BinaryIO) -> None:
        super().__init__()
        self._stream = stream
        start = stream.peek(1024) if isinstance(stream, io.BufferedReader) else b""
        encoding = next((name for mark, name in MARKS.items() if start.startswith(mark)), "utf-8")
        wide = not encoding.startswith("utf-8")
        self._verbatim = declared(start) is not None or (wide and b"<\0?\0x" in start)
        self._transcode = codecs.getincrementaldecoder(encoding)() if wide else None
        if encoding == "utf-8-sig":
            stream.read(len(codecs.BOM_UTF8))
        self._waiting = b""
        """Given out before more is read."""
        self._cut = b""
        """The beginning of a character whose rest has not been read."""
        self._ended = False
        self._line = 1
        self._mended: list[int] = []
        self._mended_count = 0

    @property
    def warning(self) -> str | None:
        """What is to be told of what has been read so far."""
        if not self._mended_count:
            return None
        named = ", ".join(f"{line:,}" for line in self._mended)
        more = self._mended_count - len(self._mended)
        lines = (
            f"line {named} is" if self._mended_count == 1 else f"lines {named}{f' and {more:,} more' * (more > 0)} are"
        )
        return f"{lines} not UTF-8; what is not was read as Windows-1252"

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._waiting and not self._ended:
            self._waiting = self._next()
        size = min(len(buffer), len(self._waiting))
        buffer[:size] = self._waiting[:size]
        self._waiting = self._waiting[size:]
        return size

    def _next(self) -> bytes:
        data = self._stream.read(_CHUNK)
        self._ended = not data
        if self._verbatim:
            return data
        if self._transcode is not None:
            return self._transcoded(data)
        data = self._cut + data
        whole = len(data) if self._ended else _whole(data)
        data, self._cut = data[:whole], data[whole:]
        try:
            data.decode()
        except UnicodeDecodeError:
            data = self._mend(data)
        self._line += data.count(b"\n")
        return data

    def _transcoded(self, data: bytes) -> bytes:
        assert self._transcode is not None
        try:
            made = self._transcode.decode(data, self._ended).encode()
        except UnicodeError as error:
            what = "the byte order mark says UTF-16 or UTF-32, but the text is not"
            raise Malformed(f"{what}: {error}", self._line, 1) from None
        self._line += made.count(b"\n")
        return made

    def _mend(self, data: bytes) -> bytes:
        lines = data.splitlines(keepends=True) if b"\n" in data else [data]
        found = []
        number = self._line
        for line in lines:
            try:
                line.decode()
                found.append(line)
            except UnicodeDecodeError:
                found.append(self._mended_line(line, number))
            number += line.endswith(b"\n")
        return b"".join(found)

    def _mended_line(self, line: bytes, number: int) -> bytes:
        try:
            text = line.decode(errors=_MENDING)
        except UnicodeDecodeError as error:
            what = f"the byte {error.object[error.start]:02X} is neither UTF-8 nor Windows-1252"
            raise Malformed(what, number, error.start + 1) from None
        if not self._mended or self._mended[-1] != number:
            self._mended_count += 1
            if len(self._mended) < _NAMED:
                self._mended.append(number)
        return text.encode()


_MENDING = "lexarium-windows-1252"


def _as_windows(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeDecodeError)
    try:
        return error.object[error.start : error.end].decode("windows-1252"), error.end
    except UnicodeDecodeError:
        raise error from None


codecs.register_error(_MENDING, _as_windows)


def _whole(data: bytes) -> int:
    """How much of the data ends with a whole character."""
    for back in range(1, min(4, len(data) + 1)):
        byte = data[-back]
        if byte >= 0xC0:
            length = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return len(data) - back if length > back else len(data)
        if byte < 0x80:
            break
    return len(data)
