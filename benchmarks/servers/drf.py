"""Django REST framework on SQLite behind gunicorn, like the public Cognitive Atlas site."""

from pathlib import Path

from benchmarks.data.catalogue import BenchmarkCatalogue
from benchmarks.harness.http_client import HOST
from benchmarks.harness.server_process import ServerSpec, find_free_port
from benchmarks.harness.tools import Tools
from benchmarks.servers.concept_table import write_table

_PROJECT = Path(__file__).with_name("drf_project.py")


def prepare_drf(catalogue: BenchmarkCatalogue, folder: Path, tools: Tools) -> ServerSpec:
    """Write the database and configure the project in `drf_project.py` with it."""
    database = folder / "catalogue.db"
    write_table(catalogue, database)
    port = find_free_port()
    return ServerSpec(
        name="Django REST framework",
        command=(
            *(str(tools.python), "-m", "gunicorn", "--workers", "1", "--timeout", "300"),
            *("--bind", f"{HOST}:{port}", "--chdir", str(_PROJECT.parent), f"{_PROJECT.stem}:application"),
        ),
        port=port,
        collection_path="/api/v-alpha/concept",
        record_path=f"/api/v-alpha/concept?id={catalogue.sample_record['id']}",
        folder=folder,
        environment={"BENCHMARK_DATABASE": str(database), "DJANGO_SETTINGS_MODULE": "drf_settings"},
    )
