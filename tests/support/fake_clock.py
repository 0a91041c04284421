"""Servers whose clock can be set, by Debian's libfaketime."""

from pathlib import Path

from tests.support.requirements import skip_or_fail
from tests.support.server import SpawnedServer

_LIBRARY_PATTERN = "*/faketime/libfaketime.so.1"


class FakeClock:
    """Clock of a server, set through a file."""

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
        """Set the clock ahead of real time, or back."""
        self._file.write_text(f"{days * 86_400:+d}\n")


class FakeClockServer(SpawnedServer):
    """Server that runs by a fake clock."""

    def __init__(self, url: str, clock: FakeClock) -> None:
        super().__init__(url, **clock.environment)
