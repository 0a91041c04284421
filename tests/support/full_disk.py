"""Disks that are full, on purpose, and processes that the file system can refuse something, even as root."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.requirements import skip_or_fail
from tests.support.server import Server

_DROPPED_CAPABILITIES = "-dac_override,-dac_read_search,-fowner"


class SmallDisk:
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

    def free_space(self) -> None:
        """Give back what `fill` took."""
        (self.path / "ballast").unlink()


@contextmanager
def mount_small_disk(path: Path, kilobytes: int) -> Iterator[SmallDisk]:
    """A disk of so many kibibytes. The test is skipped where none can be mounted."""
    path.mkdir()
    try:
        _mount("-t", "tmpfs", "-o", f"size={kilobytes}k", "tmpfs", str(path))
    except (OSError, subprocess.CalledProcessError):
        skip_or_fail("no file system can be mounted here: it takes root, and a container that allows it")
    try:
        yield SmallDisk(path)
    finally:
        subprocess.run(["umount", "--lazy", str(path)], check=True)


def _mount(*arguments: str) -> None:
    subprocess.run(["mount", *arguments], check=True, capture_output=True)


def build_unprivileged_prefix() -> list[str]:
    """What a command begins with that may not go past the permissions of files, though root runs it."""
    if os.geteuid() != 0:
        return []
    if shutil.which("setpriv") is None:
        skip_or_fail("root may do anything here: there is no setpriv to take that away")
    return ["setpriv", f"--bounding-set={_DROPPED_CAPABILITIES}", "--inh-caps=-all"]


class UnprivilegedServer(Server):
    """A server that is held to the permissions of files, whoever runs it."""

    def _start_process(self) -> "subprocess.Popen[str]":
        command = [*build_unprivileged_prefix(), sys.executable, "-m", "lexarium", *self._arguments]
        return subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=self._environment
        )
