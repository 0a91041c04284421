"""A server whose clock can be set, by Debian's libfaketime."""

import subprocess
import sys
from pathlib import Path

from tests.lacking import skip
from tests.server import Server

_LIBRARIES = "*/faketime/libfaketime.so.1"


class Clock:
    """What tells a server how far off its clock shall be."""

    def __init__(self, file: Path) -> None:
        found = sorted(Path("/usr/lib").glob(_LIBRARIES))
        if not found:
            skip("no clock can be set here: libfaketime is not there (apt-get install libfaketime)")
        self._file = file
        self.variables = {
            "LD_PRELOAD": str(found[0]),
            "FAKETIME_TIMESTAMP_FILE": str(file),
            "FAKETIME_NO_CACHE": "1",
            "DONT_FAKE_MONOTONIC": "1",
        }
        self.set(days=0)

    def set(self, *, days: int) -> None:
        """Set it so many days ahead, or back."""
        self._file.write_text(f"{days * 86_400:+d}\n")


class Clocked(Server):
    """A server with such a clock."""

    def __init__(self, url: str, clock: Clock) -> None:
        super().__init__(url, **clock.variables)

    def _started(self) -> "subprocess.Popen[str]":
        command = [sys.executable, "-m", "lexarium", *self._arguments]
        return subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=self._environment
        )
