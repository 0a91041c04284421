"""How much processor time processes have used: it hardly depends on what else a machine does."""

import os
from pathlib import Path

_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


def get_cpu_seconds(pid: int) -> float:
    """The seconds that a process, its children and those that have ended have used together."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return sum(map(_read_cpu_seconds, (str(pid), *children)))


def _read_cpu_seconds(pid: str) -> float:
    try:
        # After the name, which may hold anything: user, system, and both of the children that were waited for.
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except FileNotFoundError:
        return 0.0  # its parent has it now
    return sum(map(int, fields[11:15])) / _TICKS_PER_SECOND
