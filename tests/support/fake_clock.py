"""A server whose clock can be set, by Debian's libfaketime."""

import subprocess
import sys
from pathlib import Path

from tests.support.requirements import skip_or_fail
from tests.support.server import Server

_LIBRARY_PATTERN = "*/faketime/libfaketime.so.1"


class FakeClock:
    """What tells a server how far off its clock shall be."""

    def __init__(self, file: Path) -> None:
        libraries = sorted(Path("/usr/lib").glob(_LIBRARY_PATTERN))
        if not libraries:
            skip_or_fail("no clock can be set here: libfaketime is not there (apt-get install libfaketime)")
        self._file = file
        self.environment = {
            "LD_PRELOAD": str(libraries[0]),
            "FAKETIME_TIMESTAMP_FILE": str(file),
            "FAKETIME_NO_CACHE": "1",
            "DONT_FAKE_MONOTONIC": "1",
        }
        self.set_offset(days=0)

    def set_offset(self, *, days: int) -> None:
        """Set it so many days ahead, or back."""
        self._file.write_text(f"{days * 86_400:+d}\n")


class FakeClockServer(Server):
    """A server with such a clock."""

    def __init__(self, url: str, clock: FakeClock) -> None:
        super().__init__(url, **clock.environment)

    def _start_process(self) -> "subprocess.Popen[str]":
        command = [sys.executable, "-m", "lexarium", *self._arguments]
        return subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=self._environment
        )
