"""Where a node stands: told by each of its processes to the others, through memory that they share."""

import fcntl
import mmap
import struct
import threading
import zlib
from pathlib import Path

from lexarium.store.position import Position

_LAYOUT = struct.Struct("<64sqqqqq")
_CHECKSUM = struct.Struct("<I")
_SIZE = _LAYOUT.size + _CHECKSUM.size
_DISK_FULL_OFFSET = _SIZE
"""Offset of the byte that says whether the disk of the database is full."""


class SharedPosition:
    """The newest position that any process of a node has read, written or heard of. For any thread."""

    def __init__(self, path: Path) -> None:
        """The file may be new and empty; it is its maker's to remove."""
        self._file = path.open("r+b")
        self._file.truncate(_SIZE + 1)
        self._memory = mmap.mmap(self._file.fileno(), _SIZE + 1)
        self._lock = threading.Lock()
        self._last_raw = b""
        self._position: Position | None = None

    def read(self) -> Position | None:
        """The position; None where there is none yet, or it is being written at this moment."""
        raw = self._memory[:_SIZE]
        if raw != self._last_raw:
            position = _unpack(raw)
            if position is None:
                return self._position
            # In this order: another thread that sees the new bytes must find the new position.
            self._position, self._last_raw = position, raw
        return self._position

    @property
    def is_disk_full(self) -> bool:
        """Whether a write of any process found the disk of the database full, and none has been tried since."""
        return self._memory[_DISK_FULL_OFFSET] != 0

    @is_disk_full.setter
    def is_disk_full(self, full: bool) -> None:
        self._memory[_DISK_FULL_OFFSET] = full

    def close(self) -> None:
        """Let go of the file."""
        self._memory.close()
        self._file.close()

    def advance(self, position: Position) -> None:
        """Tell of a position; an older one changes nothing."""
        with self._lock:
            fcntl.flock(self._file, fcntl.LOCK_EX)
            try:
                current = _unpack(self._memory[:_SIZE])
                if current is None or position.supersedes(current):
                    self._memory[:_SIZE] = _pack(position)
            finally:
                fcntl.flock(self._file, fcntl.LOCK_UN)


def _pack(position: Position) -> bytes:
    epoch, *numbers = position
    values = _LAYOUT.pack(epoch.encode(), *numbers)
    return values + _CHECKSUM.pack(zlib.crc32(values))


def _unpack(raw: bytes) -> Position | None:
    values, (checksum,) = raw[: _LAYOUT.size], _CHECKSUM.unpack(raw[_LAYOUT.size :])
    if zlib.crc32(values) != checksum:
        return None
    epoch, *numbers = _LAYOUT.unpack(values)
    return Position(epoch.rstrip(b"\0").decode(), *numbers)
