"""Lexarium itself, as it is installed beside this interpreter."""

import subprocess
import sys
from pathlib import Path

from benchmarks.answers import HOST
from benchmarks.catalogue import Catalogue
from benchmarks.errors import ServerFailed
from benchmarks.processes import Server, free_port
from benchmarks.records import write_array
from benchmarks.tools import Tools

_COMMAND = (sys.executable, "-m", "lexarium")
_COLLECTION = "/api/v-alpha/concept"


def lexarium(catalogue: Catalogue, folder: Path, _: Tools) -> Server:
    """Import the catalogue into a new database."""
    url = f"sqlite:///{folder / 'catalogue.db'}"
    files = {"concept_class.json": catalogue.classes, "concept.json": catalogue.concepts}
    for name, records in files.items():
        write_array(records, folder / name)
    done = subprocess.run(
        [*_COMMAND, "import", "--database", url, *files],
        cwd=folder,
        check=False,
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise ServerFailed(f"Lexarium did not import the catalogue: {(done.stderr or done.stdout).strip()[-500:]}")
    port = free_port()
    return Server(
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
        record_path=f"{_COLLECTION}?id={catalogue.example['id']}",
        folder=folder,
    )
