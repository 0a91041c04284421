"""Latest known position, and whether the disk is full, shared between the processes of a node through mmap."""

import fcntl
import mmap
import struct
import threading
import zlib
from pathlib import Path

from lexarium.store.position import Position

_LAYOUT = struct.Struct("<64sqqqqqq")
_CHECKSUM = struct.Struct("<I")
_SIZE = _LAYOUT.size + _CHECKSUM.size
_DISK_FULL_OFFSET = _SIZE


class NodeState:
    """Newest position that any process of a node has read or written, and whether writes find room. Thread-safe."""

    def __init__(self, path: Path | None = None) -> None:
        """Open a file, which may be empty. The caller removes it. Without one, nothing is shared."""
        self._file = None if path is None else path.open("r+b")
        self._memory: mmap.mmap | bytearray = bytearray(_SIZE + 1)
        if self._file is not None:
            self._file.truncate(_SIZE + 1)
            self._memory = mmap.mmap(self._file.fileno(), _SIZE + 1)
        self._lock = threading.Lock()
        self._last_raw = b""
        self._position: Position | None = None

    @property
    def position(self) -> Position | None:
        """Newest position, or None if there is none yet."""
        raw = bytes(self._memory[:_SIZE])
        if raw != self._last_raw:
            position = _unpack(raw)
            if position is None:
                return self._position
            # In this order: a thread that sees the new bytes must also see the new position.
            self._position, self._last_raw = position, raw
        return self._position

    @property
    def is_disk_full(self) -> bool:
        """True if the last write of any process found the disk full."""
        return self._memory[_DISK_FULL_OFFSET] != 0

    @is_disk_full.setter
    def is_disk_full(self, full: bool) -> None:
        self._memory[_DISK_FULL_OFFSET] = full

    def close(self) -> None:
        """Close the file."""
        if self._file is not None and isinstance(self._memory, mmap.mmap):
            self._memory.close()
            self._file.close()

    def advance(self, position: Position) -> None:
        """Set the position, unless it is an older one."""
        with self._lock:
            if self._file is not None:
                fcntl.flock(self._file, fcntl.LOCK_EX)
            try:
                current = _unpack(bytes(self._memory[:_SIZE]))
                if current is None or position.supersedes(current):
                    self._memory[:_SIZE] = _pack(position)
            finally:
                if self._file is not None:
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
