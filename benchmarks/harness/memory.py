"""Measure memory of a process tree."""

from pathlib import Path
from threading import Event, Thread
from types import TracebackType
from typing import Self

_PROC = Path("/proc")
_SAMPLE_SECONDS = 0.01


def get_memory_bytes(pid: int) -> int:
    """Return the memory of a process and its descendants; skip those that end meanwhile."""
    return sum(_get_process_bytes(member) for member in _list_descendants(pid))


class PeakMemory:
    """Sample a server's memory during a block; `peak` is the highest sample in bytes."""

    def __init__(self, pid: int) -> None:
        self.peak = get_memory_bytes(pid)
        self._pid = pid
        self._done = Event()
        self._thread = Thread(target=self._sample, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._done.set()
        self._thread.join()

    def _sample(self) -> None:
        while not self._done.wait(_SAMPLE_SECONDS):
            self.peak = max(self.peak, get_memory_bytes(self._pid))


def _list_descendants(pid: int) -> list[int]:
    children: dict[int, list[int]] = {}
    for entry in _PROC.iterdir():
        if entry.name.isdigit():
            children.setdefault(_get_parent(entry), []).append(int(entry.name))
    family = [pid]
    for member in family:
        family.extend(children.get(member, ()))
    return family


def _get_parent(process: Path) -> int:
    try:
        stat = (process / "stat").read_text()
    except OSError:
        return 0
    # The command name, in parentheses, may contain spaces and parentheses.
    return int(stat.rpartition(")")[2].split()[1])


def _get_process_bytes(pid: int) -> int:
    """Return the proportional set size, or the resident set size where the kernel lacks the former."""
    process = _PROC / str(pid)
    return _read_field_bytes(process / "smaps_rollup", "Pss:") or _read_field_bytes(process / "status", "VmRSS:")


def _read_field_bytes(path: Path, key: str) -> int:
    try:
        lines = path.read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith(key))
