"""Where a node stands: told by each of its processes to the others, through memory that they share."""

import fcntl
import mmap
import struct
import threading
import zlib
from pathlib import Path

from lexarium.store.backend import Position

_LAYOUT = struct.Struct("<64sqqqqq")
_SUM = struct.Struct("<I")
_SIZE = _LAYOUT.size + _SUM.size
_FULL = _SIZE
"""Offset of the byte that says whether the disk of the database is full."""


class Mark:
    """The newest position that any process of a node has read, written or heard of. For any thread."""

    def __init__(self, path: Path) -> None:
        """The file may be new and empty; it is its maker's to remove."""
        self._file = path.open("r+b")
        self._file.truncate(_SIZE + 1)
        self._memory = mmap.mmap(self._file.fileno(), _SIZE + 1)
        self._writing = threading.Lock()
        self._seen = b""
        self._position: Position | None = None

    def read(self) -> Position | None:
        """The position; None where there is none yet, or it is being written at this moment."""
        raw = self._memory[:_SIZE]
        if raw != self._seen:
            position = _unpacked(raw)
            if position is None:
                return self._position
            # In this order: another thread that sees the new bytes must find the new position.
            self._position, self._seen = position, raw
        return self._position

    @property
    def full(self) -> bool:
        """Whether a write of any process found the disk of the database full, and none has been tried since."""
        return self._memory[_FULL] != 0

    @full.setter
    def full(self, full: bool) -> None:
        self._memory[_FULL] = full

    def close(self) -> None:
        """Let go of the file."""
        self._memory.close()
        self._file.close()

    def advance(self, position: Position) -> None:
        """Tell of a position; an older one changes nothing."""
        with self._writing:
            fcntl.flock(self._file, fcntl.LOCK_EX)
            try:
                present = _unpacked(self._memory[:_SIZE])
                if present is None or position.follows(present):
                    self._memory[:_SIZE] = _packed(position)
            finally:
                fcntl.flock(self._file, fcntl.LOCK_UN)


def _packed(position: Position) -> bytes:
    epoch, *numbers = position
    values = _LAYOUT.pack(epoch.encode(), *numbers)
    return values + _SUM.pack(zlib.crc32(values))


def _unpacked(raw: bytes) -> Position | None:
    values, (checksum,) = raw[: _LAYOUT.size], _SUM.unpack(raw[_LAYOUT.size :])
    if zlib.crc32(values) != checksum:
        return None
    epoch, *numbers = _LAYOUT.unpack(values)
    return Position(epoch.rstrip(b"\0").decode(), *numbers)
