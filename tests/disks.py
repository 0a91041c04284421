"""Disks that are full, on purpose, and processes that the file system can refuse something, even as root."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.lacking import skip
from tests.server import Server

_HELD_TO_PERMISSIONS = "-dac_override,-dac_read_search,-fowner"


class Disk:
    """A file system in memory that is full before long."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def resize(self, kilobytes: int) -> None:
        """Give it another size, while it is in use."""
        _mount("-o", f"remount,size={kilobytes}k", str(self.path))

    def fill(self) -> None:
        """Take all the room there is left."""
        with (self.path / "ballast").open("wb", buffering=0) as ballast:
            try:
                while ballast.write(bytes(4096)):
                    pass
            except OSError:
                pass

    def make_room(self) -> None:
        """Give back what `fill` took."""
        (self.path / "ballast").unlink()


@contextmanager
def small_disk(path: Path, kilobytes: int) -> Iterator[Disk]:
    """A disk of so many kibibytes. The test is skipped where none can be mounted."""
    path.mkdir()
    try:
        _mount("-t", "tmpfs", "-o", f"size={kilobytes}k", "tmpfs", str(path))
    except (OSError, subprocess.CalledProcessError):
        skip("no file system can be mounted here: it takes root, and a container that allows it")
    try:
        yield Disk(path)
    finally:
        subprocess.run(["umount", "--lazy", str(path)], check=True)


def _mount(*arguments: str) -> None:
    subprocess.run(["mount", *arguments], check=True, capture_output=True)


def held_to_permissions() -> list[str]:
    """What a command begins with that may not go past the permissions of files, though root runs it."""
    if os.geteuid() != 0:
        return []
    if shutil.which("setpriv") is None:
        skip("root may do anything here: there is no setpriv to take that away")
    return ["setpriv", f"--bounding-set={_HELD_TO_PERMISSIONS}", "--inh-caps=-all"]


class Ordinary(Server):
    """A server that is held to the permissions of files, whoever runs it."""

    def _started(self) -> "subprocess.Popen[str]":
        command = [*held_to_permissions(), sys.executable, "-m", "lexarium", *self._arguments]
        return subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=self._environment
        )
