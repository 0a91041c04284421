"""A large made catalogue, and the commands that fill it."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.data.generated import CLASSES
from benchmarks.data.records import Record, write_array
from benchmarks.data.search_records import generate_search_records
from benchmarks.harness.errors import SetupError
from benchmarks.harness.http_client import HOST
from benchmarks.harness.server_process import ServerSpec, find_free_port

COMMAND = (sys.executable, "-m", "lexarium")


def import_generated(folder: Path, database: str, count: int, role: str = "curator") -> tuple[list[Record], str]:
    """Import so many made records into a new database: they, and a token of someone in that role."""
    records = list(generate_search_records(count))
    files = {"concept_class.json": CLASSES, "concept.json": records}
    for name, file_records in files.items():
        write_array(file_records, folder / name)
    run_cli(database, "import", *(str(folder / name) for name in files))
    (folder / "concept.json").unlink()
    run_cli(database, "user", "add", "bench", "--role", role)
    return records, run_cli(database, "token", "create", "bench").strip()


def run_cli(database: str, *arguments: str) -> str:
    """What a command prints. Raises where it fails; an empty database is not named to it."""
    line = [*COMMAND, *arguments, *(("--database", database) if database else ())]
    completed = subprocess.run(line, capture_output=True, text=True, check=False)
    if completed.returncode:
        raise SetupError(f"lexarium {arguments[0]} failed: {(completed.stderr or completed.stdout).strip()[-500:]}")
    return completed.stdout


def build_server(folder: Path, database: str) -> ServerSpec:
    """One worker on a database."""
    port = find_free_port()
    options = ("--database", database, "--host", HOST, "--port", str(port))
    return ServerSpec(
        name="Lexarium",
        command=(*COMMAND, "serve", *options, "--workers", "1"),
        port=port,
        collection_path="/api/v-alpha/concept",
        record_path="/api/v-alpha/concept",
        folder=folder,
    )


def compute_percentile(times: Sequence[float], percent: int) -> float:
    """What so many of a hundred do not exceed."""
    return sorted(times)[min(len(times) - 1, len(times) * percent // 100)]


def format_percentiles(times: Sequence[float]) -> str:
    """The median and the 99th percentile, as tables have them."""
    return f"{compute_percentile(times, 50):.1f} / {compute_percentile(times, 99):.1f}"
