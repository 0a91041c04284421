"""Datasette over SQLite, with its limits raised so that a whole table comes in one answer."""

from pathlib import Path

from benchmarks.answers import HOST
from benchmarks.catalogue import Catalogue
from benchmarks.processes import Server, free_port
from benchmarks.servers.table import TABLE, write_table
from benchmarks.tools import Tools

_TIME_LIMIT_MS = 300_000


def datasette(catalogue: Catalogue, folder: Path, tools: Tools) -> Server:
    """Write the database. It is opened as immutable, which is Datasette's fastest way."""
    database = folder / "catalogue.db"
    write_table(catalogue, database)
    port = free_port()
    table = f"/{database.stem}/{TABLE}"
    settings = {"max_returned_rows": len(catalogue.concepts), "sql_time_limit_ms": _TIME_LIMIT_MS}
    return Server(
        name="Datasette",
        command=(
            *(str(tools.python), "-m", "datasette", "serve", "--immutable", str(database)),
            *("--host", HOST, "--port", str(port)),
            *(word for name, value in settings.items() for word in ("--setting", name, str(value))),
        ),
        port=port,
        collection_path=f"{table}.json?_shape=array&_size=max",
        record_path=f"{table}/{catalogue.example['id']}.json?_shape=array",
        folder=folder,
        answers_304=False,
    )
