"""Lexarium as installed in this environment."""

import subprocess
import sys
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from benchmarks.data.catalogue import BenchmarkCatalogue
from benchmarks.data.generated import CLASSES
from benchmarks.data.records import Record, write_array
from benchmarks.data.search_records import generate_search_records
from benchmarks.harness.errors import SetupError
from benchmarks.harness.http_client import HOST
from benchmarks.harness.server_process import ServerSpec, find_free_port
from benchmarks.harness.tools import Tools

COMMAND = (sys.executable, "-m", "lexarium")
COLLECTION_PATH = "/api/v-alpha/concept"


def prepare_lexarium(catalogue: BenchmarkCatalogue, folder: Path, _: Tools) -> ServerSpec:
    """Import the catalogue into a new database."""
    database = build_sqlite_url(folder)
    import_records(folder, database, catalogue.classes, catalogue.concepts)
    record_path = f"{COLLECTION_PATH}?id={catalogue.sample_record['id']}"
    return replace(build_server(folder, database), record_path=record_path)


def import_generated(folder: Path, database: str, count: int, role: str = "curator") -> tuple[list[Record], str]:
    """Import generated records into a new database; return them, and a token with a role."""
    records = list(generate_search_records(count))
    import_records(folder, database, CLASSES, records)
    return records, create_token(database, role)


def import_records(folder: Path, database: str, classes: Iterable[Record], concepts: Iterable[Record]) -> None:
    """Import classes and concepts into a new database."""
    paths = folder / "concept_class.json", folder / "concept.json"
    for path, records in zip(paths, (classes, concepts), strict=True):
        write_array(records, path)
    run_cli("import", *map(str, paths), "--database", database)
    for path in paths:
        path.unlink()


def create_token(database: str, role: str) -> str:
    """Create an account with a role and return a token of it."""
    run_cli("user", "add", "bench", "--role", role, "--database", database)
    return run_cli("token", "create", "bench", "--database", database).strip()


def run_cli(*arguments: str) -> str:
    """Run a command and return its output; raise SetupError if it fails."""
    completed = subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, check=False)
    if completed.returncode:
        raise SetupError(f"lexarium {arguments[0]} failed: {(completed.stderr or completed.stdout).strip()[-500:]}")
    return completed.stdout


def build_server(folder: Path, database: str) -> ServerSpec:
    """Return the spec of a server with one worker."""
    port = find_free_port()
    options = ("--database", database, "--host", HOST, "--port", str(port), "--workers", "1")
    return ServerSpec(
        name="Lexarium",
        command=(*COMMAND, "serve", *options),
        port=port,
        collection_path=COLLECTION_PATH,
        record_path=COLLECTION_PATH,
        folder=folder,
    )


def build_sqlite_url(folder: Path) -> str:
    """Return the URL of the SQLite database in a folder."""
    return f"sqlite:///{folder / 'catalogue.db'}"
