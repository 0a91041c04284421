"""Full disks, and servers without root's file privileges."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.requirements import skip_or_fail
from tests.support.server import HttpResponse, Server, SpawnedServer

_DROPPED_CAPABILITIES = "-dac_override,-dac_read_search,-fowner"
# Fills a disk quickly and compresses badly.
LARGE_FIELDS = {"definition_text": " ".join(f"{number:x}" for number in range(9_000))}


class SmallDisk:
    """File system in memory with little space."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def resize(self, kilobytes: int) -> None:
        """Change its size while it is in use."""
        _mount("-o", f"remount,size={kilobytes}k", str(self.path))

    def fill(self) -> None:
        """Use up the free space."""
        with (self.path / "ballast").open("wb", buffering=0) as ballast:
            try:
                while ballast.write(bytes(4096)):
                    pass
            except OSError:
                pass

    def free_space(self) -> None:
        """Free the space that `fill` used."""
        (self.path / "ballast").unlink()


@contextmanager
def mount_small_disk(path: Path, kilobytes: int) -> Iterator[SmallDisk]:
    """Mount a disk of a given size; skip the test where that is not possible."""
    path.mkdir()
    try:
        _mount("-t", "tmpfs", "-o", f"size={kilobytes}k", "tmpfs", str(path))
    except (OSError, subprocess.CalledProcessError):
        skip_or_fail("no file system can be mounted here: it takes root, and a container that allows it")
    try:
        yield SmallDisk(path)
    finally:
        subprocess.run(["umount", "--lazy", str(path)], check=True)


def write_until_full(server: Server, token: str) -> tuple[list[str], HttpResponse]:
    """Write until the server refuses; return the names written and the refusal."""
    accepted: list[str] = []
    for number in range(5_000):
        response = server.create_concept(token, f"large {number}", **LARGE_FIELDS)
        if response.status != 201:
            return accepted, response
        accepted.append(response.json["name"])
    raise AssertionError("the disk is never full")


def _mount(*arguments: str) -> None:
    subprocess.run(["mount", *arguments], check=True, capture_output=True)


def build_unprivileged_prefix() -> list[str]:
    """Return the command prefix that makes even root obey file permissions."""
    if os.geteuid() != 0:
        return []
    if shutil.which("setpriv") is None:
        skip_or_fail("root may do anything here: there is no setpriv to take that away")
    return ["setpriv", f"--bounding-set={_DROPPED_CAPABILITIES}", "--inh-caps=-all"]


class UnprivilegedServer(SpawnedServer):
    """Server that obeys file permissions, even when run by root."""

    def _build_command(self) -> list[str]:
        return [*build_unprivileged_prefix(), *super()._build_command()]
