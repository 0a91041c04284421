"""Django REST framework over SQLite, in the manner of the public Cognitive Atlas site, behind gunicorn."""

from pathlib import Path

from benchmarks.answers import HOST
from benchmarks.catalogue import Catalogue
from benchmarks.processes import Server, free_port
from benchmarks.servers.table import write_table
from benchmarks.tools import Tools

_PROJECT = Path(__file__).with_name("drf_project.py")


def drf(catalogue: Catalogue, folder: Path, tools: Tools) -> Server:
    """Write the database and point the project in `drf_project.py` to it."""
    database = folder / "catalogue.db"
    write_table(catalogue, database)
    port = free_port()
    return Server(
        name="Django REST framework",
        command=(
            *(str(tools.python), "-m", "gunicorn", "--workers", "1", "--timeout", "300"),
            *("--bind", f"{HOST}:{port}", "--chdir", str(_PROJECT.parent), f"{_PROJECT.stem}:application"),
        ),
        port=port,
        collection_path="/api/v-alpha/concept",
        record_path=f"/api/v-alpha/concept?id={catalogue.example['id']}",
        folder=folder,
        environment={"BENCHMARK_DATABASE": str(database), "DJANGO_SETTINGS_MODULE": "drf_settings"},
    )
