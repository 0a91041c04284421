"""Number of queries that a response takes when it is not cached."""

import asyncio
from pathlib import Path
from typing import Any

from sqlalchemy import event
from starlette.types import ASGIApp, Message

from lexarium.services.transfer.field_import.importer import import_files
from lexarium.settings import Settings
from lexarium.store.database import Database
from lexarium.web.app import create_app
from tests.support.databases import DatabaseUrlFactory

MAX_PAGE_QUERIES = 8


async def fetch(app: ASGIApp, path: str) -> tuple[int, bytes]:
    """Return the status and the body of a response."""
    headers = [(b"host", b"localhost"), (b"accept", b"application/json" if path.startswith("/api") else b"text/html")]
    route, _, query = path.partition("?")
    scope: dict[str, Any] = {"type": "http", "method": "GET", "scheme": "http", "headers": headers, "state": {}}
    scope |= {"path": route, "raw_path": route.encode(), "query_string": query.encode(), "client": ("127.0.0.1", 1)}
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.request", "body": b""}

    async def send(message: Message) -> None:
        sent.append(message)

    await app(scope, receive, send)
    return sent[0]["status"], b"".join(message.get("body", b"") for message in sent[1:])


def test_the_number_of_queries_per_response_does_not_grow_with_its_size(
    new_url: DatabaseUrlFactory, tmp_path: Path
) -> None:
    file = tmp_path / "concept.csv"
    rows = [f"trm_{number},term {number:03},trm_{1 if number < 5 else 0}" for number in range(1, 250)]
    file.write_text("\n".join(["id,name,KINDOF", "trm_0,root,", *rows, ""]))
    url = new_url("sqlite")
    database = Database(url)
    import_files(database, [file])
    app = create_app(Settings(database=url, cache_mb=0), database)
    queries: list[str] = []

    def count_queries(path: str) -> int:
        asyncio.run(fetch(app, path))  # fills the caches of a process, such as that of classes
        queries.clear()
        status, body = asyncio.run(fetch(app, path))
        assert (status, b"term 1" in body or b"term 003" in body) == (200, True), path
        return len(queries)

    def collect(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        if statement != "BEGIN":
            queries.append(statement)

    event.listen(database.backend.engine, "before_cursor_execute", collect)
    small, large = count_queries("/id/trm_1"), count_queries("/id/trm_0")
    assert small == large <= MAX_PAGE_QUERIES, "\n".join(queries)
    assert count_queries("/api/v1/records/trm_3") == 1
    assert count_queries("/api/v1/concept?limit=5") == count_queries("/api/v1/concept?limit=200") == 3
    database.close()
