"""Datasette on SQLite, with limits raised so that a whole table fits in one response."""

from pathlib import Path

from benchmarks.data.catalogue import BenchmarkCatalogue
from benchmarks.harness.http_client import HOST
from benchmarks.harness.server_process import ServerSpec, find_free_port
from benchmarks.harness.tools import Tools
from benchmarks.servers.concept_table import TABLE, write_table

_TIME_LIMIT_MS = 300_000


def prepare_datasette(catalogue: BenchmarkCatalogue, folder: Path, tools: Tools) -> ServerSpec:
    """Write the database, opened as immutable, which is Datasette's fastest mode."""
    database = folder / "catalogue.db"
    write_table(catalogue, database)
    port = find_free_port()
    table = f"/{database.stem}/{TABLE}"
    settings = {"max_returned_rows": len(catalogue.concepts), "sql_time_limit_ms": _TIME_LIMIT_MS}
    return ServerSpec(
        name="Datasette",
        command=(
            *(str(tools.python), "-m", "datasette", "serve", "--immutable", str(database)),
            *("--host", HOST, "--port", str(port)),
            *(word for name, value in settings.items() for word in ("--setting", name, str(value))),
        ),
        port=port,
        collection_path=f"{table}.json?_shape=array&_size=max",
        record_path=f"{table}/{catalogue.sample_record['id']}.json?_shape=array",
        folder=folder,
        supports_304=False,
    )
