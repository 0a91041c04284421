"""Lexarium itself, as it is installed beside this interpreter."""

import subprocess
import sys
from pathlib import Path

from benchmarks.data.catalogue import BenchmarkCatalogue
from benchmarks.data.records import write_array
from benchmarks.harness.errors import SetupError
from benchmarks.harness.http_client import HOST
from benchmarks.harness.server_process import ServerSpec, find_free_port
from benchmarks.harness.tools import Tools

_COMMAND = (sys.executable, "-m", "lexarium")
_COLLECTION = "/api/v-alpha/concept"


def prepare_lexarium(catalogue: BenchmarkCatalogue, folder: Path, _: Tools) -> ServerSpec:
    """Import the catalogue into a new database."""
    url = f"sqlite:///{folder / 'catalogue.db'}"
    files = {"concept_class.json": catalogue.classes, "concept.json": catalogue.concepts}
    for name, records in files.items():
        write_array(records, folder / name)
    completed = subprocess.run(
        [*_COMMAND, "import", "--database", url, *files],
        cwd=folder,
        check=False,
        capture_output=True,
        text=True,
    )
    if completed.returncode:
        raise SetupError(
            f"Lexarium did not import the catalogue: {(completed.stderr or completed.stdout).strip()[-500:]}"
        )
    port = find_free_port()
    return ServerSpec(
        name="Lexarium",
        command=(
            *_COMMAND,
            "serve",
            "--database",
            url,
            "--host",
            HOST,
            "--port",
            str(port),
            "--workers",
            "1",
        ),
        port=port,
        collection_path=_COLLECTION,
        record_path=f"{_COLLECTION}?id={catalogue.sample_record['id']}",
        folder=folder,
    )
