"""Find or install required programs."""

import os
import shutil
import subprocess
import venv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.harness.errors import MissingTool

REQUIREMENTS = Path(__file__).parents[1] / "requirements.txt"

# nginx is often not in the PATH of ordinary users.
_SEARCH_PATH = os.pathsep.join((os.environ.get("PATH", os.defpath), "/usr/sbin", "/usr/local/sbin"))
_PEERS = ("Django", "djangorestframework", "gunicorn", "datasette")
_VERSION_SCRIPT = "import sys, importlib.metadata as m; print(*map(m.version, sys.argv[1:]), sep='\\n')"


@dataclass(frozen=True)
class Tools:
    """Paths of programs; `python` is the interpreter with the packages of the compared servers."""

    nginx: str
    wrk: str
    python: Path


def find_tools(folder: Path) -> Tools:
    """Find the programs, or install them: by apt when root, Python packages into `folder`.

    Raise MissingTool if a program cannot be installed, or if this is not Linux.
    """
    if not Path("/proc/self/smaps").exists():
        raise MissingTool("The benchmark needs Linux: it reads the memory of the servers from /proc.")
    return Tools(nginx=find_or_install("nginx"), wrk=find_or_install("wrk"), python=_install_peers(folder))


def get_versions(tools: Tools) -> dict[str, str]:
    """Return the version of each program and package by name."""
    peer_versions = _capture_output([str(tools.python), "-c", _VERSION_SCRIPT, *_PEERS]).split()
    return {
        "nginx": _capture_output([tools.nginx, "-v"]).rpartition("/")[2].split()[0],
        # A distribution puts its name and a slash before the number.
        "wrk": _capture_output([tools.wrk, "-v"]).split()[1].rpartition("/")[2],
        **dict(zip(_PEERS, peer_versions, strict=True)),
    }


def find_or_install(name: str) -> str:
    """Return the path of a program, installing it if possible; raise MissingTool otherwise."""
    path = shutil.which(name, path=_SEARCH_PATH)
    if path is None and os.geteuid() == 0 and shutil.which("apt-get"):
        subprocess.run(["apt-get", "update"], check=False, capture_output=True)
        subprocess.run(["apt-get", "install", "-y", "--no-install-recommends", name], check=False, capture_output=True)
        path = shutil.which(name, path=_SEARCH_PATH)
    if path is None:
        raise MissingTool(f"The benchmark needs {name}: install it with your system's package manager and run again.")
    return path


def _install_peers(folder: Path) -> Path:
    environment = folder / "venv"
    python = environment / "bin" / "python"
    requirements = REQUIREMENTS.read_text()
    installed = environment / "installed.txt"
    if installed.is_file() and installed.read_text() == requirements:
        return python
    folder.mkdir(parents=True, exist_ok=True)
    (folder / ".gitignore").write_text("*\n")
    venv.create(environment, with_pip=True, clear=True)
    completed = subprocess.run(
        [python, "-m", "pip", "install", "--quiet", "--requirement", REQUIREMENTS],
        check=False,
        capture_output=True,
        text=True,
    )
    if completed.returncode:
        raise MissingTool(
            f"The packages of the compared servers could not be installed: {completed.stderr.strip()[-500:]}"
        )
    installed.write_text(requirements)
    return python


def _capture_output(command: Sequence[str]) -> str:
    completed = subprocess.run(command, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return completed.stdout
