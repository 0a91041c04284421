"""What the addresses of v1 answer with."""

from typing import Any

import orjson
from starlette.responses import Response

from lexarium.domain.change import Change
from lexarium.services.idempotency import WriteResponse
from lexarium.services.serializers import serialize_record
from lexarium.store.database import Database
from lexarium.store.write_queue import WriteTask
from lexarium.web.http.write_requests import await_write

PATH = "/api/v1"


class Json(Response):
    """JSON, rendered fast."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        return orjson.dumps(content)


def read(content: Any, **headers: str) -> Json:
    """The answer to a read."""
    return Json(content, headers={"cache-control": "no-cache", **headers})


def record(change: Change) -> Json:
    """A record."""
    return read(serialize_record(change), etag=etag_of(change.version))


async def written(database: Database, work: WriteTask[WriteResponse]) -> Json:
    """The answer to a write, once it is committed."""
    return told(await await_write(database, work))


def told(outcome: WriteResponse) -> Json:
    """The answer to a write that is done."""
    headers = {"location": outcome.location, "etag": outcome.etag}
    return Json(outcome.content, outcome.status, {name: value for name, value in headers.items() if value})


def etag_of(version: int) -> str:
    """The ETag of a version."""
    return f'"{version}"'


def address(collection: str, identifier: str) -> str:
    """Where a record is."""
    return f"{PATH}/{collection}/{identifier}"
