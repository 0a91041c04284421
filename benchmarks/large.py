"""A large made catalogue, and the commands that fill it."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.answers import HOST
from benchmarks.errors import ServerFailed
from benchmarks.made import CLASSES
from benchmarks.processes import Server, free_port
from benchmarks.records import Record, write_array
from benchmarks.terms import made_terms

COMMAND = (sys.executable, "-m", "lexarium")


def filled(folder: Path, database: str, count: int, role: str = "curator") -> tuple[list[Record], str]:
    """Import so many made records into a new database: they, and a token of someone in that role."""
    records = list(made_terms(count))
    files = {"concept_class.json": CLASSES, "concept.json": records}
    for name, each in files.items():
        write_array(each, folder / name)
    command(database, "import", *(str(folder / name) for name in files))
    (folder / "concept.json").unlink()
    command(database, "user", "add", "bench", "--role", role)
    return records, command(database, "token", "create", "bench").strip()


def command(database: str, *arguments: str) -> str:
    """What a command prints. Raises where it fails; an empty database is not named to it."""
    line = [*COMMAND, *arguments, *(("--database", database) if database else ())]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ServerFailed(f"lexarium {arguments[0]} failed: {(done.stderr or done.stdout).strip()[-500:]}")
    return done.stdout


def serving(folder: Path, database: str) -> Server:
    """One worker on a database."""
    port = free_port()
    options = ("--database", database, "--host", HOST, "--port", str(port))
    return Server(
        name="Lexarium",
        command=(*COMMAND, "serve", *options, "--workers", "1"),
        port=port,
        collection_path="/api/v-alpha/concept",
        record_path="/api/v-alpha/concept",
        folder=folder,
    )


def percentile(times: Sequence[float], percent: int) -> float:
    """What so many of a hundred do not exceed."""
    return sorted(times)[min(len(times) - 1, len(times) * percent // 100)]


def percentiles(times: Sequence[float]) -> str:
    """The median and the 99th percentile, as tables have them."""
    return f"{percentile(times, 50):.1f} / {percentile(times, 99):.1f}"
